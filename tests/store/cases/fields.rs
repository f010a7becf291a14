//! States put together from partial updates, each member with a version of its own.

use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::fields::MEMBERS_MAX;
use tidegate_actors::rules::order::OnGap;

use crate::events::{APPLIED, HELD, STALE, Words as _, event};
use crate::policies::{merging, newest, sequence};
use crate::world::World;

fn update(id: &str, n: u32, members: &[(&str, &str)]) -> Event {
    event(&format!("{id}{n}")).on(id, n).sets(members).by(&merging(&newest()))
}

pub(crate) async fn partial_updates_in_any_order_end_in_one_state(world: &World) {
    for (number, order) in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]].into_iter().enumerate() {
        let id = format!("o{number}");
        let updates = [
            update(&id, 1, &[("plan", "\"pro\""), ("seats", "3")]),
            update(&id, 2, &[("seats", "5")]),
            update(&id, 3, &[("plan", "null")]),
        ];
        for place in order {
            // whoever comes late still has a member to set, but for the first, which has none behind both others
            let late = place == 0 && order[0] != 0 && order[1] != 0;
            assert_eq!(world.take(&updates[place]).await, if late { STALE } else { APPLIED }, "{order:?}");
        }
        let row = world.state(&id).await;
        assert_eq!(row.fields.as_deref(), Some(r#"{"plan":null,"seats":5}"#), "{order:?}");
        assert_eq!((row.version.as_deref(), row.event), (Some("3"), Some(updates[2].id)), "{order:?}");
    }
}

pub(crate) async fn a_tombstone_takes_what_is_older_and_keeps_older_updates_away(world: &World) {
    world.commit(&[update("o", 1, &[("a", "1"), ("b", "1")]), update("o", 5, &[("a", "5")])]).await;
    assert_eq!(world.take(&update("o", 3, &[]).deleting()).await, APPLIED);
    let row = world.state("o").await;
    assert_eq!((row.fields.as_deref(), row.deleted), (Some(r#"{"a":5}"#), false));
    assert_eq!(world.take(&update("o", 2, &[("b", "2")])).await, STALE);
    assert_eq!(world.take(&update("o", 6, &[]).deleting()).await, APPLIED);
    let row = world.state("o").await;
    assert_eq!((row.fields.as_deref(), row.deleted), (Some("{}"), true));
    // also of a resource never seen
    assert_eq!(world.take(&update("p", 4, &[]).deleting()).await, APPLIED);
    assert_eq!(world.take(&update("p", 3, &[("a", "3")])).await, STALE);
    assert_eq!(world.take(&update("p", 5, &[("a", "\"\\u0000 zwölf\"")])).await, APPLIED);
    assert_eq!(world.state("p").await.fields.as_deref(), Some("{\"a\":\"\\u0000 zwölf\"}"));
}

pub(crate) async fn members_are_bounded_and_nothing_of_a_refused_event_is_stored(world: &World) {
    let names: Vec<String> = (0..MEMBERS_MAX).map(|n| format!("m{n}")).collect();
    let members: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(world.take(&update("o", 1, &members)).await, APPLIED);
    let more = update("o", 2, &[("one more", "1")]);
    let mut session = world.node.session().await;
    let refused = session.commit(&[event("beside"), more.clone()]).await.expect_err("too many members");
    assert!(matches!(&refused, StoreError::Refused(text) if text.contains("members")), "{refused:?}");
    assert_eq!(world.node.reader.event(more.id).await.unwrap(), None);
    assert_eq!(world.commit(&[event("beside"), update("o", 3, &[("m7", "2")])]).await, [APPLIED; 2]);
    assert!(world.state("o").await.fields.expect("fields").contains(r#""m7":2"#));
}

pub(crate) async fn partial_updates_may_wait_for_each_other(world: &World) {
    let order = merging(&sequence(OnGap::Expire));
    let number = |n: u32, members: &[(&str, &str)]| event(&format!("k{n}")).on("o", n).sets(members).by(&order);
    let third = number(3, &[("seats", "7")]);
    assert_eq!(world.commit(&[number(1, &[("plan", "1"), ("seats", "1")]), third.clone()]).await, [APPLIED, HELD]);
    assert_eq!(world.state("o").await.fields.as_deref(), Some(r#"{"plan":1,"seats":1}"#));
    assert_eq!(world.take(&number(2, &[("plan", "2"), ("seats", "2")])).await, APPLIED);
    let row = world.state("o").await;
    assert_eq!((row.fields.as_deref(), row.event), (Some(r#"{"plan":2,"seats":7}"#), Some(third.id)));
}
