//! Everything that chance or time decides.

use crate::rules::event::EventId;

/// Wall time and fresh names. Tests hand in their own.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// A fresh, time-ordered id; ids made by one process never go back, even within a millisecond.
    fn event_id(&self) -> EventId;
}
