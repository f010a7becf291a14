//! Counters that start again: parked with an alert, continued in a new epoch by rule or by a person.

use tidegate_actors::rules::event::{Event, Verdict};

use crate::asked::hash;
use crate::events::{APPLIED, HELD, STALE, Words as _, event};
use crate::policies::resetting;
use crate::world::World;

const DAY_MS: i64 = 86_400_000;

fn number(n: u64) -> Event {
    event(&format!("k{n}")).on("o", n).by(&resetting(None))
}

pub(crate) async fn a_counter_that_falls_by_a_lot_is_parked_and_a_little_is_stale(world: &World) {
    assert_eq!(world.take(&number(812_004_417)).await, APPLIED);
    assert_eq!(world.take(&number(812_003_417)).await, STALE);
    let fell = number(90_311_250);
    let committed = world.committed(std::slice::from_ref(&fell)).await;
    assert_eq!((committed.outcomes, committed.waits.parked), (vec![HELD], 1));
    assert_eq!(committed.waits.due_in_ms, None);
    assert_eq!(world.said(&fell).await.1, "parked: fell from 812004417 to 90311250");
    let held = world.held("o").await;
    assert_eq!((held.len(), held[0].parked, held[0].until_ms), (1, true, None));
    assert_eq!(world.take(&number(812_004_418)).await, APPLIED, "what is above goes on");
    let row = world.state("o").await;
    assert_eq!((row.version.as_deref(), row.epoch, row.held), (Some("812004418"), 1, 1));
}

pub(crate) async fn a_parked_event_waits_for_a_person_and_not_for_time(world: &World) {
    let (low, high) = (number(70), number(90));
    world.commit(&[number(5_000)]).await;
    world.commit(&[high.clone(), low.clone()]).await;
    world.pass(365 * DAY_MS).await;
    assert_eq!(world.settle().await, Default::default());
    let waits = world.node.store.release(hash("o")).await.unwrap().expect("something waits");
    assert_eq!(waits.released, 2);
    let row = world.state("o").await;
    assert_eq!((row.version.as_deref(), row.epoch, row.held, row.event), (Some("90"), 2, 0, Some(high.id)));
    assert_eq!(world.said(&low).await, (Verdict::Applied, "begins epoch 2, after 5000".to_owned()));
    assert_eq!(world.take(&number(80)).await, STALE);
    assert_eq!(world.take(&number(91)).await, APPLIED);
    assert_eq!(world.state("o").await.epoch, 2);
}

pub(crate) async fn a_counter_that_falls_after_a_quiet_time_begins_an_epoch(world: &World) {
    let now_ms = world.node.store.pulse().await.unwrap().now_ms;
    let quiet = |n: u64, at_ms| event(&format!("k{n}")).on("o", n).by(&resetting(Some(7 * DAY_MS))).at(at_ms);
    let parked = quiet(90_311_250, now_ms - 8 * DAY_MS + 3_600_000);
    assert_eq!(world.take(&quiet(812_004_417, now_ms - 8 * DAY_MS)).await, APPLIED);
    assert_eq!(world.take(&parked).await, HELD);
    let next = quiet(90_311_377, now_ms);
    assert_eq!(world.take(&next).await, APPLIED);
    let row = world.state("o").await;
    assert_eq!((row.version.as_deref(), row.epoch, row.event), (Some("90311377"), 2, Some(next.id)));
    assert_eq!(row.held, 0, "what was parked is judged again in the new epoch");
    assert_eq!(world.said(&parked).await, (Verdict::Stale, "older than 90311377".to_owned()));
}
