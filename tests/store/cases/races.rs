//! Two sessions, as foreign to each other as two nodes.

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::Event;

use crate::events::{APPLIED, Words as _, event, resource};
use crate::world::World;

const ROUNDS: u32 = 30;

pub(crate) async fn two_sessions_racing_for_one_key_let_one_through(world: &World) {
    let (mut left, mut right) = (world.node.session().await, world.node.session().await);
    for round in 0..ROUNDS {
        let copy = || [event(&format!("k{round}")).on("o", round), event(&format!("l{round}"))];
        let (a, b) = (copy(), copy());
        let (one, two) = tokio::join!(left.commit(&a), right.commit(&b));
        let (one, two) = (one.unwrap().outcomes, two.unwrap().outcomes);
        for at in 0..2 {
            let winner = if one[at] == APPLIED { (&a[at], two[at]) } else { (&b[at], one[at]) };
            assert_eq!(winner.1, Outcome::Duplicate { first: winner.0.id, conflict: false }, "{one:?} {two:?}");
        }
    }
    let row = world.node.reader.resource(resource("shop", "", "o").hash).await.unwrap().expect("a state");
    assert_eq!(row.applied, i64::from(ROUNDS));
}

pub(crate) async fn two_sessions_racing_on_one_resource_keep_the_newest(world: &World) {
    let (mut left, mut right) = (world.node.session().await, world.node.session().await);
    for round in 0..ROUNDS {
        // Each round begins with a resource that has no row yet.
        let id = format!("o{round}");
        let of = |side: &str, numbers: [u32; 3]| -> Vec<Event> {
            numbers.iter().map(|number| event(&format!("{side}{round}-{number}")).on(&id, number)).collect()
        };
        let (a, b) = (of("a", [1, 4, 5]), of("b", [2, 3, 6]));
        let (one, two) = tokio::join!(left.commit(&a), right.commit(&b));
        let (one, two) = (one.unwrap().outcomes, two.unwrap().outcomes);
        assert_eq!(two[2], APPLIED);
        let row = world.node.reader.resource(resource("shop", "", &id).hash).await.unwrap().expect("a state");
        assert_eq!((row.version.as_deref(), row.event), (Some("6"), Some(b[2].id)));
        let applied = one.iter().chain(&two).filter(|&&outcome| outcome == APPLIED).count();
        assert_eq!(row.applied, i64::try_from(applied).unwrap());
    }
}

pub(crate) async fn events_that_touch_the_same_resources_in_opposite_order_all_pass(world: &World) {
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(world.node.session().await);
    }
    for round in 0..ROUNDS {
        let id = |name: &str| format!("{name}{}", round / 3);
        let batches: Vec<Vec<Event>> = (0..4)
            .map(|n| {
                let number = round * 4 + n;
                let key = format!("k{number}");
                let event = if n % 2 == 0 {
                    event(&key).on(&id("a"), number).on(&id("b"), number)
                } else {
                    event(&key).on(&id("b"), number).on(&id("a"), number)
                };
                vec![event, self::event(&format!("p{number}")).on(&id("b"), number).ties_apply()]
            })
            .collect();
        let work = sessions.iter_mut().zip(&batches).map(|(session, batch)| session.commit(batch));
        for committed in futures_util::future::join_all(work).await {
            assert_eq!(committed.expect("a lock order without deadlocks").outcomes.len(), 2);
        }
        for name in ["a", "b"] {
            let hash = resource("shop", "", &id(name)).hash;
            let row = world.node.reader.resource(hash).await.unwrap().expect("a state");
            assert_eq!(row.version, Some((round * 4 + 3).to_string()));
        }
    }
}
