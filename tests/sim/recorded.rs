//! `--from`: recorded streams, read by the rules of the source they came from.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate::clock::SystemClock;
use tidegate::source::{Reading, Request, Source, SourceSpec};
use tidegate::store::{self, StoreSettings};
use tidegate_actors::ports::Clock as _;

use super::{folder, passed, simulate, stderr, stdout};

const CREATED: &str = include_str!("../data/payloads/stripe-same-second-1-created.json");
const UPDATED: &str = include_str!("../data/payloads/stripe-same-second-2-updated.json");

/// A stream as Stripe sends it: customers that are created and updated, each event a real body with its own
/// id, time and object.
fn stripe_stream(customers: u32, updates: u32) -> String {
    let mut lines = String::new();
    for step in 0..=updates {
        for customer in 0..customers {
            let text = if step == 0 { CREATED } else { UPDATED };
            let mut event: Value = serde_json::from_str(text).expect("a body");
            event["id"] = json!(format!("evt_{customer}_{step}"));
            event["created"] = json!(1_700_000_000 + step * 60);
            event["data"]["object"]["id"] = json!(format!("cus_{customer}"));
            writeln!(lines, "{event}").expect("a text");
        }
    }
    lines
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("written");
}

#[test]
fn a_stream_of_stripe_goes_through_the_policy_of_its_preset() {
    let folder = folder();
    write(folder.path(), "events.jsonl", &stripe_stream(10, 11));
    let arguments = ["reorder-storm", "--from", "events.jsonl", "--source", "stripe", "--seed", "3"];
    let told = passed(folder.path(), &arguments);
    assert_eq!(told["counts"]["events"], 120, "{told}");
    let rows = &told["counts"]["rows"];
    assert!(rows["stale"].as_u64() > Some(5), "late events are stale: {rows}");
    let sum: u64 = rows.as_object().expect("rows").values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 120, "{rows}");
}

