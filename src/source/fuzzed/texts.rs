//! Properties of the parsers of texts.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tidegate_actors::rules::version::{EpochUnit, Part, Precision, Version};

use super::super::canonical::{Without, canonical as form_of};
use super::super::encoding::{self, Packing};
use super::super::json::{JsonFault, Wanted, scalar};
use super::super::{digest, form, parts, step, times as instants, xml as markup};
use super::{choice, text};

/// What is picked out of JSON is what another reader finds there, byte for byte in the text.
pub(super) fn json(bytes: &[u8]) {
    const POINTERS: [&str; 9] = ["", "/a", "/a/b", "/a/0", "/id", "/data/object/id", "/data/id", "/0/id", "/a~1b/~0"];
    let Some(text) = text(bytes) else { return };
    let mut wanted = Wanted::default();
    let slots: Vec<usize> = POINTERS.iter().map(|pointer| wanted.add(pointer).expect("a pointer")).collect();
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    match wanted.read(text) {
        Ok(values) => {
            for (pointer, slot) in POINTERS.iter().zip(slots) {
                let Some(raw) = values[slot] else {
                    assert!(parsed.as_ref().is_none_or(|json| json.pointer(pointer).is_none()), "{pointer} is there");
                    continue;
                };
                assert!(text.as_bytes().as_ptr_range().contains(&raw.as_ptr()), "not a piece of the text");
                if let Some(json) = &parsed {
                    let known = json.pointer(pointer).expect("a value");
                    assert_eq!(serde_json::from_str::<Value>(raw).ok().as_ref(), Some(known), "{pointer}");
                }
                if let (Ok(Some(found)), Some(known)) =
                    (scalar(raw), parsed.as_ref().and_then(|json| json.pointer(pointer)))
                {
                    assert!(known.as_str().is_none_or(|known| known == found), "{pointer}");
                }
            }
        }
        // a member that stands twice is one for other readers
        Err(JsonFault::Duplicate(_)) => {}
        Err(JsonFault::NotJson(why)) => assert!(parsed.is_none(), "JSON, and it is none: {why}"),
    }
    let _ = step::from_base64(text);
}

/// A canonical form is its own canonical form, says the same, and is as long as the text at most.
pub(super) fn canonical(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let mut without = Without::default();
    ["/a", "/b/c", "/data/attempt"].iter().for_each(|pointer| without.add(pointer));
    if let Ok(form) = form_of(text, &Without::default()) {
        let form = String::from_utf8(form).expect("a text");
        assert_eq!(form_of(&form, &Without::default()).as_deref(), Ok(form.as_bytes()), "its own form");
        if let Ok(said) = serde_json::from_str::<Value>(text) {
            assert_eq!(serde_json::from_str::<Value>(&form).ok(), Some(said), "the same value");
        }
    }
    if let Ok(form) = form_of(text, &without) {
        let form = String::from_utf8(form).expect("a text");
        assert_eq!(form_of(&form, &without).as_deref(), Ok(form.as_bytes()), "nothing is left out twice");
    }
    // cutting nothing out leaves the digest of the bytes
    assert_eq!(digest::without(text, std::iter::empty()), digest::without(text, std::iter::empty()));
}

/// JSON made of XML is JSON, and not much longer than the XML.
pub(super) fn xml(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(json) = markup::to_json(text) {
        let read: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&json);
        assert!(read.is_ok(), "no JSON: {json}");
        assert!(json.len() <= 16 * text.len() + 64, "{} bytes out of {}", json.len(), text.len());
    }
}

/// A form field is read as it was written, whatever stands beside it.
pub(super) fn forms(bytes: &[u8]) {
    let wanted = ["payload".to_owned(), "a".to_owned()];
    let _ = form::read(bytes, &wanted);
    let Some(value) = text(bytes) else { return };
    let escaped: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(form::decode(escaped.as_bytes()).as_deref(), Some(value), "escaped and back");
    let body = format!("x=1&payload={escaped}&&y");
    let fields = form::read(body.as_bytes(), &wanted).expect("a form");
    assert_eq!((fields[0].as_deref(), fields[1].as_deref()), (Some(value), None));
    let twice = format!("{body}&p%61yload=");
    assert!(form::read(twice.as_bytes(), &wanted).is_err(), "two of one name");
}

/// A time that is read and printed is the same time; a version is read again as itself.
pub(super) fn times(bytes: &[u8]) {
    const ZONES: [&str; 4] = ["", "UTC", "+02:00", "-11:30"];
    let Some((zone, rest)) = choice(&ZONES, bytes) else { return };
    let Some(text) = text(rest) else { return };
    let zone = instants::zone(zone);
    for time in [instants::time(text, zone), instants::mail_date(text)].into_iter().flatten() {
        let printed = time.to_string();
        assert_eq!(instants::time(&printed, None), Some(time), "{text:?} as {printed}");
        assert_eq!(printed.parse::<Timestamp>().ok(), Some(time));
    }
    if let Some(offset) = instants::zone(text) {
        assert_eq!(
            instants::zone(&if text == "UTC" { text.to_owned() } else { offset_text(offset.seconds()) }),
            Some(offset)
        );
    }
    for precision in [Precision::Seconds, Precision::Millis, Precision::Micros, Precision::Nanos] {
        let part = Part::rfc3339(text, precision);
        let _ = [EpochUnit::Seconds, EpochUnit::Millis].map(|unit| Part::epoch(text, unit, precision));
        if let Ok(version) = part.and_then(|part| Version::new(&[part])) {
            let again = Part::rfc3339(version.text(), precision).and_then(|part| Version::new(&[part]));
            assert_eq!(again.as_ref().map(Version::bytes), Ok(version.bytes()), "{text:?} as {}", version.text());
        }
    }
    if let Ok(version) = Version::integer(text) {
        let again = Version::integer(version.text()).expect("an integer");
        assert_eq!(again.bytes(), version.bytes());
    }
}

fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", seconds.abs() / 3600, seconds.abs() / 60 % 60)
}

/// Items and members are pieces of the text, in its order, and no more than are asked for.
pub(super) fn batches(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let range = text.as_bytes().as_ptr_range();
    if let Ok(items) = parts::items(text, 8) {
        assert!(items.len() <= 8 && items.windows(2).all(|two| two[0].as_ptr() < two[1].as_ptr()));
        assert!(items.iter().all(|item| range.contains(&item.as_ptr())));
        let joined = format!("[{}]", items.join(","));
        assert_eq!(parts::items(&joined, 8).as_deref(), Ok(items.as_slice()), "put together again");
    }
    if let Ok(members) = parts::members(text, 8) {
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert!(members.len() <= 8 && names.len() == members.len());
        assert!(members.iter().all(|(_, value)| range.contains(&value.as_ptr())));
    }
}

/// What is packed comes out again, and nothing becomes larger than its bound.
pub(super) fn packed(bytes: &[u8]) {
    use std::io::Write as _;
    for packing in [Packing::Gzip, Packing::Deflate] {
        for max in [1000, 100_000] {
            if let Ok(unpacked) = encoding::unpack(bytes, packing, max) {
                assert!(unpacked.len() <= max);
            }
        }
    }
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let packed = packer.write_all(bytes).and_then(|()| packer.finish()).expect("packed");
    if bytes.len() < 10_000 {
        assert_eq!(encoding::unpack(&packed, Packing::Gzip, 10_000), Ok(Bytes::copy_from_slice(bytes)));
    }
}
