//! Draining: nothing new, everything accepted, within a bound.

use std::rc::Rc;
use std::time::Duration;

use tidegate_actors::memory::Fault;
use tidegate_actors::{Drained, Refused};

use crate::support::{World, beside, paused, settings, settle};

#[test]
fn what_was_accepted_is_finished_and_nothing_new_is_taken() {
    paused(async {
        let world = Rc::new(World::start(settings()).await);
        world.store.faults().set_commit_time(Duration::from_millis(100));
        let of_events = Rc::clone(&world);
        let events = (0..50).map(|number| world.event(&format!("e{number}"), "o1", number)).collect();
        let answers = beside(async move { of_events.take_all(events).await });
        settle().await;
        let of_drain = Rc::clone(&world);
        let drained = beside(async move { of_drain.engine.drain(Duration::from_secs(5)).await });
        settle().await;
        assert_eq!(world.take(world.event("late", "o1", 1)).await, Err(Refused::Draining));
        assert!(!world.engine.status().ready);
        world.until(|_| drained.borrow().is_some()).await;
        assert_eq!(*drained.borrow(), Some(Drained { complete: true, left: 0 }));
        settle().await;
        let answers = answers.borrow();
        assert!(answers.as_ref().is_some_and(|answers| answers.iter().all(Result::is_ok)));
    });
}

#[test]
fn a_drain_ends_within_its_bound() {
    paused(async {
        let world = Rc::new(World::start(settings()).await);
        world.store.faults().at_next_commit(Fault::Delay(Duration::from_secs(100)));
        let of_event = Rc::clone(&world);
        let event = world.event("e1", "o1", 1);
        beside(async move { of_event.take(event).await });
        settle().await;
        let started = tokio::time::Instant::now();
        let drained = world.engine.drain(Duration::from_secs(3)).await;
        assert_eq!(drained, Drained { complete: false, left: 1 });
        assert!(started.elapsed() < Duration::from_secs(4));
    });
}
