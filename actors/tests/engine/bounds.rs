//! Every bound holds, and what is beyond it is refused and never lost.

use std::rc::Rc;
use std::time::Duration;

use tidegate_actors::ports::Reader;
use tidegate_actors::rules::event::Receipt;
use tidegate_actors::{EngineSettings, Refused};

use crate::support::{World, paused, settings};

/// Takes so many events at once while the store is slow; each is either durable or refused.
async fn flood(settings: EngineSettings, events: u64, resources: u64) -> (usize, usize) {
    let world = World::start(settings).await;
    world.store.faults().set_commit_time(Duration::from_millis(2));
    let events =
        (0..events).map(|number| world.event(&format!("e{number}"), &format!("o{}", number % resources), number));
    let answers = world.take_all(events.collect()).await;
    let taken: Vec<Receipt> = answers.iter().flatten().copied().collect();
    let refused = answers.iter().filter(|answer| **answer == Err(Refused::Overloaded)).count();
    assert_eq!(taken.len() + refused, answers.len(), "taken or refused as overloaded, nothing else");
    for receipt in &taken {
        assert!(world.store.event(receipt.id).await.unwrap().is_some(), "what was answered is stored");
    }
    assert_eq!(world.store.counts().await.unwrap().keys as usize, taken.len(), "what was refused is not");
    let status = world.engine.status();
    assert_eq!((status.in_flight_events.0, status.in_flight_bytes.0), (0, 0));
    assert!(status.pools.iter().all(|pool| pool.depth == 0), "{status:?}");
    (taken.len(), refused)
}

#[test]
fn events_beyond_the_budget_are_refused() {
    paused(async {
        let settings = EngineSettings { in_flight_events: 10, ..settings() };
        assert_eq!(flood(settings, 50, 50).await, (10, 40));
    });
}

#[test]
fn bytes_beyond_the_budget_are_refused_before_the_body_is_read() {
    paused(async {
        let world = World::start(EngineSettings { in_flight_bytes: 1_000, ..settings() }).await;
        let held = world.ingress.reserve(900).expect("room");
        assert_eq!(world.ingress.reserve(101).err(), Some(Refused::Overloaded));
        drop(held);
        assert!(world.ingress.reserve(1_000).is_ok());
        assert!((world.figure("tidegate_refused_total{reason=\"overloaded\"}") - 1.0).abs() < f64::EPSILON);
    });
}

#[test]
fn full_mailboxes_refuse_and_lose_nothing() {
    paused(async {
        let small: [fn(&mut EngineSettings); 6] = [
            |settings| settings.ingress_mailbox = 4,
            |settings| settings.dedup_mailbox = 4,
            |settings| settings.ordering_mailbox = 4,
            |settings| settings.resource_mailbox = 4,
            |settings| settings.writer_mailbox = 4,
            |settings| settings.writer_waiting = 4,
        ];
        for shrink in small {
            let mut settings = settings();
            shrink(&mut settings);
            let (taken, refused) = flood(settings.clone(), 200, 10).await;
            assert!(taken >= 4 && refused > 0, "{taken} taken and {refused} refused with {settings:?}");
        }
    });
}

#[test]
fn a_resource_keeps_no_more_waiting_than_its_bound() {
    paused(async {
        let settings = EngineSettings { resource_waiting: 5, ..settings() };
        assert_eq!(flood(settings, 40, 1).await, (5, 35));
    });
}

#[test]
fn live_resources_that_all_have_work_make_no_room() {
    paused(async {
        let settings = EngineSettings { live_resources: 6, ..settings() };
        assert_eq!(flood(settings, 30, 30).await, (6, 24));
    });
}

#[test]
fn a_caller_who_goes_away_harms_no_commit() {
    paused(async {
        let world = World::start(settings()).await;
        world.store.faults().set_commit_time(Duration::from_millis(5));
        for number in 0..20 {
            let event = world.event(&format!("e{number}"), "o1", number);
            let permit = world.ingress.reserve(1).expect("room");
            drop(world.ingress.take(event, permit));
        }
        world.until(|world| world.engine.status().in_flight_events.0 == 0).await;
        assert_eq!(world.store.counts().await.unwrap().keys, 20);
    });
}

#[test]
fn an_answer_that_takes_too_long_is_refused_and_the_event_is_stored_all_the_same() {
    paused(async {
        let world = World::start(EngineSettings { answer_within: Duration::from_secs(1), ..settings() }).await;
        world.store.faults().set_commit_time(Duration::from_secs(3));
        assert_eq!(world.take(world.event("e1", "o1", 1)).await, Err(Refused::TooLate));
        let world = Rc::new(world);
        world.until(|world| world.engine.status().in_flight_events.0 == 0).await;
        assert_eq!(world.store.counts().await.unwrap().keys, 1);
    });
}
