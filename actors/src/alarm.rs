//! An alarm that several actors set and one waits for: the earliest time counts.
//!
//! Owns one instant. Promises that a time set while somebody waits is seen at once, and that a waiter wakes
//! no later than it asked to. Knows only this node's clock: whoever sets it says in how long, by the store's.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The next time at which there is something to do.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    due: Mutex<Option<Instant>>,
    changed: Notify,
}

impl Alarm {
    /// There is something to do in so many milliseconds.
    pub(crate) fn ring_in(&self, ms: i64) {
        let at = Instant::now() + Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.is_none_or(|known| at < known) {
            *due = Some(at);
            drop(due);
            self.changed.notify_one();
        }
    }

    /// Waits until it rings, or for `longest`.
    pub(crate) async fn wait(&self, longest: Duration) {
        let end = Instant::now() + longest;
        loop {
            let at = self.next().map_or(end, |due| due.min(end));
            let changed = pin!(self.changed.notified());
            if let Either::Left(_) = select(pin!(sleep_until(at)), changed).await {
                *self.due.lock().unwrap_or_else(PoisonError::into_inner) = None;
                return;
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The alarms of an engine.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    /// A hold is over its time.
    pub(crate) holds: Alarm,
    /// A fetch is due.
    pub(crate) fetches: Alarm,
}

impl Alarms {
    /// What a transaction says about when to look again.
    pub(crate) fn heed(&self, waits: &crate::ports::Waits) {
        if let Some(ms) = waits.due_in_ms {
            // the store's clock and this one do not tick together: rather a moment late than in vain
            self.holds.ring_in(ms + 1);
        }
        if waits.wants_fetch {
            self.fetches.ring_in(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused<F: Future>(run: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run)
    }

    #[test]
    fn it_rings_at_the_earliest_time_and_once() {
        paused(async {
            let alarm = Alarm::default();
            let start = Instant::now();
            alarm.ring_in(500);
            alarm.ring_in(200);
            alarm.ring_in(900);
            alarm.wait(Duration::from_secs(5)).await;
            assert_eq!(start.elapsed().as_millis(), 200);
            alarm.wait(Duration::from_secs(5)).await;
            assert_eq!(start.elapsed().as_millis(), 5_200);
        });
    }

    #[test]
    fn a_time_set_while_somebody_waits_is_seen() {
        paused(async {
            let alarm = Alarm::default();
            let start = Instant::now();
            let ((), ()) = futures_util::future::join(alarm.wait(Duration::from_secs(5)), async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                alarm.ring_in(50);
            })
            .await;
            assert_eq!(start.elapsed().as_millis(), 150);
        });
    }
}
