//! The store: the one truth. A method is one outcome and one transaction, and no transaction leaks.

use async_trait::async_trait;

use super::fetch::{Claimed, FetchClaim};
use crate::rules::event::{Event, EventId, Incarnation, Outcome, Unusable, Verdict};
use crate::rules::judge::Unjudged;
use crate::rules::key::ResourceHash;
use crate::rules::plan::Plan;

/// A batch that is durable.
#[derive(Clone, Debug)]
pub struct Committed {
    /// One outcome for each event, in the order the events were given.
    pub outcomes: Vec<Outcome>,
    /// The database history it was committed to.
    pub incarnation: Incarnation,
    /// What else the batch moved.
    pub waits: Waits,
}

/// What a transaction did to events that wait, and when to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Held events that were applied.
    pub released: u32,
    /// Held events that turned out older than the state.
    pub stale: u32,
    /// Held events whose time ran out.
    pub expired: u32,
    /// Events parked because a counter fell.
    pub parked: u32,
    /// A fetch was asked for.
    pub wants_fetch: bool,
    /// In how many milliseconds the next of these holds is over.
    pub due_in_ms: Option<i64>,
}

impl Waits {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            released: self.released + other.released,
            stale: self.stale + other.stale,
            expired: self.expired + other.expired,
            parked: self.parked + other.parked,
            wants_fetch: self.wants_fetch || other.wants_fetch,
            due_in_ms: match (self.due_in_ms, other.due_in_ms) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
        }
    }

    /// Of a plan, by the clock it was made with.
    #[must_use]
    pub fn of(plan: &Plan<'_>, now_ms: i64) -> Self {
        let count = |verdict| plan.settled.iter().filter(|settled| settled.verdict == verdict).count() as u32;
        Self {
            released: count(Verdict::Applied),
            stale: count(Verdict::Stale),
            expired: count(Verdict::Expired),
            parked: plan.parked,
            wants_fetch: plan.fetches.iter().any(|fetch| fetch.wanted),
            due_in_ms: plan.next_due_ms.map(|due| due.saturating_sub(now_ms).max(0)),
        }
    }
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
    /// There is no room for it now; a part of the batch may pass, and it may itself pass later.
    #[error("there is no room: {0}")]
    Full(String),
}

impl From<Unjudged> for StoreError {
    fn from(unjudged: Unjudged) -> Self {
        match unjudged {
            Unjudged::Full(full) => Self::Full(full.to_string()),
            Unjudged::Members => Self::Refused(unjudged.to_string()),
        }
    }
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

    /// Settles holds that are over their time, of at most `limit` resources in one transaction, found by state
    /// and time by the store's clock (I6, I11, I13). `due_in_ms` says when to come again: 0 when there was more.
    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError>;

    /// Ends the waiting of a resource by hand: gaps are given up, parked events begin a new epoch. `None` when
    /// nothing of it waits.
    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError>;

    /// Takes a request out of quarantine, once it was run again or a person gave it up. `false`: it is not there.
    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError>;

    /// Claims at most `limit` fetches that are due, each for `lease_ms`: raises its epoch (I9), counts the
    /// attempt before the work (I10), and marks the events that wait for it now.
    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError>;

    /// Says that a claimed fetch failed: it is due again in `retry_in_ms`, or given up, and then what waits for
    /// it expires. Changes nothing when another claim has taken over.
    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError>;

    /// Rotates the key table, makes partitions ahead of time and drops what outlived its retention.
    async fn upkeep(&self) -> Result<Upkeep, StoreError>;
}
