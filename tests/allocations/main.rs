//! What is allocated for a request does not grow with its body: verification and extraction borrow from the bytes
//! that came. Counted by an allocator of this binary's own, for this thread alone.

#[path = "../support/presets.rs"]
mod stated;

use allocation_counter::measure;
use serde_json::Value;
use tidegate::source::{Reading, Source, SourceSpec};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use stated::{Covers, Entry, Sample, Sent};

const NOW_MS: i64 = 1_772_452_800_000;
const SIZES: [usize; 3] = [1024, 64 * 1024, 1024 * 1024];
/// How much more a large request may allocate than a small one.
const SLACK_BYTES: u64 = 256;

/// The sample with members that nobody asks for, as long as stated.
fn padded(sample: &Sample, bytes: usize) -> Option<Vec<u8>> {
    let body = sample.body();
    let json: Value = serde_json::from_slice(&body).ok()?;
    let rest = String::from_utf8(body).ok()?;
    let rest = rest.trim_start().strip_prefix('{').filter(|_| json.is_object())?.to_owned();
    let item = r#"{"sku":"sku_000001","name":"a thing with an \u00e4","prices":[1.50,2e3,true,null]},"#;
    let items = item.repeat(bytes.saturating_sub(rest.len()) / item.len());
    Some(format!(r#"{{"nobody asks for this":[{items}null],{rest}"#).into_bytes())
}

/// Bytes allocated to verify and to read a request, the second time it is done.
fn allocated(entry: &Entry, source: &Source, sent: &Sent) -> (u64, u64) {
    let request = sent.request();
    let verified = entry.verify(source, sent).unwrap_or_else(|refusal| panic!("{}: {refusal}", entry.name));
    let ids = || EventId(Uuid::nil());
    let reading = source.read(&request, &verified, &ids);
    assert!(matches!(reading, Reading::Event(_) | Reading::Batch(_)), "{}: {reading:?}", entry.name);
    let verifying = measure(|| drop(source.verify(&request)));
    let reading = measure(|| drop(source.read(&request, &verified, &ids)));
    (verifying.bytes_total, reading.bytes_total)
}

/// Whether the scheme hands its bytes to the key piece by piece, and the event's key is no digest of its canonical
/// JSON: that sorts members, and so keeps a list of them.
fn borrows_all(entry: &Entry) -> bool {
    let spec: SourceSpec = toml::from_str(&entry.settings()).expect("settings");
    let spec = spec.with_preset().expect("a preset");
    let scheme = format!("{:?}", spec.verify);
    let keyed = ["HmacSha", "StandardWebhooks", "Contentful"].iter().any(|keyed| scheme.contains(keyed));
    keyed && !format!("{:?}", spec.key).contains("digest")
}

#[test]
fn nothing_that_is_allocated_for_a_request_grows_with_its_body() {
    let (mut grown, mut measured) = (Vec::new(), 0);
    for entry in Entry::all() {
        let source = entry.source();
        if entry.covers != Covers::Body || !borrows_all(&entry) {
            continue;
        }
        let Some(sample) = entry.samples.iter().find(|sample| padded(sample, 1).is_some()) else { continue };
        let sizes = SIZES.map(|bytes| {
            let body = padded(sample, bytes).expect("an object");
            allocated(&entry, &source, &sample.sent(&source, "/in/test", body, NOW_MS))
        });
        measured += 1;
        let [small, .., large] = sizes;
        if large.0 > small.0 + SLACK_BYTES || large.1 > small.1 + SLACK_BYTES {
            grown.push(format!("{}: verified and read with {sizes:?} bytes", entry.name));
        }
    }
    assert!(measured > 40, "only {measured} presets were measured");
    assert!(grown.is_empty(), "{} of {measured}:\n{}", grown.len(), grown.join("\n"));
}
