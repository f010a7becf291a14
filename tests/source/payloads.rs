//! Real payloads of the six senders: key, type, resource and version of each.

use serde_json::Value;
use tidegate::source::{Greeted, Greeting, Reading};
use tidegate_actors::rules::event::{Event, Ignored, Intent};

use super::common::{Sent, preset};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/payloads");

fn request_of(sample: &Value) -> Sent {
    let file = format!("{FILES}/{}", sample["file"].as_str().expect("a file"));
    let body = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut pairs = vec![("content-type", sample["content_type"].as_str().expect("a content type"))];
    let own = sample["headers"].as_object().expect("headers").iter();
    pairs.extend(own.map(|(name, value)| (name.as_str(), value.as_str().expect("a value"))));
    let id = pairs
        .iter()
        .find(|(name, _)| matches!(*name, "webhook-id" | "svix-id" | "x-github-delivery" | "x-shopify-webhook-id"));
    let id = id.map_or("id", |(_, value)| value).to_owned();
    let mut sent = Sent::new(&pairs, body);
    let signed = sent.clone().signed(&preset(sample["preset"].as_str().expect("a preset")), &id, "");
    // what the sample carries stands; the signature comes from us
    for (name, value) in signed.headers.iter() {
        sent.headers.insert(name.clone(), value.clone());
    }
    sent
}

fn said(answer: &Greeted) -> Value {
    answer.body.as_ref().map(|(_, body)| String::from_utf8_lossy(body)).into()
}

fn check(event: &Event, expect: &Value) -> Result<(), String> {
    let same = |what: &str, found: &str, wanted: &Value| match wanted.as_str() {
        Some(wanted) if wanted == found => Ok(()),
        _ => Err(format!("{what} {found:?} in place of {wanted}")),
    };
    same("key", &event.key.text, &expect["key"])?;
    same("type", &event.kind, &expect["type"])?;
    if expect["ignored"] == "ping" {
        return (event.intent == Intent::Ignore(Ignored::Ping)).then_some(()).ok_or_else(|| "no ping".to_owned());
    }
    let guard = event.guards.first().ok_or("no resource")?;
    same("resource type", &guard.resource.kind, &expect["resource"][0])?;
    same("resource id", &guard.resource.id, &expect["resource"][1])?;
    if expect["deletes"] != event.deletes {
        return Err(format!("deletes {}", event.deletes));
    }
    let text = guard.version.as_ref().map(|version| version.text().split(',').next().unwrap_or_default().to_owned());
    let micros = text.map(|text| text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_microsecond));
    let micros = micros.transpose().map_err(|error| error.to_string())?;
    if micros != expect["version_us"].as_i64() {
        return Err(format!("version {micros:?} in place of {}", expect["version_us"]));
    }
    Ok(())
}

#[test]
fn every_payload_gives_its_key_type_resource_and_version() {
    let index = std::fs::read_to_string(format!("{FILES}/index.json")).expect("the index");
    let samples: Vec<Value> = serde_json::from_str(&index).expect("samples");
    assert!(samples.len() > 30);
    let mut wrong = Vec::new();
    for sample in &samples {
        let source = preset(sample["preset"].as_str().expect("a preset"));
        let expect = &sample["expect"];
        let checked = match request_of(sample).read(&source) {
            Reading::Event(event) => check(&event, expect),
            Reading::Greeting(Greeting::Answer(answer)) if said(&answer) == expect["reply"] => Ok(()),
            other => Err(format!("{other:?}")),
        };
        if let Err(error) = checked {
            wrong.push(format!("{}: {error}", sample["file"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_stripe_events_of_one_second_are_ordered_by_their_types() {
    let stripe = preset("stripe");
    let version = |kind: &str| {
        let body = format!(
            r#"{{"id":"evt_{kind}","type":"{kind}","created":1767225600,"data":{{"object":{{"id":"a","object":"b"}}}}}}"#
        );
        let event = Sent::new(&[], body).signed(&stripe, "", "").event(&stripe);
        event.guards[0].version.clone().expect("a version")
    };
    assert!(version("customer.created") < version("customer.updated"));
    assert!(version("customer.updated") < version("customer.deleted"));
    assert_eq!(version("invoice.paid"), version("invoice.finalized"));
}
