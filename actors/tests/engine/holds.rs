//! Held events: released by what they wait for, settled when their time is over, pushed by a person.

use std::sync::Arc;

use tidegate_actors::memory::MemoryCache;
use tidegate_actors::ports::{Reader as _, Waits};
use tidegate_actors::rules::event::Verdict;
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::order::{OnGap, Order, Policy, Wait};

use crate::support::{World, paused, settings, verdict};

fn sequence(hold_for_ms: i64, on_gap: OnGap) -> Arc<Order> {
    Arc::new(Order::judged(Policy::Sequence { start: 1, wait: Wait { hold_for_ms, on_gap } }))
}

#[test]
fn a_predecessor_releases_what_waits_behind_it_in_its_own_commit() {
    paused(async {
        let world = World::start(settings()).await;
        let rule = sequence(60_000, OnGap::Expire);
        let third = world.take(world.under(&rule, "three", "a", 3)).await;
        let second = world.take(world.under(&rule, "two", "a", 2)).await;
        assert_eq!((verdict(&third), verdict(&second)), (Verdict::Held, Verdict::Held));
        let before = world.clock.ms();
        let first = world.take(world.under(&rule, "one", "a", 1)).await;
        assert_eq!(verdict(&first), Verdict::Applied);
        for key in ["two", "three"] {
            assert_eq!(world.verdict_of(key).await, Verdict::Applied);
        }
        assert_eq!(world.clock.ms(), before, "no time passed");
        assert_eq!(world.figure(r#"tidegate_holds_settled_total{result="released"}"#), 2.0);
    });
}

#[test]
fn an_event_expires_when_its_own_time_is_over_and_no_later() {
    paused(async {
        let world = World::start(settings()).await;
        let start = world.clock.ms();
        world.take(world.under(&sequence(700, OnGap::Expire), "late", "b", 9)).await.unwrap();
        world.take(world.under(&sequence(300, OnGap::Expire), "soon", "a", 9)).await.unwrap();
        let soon = world.became("soon", Verdict::Expired).await - start;
        let late = world.became("late", Verdict::Expired).await - start;
        assert!((300..=303).contains(&soon) && (700..=703).contains(&late), "{soon} {late}");
        assert_eq!(world.store.counts().await.unwrap().held, 0);
        assert_eq!(world.figure(r#"tidegate_holds_settled_total{result="expired"}"#), 2.0);
    });
}

#[test]
fn what_an_earlier_life_left_is_settled_by_the_next_one() {
    paused(async {
        let first = World::start(settings()).await;
        first.take(first.under(&sequence(300, OnGap::Release), "left", "a", 9)).await.unwrap();
        let (clock, store) = (Arc::clone(&first.clock), first.store.clone());
        first.engine.drain(std::time::Duration::from_secs(1)).await;
        drop(first);
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let second = World::beside(settings(), clock, store, MemoryCache::new(10));
        let start = second.clock.ms();
        assert!(second.became("left", Verdict::Applied).await - start <= 1);
    });
}

#[test]
fn a_sweep_finds_what_another_node_holds() {
    paused(async {
        let first = World::start(settings()).await;
        let second = World::beside(settings(), Arc::clone(&first.clock), first.store.clone(), MemoryCache::new(10));
        second.until(|world| world.engine.status().ready).await;
        first.take(first.under(&sequence(300, OnGap::Expire), "orphan", "a", 9)).await.unwrap();
        first.engine.drain(std::time::Duration::from_secs(1)).await;
        drop(first);
        let at = second.became("orphan", Verdict::Expired).await;
        assert!(at <= 300 + 5_002 + 5_002, "{at}");
    });
}

#[test]
fn nothing_is_settled_while_the_store_is_away_and_all_once_it_is_back() {
    paused(async {
        let world = World::start(settings()).await;
        world.take(world.under(&sequence(300, OnGap::Expire), "waits", "a", 9)).await.unwrap();
        world.store.faults().set_away(true);
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        world.store.faults().set_away(false);
        assert_eq!(world.verdict_of("waits").await, Verdict::Held);
        let back = world.clock.ms();
        let settled = world.became("waits", Verdict::Expired).await;
        assert!(settled - back <= 5_002, "the sweep looks again");
    });
}

#[test]
fn a_person_releases_a_resource_and_hears_what_that_did() {
    paused(async {
        let world = World::start(settings()).await;
        let rule = sequence(60_000, OnGap::Expire);
        world.take(world.under(&rule, "seven", "a", 7)).await.unwrap();
        let hash = ResourceHash::of("shop", "", "order", "a");
        let released = world.engine.release(hash).await.unwrap();
        assert_eq!(released, Some(Waits { released: 1, ..Waits::default() }));
        assert_eq!(world.verdict_of("seven").await, Verdict::Applied);
        assert_eq!(world.engine.release(hash).await.unwrap(), None, "nothing waits any more");
    });
}
