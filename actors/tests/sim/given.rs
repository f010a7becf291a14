//! Streams that were recorded elsewhere, with rules of their own, sent through the same senders and faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::smallvec;
use tidegate_actors::rules::event::{Event, EventId, Guard, Intent, Resource};
use tidegate_actors::rules::graph::Graph;
use tidegate_actors::rules::key::{BodyDigest, Key};
use tidegate_actors::rules::order::{EpochOn, OnGap, Order, Policy, Tie, Wait};
use tidegate_actors::rules::version::Version;
use tidegate_actors::sim::{MemoryBackend, RunOptions, Scenario, StreamEvent, generate_from, run};
use uuid::Uuid;

fn event(number: u64, resource: &str, version: Option<i64>, order: &Arc<Order>) -> Event {
    let body = Bytes::from(vec![0xff, number as u8]);
    let version = version.and_then(|version| Version::integer(&version.to_string()).ok());
    let resource = Resource::new("own", "t1", "thing".to_owned(), resource.to_owned());
    Event {
        id: EventId(Uuid::nil()),
        received_at_ms: 0,
        source: "own".into(),
        tenant: "t1".into(),
        // a key of two parts: its text alone does not say it
        key: Key::new("own", "t1", ["key", &number.to_string()]).expect("a key"),
        digest: BodyDigest::of(&body),
        kind: "changed".to_owned(),
        guards: smallvec![Guard { resource, version }],
        order: Arc::clone(order),
        step: None,
        patch: None,
        effect_key: None,
        fetched: None,
        deletes: false,
        intent: Intent::Apply,
        headers: Bytes::new(),
        body,
    }
}

/// Plays a stream under twenty seeds and tells the verdicts of all of them together.
fn play(events: Vec<Event>) -> BTreeMap<String, u64> {
    let at = |(number, event): (u64, Event)| StreamEvent { event, at_ms: number * 40 };
    let stream: Vec<StreamEvent> = (0..).zip(events).map(at).collect();
    let mut verdicts = BTreeMap::new();
    for seed in 0..20 {
        let plan = generate_from(&Scenario::default(), seed, &stream);
        let run = run(&plan, &MemoryBackend, &RunOptions::default());
        assert_eq!(run.violations, [], "seed {seed}");
        for (verdict, count) in run.counts.rows {
            *verdicts.entry(verdict).or_default() += count;
        }
    }
    verdicts
}

#[test]
fn a_stream_with_a_state_graph_of_its_own_passes() {
    let following = [("open", vec!["paid", "void"]), ("paid", vec!["sent", "void"]), ("sent", vec!["open"])];
    let following = following.map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect()));
    let graph = Graph::edges(&BTreeMap::from(following), &["open".to_owned()]).expect("a graph");
    let wait = Wait { hold_for_ms: 2_000, on_gap: OnGap::Release };
    let order = Arc::new(Order::judged(Policy::Transition { graph: Arc::new(graph), tie: Tie::Keep, wait }));
    let steps = ["open", "paid", "sent", "open", "paid", "void"];
    let events = (0..60).map(|number| {
        let (resource, place) = (number / 6, number % 6);
        let step = Some(steps[place as usize].to_owned());
        Event { step, ..event(number, &format!("r{resource}"), Some(place as i64), &order) }
    });
    assert!(play(events.collect())["applied"] > 600);
}

#[test]
fn a_counter_that_starts_again_is_held_to_no_more_than_it_promises() {
    let epoch_on = Some(EpochOn { falls_by: 10, after_idle_ms: None });
    let order = Arc::new(Order { epoch_on, ..Order::judged(Policy::Newest { tie: Tie::Keep }) });
    let events = (0..60).map(|number| event(number, "r", Some((number % 30) as i64), &order));
    assert!(play(events.collect())["held"] > 0, "what fell by a lot is parked");
}

#[test]
fn a_resource_under_two_policies_and_events_without_versions_pass() {
    let newest = Arc::new(Order::plain(Policy::Newest { tie: Tie::Apply }));
    let arrival = Arc::new(Order::plain(Policy::Arrival));
    let events = (0..80).map(|number| {
        let order = if number % 3 == 0 { &arrival } else { &newest };
        let version = (number % 5 != 0).then_some(number as i64);
        event(number, &format!("r{}", number % 4), version, order)
    });
    let verdicts = play(events.collect());
    assert!(verdicts["applied"] > 0 && verdicts["stale"] > 0, "{verdicts:?}");
}
