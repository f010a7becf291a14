//! Senders that sign little of what they send: what a captured signature is good for.

use tidegate_actors::rules::event::Event;

use super::super::stated::{Entry, Sent};
use super::{events, sent};

/// The events of a captured request and of what was put under its signature, both of which verify.
fn captured(name: &str, forge: impl Fn(&mut Sent)) -> [Event; 2] {
    let entry = Entry::named(name);
    let source = entry.source();
    let mut request = sent(&entry.samples[0], &source);
    let event = |request: &Sent| events(&entry, &source, request).expect("an event that verifies").remove(0);
    let first = event(&request);
    forge(&mut request);
    [first, event(&request)]
}

#[test]
fn another_event_under_mailguns_signed_token_is_a_conflict() {
    let [first, forged] = captured("mailgun", |request| {
        let text = String::from_utf8(request.body.to_vec()).expect("a text");
        request.body = text.replace("\"delivered\"", "\"complained\"").replace("CPgfbm", "forged").into();
    });
    assert_eq!((first.kind.as_str(), forged.kind.as_str()), ("delivered", "complained"));
    assert_eq!(first.key.text, forged.key.text);
    assert_ne!(first.digest, forged.digest);
}

#[test]
fn another_event_with_the_check_sum_that_paypal_signs_is_a_conflict() {
    let forgery = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/payloads/paypal-forged-same-crc.json");
    let forgery = std::fs::read(forgery).expect("the forgery");
    let [first, forged] = captured("paypal", |request| request.body = forgery.clone().into());
    assert!(String::from_utf8_lossy(&forged.body).contains("9999.00"));
    assert_eq!(first.key.text, forged.key.text);
    assert_ne!(first.digest, forged.digest);
}

#[test]
fn another_transmission_of_one_paypal_event_is_known_by_the_event() {
    let entry = Entry::named("paypal");
    let source = entry.source();
    let first = events(&entry, &source, &sent(&entry.samples[0], &source)).expect("an event").remove(0);
    let text = first.effect_key.as_ref().map(|key| key.text.as_str());
    assert_eq!(text, Some("WH-2WR32451HC0233532-67976317FL4543714"));
    assert_ne!(first.key.text, "WH-2WR32451HC0233532-67976317FL4543714");
}
