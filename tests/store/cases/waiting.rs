//! What all waiting has in common: bounds, counts (I16), and that nothing is lost of it (I6, I15).

use std::time::Duration;

use tidegate_actors::ports::{HeldFilter, StoreError, Waits};
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::judge::HELD_MAX;
use tidegate_actors::rules::order::OnGap;

use crate::events::{APPLIED, HELD, STALE, Words as _, again, event, event_of};
use crate::policies::{HOLD_MS, sequence, window};
use crate::world::{Options, World};

fn number(id: &str, n: usize) -> Event {
    event(&format!("{id}{n}")).on(id, n).by(&sequence(OnGap::Expire))
}

pub(crate) async fn an_embedded_object_is_taken_while_its_event_waits(world: &World) {
    let third = number("o", 3).on("customer", 8).on("seller", 2);
    world.commit(&[event("c9").on("customer", 9)]).await;
    assert_eq!(world.take(&third).await, HELD);
    assert_eq!(world.at("customer").await, (Some("9".to_owned()), 0), "it had something newer");
    assert_eq!(world.at("seller").await, (Some("2".to_owned()), 0));
    assert_eq!(world.state("seller").await.event, Some(third.id));
    world.commit(&[number("o", 1), event("s3").on("seller", 3)]).await;
    // the event's own release does not touch what came along with it a second time
    assert_eq!(world.take(&number("o", 2)).await, APPLIED);
    assert_eq!(world.at("o").await, (Some("3".to_owned()), 0));
    assert_eq!(world.at("seller").await, (Some("3".to_owned()), 0));
}

pub(crate) async fn held_events_of_a_resource_are_bounded_and_the_gap_can_still_close(world: &World) {
    let many: Vec<Event> = (2..HELD_MAX + 2).map(|n| number("o", n)).collect();
    for batch in many.chunks(250) {
        assert!(world.commit(batch).await.iter().all(|outcome| *outcome == HELD));
    }
    let more = number("o", HELD_MAX + 2);
    let mut session = world.node.session().await;
    let full = session.commit(&[event("beside"), more.clone()]).await.expect_err("no room");
    assert!(matches!(&full, StoreError::Full(text) if text.contains("held")), "{full:?}");
    assert_eq!(world.node.reader.event(more.id).await.unwrap(), None);
    assert_eq!(world.state("o").await.held, HELD_MAX as i64);
    let committed = world.committed(&[event("beside"), number("o", 1)]).await;
    assert_eq!((committed.outcomes, committed.waits.released), (vec![APPLIED; 2], HELD_MAX as u32));
    assert_eq!(world.take(&more).await, APPLIED);
    assert_eq!(world.at("o").await, (Some((HELD_MAX + 2).to_string()), 0));
}

pub(crate) async fn every_event_is_counted_under_one_verdict(world: &World) {
    let other = |key: &str| event(key).on("o", 9).ignored();
    let batch = [number("o", 1), number("o", 3), number("o", 5), number("p", 7), other("i")];
    world.commit(&batch).await;
    world.commit(&[again(&batch[0]), again(&batch[1]), again(&batch[1]).body(b"other")]).await;
    let counted = async || {
        let counts = world.node.reader.counts().await.unwrap();
        let count = |verdict| counts.events.iter().find(|row| row.0 == verdict).map_or(0, |row| row.1);
        (Verdict::ALL.map(count), counts.held, counts.resources)
    };
    // applied, duplicate, stale, held, expired, ignored, quarantined
    assert_eq!(counted().await, ([1, 1, 0, 3, 0, 1, 0], 3, 2));
    world.take(&number("o", 2)).await;
    assert_eq!(counted().await, ([3, 1, 0, 2, 0, 1, 0], 2, 2));
    world.pass(HOLD_MS + 60_000).await;
    world.settle().await;
    assert_eq!(counted().await, ([3, 1, 0, 0, 2, 1, 0], 0, 2));
}

