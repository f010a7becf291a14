//! The store away, unknown, refusing, panicking: what the callers hear, and that the pools go on.

use std::time::Duration;

use bytes::Bytes;
use tidegate_actors::memory::Fault;
use tidegate_actors::ports::{Clock, Reader};
use tidegate_actors::rules::event::{Unusable, Verdict};
use tidegate_actors::rules::key::BodyDigest;
use tidegate_actors::{EngineSettings, Refused};

use crate::support::{World, paused, settings, verdict};

#[test]
fn one_bad_event_fails_alone() {
    paused(async {
        let world = World::start(settings()).await;
        let events: Vec<_> =
            (0..100).map(|number| world.event(&format!("e{number:03}"), &format!("o{}", number % 7), number)).collect();
        world.store.faults().refuse(events[42].key.hash);
        let answers = world.take_all(events).await;
        for (number, answer) in answers.iter().enumerate() {
            if number == 42 {
                assert!(matches!(answer, Err(Refused::Rejected(_))), "{answer:?}");
            } else {
                assert_eq!(verdict(answer), Verdict::Applied, "event {number}");
            }
        }
        assert_eq!(verdict(&world.take(world.event("after", "o0", 1_000)).await), Verdict::Applied);
    });
}

#[test]
fn an_unknown_commit_is_answered_as_unknown_and_a_repeat_finds_the_truth() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().at_next_commit(Fault::LostAnswer);
        let events = vec![world.event("e1", "o1", 1), world.event("e2", "o2", 1)];
        let answers = world.take_all(events).await;
        assert!(answers.iter().all(|answer| matches!(answer, Err(Refused::Unknown(_)))), "{answers:?}");
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Duplicate);
    });
}

#[test]
fn a_store_that_is_away_refuses_at_once_and_comes_back_by_itself() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().set_away(true);
        assert!(matches!(world.take(world.event("e1", "o1", 1)).await, Err(Refused::Unavailable(_))));
        world.until(|world| !world.engine.status().ready).await;
        let started = tokio::time::Instant::now();
        for number in 0..50 {
            let answer = world.take(world.event(&format!("x{number}"), "o1", 1)).await;
            assert!(matches!(answer, Err(Refused::Unavailable(_))), "{answer:?}");
        }
        assert!(started.elapsed() < Duration::from_millis(50), "nobody waits for it");
        world.store.faults().set_away(false);
        world.until(|world| world.engine.status().ready).await;
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Applied);
    });
}

#[test]
fn a_store_that_never_opens_a_session_is_waited_for_within_a_bound() {
    paused(async {
        let world = World::start_unready(settings());
        world.store.faults().set_open_hangs(true);
        let started = tokio::time::Instant::now();
        assert!(matches!(world.take(world.event("e1", "o1", 1)).await, Err(Refused::Unavailable(_))));
        assert!(started.elapsed() <= Duration::from_secs(3), "{:?}", started.elapsed());
        assert!(!world.engine.status().ready);
    });
}

#[test]
fn a_panicking_store_costs_its_own_callers_only() {
    paused(async {
        let world = World::start(settings()).await;
        for round in 0..3 {
            world.store.faults().at_next_commit(Fault::Panic);
            let lost = world.take(world.event(&format!("lost{round}"), "o1", round)).await;
            assert!(matches!(lost, Err(Refused::Unavailable(_))), "{lost:?}");
            let next = world.take(world.event(&format!("next{round}"), "o1", 10 + round)).await;
            assert_eq!(verdict(&next), Verdict::Applied);
        }
        assert!((world.figure("tidegate_panics_total{pool=\"writer\"}") - 3.0).abs() < f64::EPSILON);
        assert_eq!(world.engine.status().in_flight_events.0, 0);
    });
}

#[test]
fn unusable_requests_are_kept_in_quarantine_and_counted_once() {
    paused(async {
        let world = World::start(settings()).await;
        let item = |body: &'static [u8]| Unusable {
            id: world.clock.event_id(),
            received_at_ms: world.clock.now_ms(),
            source: "shop".into(),
            tenant: "".into(),
            code: "key-blank",
            reason: "the key at header x-id is blank".to_owned(),
            digest: BodyDigest::of(body),
            headers: Bytes::new(),
            body: Bytes::from_static(body),
        };
        let keep = |item| async { world.ingress.quarantine(item, world.ingress.reserve(10).unwrap()).await.unwrap() };
        let first = keep(item(b"one")).await;
        assert_eq!(keep(item(b"one")).await, first);
        assert_ne!(keep(item(b"two")).await, first);
        let rows = world.store.quarantine(None, 10).await.unwrap().rows;
        assert_eq!(rows.iter().map(|row| row.times).collect::<Vec<_>>(), [1, 2]);
        world.store.faults().set_away(true);
        let refused = world.ingress.quarantine(item(b"three"), world.ingress.reserve(10).unwrap()).await;
        assert!(matches!(refused, Err(Refused::Unavailable(_))));
    });
}

#[test]
fn figures_agree_with_what_was_answered() {
    paused(async {
        let world = World::start(EngineSettings { lookup: tidegate_actors::LookupMode::Never, ..settings() }).await;
        for (key, version) in [("e1", 5), ("e2", 3), ("e1", 5), ("e3", 7)] {
            assert!(world.take(world.event(key, "o1", version)).await.is_ok());
        }
        let count = |verdict| world.figure(&format!("tidegate_events_total{{source=\"shop\",verdict=\"{verdict}\"}}"));
        let counts = ["applied", "stale", "duplicate", "ignored"].map(count);
        assert!(counts.iter().zip([2.0, 1.0, 1.0, 0.0]).all(|(found, expected)| (found - expected).abs() < 0.1));
    });
}
