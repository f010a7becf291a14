//! The panic guard at the edge of every actor.
//!
//! Owns nothing. Promises that a panic in a handler or in a spawned future ends there: it is counted and
//! logged, its callers hear "unavailable" because their reply is dropped, and the actor goes on with the
//! state its `reset` leaves. actix's own `Supervisor` does not survive a panic (measured), and a dead actor
//! would leave its address with everybody who holds it; so actors of a pool never die of one.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use crate::figures::PoolFigures;

/// Runs a handler. `None` after a panic: the caller resets its state.
pub(crate) fn guarded<T>(pool: &PoolFigures, work: impl FnOnce() -> T) -> Option<T> {
    let work = || {
        #[cfg(test)]
        planned::panic_if_planned(pool.name);
        work()
    };
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| note(pool, &*panic)).ok()
}

/// Runs a future. `None` after a panic.
pub(crate) async fn guarded_future<F: Future>(pool: &PoolFigures, work: F) -> Option<F::Output> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| note(pool, &*panic)).ok()
}

fn note(pool: &PoolFigures, panic: &(dyn Any + Send)) {
    pool.panics.inc();
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(pool = pool.name, panic = text.unwrap_or("no message"), "an actor panicked and was reset");
}

#[cfg(test)]
pub(crate) mod planned {
    //! Panics that a test plans for the next guarded work of a pool on its thread.

    use std::cell::Cell;

    thread_local! {
        static NEXT: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    pub(crate) fn panic_in(pool: &'static str) {
        NEXT.set(Some(pool));
    }

    pub(super) fn panic_if_planned(pool: &str) {
        if NEXT.get() == Some(pool) {
            NEXT.set(None);
            panic!("a panic, as planned");
        }
    }
}
