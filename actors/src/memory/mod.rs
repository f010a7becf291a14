//! The ports in memory: a store, its reader and a key cache with the meaning of the real ones, for tests.
//! Does what [`crate::rules::plan`] says, like every store.
//!
//! Owns everything in one lock that is never held across an await. Promises the semantics of the traits, and
//! the faults of its [`Faults`] when asked for them. Forgets everything with the process.

mod cache;
mod faults;
mod reader;
mod state;
mod waiting;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

pub use self::cache::{CacheFault, MemoryCache};
pub use self::faults::{Fault, Faults};
use self::state::State;
use crate::ports::{Claimed, Clock, Committed, FetchClaim, Pulse, Session, Store, StoreError, Upkeep, Waits};
use crate::rules::event::{Event, EventId, Incarnation, Unusable};
use crate::rules::key::ResourceHash;

/// What the settings of a gate say where they say nothing: 35 days.
const KEEP: Duration = Duration::from_secs(35 * 86_400);

/// A store in memory. Clones share it, as nodes share a database.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    keys_window: Duration,
    events_retention: Duration,
}

struct Shared {
    state: Mutex<State>,
    faults: Faults,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// An empty store with a history of this name.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, incarnation: Incarnation) -> Self {
        let state = Mutex::new(State::new(incarnation, clock.now_ms()));
        let shared = Arc::new(Shared { state, faults: Faults::default(), clock });
        Self { shared, keys_window: KEEP, events_retention: KEEP }
    }

    /// The same store, as a node opens it that remembers keys and keeps events for another time.
    #[must_use]
    pub fn beside(&self, keys_window: Duration, events_retention: Duration) -> Self {
        Self { shared: Arc::clone(&self.shared), keys_window, events_retention }
    }

    /// What is to go wrong.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// A restore of an empty backup: everything is gone, and the history is another one.
    pub fn lose_everything(&self, incarnation: Incarnation) {
        let now_ms = self.shared.clock.now_ms();
        *self.state() = State::new(incarnation, now_ms);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // a panic planned by a test happens outside the lock, so what is inside is whole
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait(?Send)]
impl Store for MemoryStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        self.faults().open().await?;
        Ok(Box::new(MemorySession { store: self.clone() }))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.faults().reach()?;
        Ok(Pulse { now_ms: self.shared.clock.now_ms(), incarnation: self.state().incarnation })
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        self.faults().reach()?;
        let now_ms = self.shared.clock.now_ms();
        self.state().settle_due(now_ms, limit as usize)
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        self.faults().reach()?;
        let now_ms = self.shared.clock.now_ms();
        self.state().release(resource, now_ms)
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.faults().reach()?;
        Ok(self.state().discharge(quarantined))
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        self.faults().reach()?;
        let now_ms = self.shared.clock.now_ms();
        Ok(self.state().claim_fetches(now_ms, limit as usize, lease_ms))
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        self.faults().reach()?;
        let now_ms = self.shared.clock.now_ms();
        self.state().fetch_failed(claim, why, retry_in_ms, now_ms)
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.faults().reach()?;
        let now_ms = self.shared.clock.now_ms();
        let mut state = self.state();
        // two of the three parts together are the window
        let keys_rotated = state.turn_ring(now_ms, (millis(self.keys_window) + 1) / 2);
        let dropped = state.drop_older(now_ms.saturating_sub(millis(self.events_retention)));
        Ok(Upkeep { keys_rotated, dropped })
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX - 1)
}

struct MemorySession {
    store: MemoryStore,
}

#[async_trait(?Send)]
impl Session for MemorySession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        let faults = self.store.faults();
        let fault = faults.commit(batch).await?;
        let now_ms = self.store.shared.clock.now_ms();
        let committed = self.store.state().commit(batch, now_ms)?;
        match fault {
            Some(Fault::LostAnswer) => Err(StoreError::Unknown("the connection broke during the commit".to_owned())),
            _ => Ok(committed),
        }
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.store.faults().reach()?;
        Ok(self.store.state().quarantine(items))
    }
}
