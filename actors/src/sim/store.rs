//! The store as a node sees it: the real one, behind the faults of the board.
//!
//! Owns nothing of the engine. Promises that a killed node does and hears nothing more, and that the ledger
//! sees every commit that was done, told or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::backend::{Opened, hold_time};
use super::board::{Board, Strike};
use super::chance::Chance;
use super::clock::DrivenClock;
use super::fault::FaultName;
use super::ledger::Ledger;
use super::scenario::Span;
use crate::ports::{Claimed, Committed, FetchClaim, Outcome, Pulse, Session, Store, StoreError, Upkeep, Waits};
use crate::rules::event::{Event, EventId, Unusable};
use crate::rules::key::ResourceHash;

/// What the wrapped ports of one node share.
pub(super) struct Ground {
    pub(super) node: u32,
    pub(super) board: Arc<Board>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clock: Arc<DrivenClock>,
    /// Cleared when the node is killed.
    pub(super) alive: AtomicBool,
}

impl Ground {
    /// The fault of this kind, if it strikes now.
    pub(super) fn strikes(&self, what: FaultName) -> Option<Strike> {
        let strike = self.board.strikes(what, self.node)?;
        self.ledger.fired(what, self.node, strike.first);
        Some(strike)
    }

    /// What a killed node waits for never comes.
    pub(super) async fn lives(&self) {
        if !self.alive.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Fails or hangs while the store is not to be reached.
    async fn reach(&self) -> Result<(), StoreError> {
        self.lives().await;
        if let Some(strike) = self.strikes(FaultName::StoreHangs) {
            tokio::time::sleep_until(self.clock.instant(strike.until_ms)).await;
            self.lives().await;
            return Err(StoreError::Unavailable("the store hung, as planned".to_owned()));
        }
        match self.strikes(FaultName::StoreAway) {
            Some(_) => Err(StoreError::Unavailable("the store is away, as planned".to_owned())),
            None => Ok(()),
        }
    }

    /// Panics without a word: the plan knows of it.
    pub(super) fn panic_if(&self, what: FaultName) {
        if self.strikes(what).is_some() {
            std::panic::resume_unwind(Box::new("a panic, as planned"));
        }
    }
}

/// A node's store.
pub(super) struct SimStore {
    pub(super) ground: Arc<Ground>,
    pub(super) opened: Opened,
    pub(super) takes_real_time: bool,
    pub(super) commit_ms: Span,
    pub(super) seed: u64,
}

#[async_trait(?Send)]
impl Store for SimStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        self.ground.reach().await?;
        if self.ground.strikes(FaultName::OpenFails).is_some() {
            return Err(StoreError::Unavailable("no session to be had, as planned".to_owned()));
        }
        let session = hold_time(self.takes_real_time, self.opened.store.open()).await?;
        self.ground.lives().await;
        Ok(Box::new(SimSession {
            ground: Arc::clone(&self.ground),
            opened: self.opened.clone(),
            session,
            takes_real_time: self.takes_real_time,
            commit_ms: self.commit_ms,
            chance: Chance::new(self.seed ^ self.ground.clock.elapsed_ms(), "commit times"),
        }))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.ground.reach().await?;
        self.ground.panic_if(FaultName::PulsePanics);
        let pulse = hold_time(self.takes_real_time, self.opened.store.pulse()).await;
        self.ground.lives().await;
        pulse
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        let ground = &self.ground;
        ground.reach().await?;
        if ground.strikes(FaultName::CommitFails).is_some() {
            return Err(StoreError::Unavailable("settling failed, as planned".to_owned()));
        }
        let waits = hold_time(self.takes_real_time, self.opened.store.settle_due(limit)).await?;
        self.settled(&waits).await;
        ground.panic_if(FaultName::PanicAfter);
        if ground.strikes(FaultName::AnswerLost).is_some() {
            return Err(StoreError::Unknown("the connection broke while settling, as planned".to_owned()));
        }
        ground.lives().await;
        Ok(waits)
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        self.ground.reach().await?;
        let waits = hold_time(self.takes_real_time, self.opened.store.release(resource)).await?;
        self.settled(&waits.unwrap_or_default()).await;
        self.ground.lives().await;
        Ok(waits)
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.ground.reach().await?;
        let done = hold_time(self.takes_real_time, self.opened.store.discharge(quarantined)).await?;
        self.ground.lives().await;
        Ok(done)
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        self.ground.reach().await?;
        let claimed = hold_time(self.takes_real_time, self.opened.store.claim_fetches(limit, lease_ms)).await?;
        self.ground.lives().await;
        if self.ground.strikes(FaultName::AnswerLost).is_some() {
            return Err(StoreError::Unknown("the connection broke while claiming, as planned".to_owned()));
        }
        Ok(claimed)
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        self.ground.reach().await?;
        let waits = hold_time(self.takes_real_time, self.opened.store.fetch_failed(claim, why, retry_in_ms)).await?;
        self.settled(&waits).await;
        self.ground.lives().await;
        Ok(waits)
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.ground.reach().await?;
        let upkeep = hold_time(self.takes_real_time, self.opened.store.upkeep()).await;
        self.ground.lives().await;
        upkeep
    }
}