pub(crate) async fn settling_twice_does_nothing(world: &World) {
    assert_eq!(world.settle().await, Waits::default(), "not even on an empty store");
    world.commit(&[number("o", 1), number("o", 3)]).await;
    world.pass(HOLD_MS + 60_000).await;
    let other = world.open(Options::default()).await;
    let (one, two) = tokio::join!(world.node.store.settle_due(10), other.store.settle_due(10));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.expired + two.expired, 1, "{one:?} {two:?}");
    assert_eq!(world.settle().await, Waits::default());
    assert_eq!(world.at("o").await, (Some("1".to_owned()), 0));
}

pub(crate) async fn a_held_event_outlives_the_retention(world: &World) {
    const DAY_MS: i64 = 86_400_000;
    let now_ms = world.node.store.pulse().await.unwrap().now_ms;
    let old = |n: u32| event(&format!("k{n}")).on("o", n).by(&sequence(OnGap::Release)).at(now_ms - 40 * DAY_MS);
    let (first, third) = (old(1), old(3));
    assert_eq!(world.commit(&[first.clone(), third.clone()]).await, [APPLIED, HELD]);
    let short = Options { events_retention: Duration::from_secs(86_400), ..Options::default() };
    world.open(short).await.store.upkeep().await.unwrap();
    assert_eq!(world.node.reader.event(first.id).await.unwrap(), None);
    let row = world.row(&third).await;
    assert_eq!((row.verdict, row.body.is_some()), (Verdict::Held, true), "it is still to be applied, with its bytes");
    world.pass(HOLD_MS + 60_000).await;
    assert_eq!(world.settle().await.released, 1);
    assert_eq!(world.verdict(&third).await, Verdict::Applied);
}

pub(crate) async fn what_waits_is_listed_in_pages_and_by_source(world: &World) {
    let batch: Vec<Event> = (0..5).map(|n| number(&format!("o{n}"), 3)).collect();
    let elsewhere = event_of("other", "t", "k").on("x", 3).by(&window(HOLD_MS));
    world.commit(&batch).await;
    world.take(&elsewhere).await;
    let of = |source: &str| HeldFilter { source: Some(source.to_owned()), ..HeldFilter::default() };
    let page = world.node.reader.held(&of("shop"), None, 3).await.unwrap();
    let ids = |rows: &[tidegate_actors::ports::HeldRow]| rows.iter().map(|row| row.event).collect::<Vec<_>>();
    assert_eq!(ids(&page.rows), [batch[0].id, batch[1].id, batch[2].id]);
    let rest = world.node.reader.held(&of("shop"), page.next, 3).await.unwrap();
    assert_eq!((ids(&rest.rows), rest.next), (vec![batch[3].id, batch[4].id], None));
    let other = world.node.reader.held(&of("other"), None, 10).await.unwrap().rows;
    assert_eq!(other.len(), 1);
    assert_eq!((other[0].tenant.as_str(), &other[0].resource), ("t", &("order".to_owned(), "x".to_owned())));
    assert_eq!(world.node.reader.held(&HeldFilter::default(), None, 10).await.unwrap().rows.len(), 6);
}

pub(crate) async fn many_resources_wait_in_one_batch_and_settle_in_one_transaction(world: &World) {
    let release = |id: &str, n: usize| event(&format!("{id}-{n}")).on(id, n).by(&sequence(OnGap::Release));
    let batch: Vec<Event> = (0..300).map(|n| release(&format!("o{n}"), 2 + n % 3)).collect();
    assert_eq!(world.commit(&batch).await, vec![HELD; 300]);
    world.pass(HOLD_MS + 60_000).await;
    let waits = world.settle().await;
    assert_eq!((waits.released, waits.due_in_ms), (300, None));
    assert_eq!(world.at("o2").await, (Some("4".to_owned()), 0));
    let late: Vec<Event> = (0..300).map(|n| release(&format!("o{n}"), 1)).collect();
    assert_eq!(world.commit(&late).await, vec![STALE; 300]);
}
