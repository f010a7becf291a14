//! What a preset answers before anything is sent: the handshakes of its sender's documents.

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use serde_json::Value;
use tidegate::source::{Greeted, Greeting, Reading, Request, Source};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::super::common::NOW_MS;
use super::super::stated::Entry;
use super::super::vectors::vector::Vector;
use super::Wrong;
use super::vectors::{of_schemes, source_of};

/// The status, and the answer where a handshake gives it.
fn answered(source: &Source, vector: &Vector) -> (u16, Option<Greeted>) {
    let taken = vector.taken();
    let request = taken.request();
    let greeting = match source.greet(&request) {
        Some(greeting) => greeting,
        None if *request.method != Method::POST => return (200, None),
        None => {
            match taken.verdict(source, &vector.key()).and_then(|()| source.verify(&request).map_err(|no| no.reason)) {
                Err(_) => return (401, None),
                Ok(verified) => match source.read(&request, &verified, &|| EventId(Uuid::nil())) {
                    Reading::Greeting(greeting) => greeting,
                    Reading::Batch(items) if items.is_empty() => return (200, None),
                    other => panic!("{other:?}"),
                },
            }
        }
    };
    match greeting {
        Greeting::Answer(greeted) => (greeted.status, Some(*greeted)),
        Greeting::Refused { status, .. } => (status, None),
    }
}

fn differences(id: &str, found: (u16, Option<Greeted>), expected: &Value) -> Result<(), String> {
    let (status, greeted) = found;
    // one answer for whatever is not authentic
    let forged = id.ends_with("-forged") && status == 401;
    if expected["status"] != status && !forged {
        return Err(format!("{status} in place of {}", expected["status"]));
    }
    let body = greeted.as_ref().and_then(|greeted| greeted.body.as_ref()).map(|(kind, body)| (*kind, &body[..]));
    if let Some(text) = expected["body"].as_str()
        && !body.is_some_and(|(kind, body)| body == text.as_bytes() && kind.starts_with("text/plain"))
        && !(text.is_empty() && body.is_none())
    {
        return Err(format!("{body:?} in place of {text:?}"));
    }
    if let Some(json) = expected.get("json") {
        let (kind, body) = body.ok_or("no body")?;
        if serde_json::from_slice::<Value>(body).ok().as_ref() != Some(json) || kind != "application/json" {
            return Err(format!("{kind}: {body:?} in place of {json}"));
        }
    }
    // `nosniff` is every answer's
    let wanted = expected["headers"].as_object().into_iter().flatten();
    for (name, value) in wanted.filter(|(name, _)| *name != "x-content-type-options") {
        let mut headers = greeted.iter().flat_map(|greeted| &greeted.headers);
        if !headers.any(|(known, found)| known == name.as_str() && found.to_str().ok() == value.as_str()) {
            return Err(format!("no {name}: {value}"));
        }
    }
    Ok(())
}

#[test]
fn every_handshake_of_a_sender_is_answered_by_its_preset() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let mut judged = 0;
        for vector in of_schemes(&entry.handshakes) {
            judged += 1;
            let expected = vector.expect_response.as_ref().expect("an answer");
            let found = answered(&source_of(&entry, &vector), &vector);
            if let Err(difference) = differences(&vector.id, found, expected) {
                wrong.add(&entry, format!("{}: {difference}", vector.id));
            }
        }
        if judged == 0 && !entry.handshakes.is_empty() {
            wrong.add(&entry, "no vector of its handshake");
        }
    }
    wrong.none();
}

/// A GET with this query, as a preset's sender asks it.
fn asked(name: &str, query: &str) -> u16 {
    let source = Entry::named(name).source();
    let (target, headers, body) = (format!("/in/{name}?{query}"), HeaderMap::new(), Bytes::new());
    let (method, path_tenant, now_ms) = (&Method::GET, None, NOW_MS);
    let request = Request { method, target: &target, path_tenant, headers: &headers, body: &body, now_ms };
    match source.greet(&request) {
        Some(Greeting::Answer(greeted)) => greeted.status,
        Some(Greeting::Refused { status, .. }) => status,
        None => 200,
    }
}

#[test]
fn a_stranger_cannot_have_a_subscription_of_websub_ended() {
    let topic = "hub.topic=https%3A%2F%2Fexample.com%2Ffeed&hub.challenge=c0ffee";
    assert_eq!(asked("websub", &format!("hub.mode=subscribe&{topic}")), 200);
    assert_eq!(asked("websub", &format!("hub.mode=unsubscribe&{topic}")), 404);
    // the hub says that it will not: there is nothing to answer
    assert_eq!(asked("websub", "hub.mode=denied&hub.topic=https%3A%2F%2Fexample.com%2Ffeed"), 200);
}

#[test]
fn an_intent_to_receive_of_xero_may_have_no_array_at_all() {
    let xero = Entry::named("xero");
    let (source, sample) = (xero.source(), &xero.samples[0]);
    let body = br#"{"events":null,"firstEventSequence":0,"lastEventSequence":0,"entropy":"FMLHZNKCVK"}"#;
    let sent = sample.sent(&source, "/in/xero", body.to_vec(), NOW_MS);
    let verified = xero.verify(&source, &sent).expect("a signed request");
    let reading = source.read(&sent.request(), &verified, &|| EventId(Uuid::nil()));
    assert!(matches!(reading, Reading::Greeting(Greeting::Answer(_))), "{reading:?}");
}
