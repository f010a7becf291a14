//! The key cache may know, lie, be late, fail or panic: only speed changes (I8).

use std::time::Duration;

use tidegate_actors::memory::CacheFault;
use tidegate_actors::ports::Fact;
use tidegate_actors::rules::event::Verdict;
use tidegate_actors::rules::key::BodyDigest;
use tidegate_actors::{EngineSettings, LookupMode};

use crate::support::{World, paused, settings, verdict};

fn always() -> EngineSettings {
    EngineSettings { lookup: LookupMode::Always, ..settings() }
}

/// Two nodes over one store and one cache.
async fn two_nodes(settings: EngineSettings) -> (World, World) {
    let first = World::start(settings.clone()).await;
    let second = World::beside(settings, first.clock.clone(), first.store.clone(), first.cache.clone());
    second.until(|world| world.engine.status().ready).await;
    (first, second)
}

#[test]
fn what_another_node_took_is_answered_from_the_cache() {
    paused(async {
        let (first, second) = two_nodes(always()).await;
        let receipt = first.take(first.event("e1", "o1", 1)).await.unwrap();
        first.until(|world| !world.cache.is_empty()).await;
        let again = second.take(second.event("e1", "o1", 1)).await.unwrap();
        assert_eq!((again.verdict, again.id), (Verdict::Duplicate, receipt.id));
        assert!(second.batches().is_empty(), "the store was not asked");
    });
}

#[test]
fn a_cached_key_with_other_bytes_is_for_the_store_to_decide() {
    paused(async {
        let (first, second) = two_nodes(always()).await;
        assert!(first.take(first.event("e1", "o1", 1)).await.is_ok());
        first.until(|world| !world.cache.is_empty()).await;
        let mut other = second.event("e1", "o1", 2);
        other.digest = BodyDigest::of(b"other bytes");
        let answer = second.take(other).await.unwrap();
        assert!(answer.conflict);
        assert_eq!(second.batches().len(), 1);
    });
}

#[test]
fn lies_failures_panics_and_short_answers_change_nothing() {
    paused(async {
        let world = World::start(always()).await;
        let lie = Fact {
            key: world.event("another", "o", 1).key.hash,
            first: world.event("another", "o", 1).id,
            digest: world.event("another", "o", 1).digest,
        };
        let faults = [
            CacheFault::Lies(lie),
            CacheFault::Fails,
            CacheFault::Panics,
            CacheFault::Short,
            CacheFault::Slow(Duration::from_secs(3)),
        ];
        for (number, fault) in faults.into_iter().enumerate() {
            world.cache.set_fault(fault.clone());
            for repeat in 0..6 {
                let event = world.event(&format!("e{number}-{repeat}"), "o1", number as u64 * 10 + repeat);
                assert_eq!(verdict(&world.take(event).await), Verdict::Applied, "with {fault:?}");
            }
            let again = world.event(&format!("e{number}-0"), "o1", 1);
            assert_eq!(verdict(&world.take(again).await), Verdict::Duplicate, "with {fault:?}");
        }
    });
}

#[test]
fn a_late_cache_costs_its_deadline_and_then_is_left_alone_until_a_probe() {
    paused(async {
        let world = World::start(EngineSettings { cache_failures: 2, ..always() }).await;
        world.cache.set_fault(CacheFault::Slow(Duration::from_secs(10)));
        let started = tokio::time::Instant::now();
        assert!(world.take(world.unguarded("e0")).await.is_ok());
        assert!(started.elapsed() >= Duration::from_millis(50) && started.elapsed() < Duration::from_millis(80));
        for number in 1..4 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        let asked = world.cache.asked();
        let started = tokio::time::Instant::now();
        for number in 4..20 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        assert!(started.elapsed() < Duration::from_millis(5), "the breaker is open");
        assert_eq!(world.cache.asked(), asked);
        world.cache.set_fault(CacheFault::None);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(world.take(world.unguarded("probe")).await.is_ok());
        assert!(world.take(world.unguarded("after")).await.is_ok());
        assert!(world.cache.asked() >= asked + 2, "the probe closed the breaker");
    });
}

#[test]
fn events_keep_their_arrival_order_through_a_lookup() {
    paused(async {
        let world = World::start(EngineSettings { lookup_batch: 3, ..always() }).await;
        world.cache.set_fault(CacheFault::Slow(Duration::from_millis(20)));
        let events = (0..20).map(|number| world.event(&format!("e{number:02}"), "o1", number)).collect();
        assert!(world.take_all(events).await.iter().all(|answer| verdict(answer) == Verdict::Applied));
        let keys: Vec<String> = world.batches().concat();
        assert!(keys.is_sorted(), "{keys:?}");
    });
}

#[test]
fn auto_does_not_hold_events_for_a_cache_while_keys_are_new() {
    paused(async {
        let world = World::start(settings()).await;
        world.cache.set_fault(CacheFault::Slow(Duration::from_millis(40)));
        let started = tokio::time::Instant::now();
        for number in 0..640 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        assert!(started.elapsed() < Duration::from_millis(20), "{:?}", started.elapsed());
        assert!(world.cache.asked() <= 10, "samples only");
    });
}

#[test]
fn auto_asks_once_repeats_of_another_node_are_common() {
    paused(async {
        let (first, second) = two_nodes(settings()).await;
        for number in 0..200 {
            assert!(first.take(first.unguarded(&format!("e{number}"))).await.is_ok());
        }
        first.until(|world| world.cache.len() == 200).await;
        for number in 0..200 {
            assert_eq!(verdict(&second.take(second.unguarded(&format!("e{number}"))).await), Verdict::Duplicate);
        }
        assert!(second.cache.asked() > 100 && second.batches().len() < 100);
    });
}

#[test]
fn never_means_never() {
    paused(async {
        let world = World::start(EngineSettings { lookup: LookupMode::Never, ..settings() }).await;
        for number in 0..200 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        assert_eq!((world.cache.asked(), world.cache.len()), (0, 0));
    });
}

#[test]
fn facts_are_dropped_and_counted_when_the_cache_is_slow() {
    paused(async {
        let world = World::start(EngineSettings { facts_waiting: 4, ..settings() }).await;
        world.cache.set_fault(CacheFault::Slow(Duration::from_secs(5)));
        for number in 0..40 {
            assert!(world.take(world.unguarded(&format!("e{number}"))).await.is_ok());
        }
        assert!(world.figure("tidegate_key_cache_total{result=\"dropped\"}") >= 30.0);
    });
}
