//! A resource's stored version never goes back (I5), and stores agree with `rules`.

use tidegate_actors::ports::{EventFilter, Outcome, ResourceRow};
use tidegate_actors::rules::event::Event;

use crate::events::{APPLIED, APPLIED_TIE, STALE, STALE_TIE, Words as _, event, resource};
use crate::world::World;

async fn commit(world: &World, batch: &[Event]) -> Vec<Outcome> {
    let mut session = world.node.session().await;
    session.commit(batch).await.unwrap().outcomes
}

async fn state(world: &World, id: &str) -> Option<ResourceRow> {
    world.node.reader.resource(resource("shop", "", id).hash).await.unwrap()
}

async fn stored(world: &World, id: &str) -> Option<String> {
    state(world, id).await.and_then(|row| row.version)
}

pub(crate) async fn a_newer_version_applies_and_an_older_one_is_stale(world: &World) {
    let newest = event("k2").on("o", 10);
    assert_eq!(commit(world, &[event("k1").on("o", 9)]).await, [APPLIED]);
    assert_eq!(commit(world, std::slice::from_ref(&newest)).await, [APPLIED]);
    assert_eq!(commit(world, &[event("k3").on("o", 8)]).await, [STALE]);
    let row = state(world, "o").await.expect("a state");
    assert_eq!((row.version.as_deref(), row.event, row.applied), (Some("10"), Some(newest.id), 2));
    assert_eq!((row.kind.as_str(), row.id.as_str(), row.applied_at_ms), ("order", "o", newest.received_at_ms));
}

pub(crate) async fn reordering_inside_a_batch_heals(world: &World) {
    let batch = [event("k3").on("o", 3), event("k1").on("o", 1), event("k2").on("o", 2)];
    assert_eq!(commit(world, &batch).await, [APPLIED; 3]);
    let row = state(world, "o").await.expect("a state");
    assert_eq!((row.version.as_deref(), row.event, row.applied), (Some("3"), Some(batch[0].id), 3));
    let mixed = [event("k5").on("o", 5), event("k0").on("o", 0), event("k4").on("o", 4)];
    assert_eq!(commit(world, &mixed).await, [APPLIED, STALE, APPLIED]);
    assert_eq!(state(world, "o").await.expect("a state").applied, 5);
}

pub(crate) async fn a_tie_is_decided_by_its_rule_and_said(world: &World) {
    let first = event("k1").on("o", 5);
    commit(world, std::slice::from_ref(&first)).await;
    assert_eq!(commit(world, &[event("k2").on("o", 5)]).await, [STALE_TIE]);
    assert_eq!(state(world, "o").await.expect("a state").event, Some(first.id));
    let tie = event("k3").on("o", 5).ties_apply();
    assert_eq!(commit(world, std::slice::from_ref(&tie)).await, [APPLIED_TIE]);
    let row = state(world, "o").await.expect("a state");
    assert_eq!((row.event, row.applied, row.version.as_deref()), (Some(tie.id), 2, Some("5")));
    let rows = world.node.reader.events(&EventFilter::default(), None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().filter(|row| row.tie).count(), 2);
}

pub(crate) async fn ties_inside_a_batch_are_taken_in_the_order_they_came(world: &World) {
    let keep = [event("k1").on("a", 1), event("k2").on("a", 1)];
    assert_eq!(commit(world, &keep).await, [APPLIED, STALE_TIE]);
    assert_eq!(state(world, "a").await.expect("a state").event, Some(keep[0].id));
    let apply = [event("k3").on("b", 1).ties_apply(), event("k4").on("b", 1).ties_apply()];
    assert_eq!(commit(world, &apply).await, [APPLIED, APPLIED_TIE]);
    let row = state(world, "b").await.expect("a state");
    assert_eq!((row.event, row.applied), (Some(apply[1].id), 2));
    let both = [event("k5").on("c", 1), event("k6").on("c", 1).ties_apply(), event("k7").on("c", 1)];
    assert_eq!(commit(world, &both).await, [APPLIED, APPLIED_TIE, STALE_TIE]);
    assert_eq!(state(world, "c").await.expect("a state").event, Some(both[1].id));
}

pub(crate) async fn an_ignored_event_is_recorded_and_changes_no_state(world: &World) {
    let ignored = event("k1").on("o", 1).ignored();
    assert_eq!(commit(world, std::slice::from_ref(&ignored)).await, [Outcome::Ignored]);
    assert_eq!(state(world, "o").await, None);
    let row = world.node.reader.event(ignored.id).await.unwrap().expect("the event's row");
    assert_eq!(row.resource, Some(("order".to_owned(), "o".to_owned())));
}

pub(crate) async fn an_event_without_a_resource_passes_and_leaves_no_state(world: &World) {
    assert_eq!(commit(world, &[event("k1"), event("k2")]).await, [APPLIED; 2]);
    assert_eq!(world.node.reader.resources(&Default::default(), None, 10).await.unwrap().rows, []);
}

