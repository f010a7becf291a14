//! `events`, `resources`, `quarantine`: what is stored, beside a store that is open for writing.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use smallvec::smallvec;
use tidegate::clock::SystemClock;
use tidegate::store::{self, StoreSettings};
use tidegate_actors::ports::{Clock as _, Store};
use tidegate_actors::rules::event::{Event, EventId, Guard, Intent, Resource, Unusable};
use tidegate_actors::rules::key::{BodyDigest, Key};
use tidegate_actors::rules::order::{Order, Policy, Tie};
use tidegate_actors::rules::version::Version;

use super::{ended, folder, stderr, stdout, tidegate};

/// A time to read in the output.
const AT_MS: i64 = 1_700_000_000_123;

fn event(clock: &SystemClock, key: &str, version: &str, body: &'static [u8]) -> Event {
    Event {
        id: clock.event_id(),
        received_at_ms: AT_MS,
        source: Arc::from("demo"),
        tenant: Arc::from(""),
        key: Key::new("demo", "", [key]).expect("a key"),
        digest: BodyDigest::of(body),
        kind: "contact.updated".to_owned(),
        guards: smallvec![Guard {
            resource: Resource::new("demo", "", "contact".to_owned(), "c\u{202e}1".to_owned()),
            version: Some(Version::integer(version).expect("a version")),
        }],
        order: Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep })),
        step: None,
        patch: None,
        effect_key: None,
        fetched: None,
        deletes: false,
        intent: Intent::Apply,
        headers: Bytes::from_static(b"{\"webhook-id\":\"m1\"}"),
        body: Bytes::from_static(body),
    }
}

/// Stores a newer event, an older one and an unusable request; the store stays open for writing.
async fn stored(folder: &Path) -> (Arc<dyn Store>, [EventId; 2], EventId) {
    let settings = StoreSettings::of(format!("sqlite:{}", folder.join("tidegate.db").display()));
    let opened = store::open(&settings).await.expect("the store opens");
    let mut session = opened.store.open().await.expect("a session");
    let clock = SystemClock::new();
    let events = [event(&clock, "k1", "2", b"{\"a\": \"\x1b[31m\"}"), event(&clock, "k2", "1", b"\xff\x00")];
    for event in &events {
        session.commit(std::slice::from_ref(event)).await.expect("committed");
    }
    let unusable = Unusable {
        id: clock.event_id(),
        received_at_ms: AT_MS,
        source: Arc::from("demo"),
        tenant: Arc::from(""),
        code: "key-blank",
        reason: "the key is blank".to_owned(),
        digest: BodyDigest::of(b"odd"),
        headers: Bytes::from_static(b"{}"),
        body: Bytes::from_static(b"odd"),
    };
    let kept = session.quarantine(&[unusable]).await.expect("kept")[0];
    (opened.store, events.map(|event| event.id), kept)
}

#[tokio::test]
async fn events_are_listed_newest_first_while_the_store_is_open() {
    let folder = folder();
    let (_store, [newer, older], _) = stored(folder.path()).await;
    let output = tidegate(folder.path(), &["events"], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    let lines = stdout(&output);
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines[0].starts_with("ID  "), "{lines:?}");
    assert!(lines[1].starts_with(&older.to_string()) && lines[1].contains("stale"), "{lines:?}");
    assert!(lines[2].starts_with(&newer.to_string()) && lines[2].contains("applied"), "{lines:?}");
    assert!(lines[2].contains("2023-11-14T22:13:20.123Z"), "{lines:?}");
    assert!(lines[2].contains("contact c\\u{202e}1"), "{lines:?}");
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let folder = folder();
    let (_store, [newer, older], _) = stored(folder.path()).await;
    let list = |arguments: &[&str]| -> Value {
        let output = tidegate(folder.path(), arguments, &[]);
        assert_eq!(ended(&output), (Some(0), String::new()));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let stale = list(&["events", "--verdict", "stale", "--json"]);
    assert_eq!(stale["rows"][0]["id"], older.to_string());
    assert_eq!(stale["rows"].as_array().map(Vec::len), Some(1));
    let first = list(&["events", "--limit", "1", "--json"]);
    assert_eq!(first["next"], older.to_string());
    let second = list(&["events", "--limit", "1", "--after", &older.to_string(), "--json"]);
    assert_eq!(second["rows"][0]["id"], newer.to_string());
}

#[tokio::test]
async fn an_event_is_shown_so_that_its_body_cannot_steer_the_terminal() {
    let folder = folder();
    let (_store, [newer, older], _) = stored(folder.path()).await;
    let output = tidegate(folder.path(), &["events", &newer.to_string()], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    assert!(stdout(&output).contains("body, 14 bytes\n  {\"a\": \"\\u{1b}[31m\"}\n"), "{}", stdout(&output));
    let output = tidegate(folder.path(), &["events", &older.to_string()], &[]);
    assert!(stdout(&output).contains("  00000000  ff 00 "), "{}", stdout(&output));
    let output = tidegate(folder.path(), &["events", &older.to_string(), "--raw"], &[]);
    assert_eq!(output.stdout, b"\xff\x00");
}

#[tokio::test]
async fn a_resource_is_shown_with_its_events() {
    let folder = folder();
    let (_store, [newer, _], _) = stored(folder.path()).await;
    let output = tidegate(folder.path(), &["resources"], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    assert!(
        stdout(&output).lines().nth(1).is_some_and(|line| line.starts_with("demo    -       contact  c\\u{202e}1  "))
    );
    let output = tidegate(folder.path(), &["resources", "demo", "contact", "c\u{202e}1", "--json"], &[]);
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["resource"]["version"], "2");
    assert_eq!(told["resource"]["event"], newer.to_string());
    assert_eq!(told["events"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn the_quarantine_is_listed_and_shown() {
    let folder = folder();
    let (_store, _, kept) = stored(folder.path()).await;
    let output = tidegate(folder.path(), &["quarantine"], &[]);
    assert!(stdout(&output).contains("key-blank"), "{}", stdout(&output));
    let output = tidegate(folder.path(), &["quarantine", &kept.to_string()], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    assert!(stdout(&output).ends_with("body, 3 bytes\n  odd\n"), "{}", stdout(&output));
}

#[tokio::test]
async fn what_is_not_there_ends_with_1() {
    let folder = folder();
    let (_store, ..) = stored(folder.path()).await;
    let nobody = "00000000-0000-7000-8000-000000000000";
    for arguments in [["events", nobody, "--json"], ["quarantine", nobody, "--json"]] {
        let output = tidegate(folder.path(), &arguments, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    }
}

#[test]
fn a_store_that_is_not_there_ends_with_3_and_is_not_made() {
    let folder = folder();
    let output = tidegate(folder.path(), &["events"], &[]);
    let (exit, told) = ended(&output);
    assert_eq!(exit, Some(3), "{told}");
    assert!(told.starts_with("error: ") && told.contains("tidegate.db"), "{told}");
    assert!(!folder.path().join("tidegate.db").exists());
}
