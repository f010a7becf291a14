//! The ways through a batch on Postgres, against each other and against their plans.

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tidegate::store::StoreSettings;
use tidegate::store::postgres::{PgStore, Way};
use tidegate_actors::ports::{EventFilter, Outcome, Session, Store as _};
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::order::OnGap;

use crate::asked::hash;
use crate::events::{APPLIED, Words as _, again, duplicate_of, event};
use crate::policies::{HOLD_MS, sequence};
use crate::world::{Kind, World, run};

const ROUNDS: u32 = 30;
const WAYS: [Way; 3] = [Way::Cheapest, Way::Loaded, Way::Locked];

async fn session(world: &World, way: Way) -> Box<dyn Session> {
    let store = PgStore::with_way(&StoreSettings::of(&world.url), way).expect("a store");
    store.open().await.expect("a session")
}

fn applied(outcomes: &[Outcome]) -> i64 {
    i64::try_from(outcomes.iter().filter(|&&outcome| outcome == APPLIED).count()).unwrap()
}

#[test]
fn sessions_on_different_ways_race_on_one_resource_and_keep_the_newest() {
    run(Kind::Postgres, async |world| {
        let [mut one, mut two, mut three] =
            [session(world, WAYS[0]).await, session(world, WAYS[1]).await, session(world, WAYS[2]).await];
        for round in 0..ROUNDS {
            let id = format!("o{round}-");
            let of = |way: u32| -> Vec<Event> {
                [way, way + 3, way + 6].map(|n| event(&format!("{id}{n}")).on(&id, n)).to_vec()
            };
            let (a, b, c) = (of(1), of(2), of(3));
            let (a, b, c) = tokio::join!(one.commit(&a), two.commit(&b), three.commit(&c));
            let outcomes = [a, b, c].map(|done| done.unwrap().outcomes).concat();
            let row = world.state(&id).await;
            assert_eq!((row.version.as_deref(), row.applied), (Some("9"), applied(&outcomes)), "round {round}");
        }
    });
}

#[test]
fn a_batch_that_rivals_overtake_all_the_time_is_committed_under_locks() {
    run(Kind::Postgres, async |world| {
        let mut sessions = Vec::new();
        for n in 0..6 {
            sessions.push(session(world, if n == 0 { Way::Cheapest } else { Way::Loaded }).await);
        }
        // Everybody's batches have the same two resources, one in opposite order.
        let batches = (0..6_u32).map(|side| async move {
            let of = |round: u32| {
                let n = round * 6 + side;
                [event(&format!("a{n}")).on("a", n).on("b", n), event(&format!("b{n}")).on("b", n).on("a", n)]
            };
            (0..10).map(of).collect::<Vec<_>>()
        });
        let batches: Vec<_> = futures_util::future::join_all(batches).await;
        let work = sessions.iter_mut().zip(&batches).map(|(session, batches)| async move {
            for batch in batches {
                session.commit(batch).await.expect("no batch is given up");
            }
        });
        futures_util::future::join_all(work).await;
        assert_eq!(world.state("a").await.version.as_deref(), Some("59"));
        assert_eq!(world.node.reader.counts().await.unwrap().keys, 120);
    });
}

#[test]
fn keys_that_this_process_does_not_know_are_met_on_every_way() {
    run(Kind::Postgres, async |world| {
        for way in WAYS {
            let mut session = session(world, way).await;
            let id = format!("{way:?}");
            let first: Vec<Event> =
                (1..5).map(|n| event(&format!("{id}{n}")).on(&id, n).by(&sequence(OnGap::Expire))).collect();
            assert_eq!(session.commit(&first[..2]).await.unwrap().outcomes, [APPLIED; 2]);
            // Half of the batch was taken by another session, as after a restart.
            let mut other = self::session(world, Way::Loaded).await;
            let storm: Vec<Event> = first.iter().map(again).collect();
            let outcomes = other.commit(&storm).await.unwrap().outcomes;
            assert_eq!(outcomes, [duplicate_of(&first[0]), duplicate_of(&first[1]), APPLIED, APPLIED]);
            assert_eq!(world.state(&id).await.applied, 4);
        }
    });
}

#[test]
fn a_connection_for_what_waits_that_died_is_replaced() {
    run(Kind::Postgres, async |world| {
        world.commit(&[event("k3").on("o", 3).by(&sequence(OnGap::Expire))]).await;
        assert_eq!(world.settle().await.expired, 0);
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'tidegate waits' AND datname = current_database()";
        let mut connection = PgConnection::connect(&world.url).await.unwrap();
        connection.execute(sql).await.unwrap();
        world.pass(HOLD_MS + 60_000).await;
        let settled = match world.node.store.settle_due(10).await {
            Ok(waits) => waits,
            Err(_) => world.settle().await,
        };
        assert_eq!(settled.expired, 1);
    });
}

#[test]
fn events_of_a_resource_are_found_whether_the_index_knows_them_yet_or_not() {
    run(Kind::Postgres, async |world| {
        let number = |n: u32| event(&format!("k{n}")).on(&format!("o{}", n % 7), n);
        let of = |id: &str| EventFilter { of: Some(hash(id)), ..EventFilter::default() };
        for round in 0..3 {
            let batch: Vec<Event> = (round * 70..round * 70 + 70).map(number).collect();
            world.commit(&batch).await;
            let rows = world.node.reader.events(&of("o3"), None, 1_000).await.unwrap().rows;
            assert_eq!(rows.len(), 10 * (round as usize + 1), "round {round}");
            assert!(rows.iter().all(|row| row.resource == Some(("order".to_owned(), "o3".to_owned()))));
            world.node.store.upkeep().await.unwrap();
        }
        let page = world.node.reader.events(&of("o3"), None, 20).await.unwrap();
        let rest = world.node.reader.events(&of("o3"), page.next, 20).await.unwrap();
        assert_eq!((page.rows.len(), rest.rows.len(), rest.next), (20, 10, None));
        assert!(page.rows.iter().map(|row| row.id).is_sorted_by(|one, two| one > two));
    });
}
