//! A store whose calls are done when they are made.
//!
//! SQLite works on threads of its own, in real time. If a run went on while it works, what happens first would be
//! chance. So the run's thread stands still until the call is done: to driven time it takes none.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use async_trait::async_trait;
use tidegate_actors::ports::{
    Claimed, Committed, Counts, EventFilter, EventRow, FetchClaim, FetchRow, HeldFilter, HeldRow, Page, Pulse,
    QuarantineRow, Reader, ResourceFilter, ResourceRow, Session, Store, StoreError, Upkeep, Waits,
};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use tidegate_actors::rules::key::ResourceHash;
use uuid::Uuid;

/// A port, or a session, whose calls are done when they are made.
pub(super) struct AtOnce<T: ?Sized>(Box<T>);

impl<T> AtOnce<T> {
    pub(super) fn new(inner: T) -> Self {
        Self(Box::new(inner))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Does the work on this thread, which stands still meanwhile.
pub(super) fn now<F: Future>(work: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // within one turn of a task there is no next turn to be sent to
    let mut work = pin!(tokio::task::unconstrained(work));
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[async_trait(?Send)]
impl<T: Store> Store for AtOnce<T> {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        Ok(Box::new(AtOnce(now(self.0.open())?)))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        now(self.0.pulse())
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        now(self.0.settle_due(limit))
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        now(self.0.release(resource))
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        now(self.0.discharge(quarantined))
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        now(self.0.claim_fetches(limit, lease_ms))
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        now(self.0.fetch_failed(claim, why, retry_in_ms))
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        now(self.0.upkeep())
    }
}

#[async_trait(?Send)]
impl Session for AtOnce<dyn Session> {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        now(self.0.commit(batch))
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        now(self.0.quarantine(items))
    }
}

#[async_trait(?Send)]
impl<T: Reader> Reader for AtOnce<T> {
    async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<EventRow>, StoreError> {
        now(self.0.events(filter, after, limit))
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        now(self.0.event(id))
    }

    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError> {
        now(self.0.resources(filter, after, limit))
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        now(self.0.resource(hash))
    }

    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError> {
        now(self.0.held(filter, after, limit))
    }

    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        now(self.0.fetch(resource))
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        now(self.0.quarantine(after, limit))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        now(self.0.counts())
    }
}