#[test]
fn the_same_stream_under_another_policy_tells_what_would_have_gone_wrong() {
    let folder = folder();
    write(folder.path(), "events.jsonl", &stripe_stream(10, 11));
    let arguments =
        ["reorder-storm", "--from", "events.jsonl", "--source", "stripe", "--seed", "3", "--compare", "newest,arrival"];
    let told = passed(folder.path(), &arguments);
    let [newest, arrival] = told["compare"].as_array().expect("two policies").as_slice() else { panic!("{told}") };
    assert_eq!((&newest["policy"], &arrival["policy"]), (&"newest".into(), &"arrival".into()));
    assert_eq!((&newest["wrong_states"], &newest["wrong"]), (&0.into(), &json!([])), "{newest}");
    assert!(newest["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "late ones are passed over: {newest}");
    let wrong = arrival["wrong"].as_array().expect("a list");
    assert!(
        !wrong.is_empty() && wrong.iter().all(|one| one["key"].as_str().is_some_and(|key| key.starts_with("evt_")))
    );
    let text = stdout(&simulate(folder.path(), &arguments));
    assert!(text.contains("arrival: applied wrongly, "), "{text}");
    assert!(text.contains("evt_"), "{text}");
}

#[test]
fn lines_with_headers_are_read_by_the_headers_and_repeats_are_left_out() {
    let folder = folder();
    let mut lines = String::new();
    for delivery in [1, 2, 3, 3] {
        let body = json!({ "action": "edited", "repository": { "id": 7 }, "issue": {
            "id": 5, "number": 1, "updated_at": format!("2026-01-01T00:00:0{delivery}Z") } });
        let line = json!({ "headers": { "X-GitHub-Event": "issues", "X-GitHub-Delivery": format!("d{delivery}") },
            "body": body });
        writeln!(lines, "{line}").expect("a text");
    }
    write(folder.path(), "events.jsonl", &lines);
    let output = simulate(folder.path(), &["gentle", "--from", "events.jsonl", "--source", "github", "--faults", "0"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}{}", stdout(&output));
    assert!(told.contains("3 events read by the rules of github; signatures were not checked"), "{told}");
    assert!(told.contains("1 repeats in the file are left out"), "{told}");
}

#[test]
fn a_source_of_ones_own_needs_no_secret_here() {
    let folder = folder();
    let source = "[[source]]\nname = \"billing\"\nsecrets = [\"env:NOT_SET_HERE\"]\n\
        verify = { scheme = \"hmac-sha256\", header = \"x-signature\", signed = \"{body}\", encoding = \"hex\" }\n\
        key = [\"body:/id\"]\ntype = \"body:/type\"\n\
        resource = { type = \"body:/object\", id = \"body:/data/id\" }\n\
        version = [{ from = \"body:/sequence\", as = \"integer\" }]\n\
        order = { policy = \"sequence\", hold_for = \"5s\", on_gap = \"expire\" }\n";
    write(folder.path(), "mine.toml", source);
    let line = |number: u32, order: u32| {
        json!({ "id": format!("{order}-{number}"), "type": "order.changed", "object": "order",
            "data": { "id": order }, "sequence": number })
        .to_string()
    };
    // number 7 of order 2 is not in the file: a gap that nothing closes
    let lines: Vec<String> = (1..=12)
        .flat_map(|number| [1, 2].map(|order| (number, order)))
        .filter(|at| *at != (7, 2))
        .map(|(number, order)| line(number, order))
        .collect();
    write(folder.path(), "events.jsonl", &lines.join("\n"));
    let arguments =
        ["gentle", "--config", "mine.toml", "--from", "events.jsonl", "--source", "billing", "--reorder", "2000"];
    let told = passed(folder.path(), &arguments);
    let rows = &told["counts"]["rows"];
    assert_eq!((&rows["applied"], &rows["expired"]), (&18.into(), &5.into()), "{rows}");
    assert!(told["waits"]["held"].as_u64() >= Some(5), "{told}");
}

#[tokio::test]
async fn what_was_exported_is_read_back_as_it_came_in() {
    let folder = folder();
    let lines = stripe_stream(4, 9);
    let (url, count) = stored(folder.path(), &lines).await;
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["events", "--source", "stripe", "--export"])
        .current_dir(folder.path())
        .env_clear()
        .env("TIDEGATE_STORE__URL", url)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().count(), count);
    fs::write(folder.path().join("exported.jsonl"), &output.stdout).expect("written");
    write(folder.path(), "events.jsonl", &lines);
    let told = |file| passed(folder.path(), &["reorder-storm", "--from", file, "--source", "stripe", "--seed", "4"]);
    let (exported, recorded) = (told("exported.jsonl"), told("events.jsonl"));
    assert_eq!(exported["counts"]["events"], count);
    assert_eq!(exported["counts"]["rows"], recorded["counts"]["rows"]);
    assert_eq!(exported["trace_hash"], recorded["trace_hash"], "the same events in the same order");
}

/// Takes a stream in as the gate would, a line a second; tells where and how many.
async fn stored(folder: &Path, lines: &str) -> (String, usize) {
    let url = format!("sqlite:{}", folder.join("tidegate.db").display());
    let opened = store::open(&StoreSettings::of(url.clone())).await.expect("the store opens");
    let mut session = opened.store.open().await.expect("a session");
    let spec = SourceSpec { name: "stripe".into(), preset: Some("stripe".into()), ..SourceSpec::default() };
    let source = Source::compile_to_read(&spec).expect("a source");
    let (clock, headers) = (SystemClock::new(), HeaderMap::new());
    for (second, line) in lines.lines().enumerate() {
        let request = Request {
            method: &Method::POST,
            target: "/in/stripe",
            path_tenant: None,
            headers: &headers,
            body: &Bytes::copy_from_slice(line.as_bytes()),
            now_ms: 1_700_000_000_000 + 1_000 * i64::try_from(second).expect("few lines"),
        };
        let Ok(Reading::Event(event)) = source.read_recorded(&request, &|| clock.event_id()) else { panic!("{line}") };
        session.commit(&[event]).await.expect("committed");
    }
    (url, lines.lines().count())
}

#[test]
fn what_cannot_be_read_is_told_by_line() {
    let folder = folder();
    write(folder.path(), "events.jsonl", "{\"id\": \"evt_1\"\n{\"object\": \"event\"}\n");
    let output = simulate(folder.path(), &["--from", "events.jsonl", "--source", "stripe"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("holds no event that stripe can read"), "{told}");
    assert!(told.contains("line 1: ") && told.contains("line 2: "), "{told}");
    let told = stderr(&simulate(folder.path(), &["--from", "events.jsonl", "--source", "strype"]));
    assert!(told.contains("no source is named strype") && told.contains("did you mean stripe?"), "{told}");
    let told = stderr(&simulate(folder.path(), &["--from", "gone.jsonl", "--source", "stripe"]));
    assert!(told.contains("gone.jsonl` cannot be read"), "{told}");
}