impl SimStore {
    /// Shows the ledger what became of resources whose holds ended.
    async fn settled(&self, waits: &Waits) {
        if waits.released + waits.stale + waits.expired == 0 {
            return;
        }
        self.ground.ledger.waited(self.ground.node, waits);
        for hash in self.ground.ledger.holding() {
            if let Ok(Some(row)) = hold_time(self.takes_real_time, self.opened.reader.resource(hash)).await {
                self.ground.ledger.stored(&row);
            }
        }
    }
}

struct SimSession {
    ground: Arc<Ground>,
    opened: Opened,
    session: Box<dyn Session>,
    takes_real_time: bool,
    commit_ms: Span,
    chance: Chance,
}

impl SimSession {
    /// Half of a commit's time lies before it is done, half behind.
    async fn half(&self, time_ms: u64) {
        if time_ms > 0 {
            tokio::time::sleep(Duration::from_millis(time_ms)).await;
        }
        self.ground.lives().await;
    }

    /// What keeps a commit from being done.
    async fn before(&self, batch: &[Event]) -> Result<(), StoreError> {
        let ground = &self.ground;
        ground.reach().await?;
        ground.panic_if(FaultName::PanicBefore);
        if ground.strikes(FaultName::CommitFails).is_some() {
            return Err(StoreError::Unavailable("the commit failed, as planned".to_owned()));
        }
        if ground.strikes(FaultName::CommitLost).is_some() {
            return Err(StoreError::Unknown("the connection broke before the commit, as planned".to_owned()));
        }
        if ground.strikes(FaultName::CommitRefused).is_some() {
            return Err(StoreError::Refused("as planned".to_owned()));
        }
        if let Some(poison) = ground.ledger.poison(batch) {
            return Err(StoreError::Refused(format!("{poison} is poison, as planned")));
        }
        Ok(())
    }

    /// Shows the ledger what is stored now.
    async fn look(&self, batch: &[Event], committed: &Committed) {
        let mut seen: Vec<_> = batch
            .iter()
            .zip(&committed.outcomes)
            .filter(|(_, outcome)| !matches!(outcome, Outcome::Duplicate { .. } | Outcome::Ignored))
            .flat_map(|(event, _)| event.guards.iter().map(|guard| guard.resource.hash))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        for hash in seen {
            if let Ok(Some(row)) = hold_time(self.takes_real_time, self.opened.reader.resource(hash)).await {
                self.ground.ledger.stored(&row);
            }
        }
    }
}

#[async_trait(?Send)]
impl Session for SimSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        let slow_ms = self.ground.strikes(FaultName::CommitSlow).map_or(0, |strike| strike.by_ms.unsigned_abs());
        let time_ms = self.chance.within(self.commit_ms) + slow_ms;
        self.half(time_ms / 2).await;
        self.before(batch).await?;
        let committed = hold_time(self.takes_real_time, self.session.commit(batch)).await?;
        self.ground.ledger.committed(self.ground.node, batch, &committed);
        self.ground.ledger.waited(self.ground.node, &committed.waits);
        self.look(batch, &committed).await;
        self.half(time_ms - time_ms / 2).await;
        self.ground.panic_if(FaultName::PanicAfter);
        if self.ground.strikes(FaultName::AnswerLost).is_some() {
            return Err(StoreError::Unknown("the connection broke during the commit, as planned".to_owned()));
        }
        Ok(committed)
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        let ground = &self.ground;
        ground.reach().await?;
        ground.panic_if(FaultName::PanicBefore);
        if ground.strikes(FaultName::CommitFails).is_some() {
            return Err(StoreError::Unavailable("as planned".to_owned()));
        }
        let ids = hold_time(self.takes_real_time, self.session.quarantine(items)).await?;
        ground.ledger.quarantined(items, &ids);
        ground.lives().await;
        if ground.strikes(FaultName::AnswerLost).is_some() {
            return Err(StoreError::Unknown("the connection broke, as planned".to_owned()));
        }
        Ok(ids)
    }
}
