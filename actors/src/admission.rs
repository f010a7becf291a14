//! Admission: how much may be in flight in the whole process, and whether anything new is taken at all.
//!
//! Owns the two budgets (events and bytes) and the draining flag. Promises that what holds a [`Permit`]
//! was counted, and is given back however it ends, by dropping the permit (I15). Knows nothing of events.
//! Nothing here can fail: a full budget is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;

/// Why an event was not taken. All but [`Refused::Rejected`] ask the sender to come again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A budget, mailbox or queue is full; nothing was kept (I15).
    #[error("too much is in flight")]
    Overloaded,
    /// This node shuts down and takes nothing new.
    #[error("this node is shutting down")]
    Draining,
    /// The store is away, or the work failed before its commit; nothing was kept.
    #[error("not available: {0}")]
    Unavailable(String),
    /// Whether the commit happened is not known (I1).
    #[error("whether the event was stored is not known: {0}")]
    Unknown(String),
    /// The store refuses this very event; it would refuse it again (I14).
    #[error("the store refuses the event: {0}")]
    Rejected(String),
    /// An effect of this event failed, and nothing of it was kept; it may go well the next time.
    #[error("an effect of the event failed; the store says which, and why")]
    EffectFailed,
    /// No answer within the time a sender waits; the event may still be stored.
    #[error("no answer in time")]
    TooLate,
}

impl Refused {
    /// Every reason, for metrics.
    pub const REASONS: [&'static str; 7] =
        ["overloaded", "draining", "unavailable", "unknown", "rejected", "too-late", "effect-failed"];

    /// Stable label of the reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        Self::REASONS[self.index()]
    }

    pub(crate) const fn index(&self) -> usize {
        match self {
            Self::Overloaded => 0,
            Self::Draining => 1,
            Self::Unavailable(_) => 2,
            Self::Unknown(_) => 3,
            Self::Rejected(_) => 4,
            Self::TooLate => 5,
            Self::EffectFailed => 6,
        }
    }
}

/// The process-wide budgets.
#[derive(Debug)]
pub(crate) struct Admission {
    events: Gauge,
    bytes: Gauge,
    events_max: i64,
    bytes_max: i64,
    permits: AtomicUsize,
    draining: AtomicBool,
    empty: Notify,
}

impl Admission {
    /// Budgets that count on the given gauges.
    pub(crate) fn new(events_max: usize, bytes_max: usize, events: Gauge, bytes: Gauge) -> Self {
        Self {
            events,
            bytes,
            events_max: clamp(events_max),
            bytes_max: clamp(bytes_max),
            permits: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            empty: Notify::new(),
        }
    }

    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Permit, Refused> {
        // ATOMIC: the permit is counted before the flag is read, so a drain that sees none has seen all
        let mut permit = Permit::counted(Arc::clone(self));
        if self.is_draining() {
            return Err(Refused::Draining);
        }
        permit.grow(bytes)?;
        Ok(permit)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn in_flight_events(&self) -> usize {
        usize::try_from(self.events.get()).unwrap_or(0)
    }

    pub(crate) fn in_flight_bytes(&self) -> usize {
        usize::try_from(self.bytes.get()).unwrap_or(0)
    }

    pub(crate) fn permits(&self) -> usize {
        self.permits.load(Ordering::SeqCst)
    }

    /// Takes nothing new from now on, and returns when every permit is back.
    pub(crate) async fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        loop {
            let emptied = self.empty.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.permits() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// Room in the budgets, held from before the body is read until the answer is known. Dropping it gives
/// everything back.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    bytes: i64,
    event: bool,
}

impl Permit {
    fn counted(admission: Arc<Admission>) -> Self {
        admission.permits.fetch_add(1, Ordering::SeqCst);
        Self { admission, bytes: 0, event: false }
    }

    /// Reserves more bytes, for a body whose length was not stated.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Refused> {
        let more = clamp(bytes);
        let before = self.admission.bytes.inc_by(more);
        if before.saturating_add(more) > self.admission.bytes_max {
            self.admission.bytes.dec_by(more);
            return Err(Refused::Overloaded);
        }
        self.bytes += more;
        Ok(())
    }

    /// A permit of its own for one event of a request that holds several; it takes over up to `bytes`.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let mut part = Self::counted(Arc::clone(&self.admission));
        part.bytes = clamp(bytes).min(self.bytes);
        self.bytes -= part.bytes;
        part
    }

    /// The bytes it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(0)
    }

    /// Counts one event in flight.
    pub(crate) fn admit(&mut self) -> Result<(), Refused> {
        if self.event {
            return Ok(());
        }
        if self.admission.events.inc() >= self.admission.events_max {
            self.admission.events.dec();
            return Err(Refused::Overloaded);
        }
        self.event = true;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.admission.bytes.dec_by(self.bytes);
        }
        if self.event {
            self.admission.events.dec();
        }
        let last = self.admission.permits.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.admission.is_draining() {
            self.admission.empty.notify_waiters();
        }
    }
}

fn clamp(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(events: usize, bytes: usize) -> Arc<Admission> {
        Arc::new(Admission::new(events, bytes, Gauge::default(), Gauge::default()))
    }

    #[test]
    fn bytes_are_refused_at_the_bound_and_given_back() {
        let admission = admission(10, 100);
        let first = admission.reserve(60).expect("room for 60");
        let mut second = admission.reserve(40).expect("room for 40");
        assert_eq!(second.grow(1), Err(Refused::Overloaded));
        assert_eq!(admission.reserve(1).err(), Some(Refused::Overloaded));
        drop(first);
        assert_eq!(second.grow(60), Ok(()));
        drop(second);
        assert_eq!((admission.in_flight_bytes(), admission.permits()), (0, 0));
    }

    #[test]
    fn events_are_refused_at_the_bound_and_counted_once_a_permit() {
        let admission = admission(1, 100);
        let mut first = admission.reserve(1).expect("room");
        let mut second = admission.reserve(1).expect("room");
        assert_eq!((first.admit(), first.admit()), (Ok(()), Ok(())));
        assert_eq!(second.admit(), Err(Refused::Overloaded));
        drop(first);
        assert_eq!(second.admit(), Ok(()));
    }

    #[test]
    fn a_split_permit_shares_what_was_reserved() {
        let admission = admission(10, 100);
        let mut whole = admission.reserve(100).expect("room");
        let part = whole.split(30);
        assert_eq!((whole.bytes(), part.bytes(), admission.in_flight_bytes()), (70, 30, 100));
        drop(whole);
        assert_eq!(admission.in_flight_bytes(), 30);
    }

    #[tokio::test]
    async fn draining_takes_nothing_new_and_waits_for_what_is_held() {
        let admission = admission(10, 100);
        let held = admission.reserve(1).expect("room");
        let drain = admission.drain();
        tokio::pin!(drain);
        assert!(futures_util::poll!(drain.as_mut()).is_pending());
        assert_eq!(admission.reserve(1).err(), Some(Refused::Draining));
        drop(held);
        drain.await;
    }
}
