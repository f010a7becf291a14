//! Engines that are wrong on purpose, to test the checker: each breaks one promise, as gates in the field do.
//!
//! Owns ten of them. Each is the real engine over ports that cheat, or with answers that lie: nothing in the
//! engine knows of it. For tests only.

mod sessions;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;

use self::sessions::{Cheat, CheatingSession};
use super::backend::Backend;
use super::node::Wrapping;
use super::outcome::Run;
use super::plan::Plan;
use super::run::{RunOptions, run_wrapped};
use crate::admission::Refused;
use crate::engine::Ports;
use crate::ports::{Claimed, FetchClaim, Pulse, Session, Store, StoreError, Upkeep, Waits};
use crate::rules::event::{EventId, Receipt, Verdict};
use crate::rules::key::ResourceHash;

/// An engine that is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BadEngine {
    /// It answers 2xx and commits then.
    AnswerBeforeCommit,
    /// It tells the key cache that a key is done, and commits then.
    MarkBeforeCommit,
    /// Nothing keeps a key from being claimed twice.
    NoUniqueKey,
    /// Whatever comes last is the state.
    NoVersionGuard,
    /// What waits for a gap waits in memory.
    HoldInMemory,
    /// A gap is skipped after a moment, whatever the rule says.
    GapSkipped,
    /// What a full mailbox gives back is answered 2xx.
    DropOnFull,
    /// A commit nobody knows the end of is answered 2xx.
    UnknownAnswered,
    /// Each node trusts the versions it has seen itself.
    OwnVersionsTrusted,
    /// Only what is greater applies, also where equals should.
    TiesByGreater,
}

impl BadEngine {
    /// All ten.
    pub const ALL: [Self; 10] = [
        Self::AnswerBeforeCommit,
        Self::MarkBeforeCommit,
        Self::NoUniqueKey,
        Self::NoVersionGuard,
        Self::HoldInMemory,
        Self::GapSkipped,
        Self::DropOnFull,
        Self::UnknownAnswered,
        Self::OwnVersionsTrusted,
        Self::TiesByGreater,
    ];
}

/// Plays a plan on a bad engine.
#[must_use]
pub fn run_bad(bad: BadEngine, plan: &Plan, backend: &dyn Backend, options: &RunOptions) -> Run {
    run_wrapped(plan, backend, options, &Bad(bad))
}

struct Bad(BadEngine);

impl Wrapping for Bad {
    fn ports(&self, ports: Ports) -> Ports {
        let cheat = match self.0 {
            BadEngine::AnswerBeforeCommit => Cheat::AnswerFirst,
            BadEngine::MarkBeforeCommit => Cheat::MarkFirst,
            BadEngine::NoUniqueKey => Cheat::FreshKeys,
            BadEngine::NoVersionGuard => Cheat::Unguarded,
            BadEngine::HoldInMemory => Cheat::Hoard,
            BadEngine::GapSkipped => Cheat::Impatient,
            BadEngine::OwnVersionsTrusted => Cheat::OwnVersions,
            BadEngine::TiesByGreater => Cheat::OnlyGreater,
            BadEngine::DropOnFull | BadEngine::UnknownAnswered => return ports,
        };
        let store = CheatingStore { inner: Arc::clone(&ports.store), ports: ports.clone(), cheat };
        Ports { store: Arc::new(store), ..ports }
    }

    fn answer(&self, id: EventId, answer: Result<Receipt, Refused>) -> Result<Receipt, Refused> {
        match (self.0, answer) {
            (BadEngine::DropOnFull, Err(Refused::Overloaded))
            | (BadEngine::UnknownAnswered, Err(Refused::Unknown(_))) => {
                Ok(Receipt { verdict: Verdict::Applied, id, tie: false, conflict: false })
            }
            (_, answer) => answer,
        }
    }
}

/// A store whose sessions cheat.
struct CheatingStore {
    inner: Arc<dyn Store>,
    ports: Ports,
    cheat: Cheat,
}

thread_local! {
    /// What the sessions of a process keep in memory; the store's address stands for the process.
    static MEMORY: RefCell<HashMap<usize, Rc<RefCell<sessions::Memory>>>> = RefCell::default();
}

impl CheatingStore {
    fn process(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Drop for CheatingStore {
    fn drop(&mut self) {
        let process = self.process();
        // the thread may be ending
        let _ = MEMORY.try_with(|memory| memory.borrow_mut().remove(&process));
    }
}

#[async_trait(?Send)]
impl Store for CheatingStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        let inner = self.inner.open().await?;
        let incarnation = self.inner.pulse().await?.incarnation;
        let memory = MEMORY.with_borrow_mut(|memory| Rc::clone(memory.entry(self.process()).or_default()));
        let cache = Arc::clone(&self.ports.cache);
        Ok(Box::new(CheatingSession::new(inner, self.cheat, memory, cache, incarnation)))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.inner.pulse().await
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
        self.inner.upkeep().await
    }
}
