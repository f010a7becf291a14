//! The world a case runs in: a clock it sets, and a store that can be away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use async_trait::async_trait;
use tidegate::app::Backends;
use tidegate::clock::SystemClock;
use tidegate_actors::ports::{Claimed, Clock, Committed, FetchClaim, Pulse, Session, Store, StoreError, Upkeep, Waits};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use tidegate_actors::rules::key::ResourceHash;

/// What the case decides about its world.
#[derive(Clone, Default)]
pub(crate) struct World {
    now_ms: Arc<AtomicI64>,
    away: Arc<AtomicBool>,
}

impl World {
    /// Sets the wall clock, of the node and of the store.
    pub(crate) fn set_now_ms(&self, now_ms: i64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Takes the store away, or brings it back.
    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Puts the backends of a gate into this world.
    pub(crate) fn around(&self, backends: Backends) -> Backends {
        let store = Arc::new(WorldStore { inner: Arc::clone(&backends.store), world: self.clone() });
        let clock = Arc::new(WorldClock { ids: SystemClock::new(), world: self.clone() });
        Backends { store, clock, ..backends }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("taken away by the case".to_owned()));
        }
        Ok(())
    }
}

struct WorldClock {
    ids: SystemClock,
    world: World,
}

impl Clock for WorldClock {
    fn now_ms(&self) -> i64 {
        self.world.now_ms.load(Ordering::SeqCst)
    }

    fn event_id(&self) -> EventId {
        self.ids.event_id()
    }
}

struct WorldStore {
    inner: Arc<dyn Store>,
    world: World,
}

#[async_trait(?Send)]
impl Store for WorldStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        self.world.check()?;
        let inner = self.inner.open().await?;
        Ok(Box::new(WorldSession { inner, world: self.world.clone() }))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.world.check()?;
        let pulse = self.inner.pulse().await?;
        Ok(Pulse { now_ms: self.world.now_ms.load(Ordering::SeqCst), ..pulse })
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        self.inner.settle_due(limit).await
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        self.inner.release(resource).await
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.inner.discharge(quarantined).await
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        self.inner.claim_fetches(limit, lease_ms).await
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        self.inner.fetch_failed(claim, why, retry_in_ms).await
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.world.check()?;
        self.inner.upkeep().await
    }
}

struct WorldSession {
    inner: Box<dyn Session>,
    world: World,
}

#[async_trait(?Send)]
impl Session for WorldSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        self.world.check()?;
        self.inner.commit(batch).await
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.world.check()?;
        self.inner.quarantine(items).await
    }
}
