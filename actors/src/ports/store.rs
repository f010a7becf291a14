//! The store: the one truth. A method is one outcome and one transaction, and no transaction leaks.

use async_trait::async_trait;

use crate::rules::event::{Event, EventId, Incarnation, Unusable};

/// What a commit decided of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It changed its resource's state, or passed unguarded.
    Applied {
        /// Its version equalled the stored one.
        tie: bool,
    },
    /// It is older than what its resource holds.
    Stale {
        /// Its version equalled the stored one.
        tie: bool,
    },
    /// It was recorded and changes nothing.
    Ignored,
    /// Its key was already claimed.
    Duplicate {
        /// The event that claimed it.
        first: EventId,
        /// The two bodies differ: this one is kept aside and counted (I7).
        conflict: bool,
    },
}

/// A batch that is durable.
#[derive(Clone, Debug)]
pub struct Committed {
    /// One outcome for each event, in the order the events were given.
    pub outcomes: Vec<Outcome>,
    /// The database history it was committed to.
    pub incarnation: Incarnation,
}

/// Something broke; nothing is known to be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, is read-only, full or too busy. Nothing was stored.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The connection broke while committing: stored or not, nobody knows (I1).
    #[error("whether the commit happened is not known: {0}")]
    Unknown(String),
    /// The store refuses what it was given. The same batch would be refused again; a part of it may pass.
    #[error("the store refuses the data: {0}")]
    Refused(String),
}

/// The store's own view of itself.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Milliseconds since 1970 by the store's clock (I13).
    pub now_ms: i64,
    /// The current database history.
    pub incarnation: Incarnation,
}

/// What one round of upkeep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// The key table moved on to a fresh part.
    pub keys_rotated: bool,
    /// Partitions or rows that outlived their retention and were dropped.
    pub dropped: u64,
}

/// A writer's own connection, used by one actor on the arbiter that opened it.
///
/// Calls are never cancelled by the engine. After an error the writer drops the session and opens a new one.
#[async_trait(?Send)]
pub trait Session {
    /// Claims keys, guards and writes states, and records the events, in one transaction (I3, I4, I5).
    ///
    /// Keys may repeat within the batch: the first wins. Outcomes come in the order of `batch`.
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError>;

    /// Keeps unusable requests. The same bytes again are counted on the first row, whose id comes back.
    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError>;
}

/// Opens sessions and looks after the tables.
#[async_trait(?Send)]
pub trait Store: Send + Sync + 'static {
    /// Opens a session on the calling thread's runtime, within a deadline of its own.
    async fn open(&self) -> Result<Box<dyn Session>, StoreError>;

    /// Asks the store for a sign of life: its clock and its incarnation.
    async fn pulse(&self) -> Result<Pulse, StoreError>;

    /// Rotates the key table, makes partitions ahead of time and drops what outlived its retention.
    async fn upkeep(&self) -> Result<Upkeep, StoreError>;
}
