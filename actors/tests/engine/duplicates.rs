//! Repeats: in flight, after the commit, with other bytes, and after the store's history has changed.

use std::time::Duration;

use tidegate_actors::EngineSettings;
use tidegate_actors::ports::{EventFilter, Reader};
use tidegate_actors::rules::event::{Receipt, Verdict};
use tidegate_actors::rules::key::BodyDigest;

use crate::support::{World, history, paused, settings, verdict};

#[test]
fn repeats_in_flight_are_one_event_and_duplicates_of_it() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().set_commit_time(Duration::from_millis(5));
        let events: Vec<_> = (0..10).map(|_| world.event("e1", "o1", 1)).collect();
        let first = events[0].id;
        let answers = world.take_all(events).await;
        let applied = answers.iter().filter(|answer| verdict(answer) == Verdict::Applied).count();
        assert_eq!(applied, 1);
        assert!(answers.iter().flatten().all(|receipt| receipt.id == first && !receipt.conflict));
    });
}

#[test]
fn a_repeat_after_the_commit_is_answered_without_the_store() {
    paused(async {
        let world = World::start(settings()).await;
        let first = world.take(world.event("e1", "o1", 1)).await.unwrap();
        let commits = world.batches().len();
        let again = world.take(world.event("e1", "o1", 1)).await.unwrap();
        let expected = Receipt { verdict: Verdict::Duplicate, id: first.id, tie: false, conflict: false };
        assert_eq!((again, world.batches().len()), (expected, commits));
    });
}

#[test]
fn the_same_key_with_other_bytes_is_a_conflict_kept_aside_and_the_first_stands() {
    paused(async {
        let world = World::start(settings()).await;
        let first = world.take(world.event("e1", "o1", 1)).await.unwrap();
        let mut other = world.event("e1", "o1", 2);
        other.digest = BodyDigest::of(b"other bytes");
        let answer = world.take(other).await.unwrap();
        assert_eq!((answer.verdict, answer.conflict, answer.id), (Verdict::Duplicate, true, first.id));
        assert!((world.figure("tidegate_conflicts_total{source=\"shop\"}") - 1.0).abs() < f64::EPSILON);
        let aside = EventFilter { verdict: Some(Verdict::Duplicate), ..EventFilter::default() };
        let rows = world.store.events(&aside, None, 10).await.unwrap().rows;
        assert_eq!(rows.iter().map(|row| row.conflicts_with).collect::<Vec<_>>(), [Some(first.id)]);
        // the conflict taught nothing: the first body is still the known one
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Duplicate);
    });
}

#[test]
fn nothing_is_remembered_before_its_commit() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().at_next_commit(tidegate_actors::memory::Fault::Unavailable);
        assert!(world.take(world.event("e1", "o1", 1)).await.is_err());
        world.until(|world| world.engine.status().ready).await;
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Applied);
    });
}

#[test]
fn another_history_makes_this_process_forget() {
    paused(async {
        let world = World::start(EngineSettings { lookup: tidegate_actors::LookupMode::Always, ..settings() }).await;
        assert!(world.take(world.event("e1", "o1", 1)).await.is_ok());
        world.until(|world| !world.cache.is_empty()).await;
        world.store.lose_everything(history(2));
        world.until(|world| world.engine.status().incarnation == Some(history(2))).await;
        tokio::task::yield_now().await;
        let again = world.take(world.event("e1", "o1", 1)).await;
        assert_eq!(verdict(&again), Verdict::Applied, "neither memory nor cache speak of another history");
    });
}

#[test]
fn a_broken_session_makes_memory_silent_until_the_history_is_seen_again() {
    paused(async {
        let world = World::start(settings()).await;
        assert!(world.take(world.event("e1", "o1", 1)).await.is_ok());
        // a failover between two pulses: the session breaks, and the database behind it is another one
        world.store.faults().at_next_commit(tidegate_actors::memory::Fault::Unavailable);
        world.store.lose_everything(history(2));
        assert!(world.take(world.event("e2", "o2", 1)).await.is_err());
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Applied);
    });
}

#[test]
fn memory_of_keys_stays_within_its_bound() {
    paused(async {
        let world = World::start(EngineSettings { recent_keys: 100, ..settings() }).await;
        for number in 0..300 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        assert!(world.figure("tidegate_recent_keys") <= 100.0);
        assert_eq!(verdict(&world.take(world.unguarded("e0")).await), Verdict::Duplicate, "the store knows");
    });
}
