//! The ring of key tables and the retention of events, by a clock the test drives.

use std::sync::Arc;

use tidegate_actors::ports::{Outcome, Reader as _, Store as _};
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::order::OnGap;

use crate::world::{Ahead, DAY_MS, Folder, HOLD_MS, commit, event, sequence, settings};

#[tokio::test]
async fn a_key_is_kept_for_its_window_and_forgotten_after_it() {
    let folder = Folder::new();
    let store = folder.store().await;
    let start = store.pulse().await.expect("a pulse").now_ms;
    let first = event("a", "r", 1, start, b"{}");
    commit(&store, std::slice::from_ref(&first)).await;

    // the window of 10 days is two tables of 5 days each
    let mut rotations = 0;
    for day in 1..=10 {
        rotations += u32::from(store.upkeep_at(start + day * DAY_MS).await.expect("upkeep").keys_rotated);
        let again = commit(&store, &[event("a", "r", 1, start + day * DAY_MS, b"{}")]).await;
        assert_eq!(again, [Outcome::Duplicate { first: first.id, conflict: false }], "day {day}");
    }
    assert_eq!(rotations, 2, "the turns come on days 5, 10 and 15");
    for day in 11..=17 {
        store.upkeep_at(start + day * DAY_MS).await.expect("upkeep");
    }
    let late = commit(&store, &[event("a", "r", 1, start + 17 * DAY_MS, b"{}")]).await;
    assert_eq!(late, [Outcome::Stale { tie: true }], "the key is forgotten, the stored version is not");
}

#[tokio::test]
async fn events_are_dropped_when_they_outlive_their_retention_and_no_earlier() {
    let folder = Folder::new();
    let (store, reader) = (folder.store().await, folder.reader().await);
    let start = store.pulse().await.expect("a pulse").now_ms;
    let old: Vec<_> = (0..1_200).map(|n| event(&format!("old{n}"), "r", n + 1, start, b"{}")).collect();
    for chunk in old.chunks(400) {
        commit(&store, chunk).await;
    }
    commit(&store, &[event("new", "r", 5_000, start + 9 * DAY_MS, b"{}")]).await;

    assert_eq!(store.upkeep_at(start + 10 * DAY_MS).await.expect("upkeep").dropped, 0);
    store.upkeep_at(start + 10 * DAY_MS + 1).await.expect("upkeep");
    assert_eq!(reader.counts().await.expect("counts").events, [(Verdict::Applied, 1)]);
    assert_eq!(reader.counts().await.expect("counts").resources, 1);
}

#[tokio::test]
async fn a_store_lives_by_the_clock_it_was_given() {
    let folder = Folder::new();
    let clock = Arc::new(Ahead::default());
    let store = folder.store().await.with_clock(Arc::<Ahead>::clone(&clock));
    let start = store.pulse().await.expect("a pulse").now_ms;
    let third = Event { order: sequence(OnGap::Expire), ..event("a", "r", 3, start, b"{}") };
    assert_eq!(commit(&store, &[third]).await, [Outcome::Held]);
    assert_eq!(store.settle_due(10).await.expect("holds").expired, 0);
    clock.pass(HOLD_MS + 1_000);
    assert!(store.pulse().await.expect("a pulse").now_ms - start >= HOLD_MS + 1_000);
    assert_eq!(store.settle_due(10).await.expect("holds").expired, 1);
    clock.pass(11 * DAY_MS);
    let beside = store.beside(&settings(&folder.database()));
    let upkeep = beside.upkeep().await.expect("upkeep");
    assert_eq!((upkeep.keys_rotated, upkeep.dropped), (true, 1));
}
