//! State machines: a declared graph, or ranks that go forward.

use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::order::OnGap;

use crate::events::{APPLIED, HELD, STALE, STALE_TIE, Words as _, event};
use crate::policies::{HOLD_MS, graph, ranks};
use crate::world::World;

const ORDER: &[(&str, &[&str])] =
    &[("created", &["paid", "cancelled"]), ("paid", &["shipped", "refunded"]), ("shipped", &["refunded"])];

/// A step of `o` in the life of an order, without a version.
fn step(name: &str, on_gap: OnGap) -> Event {
    event(name).on_unversioned("o").step(name).by(&graph(ORDER, on_gap))
}

/// A step of `o` among ranks, with a version.
fn ranked(key: &str, name: &str, number: u32) -> Event {
    let ranks = ranks(&["created", "updated", "deleted"], OnGap::Release);
    event(key).on("o", number).step(name).by(&ranks)
}

pub(crate) async fn an_edge_applies_a_later_step_waits_and_what_is_over_is_stale(world: &World) {
    let [created, paid, shipped, refunded, cancelled] =
        ["created", "paid", "shipped", "refunded", "cancelled"].map(|name| step(name, OnGap::Expire));
    assert_eq!(world.take(&shipped).await, HELD);
    assert_eq!(world.said(&shipped).await, (Verdict::Held, "waits for paid".to_owned()));
    assert_eq!(world.take(&created).await, APPLIED);
    assert_eq!(world.take(&refunded).await, HELD);
    assert_eq!(world.said(&refunded).await.1, "waits for paid or shipped");
    let committed = world.committed(std::slice::from_ref(&paid)).await;
    assert_eq!((committed.outcomes, committed.waits.released + committed.waits.stale), (vec![APPLIED], 2));
    let row = world.state("o").await;
    assert_eq!((row.step.as_deref(), row.held), (Some("refunded"), 0));
    assert_eq!(world.take(&cancelled).await, STALE);
    assert_eq!(world.said(&cancelled).await.1, "cancelled does not follow refunded");
}

pub(crate) async fn an_update_before_its_create_waits_and_tells_for_what(world: &World) {
    let updated = ranked("k2", "updated", 2);
    assert_eq!(world.take(&updated).await, HELD);
    assert_eq!(world.said(&updated).await.1, "waits for created");
    assert_eq!(world.state("o").await.step, None);
    let committed = world.committed(&[ranked("k1", "created", 1)]).await;
    assert_eq!((committed.outcomes, committed.waits.released), (vec![APPLIED], 1));
    let row = world.state("o").await;
    assert_eq!(
        (row.step.as_deref(), row.version.as_deref(), row.event),
        (Some("updated"), Some("2"), Some(updated.id))
    );
}

pub(crate) async fn a_rank_is_moved_forward_and_a_newer_version_of_it_applies(world: &World) {
    let batch = [ranked("k1", "created", 1), ranked("k3", "updated", 3), ranked("k5", "updated", 5)];
    assert_eq!(world.commit(&batch).await, [APPLIED; 3]);
    assert_eq!(world.take(&ranked("k4", "updated", 4)).await, STALE);
    assert_eq!(world.take(&ranked("k6", "updated", 5)).await, STALE_TIE);
    assert_eq!(world.take(&ranked("k7", "created", 7)).await, STALE, "no way leads back");
    assert_eq!(world.take(&ranked("k8", "deleted", 8).deleting()).await, APPLIED);
    let row = world.state("o").await;
    assert_eq!((row.step.as_deref(), row.version.as_deref(), row.deleted), (Some("deleted"), Some("8"), true));
}

pub(crate) async fn a_hold_that_is_over_applies_whatever_the_graph_says(world: &World) {
    let [created, shipped] = ["created", "shipped"].map(|name| step(name, OnGap::Release));
    world.commit(&[created, shipped.clone()]).await;
    world.pass(HOLD_MS + 60_000).await;
    assert_eq!(world.settle().await.released, 1);
    assert_eq!(world.said(&shipped).await, (Verdict::Applied, "the gap before it was given up".to_owned()));
    assert_eq!(world.take(&step("paid", OnGap::Release)).await, STALE);
    assert_eq!(world.take(&step("refunded", OnGap::Release)).await, APPLIED);

    let expiring = event("late").on_unversioned("p").step("shipped").by(&graph(ORDER, OnGap::Expire));
    assert_eq!(world.take(&expiring).await, HELD);
    world.pass(HOLD_MS + 60_000).await;
    assert_eq!(world.settle().await.expired, 1);
    assert_eq!(world.verdict(&expiring).await, Verdict::Expired);
    let row = world.state("p").await;
    assert_eq!((row.step, row.event, row.held), (None, None, 0));
}

pub(crate) async fn a_version_below_the_stored_one_is_stale_whatever_its_step(world: &World) {
    world.commit(&[ranked("k1", "created", 5)]).await;
    let late = ranked("k2", "updated", 4);
    assert_eq!(world.take(&late).await, STALE);
    assert_eq!(world.said(&late).await.1, "older than 5");
    assert_eq!(world.state("o").await.step.as_deref(), Some("created"));
}
