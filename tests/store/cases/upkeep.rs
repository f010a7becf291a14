//! The store's own work: its clock, its key ring, what it drops.

use std::time::Duration;

use tidegate_actors::ports::{EventFilter, Outcome, Upkeep};

use crate::events::{APPLIED, Words as _, again, duplicate_of, event};
use crate::world::{Options, World};

const DAY_MS: i64 = 86_400_000;

/// Turns the ring at every call.
const TURNING: Duration = Duration::ZERO;

pub(crate) async fn a_pulse_tells_time_and_one_incarnation(world: &World) {
    let first = world.node.store.pulse().await.unwrap();
    let second = world.open(Options::default()).await.store.pulse().await.unwrap();
    assert_eq!(first.incarnation, second.incarnation);
    assert!(second.now_ms >= first.now_ms && first.now_ms > 1_700_000_000_000);
    let mut session = world.node.session().await;
    assert_eq!(session.commit(&[event("k")]).await.unwrap().incarnation, first.incarnation);
}

pub(crate) async fn keys_outlive_a_turn_of_the_ring_and_are_forgotten_in_the_end(world: &World) {
    let turning = world.open(Options { keys_window: TURNING, ..Options::default() }).await;
    let first = event("k1").on("o", 5);
    let mut session = world.node.session().await;
    session.commit(std::slice::from_ref(&first)).await.unwrap();
    assert!(!world.node.store.upkeep().await.unwrap().keys_rotated, "its time has not come");
    for _ in 0..2 {
        assert!(turning.store.upkeep().await.unwrap().keys_rotated);
        let repeat = again(&first);
        // The open session learns of the turn by itself.
        assert_eq!(session.commit(&[repeat, event("other")]).await.unwrap().outcomes[0], duplicate_of(&first));
    }
    assert!(turning.store.upkeep().await.unwrap().keys_rotated);
    // The key is forgotten: what has a version is still refused by it.
    let late = again(&first);
    assert_eq!(session.commit(&[late]).await.unwrap().outcomes, [Outcome::Stale { tie: true }]);
}

pub(crate) async fn upkeep_drops_what_outlived_its_retention(world: &World) {
    let now_ms = world.node.store.pulse().await.unwrap().now_ms;
    let mut session = world.node.session().await;
    let old = event("k1").on("o", 1).at(now_ms - 40 * DAY_MS);
    let young = event("k2").on("o", 2).at(now_ms - 34 * DAY_MS);
    let ahead = event("k3").on("o", 3).at(now_ms + 30 * DAY_MS);
    let batch = [old.clone(), young.clone(), ahead.clone()];
    assert_eq!(session.commit(&batch).await.unwrap().outcomes, [APPLIED; 3]);
    assert!(world.node.store.upkeep().await.unwrap().dropped >= 1);
    let rows = world.node.reader.events(&EventFilter::default(), None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [ahead.id, young.id]);
    // The key and the version outlive the payload.
    assert_eq!(session.commit(&[again(&old)]).await.unwrap().outcomes, [duplicate_of(&old)]);
    let again_done = world.node.store.upkeep().await.unwrap();
    assert_eq!(again_done, Upkeep::default());
}

pub(crate) async fn upkeep_on_two_nodes_at_once_is_safe(world: &World) {
    let options = Options { keys_window: TURNING, events_retention: Duration::ZERO };
    let (left, right) = (world.open(options).await, world.open(options).await);
    let mut session = world.node.session().await;
    for round in 0..10 {
        let batch = [event(&format!("k{round}"))];
        let committed = session.commit(&batch);
        let (one, two, committed) = tokio::join!(left.store.upkeep(), right.store.upkeep(), committed);
        one.expect("upkeep");
        two.expect("upkeep");
        assert_eq!(committed.unwrap().outcomes, [APPLIED]);
    }
}

pub(crate) async fn no_key_is_claimed_twice_while_the_ring_turns(world: &World) {
    let turning = world.open(Options { keys_window: TURNING, ..Options::default() }).await;
    let (mut left, mut right) = (world.node.session().await, world.node.session().await);
    for round in 0..40 {
        let batch = || -> Vec<_> { (0..20).map(|n| event(&format!("k{round}-{n}"))).collect() };
        let (a, b) = (batch(), batch());
        // One turn an event can meet its key in two slots; its second copy comes during or after it.
        let (one, two, turned) = tokio::join!(left.commit(&a), right.commit(&b), turning.store.upkeep());
        turned.expect("upkeep");
        let (one, two) = (one.unwrap().outcomes, two.unwrap().outcomes);
        for (n, pair) in one.iter().zip(&two).enumerate() {
            let claims = [*pair.0, *pair.1].iter().filter(|&&outcome| outcome == APPLIED).count();
            assert_eq!(claims, 1, "key k{round}-{n}: {pair:?}");
        }
    }
}
