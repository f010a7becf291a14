//! A reorder storm over HTTP: two nodes on one Postgres, every resource's versions shuffled among those of all
//! others, some repeated, some never sent. The rows say whether order held.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and the run says how much it did"
)]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use support::fault::Outsider;
use support::gate::until;
use support::http::Client;
use support::place::Place;
use support::process::Process;
use support::signing;

const RESOURCES: usize = 20_000;
const VERSIONS: usize = 10;
/// Events in one request; how many the storm throws at once.
const BATCH: usize = 50;
const SENDERS: usize = 8;
const SEED: u64 = 20_261_130;

const COMMON: &str = r#"
preset = "standard-webhooks"
secrets = ["env:TEST_SECRET"]
batch = "body:"
key = ["item:/key"]
type = "literal:thing.updated"
resource = { type = "literal:thing", id = "item:/id" }
version = [{ from = "item:/version", as = "integer" }]
"#;

/// What was sent of each resource: bit `v - 1` for version `v`.
type Sent = Vec<u16>;

/// Everything that is sent, in the order it is sent, and what a resource got in all.
fn storm() -> (Vec<(usize, usize)>, Sent) {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut sent: Sent = vec![0; RESOURCES];
    let mut deliveries = Vec::new();
    for (resource, versions) in sent.iter_mut().enumerate() {
        for version in 1..=VERSIONS {
            if rng.random_bool(0.02) {
                continue;
            }
            *versions |= 1 << (version - 1);
            deliveries.push((resource, version));
            if rng.random_bool(0.1) {
                deliveries.push((resource, version));
            }
        }
    }
    deliveries.shuffle(&mut rng);
    (deliveries, sent)
}

fn body(source: &str, deliveries: &[(usize, usize)]) -> String {
    let item = |(resource, version): &(usize, usize)| {
        format!(r#"{{"key":"{source}-{resource}-{version}","id":"{resource}","version":{version}}}"#)
    };
    format!("[{}]", deliveries.iter().map(item).collect::<Vec<_>>().join(","))
}

/// Sends all of it, from several senders to both nodes, each request again until it is answered 200.
fn send(source: &str, nodes: &[Process; 2], deliveries: &[(usize, usize)]) {
    let batches: Vec<&[(usize, usize)]> = deliveries.chunks(BATCH).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (batches, next) = (&batches, &next);
            scope.spawn(move || {
                let mut client = Client::connect(nodes[sender % 2].public).expect("a connection");
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = batches.get(place) else { return };
                    let request =
                        signing::signed(&format!("/in/{source}"), &format!("{source}-{place}"), body(source, batch));
                    until("the batch is taken", || {
                        let answer = client.call(&request).expect("an answer");
                        assert!(matches!(answer.status, 200 | 503 | 429), "{} {}", answer.status, answer.text());
                        answer.status == 200
                    });
                }
            });
        }
    });
}

fn verdicts(outsider: &mut Outsider) -> BTreeMap<String, i64> {
    let rows = outsider.texts("SELECT verdict || ' ' || count(*) FROM tidegate_events GROUP BY verdict");
    let pair = |row: &String| row.split_once(' ').map(|(verdict, count)| (verdict.to_owned(), count.parse().unwrap()));
    rows.iter().filter_map(pair).collect()
}

/// Accepted events are the sum of their verdicts (I16), by rows.
fn assert_conserved(verdicts: &BTreeMap<String, i64>, sent: &Sent) {
    let accepted: i64 = sent.iter().map(|versions| i64::from(versions.count_ones())).sum();
    assert_eq!(verdicts.values().sum::<i64>(), accepted, "{verdicts:?}");
    assert!(!verdicts.contains_key("duplicate"), "repeats leave no row: {verdicts:?}");
}

/// The stored version of each resource.
fn stored(outsider: &mut Outsider) -> BTreeMap<usize, usize> {
    let rows = outsider.texts("SELECT id || ' ' || coalesce(version_text, '0') FROM resources");
    let pair = |row: &String| row.split_once(' ').map(|(id, version)| (id.parse().unwrap(), version.parse().unwrap()));
    rows.iter().filter_map(pair).collect()
}

#[test]
fn a_sequence_ends_with_contiguous_prefixes_and_recorded_expiries() {
    let place = Place::postgres();
    let settings = format!(
        "[[source]]\nname = \"storm\"\n{COMMON}\norder = {{ policy = \"sequence\", hold_for = \"1h\", on_gap = \"expire\" }}\n"
    );
    let nodes = [Process::start(&place, &settings, &[]), Process::start(&place, &settings, &[])];
    let (deliveries, sent) = storm();
    send("storm", &nodes, &deliveries);

    let mut outsider = Outsider::connect(&place);
    let before = verdicts(&mut outsider);
    assert_conserved(&before, &sent);
    let prefix = |versions: u16| (!versions).trailing_zeros() as usize;
    let held: i64 = sent.iter().map(|&versions| i64::from(versions.count_ones()) - prefix(versions) as i64).sum();
    assert_eq!(before["held"], held, "all that follows a gap waits, and nothing else");
    assert_eq!(outsider.number("SELECT count(*) FROM holds"), held);

    // an hour later, by the store's clock
    outsider.run("UPDATE holds SET until_ms = until_ms - 3600000");
    until("every hold is settled", || outsider.number("SELECT count(*) FROM holds") == 0);
    let after = verdicts(&mut outsider);
    assert_conserved(&after, &sent);
    assert_eq!(after["expired"], held, "{after:?}");
    assert_eq!(after["applied"], before["applied"], "nothing was applied over a gap");
    assert_eq!(
        outsider.number("SELECT count(*) FROM tidegate_events WHERE verdict = 'expired' AND why IS NOT NULL"),
        held
    );
    let stored = stored(&mut outsider);
    for (resource, &versions) in sent.iter().enumerate() {
        assert_eq!(stored.get(&resource).copied().unwrap_or(0), prefix(versions), "resource {resource}");
    }
    println!("sequence: {} deliveries, {after:?}", deliveries.len());
}

#[test]
fn the_newest_ends_at_the_newest_that_was_sent() {
    let place = Place::postgres();
    let settings = format!("[[source]]\nname = \"storm\"\n{COMMON}\norder = {{ policy = \"newest\" }}\n");
    let nodes = [Process::start(&place, &settings, &[]), Process::start(&place, &settings, &[])];
    let (deliveries, sent) = storm();
    send("storm", &nodes, &deliveries);

    let mut outsider = Outsider::connect(&place);
    let found = verdicts(&mut outsider);
    assert_conserved(&found, &sent);
    let stored = stored(&mut outsider);
    for (resource, &versions) in sent.iter().enumerate() {
        let newest = (u16::BITS - versions.leading_zeros()) as usize;
        assert_eq!(stored.get(&resource).copied().unwrap_or(0), newest, "resource {resource}");
    }
    println!("newest: {} deliveries, {found:?}", deliveries.len());
}
