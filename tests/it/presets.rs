//! One request of every sender, through its preset as it is: taken once, known again, refused when altered.

use tidegate::source::Source;

use crate::support::gate::Gate;
use crate::support::http::{Request, Response};
use crate::support::place::Place;
use crate::support::presets::{Covers, Entry, Sample, Sent};
use crate::support::signing::now_s;

on_each_store! {
    every_sender_s_requests_are_taken_once_known_again_and_refused_when_altered;
}

/// Those whose secret stands in the settings, each with the source that signs for it.
fn senders() -> Vec<(Entry, Source)> {
    let entries = Entry::all().into_iter().filter(|entry| !entry.fetched);
    entries.map(|entry| (entry.source(), entry)).map(|(source, entry)| (entry, source)).collect()
}

fn settings(senders: &[(Entry, Source)]) -> String {
    let one = |(entry, _): &(Entry, Source)| {
        let secret = serde_json::Value::String(format!("demo:{}", entry.secret().trim()));
        format!("[[source]]\n{}secrets = [{secret}]\n", entry.settings())
    };
    senders.iter().map(one).collect()
}

fn request(sample: &Sample, (entry, source): &(Entry, Source), body: Vec<u8>) -> Request {
    let sent: Sent = sample.sent(source, &format!("/in/{}", entry.name), body, now_s() * 1000);
    let mut request = Request::post(&sent.target, sent.body.to_vec());
    for (name, value) in &sent.headers {
        request = request.header(name.as_str(), value.to_str().expect("a text"));
    }
    request
}

fn assert_taken(answer: &Response, sample: &Sample) {
    assert!(matches!(answer.status, 200 | 202), "{}: {} {}", sample.file, answer.status, answer.text());
}

fn every_sender_s_requests_are_taken_once_known_again_and_refused_when_altered(place: Place) {
    let senders = senders();
    let gate = Gate::start_at(place, &settings(&senders));
    let mut keys: Vec<(String, String)> = Vec::new();
    for sender in &senders {
        let entry = &sender.0;
        for sample in &entry.samples {
            assert_taken(&gate.call(&request(sample, sender, sample.body())), sample);
            assert_taken(&gate.call(&request(sample, sender, sample.body_again())), sample);
            keys.extend(sample.events.iter().map(|event| (entry.name.clone(), event.key.clone())));
            if entry.covers == Covers::Body {
                let mut altered = request(sample, sender, sample.body());
                let at = altered.body.len() / 2;
                altered.body[at] ^= 1;
                assert_eq!(gate.call(&altered).status, 401, "{}", sample.file);
            }
        }
    }
    let mut found: Vec<(String, String)> =
        gate.events().iter().map(|row| (row.source.clone(), row.key.clone())).collect();
    found.sort();
    keys.sort();
    keys.dedup();
    assert_eq!(found, keys);
    assert!(gate.quarantined().is_empty());
}
