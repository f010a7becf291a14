//! Times without gaps to see: everything waits a little, and applies in version order.

use tidegate_actors::rules::event::{Event, Verdict};

use crate::events::{APPLIED, HELD, STALE, Words as _, event};
use crate::policies::window;
use crate::world::World;

const WINDOW_MS: i64 = 600_000;

fn number(n: u32) -> Event {
    event(&format!("k{n}")).on("o", n).by(&window(WINDOW_MS))
}

pub(crate) async fn events_wait_for_their_window_and_apply_in_version_order(world: &World) {
    let (third, first, fourth) = (number(3), number(1), number(4));
    assert_eq!(world.take(&third).await, HELD);
    world.pass(WINDOW_MS / 2).await;
    assert_eq!(world.commit(&[first.clone(), fourth.clone()]).await, [HELD; 2]);
    assert_eq!(world.said(&first).await.1, "waits for its window to close");
    world.pass(WINDOW_MS / 2 + 60_000).await;
    // the third had its time; what is older goes out with it, in order, and what is newer has time left
    let waits = world.settle().await;
    assert_eq!((waits.released, waits.stale), (2, 0));
    assert_eq!([world.verdict(&first).await, world.verdict(&fourth).await], [Verdict::Applied, Verdict::Held]);
    let row = world.state("o").await;
    assert_eq!((row.version.as_deref(), row.event, row.applied, row.held), (Some("3"), Some(third.id), 2, 1));
    world.pass(WINDOW_MS).await;
    assert_eq!(world.settle().await.released, 1);
    assert_eq!(world.at("o").await, (Some("4".to_owned()), 0));
}

pub(crate) async fn what_is_older_than_what_was_released_is_stale_at_once(world: &World) {
    world.take(&number(5)).await;
    world.pass(WINDOW_MS + 60_000).await;
    assert_eq!(world.settle().await.released, 1);
    assert_eq!(world.take(&number(4)).await, STALE);
    assert_eq!(world.take(&number(6)).await, HELD);
    // without a version there is nothing to put it in order by
    assert_eq!(world.take(&event("none").on_unversioned("o").by(&window(WINDOW_MS))).await, APPLIED);
}