pub(crate) async fn an_event_without_a_version_applies_and_leaves_the_stored_version(world: &World) {
    commit(world, &[event("k1").on("o", 7)]).await;
    let late = event("k2").on_unversioned("o");
    assert_eq!(commit(world, std::slice::from_ref(&late)).await, [APPLIED]);
    let row = state(world, "o").await.expect("a state");
    assert_eq!((row.version.as_deref(), row.event, row.applied), (Some("7"), Some(late.id), 2));
    assert_eq!(commit(world, &[event("k3").on("o", 6)]).await, [STALE]);
    // Without any version so far, the first version applies.
    commit(world, &[event("k4").on_unversioned("p")]).await;
    assert_eq!(stored(world, "p").await, None);
    assert_eq!(commit(world, &[event("k5").on("p", 1), event("k6").on("p", 1)]).await, [APPLIED, STALE_TIE]);
    assert_eq!(stored(world, "p").await.as_deref(), Some("1"));
    // Both in one batch: what has no version goes last.
    let mixed = [event("k7").on_unversioned("q"), event("k8").on("q", 3)];
    assert_eq!(commit(world, &mixed).await, [APPLIED; 2]);
    let row = state(world, "q").await.expect("a state");
    assert_eq!((row.version.as_deref(), row.event), (Some("3"), Some(mixed[0].id)));
}

pub(crate) async fn arrival_takes_every_event_and_keeps_the_highest_version(world: &World) {
    assert_eq!(commit(world, &[event("k1").on("o", 5).arrival()]).await, [APPLIED]);
    let late = event("k2").on("o", 3).arrival();
    assert_eq!(commit(world, std::slice::from_ref(&late)).await, [APPLIED]);
    let row = state(world, "o").await.expect("a state");
    assert_eq!((row.version.as_deref(), row.event, row.applied), (Some("5"), Some(late.id), 2));
}

pub(crate) async fn a_tombstone_counts_as_state_also_when_the_resource_was_never_seen(world: &World) {
    assert_eq!(commit(world, &[event("k1").on("o", 5).deleting()]).await, [APPLIED]);
    assert!(state(world, "o").await.expect("a tombstone").deleted);
    assert_eq!(commit(world, &[event("k2").on("o", 4)]).await, [STALE]);
    assert!(state(world, "o").await.expect("a tombstone").deleted);
    assert_eq!(commit(world, &[event("k3").on("o", 6)]).await, [APPLIED]);
    assert!(!state(world, "o").await.expect("a state").deleted);
}

pub(crate) async fn an_event_of_several_resources_guards_each_and_is_judged_by_the_first(world: &World) {
    commit(world, &[event("k1").on("a", 5), event("k2").on("b", 1)]).await;
    // Older than what `a` holds, newer than what `b` holds; `c` is new.
    let both = event("k3").on("a", 3).on("b", 3).on("c", 3);
    assert_eq!(commit(world, std::slice::from_ref(&both)).await, [STALE]);
    assert_eq!(stored(world, "a").await.as_deref(), Some("5"));
    assert_eq!(state(world, "b").await.expect("a state").event, Some(both.id));
    assert_eq!(state(world, "c").await.expect("a state").event, Some(both.id));
    // The same resource named twice counts once.
    let twice = event("k4").on("d", 1).on("d", 1);
    assert_eq!(commit(world, std::slice::from_ref(&twice)).await, [APPLIED]);
    assert_eq!(state(world, "d").await.expect("a state").applied, 1);
}

pub(crate) async fn a_batch_may_mix_all_kinds_of_events(world: &World) {
    commit(world, &[event("k0").on("a", 5)]).await;
    let batch = [
        event("k1").on("a", 4),
        event("k2"),
        event("k3").on("b", 1).ignored(),
        event("k4").on("c", 2).deleting(),
        event("k5").on_unversioned("d"),
        event("k6").on("e", 1).arrival(),
        event("k7").on("a", 6).on("b", 1),
    ];
    let outcomes = commit(world, &batch).await;
    assert_eq!(outcomes, [STALE, APPLIED, Outcome::Ignored, APPLIED, APPLIED, APPLIED, APPLIED]);
}

pub(crate) async fn numbers_beyond_32_and_64_bits_stay_exact(world: &World) {
    let numbers = [
        i32::MAX.to_string(),
        "2147483648".into(),
        i64::MAX.to_string(),
        "9223372036854775808".into(),
        "9".repeat(100),
    ];
    for (n, number) in numbers.iter().enumerate() {
        assert_eq!(commit(world, &[event(&format!("up{n}")).on(number, number)]).await, [APPLIED]);
        assert_eq!(commit(world, &[event(&format!("one{n}")).on("one", number)]).await, [APPLIED]);
        assert_eq!(stored(world, number).await.as_deref(), Some(number.as_str()));
    }
    assert_eq!(commit(world, &[event("late").on("one", u64::MAX)]).await, [STALE]);
}
