//! The way a newcomer tries it: `tidegate send demo`, shuffled, repeated and at once, against each store,
//! two nodes, a cache that forgets and a cache that is gone. The rows say whether each event is in once.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and the run says how much it did"
)]

#[path = "../support/mod.rs"]
mod support;

mod senders;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::fault::Outsider;
use support::place::Place;
use support::process::Process;
use support::redis::RedisServer;

const COUNT: i64 = 2_000;
const DEMO: &str = r#"
[[source]]
name = "demo"
preset = "standard-webhooks"
secrets = ["demo:whsec_dGlkZWdhdGUtZGVtby1zZWNyZXQtZm9yLWxvb3BiYWNr"]
"#;

/// `tidegate send demo` as in the README, at one of the nodes. One seed: every run sends the same events.
fn send(to: SocketAddr) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["send", "demo", "--count", &COUNT.to_string(), "--shuffle", "--duplicate", "0.3", "--concurrency", "32"])
        .args(["--seed", "7", "--json", "--url", &format!("http://{to}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits for it; all it sent was answered 2xx.
fn report(sending: Child) -> Value {
    let output = sending.wait_with_output().expect("the program ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"))
}

/// Each event is in once, and each resource at the newest version that any event carried.
fn assert_rows(place: &Place) {
    let mut outsider = Outsider::connect(place);
    assert_eq!(outsider.number("SELECT count(*) FROM events"), COUNT, "each event is in once");
    assert_eq!(outsider.number("SELECT count(DISTINCT key) FROM events"), COUNT);
    let verdicts = outsider.texts("SELECT DISTINCT verdict FROM events ORDER BY verdict");
    assert_eq!(verdicts, ["applied", "stale"], "late ones are stale, nothing else happened");
    let behind = outsider.number(
        "SELECT count(*) FROM resources r WHERE EXISTS
         (SELECT 1 FROM events e WHERE e.resource_hash = r.hash AND e.version > r.version)",
    );
    assert_eq!(behind, 0, "every resource is at its newest version");
    let applied = outsider.number("SELECT CAST(sum(applied) AS bigint) FROM resources");
    assert_eq!(applied, outsider.number("SELECT count(*) FROM events WHERE verdict = 'applied'"));
}

/// Verdicts told by all runs together: each event in once, everything else a duplicate.
fn assert_told(reports: &[Value]) {
    let mut told: BTreeMap<&str, i64> = BTreeMap::new();
    for (verdict, count) in reports.iter().filter_map(|report| report["answers"].as_object()).flatten() {
        *told.entry(verdict).or_default() += count.as_i64().expect("a count");
    }
    let count = |verdict| told.get(verdict).copied().unwrap_or(0);
    assert_eq!(count("applied") + count("stale"), COUNT, "{told:?}");
    assert!(count("duplicate") >= COUNT / 5, "repeats are answered as such: {told:?}");
    assert_eq!(told.values().sum::<i64>(), count("applied") + count("stale") + count("duplicate"), "{told:?}");
}

fn cache(redis: &RedisServer) -> String {
    format!("[cache]\nurl = \"{}\"\nlookup = \"always\"\n{DEMO}", redis.url())
}

#[test]
fn shuffled_and_repeated_deliveries_are_in_once_on_sqlite() {
    let place = Place::sqlite();
    let node = Process::start(&place, DEMO, &[]);
    let told = [report(send(node.public))];
    assert_told(&told);
    assert_rows(&place);
}

#[test]
fn shuffled_and_repeated_deliveries_are_in_once_on_postgres() {
    let place = Place::postgres();
    let node = Process::start(&place, DEMO, &[]);
    let told = [report(send(node.public))];
    assert_told(&told);
    assert_rows(&place);
}

#[test]
fn the_same_deliveries_to_two_nodes_of_one_postgres_are_in_once() {
    let place = Place::postgres();
    let nodes = [Process::start(&place, DEMO, &[]), Process::start(&place, DEMO, &[])];
    let sending = nodes.each_ref().map(|node| send(node.public));
    let told = sending.map(report);
    assert_told(&told);
    assert_rows(&place);
}

#[test]
fn a_cache_that_forgets_all_the_time_changes_nothing() {
    let place = Place::postgres();
    let redis = RedisServer::start(&[]);
    let nodes = [Process::start(&place, &cache(&redis), &[]), Process::start(&place, &cache(&redis), &[])];
    let mut sending = nodes.each_ref().map(|node| send(node.public));
    support::gate::until("all is sent", || {
        redis.flush();
        std::thread::park_timeout(std::time::Duration::from_millis(100));
        sending.iter_mut().all(|child| child.try_wait().expect("a child").is_some())
    });
    let told = sending.map(report);
    assert_told(&told);
    assert_rows(&place);
}

#[test]
fn a_cache_that_is_gone_changes_nothing() {
    let place = Place::postgres();
    let mut redis = RedisServer::start(&[]);
    let node = Process::start(&place, &cache(&redis), &[]);
    redis.kill();
    let told = [report(send(node.public))];
    assert_told(&told);
    assert_rows(&place);
}
