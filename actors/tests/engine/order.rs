//! Arrival order, one commit in flight for each resource, gathering, passivation.

use std::rc::Rc;
use std::time::Duration;

use tidegate_actors::EngineSettings;
use tidegate_actors::ports::{Reader, ResourceFilter};
use tidegate_actors::rules::event::Verdict;

use crate::support::{World, beside, paused, settings, settle, verdict};

#[test]
fn an_event_is_applied_and_answered_after_its_commit() {
    paused(async {
        let world = World::start(settings()).await;
        let receipt = world.take(world.event("e1", "o1", 1)).await.expect("a receipt");
        assert_eq!(receipt.verdict, Verdict::Applied);
        let row = world.store.event(receipt.id).await.unwrap().expect("the row is there");
        assert_eq!(row.key, "e1");
    });
}

#[test]
fn older_versions_are_stale_and_equal_ones_a_tie() {
    paused(async {
        let world = World::start(settings()).await;
        assert_eq!(verdict(&world.take(world.event("e2", "o1", 2)).await), Verdict::Applied);
        assert_eq!(verdict(&world.take(world.event("e1", "o1", 1)).await), Verdict::Stale);
        let tie = world.take(world.event("e3", "o1", 2)).await.unwrap();
        assert_eq!((tie.verdict, tie.tie), (Verdict::Stale, true));
        assert!((world.figure("tidegate_ties_total{source=\"shop\"}") - 1.0).abs() < f64::EPSILON);
    });
}

#[test]
fn what_waits_while_a_commit_runs_goes_together_in_the_next_one_in_arrival_order() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().set_commit_time(Duration::from_millis(10));
        let events = vec![world.event("a1", "a", 1)];
        let world = Rc::new(world);
        let of_first = Rc::clone(&world);
        let first = beside(async move { of_first.take_all(events).await });
        settle().await;
        assert_eq!(world.batches(), [["a1"]]);
        let rest = ["a2", "a3", "b1", "a4"];
        let events = rest.iter().map(|key| world.event(key, &key[..1], 2)).collect();
        let answers = world.take_all(events).await;
        assert!(answers.iter().all(Result::is_ok) && first.borrow().is_some());
        let batches = world.batches();
        assert_eq!(batches.len(), 2);
        let of_a: Vec<_> = batches[1].iter().filter(|key| key.starts_with('a')).collect();
        assert_eq!(of_a, ["a2", "a3", "a4"]);
        assert!(batches[1].contains(&"b1".to_owned()));
    });
}

#[test]
fn a_burst_of_one_resource_is_one_commit() {
    paused(async {
        let world = World::start(settings()).await;
        let events = (0..100).map(|number| world.event(&format!("e{number:03}"), "hot", number)).collect();
        let answers = world.take_all(events).await;
        assert!(answers.iter().all(|answer| verdict(answer) == Verdict::Applied));
        let expected: Vec<String> = (0..100).map(|number| format!("e{number:03}")).collect();
        assert_eq!(world.batches(), [expected]);
    });
}

#[test]
fn commits_are_bounded_in_events_and_in_bytes() {
    paused(async {
        let world = World::start(EngineSettings { batch_events: 7, ..settings() }).await;
        let events = (0..50).map(|number| world.event(&format!("e{number}"), &format!("o{number}"), 1)).collect();
        assert!(world.take_all(events).await.iter().all(Result::is_ok));
        assert!(world.batches().iter().all(|batch| batch.len() <= 7));

        let world = World::start(EngineSettings { batch_bytes: 1_000, ..settings() }).await;
        let events = (0..20).map(|number| world.event(&format!("e{number}"), &format!("o{number}"), 1)).collect();
        assert!(world.take_all(events).await.iter().all(Result::is_ok));
        assert!(world.batches().iter().all(|batch| batch.len() <= 3));
    });
}

#[test]
fn passivation_under_load_never_breaks_the_order_of_a_resource() {
    paused(async {
        let world = World::start(EngineSettings { live_resources: 8, batch_events: 16, ..settings() }).await;
        world.store.faults().set_commit_time(Duration::from_millis(3));
        let mut refused = 0;
        for round in 0..60_u64 {
            let events = (0..6_u64).map(|number| {
                let resource = (round * 5 + number * 3) % 40;
                world.event(&format!("r{resource}-{round}-{number}"), &format!("o{resource}"), round * 10 + number)
            });
            let answers = world.take_all(events.collect()).await;
            refused += answers.iter().filter(|answer| answer.is_err()).count();
            assert!(answers.iter().flatten().all(|receipt| receipt.verdict == Verdict::Applied), "nothing overtakes");
            assert!(world.engine.status().live_resources <= 8);
        }
        assert_eq!(refused, 0);
        assert!(world.figure("tidegate_resources_passivated_total") > 100.0);
        let resources = world.store.resources(&ResourceFilter::default(), None, 100).await.unwrap();
        assert!(resources.next.is_none() && resources.rows.len() > 30);
    });
}

#[test]
fn an_idle_resource_is_passivated_and_woken_again() {
    paused(async {
        let world = World::start(EngineSettings { resource_idle: Duration::from_secs(3), ..settings() }).await;
        assert!(world.take(world.event("e1", "o1", 1)).await.is_ok());
        assert_eq!(world.engine.status().live_resources, 1);
        let alive = |world: &World| world.figure("tidegate_pool_actors{pool=\"resource\"}");
        assert!((alive(&world) - 1.0).abs() < f64::EPSILON);
        world.until(|world| world.engine.status().live_resources == 0).await;
        world.until(|world| alive(world) < 0.5).await;
        assert_eq!(verdict(&world.take(world.event("e2", "o1", 2)).await), Verdict::Applied);
        assert_eq!(world.engine.status().live_resources, 1);
    });
}

#[test]
fn a_hundred_thousand_live_resources_are_kept_and_no_more() {
    paused(async {
        let world = World::start(EngineSettings { live_resources: 100_000, ..settings() }).await;
        for round in 0..105 {
            let events = (0..1_000).map(|number| {
                let mut event = world.event("e", &format!("{round}/{number}"), 1);
                event.key = tidegate_actors::rules::key::Key::new("shop", "", [&*format!("{round}/{number}")]).unwrap();
                event
            });
            let answers = world.take_all(events.collect()).await;
            assert!(answers.iter().all(Result::is_ok));
        }
        assert_eq!(world.engine.status().live_resources, 100_000);
        assert!((world.figure("tidegate_resources_passivated_total") - 5_000.0).abs() < f64::EPSILON);
        world.until(|world| world.figure("tidegate_pool_actors{pool=\"resource\"}") < 100_001.0).await;
    });
}

#[test]
fn shards_on_arbiters_of_their_own_end_in_the_same_state() {
    let system = actix_rt::System::new();
    system.block_on(async {
        let world = World::start(EngineSettings { shards: 3, own_arbiters: true, ..settings() }).await;
        let events = (0..600_u64)
            .map(|number| world.event(&format!("e{number}"), &format!("o{}", number % 20), (number * 7_919) % 600));
        let answers = world.take_all(events.collect()).await;
        assert!(answers.iter().all(Result::is_ok));
        let rows = world.store.resources(&ResourceFilter::default(), None, 100).await.unwrap().rows;
        assert_eq!(rows.len(), 20);
        for row in rows {
            let newest = (0..600_u64).filter(|number| format!("o{}", number % 20) == row.id);
            let newest = newest.map(|number| (number * 7_919) % 600).max().unwrap();
            assert_eq!(row.version, Some(newest.to_string()));
        }
        assert!(world.engine.drain(Duration::from_secs(5)).await.complete);
    });
}
