//! Quarantine, emptied by a person: run again by the settings of now under the time of then, or given up.

use serde_json::Value;
use tidegate_actors::rules::event::Verdict;

use crate::support::gate::Gate;
use crate::support::http::{Client, Request, Response};
use crate::support::place::Place;
use crate::support::signing::signed;

on_each_store! {
    what_can_be_used_now_goes_in_under_its_own_name_and_time;
    what_still_cannot_be_used_stays_and_says_why;
    a_bad_item_of_a_batch_is_run_again_alone;
    what_is_given_up_is_gone_and_comes_back_as_new;
    only_json_from_here_empties_anything;
}

/// The source `things`, whose key stands here.
fn settings(rules: &str) -> String {
    format!("[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n{rules}\n")
}

fn ask(gate: &Gate, what: &str, body: &Value) -> Response {
    let request = Request::post(&format!("/api/quarantine/{what}"), body.to_string());
    let mut client = Client::connect(gate.admin).expect("the admin listener takes connections");
    client.call(&request.header("content-type", "application/json")).expect("an answer")
}

fn retry(gate: &Gate) -> Value {
    let id = gate.quarantined()[0].id.to_string();
    let answer = ask(gate, "retry", &serde_json::json!({ "id": id }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The gate at the same place with other settings.
fn reopened(gate: Gate, rules: &str) -> Gate {
    let (_, place) = gate.stop();
    Gate::start_at(place, &settings(rules))
}

fn what_can_be_used_now_goes_in_under_its_own_name_and_time(place: Place) {
    let gate = Gate::start_at(place, &settings("key = [\"body:/nr\", \"header:x-shop\"]"));
    let request = signed("/in/things", "evt_1", r#"{"id":7,"type":"a"}"#).header("x-shop", "one");
    assert_eq!(gate.call(&request).status, 422);
    let kept = gate.quarantined().remove(0);
    let gate = reopened(gate, "key = [\"body:/id\", \"header:x-shop\", \"header:webhook-id\"]");
    assert_eq!(retry(&gate)["status"], "applied");
    let events = gate.events();
    assert_eq!((events.len(), events[0].id, events[0].received_at_ms), (1, kept.id, kept.received_at_ms));
    assert_eq!(events[0].key, "7/one/evt_1", "headers that no rule read before were kept too");
    assert!(gate.quarantined().is_empty());
    let counted =
        gate.counts().events.iter().find(|(verdict, _)| *verdict == Verdict::Quarantined).map_or(0, |row| row.1);
    assert_eq!(counted, 0);
    assert_eq!(gate.call(&request).verdict(), "duplicate", "the sender's own repeat");
}

fn what_still_cannot_be_used_stays_and_says_why(place: Place) {
    let gate = Gate::start_at(place, &settings("key = \"body:/nr\""));
    assert_eq!(gate.call(&signed("/in/things", "evt_1", r#"{"id":7}"#)).status, 422);
    let answer = retry(&gate);
    assert_eq!((&answer["status"], &answer["code"]), (&Value::from("quarantined"), &Value::from("key-missing")));
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("body:/nr")), "{answer}");
    assert_eq!(gate.quarantined().len(), 1);
    let unknown = ask(&gate, "retry", &serde_json::json!({ "id": uuid::Uuid::nil().to_string() }));
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "not-in-quarantine"));
}

fn a_bad_item_of_a_batch_is_run_again_alone(place: Place) {
    let gate = Gate::start_at(place, &settings("batch = \"body:\"\nkey = \"item:/id\""));
    let answer = gate.call(&signed("/in/things", "evt_1", r#"[{"id":"a"},{"nr":"b"}]"#));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let gate = reopened(gate, "batch = \"body:\"\nkey = \"item:/id | item:/nr\"");
    assert_eq!(retry(&gate)["status"], "applied");
    let keys: Vec<_> = gate.events().into_iter().map(|event| event.key).collect();
    assert!(keys.len() == 2 && keys.contains(&"b".to_owned()), "{keys:?}");
    assert!(gate.quarantined().is_empty());
}

fn what_is_given_up_is_gone_and_comes_back_as_new(place: Place) {
    let gate = Gate::start_at(place, &settings("key = \"body:/nr\""));
    let request = signed("/in/things", "evt_1", r#"{"id":7}"#);
    assert_eq!(gate.call(&request).status, 422);
    let id = gate.quarantined()[0].id.to_string();
    for reason in [Value::Null, Value::from("  "), Value::from("x".repeat(600)), Value::from("a\nb")] {
        let answer = ask(&gate, "drop", &serde_json::json!({ "id": id, "reason": reason }));
        assert_eq!(answer.status, 400, "{reason}: {}", answer.text());
    }
    let dropped = ask(&gate, "drop", &serde_json::json!({ "id": id, "reason": "a test of the sender" }));
    assert_eq!((dropped.status, &dropped.json()["status"]), (200, &Value::from("dropped")));
    assert!(gate.quarantined().is_empty());
    assert_eq!(ask(&gate, "drop", &serde_json::json!({ "id": id, "reason": "again" })).status, 404);
    assert_eq!(gate.call(&request).status, 422);
    assert_eq!(gate.quarantined()[0].times, 1);
}

fn only_json_from_here_empties_anything(place: Place) {
    let gate = Gate::start_at(place, &settings("key = \"body:/nr\""));
    assert_eq!(gate.call(&signed("/in/things", "evt_1", r#"{"id":7}"#)).status, 422);
    let body = serde_json::json!({ "id": gate.quarantined()[0].id.to_string(), "reason": "x" }).to_string();
    for what in ["retry", "drop"] {
        let post = || Request::post(&format!("/api/quarantine/{what}"), body.clone());
        let call =
            |request: Request| Client::connect(gate.admin).expect("a connection").call(&request).expect("an answer");
        assert_eq!(call(post()).status, 415);
        let foreign = post().header("content-type", "application/json").header("origin", "https://evil.example");
        assert_eq!(call(foreign).status, 403);
        assert_eq!(call(Request::new("GET", &format!("/api/quarantine/{what}"))).status, 405);
    }
    assert_eq!(gate.quarantined().len(), 1);
}
