//! The key cache as a node sees it: shared by all nodes, outliving them, behind the faults of the board.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::fault::FaultName;
use super::store::Ground;
use crate::ports::{CacheError, Fact, KeyCache};
use crate::rules::event::Incarnation;
use crate::rules::key::{BodyDigest, KeyHash};

/// Facts of all nodes, as one server holds them.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Facts>);

#[derive(Debug, Default)]
struct Facts {
    incarnation: Option<Incarnation>,
    now: BTreeMap<KeyHash, Fact>,
    /// What it was a while ago.
    before: BTreeMap<KeyHash, Fact>,
}

impl Shared {
    /// Forgets everything, as a flushed cache does.
    pub(super) fn wipe(&self) {
        self.facts().now.clear();
    }

    /// Goes back to what it was a while ago, and keeps what it is for the next time.
    pub(super) fn go_back(&self) {
        let facts = &mut *self.facts();
        std::mem::swap(&mut facts.now, &mut facts.before);
    }

    /// Remembers what it is now, to go back to.
    pub(super) fn remember(&self) {
        let facts = &mut *self.facts();
        facts.before.clone_from(&facts.now);
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node's key cache.
pub(super) struct SimCache {
    pub(super) ground: Arc<Ground>,
    pub(super) shared: Arc<Shared>,
}

impl SimCache {
    async fn reach(&self) -> Result<(), CacheError> {
        self.ground.lives().await;
        self.ground.panic_if(FaultName::CachePanics);
        if self.ground.strikes(FaultName::CacheDown).is_some() {
            return Err(CacheError("as planned".to_owned()));
        }
        if let Some(strike) = self.ground.strikes(FaultName::CacheSlow) {
            tokio::time::sleep(Duration::from_millis(strike.by_ms.unsigned_abs())).await;
            self.ground.lives().await;
        }
        Ok(())
    }

    /// Nothing that a shared server could not say: facts about other keys, and about other bytes.
    fn lies(&self, keys: &[KeyHash]) -> Vec<Option<Fact>> {
        let facts = self.shared.facts();
        let some = facts.now.values().next().copied();
        let lie = |(place, key): (usize, &KeyHash)| {
            let fact = some?;
            Some(if place % 2 == 0 { fact } else { Fact { key: *key, digest: BodyDigest([0; 16]), ..fact } })
        };
        keys.iter().enumerate().map(lie).collect()
    }
}

#[async_trait(?Send)]
impl KeyCache for SimCache {
    async fn get(&self, incarnation: Incarnation, keys: &[KeyHash]) -> Result<Vec<Option<Fact>>, CacheError> {
        self.reach().await?;
        if self.ground.strikes(FaultName::CacheLies).is_some() {
            return Ok(self.lies(keys));
        }
        let short = self.ground.strikes(FaultName::CacheShort).is_some();
        let facts = self.shared.facts();
        let same = facts.incarnation == Some(incarnation);
        let known: Vec<_> = keys.iter().map(|key| facts.now.get(key).filter(|_| same).copied()).collect();
        self.ground.ledger.see(if known.iter().any(Option::is_some) { "cache hit" } else { "cache miss" });
        let answered = if short { keys.len().saturating_sub(1) } else { keys.len() };
        Ok(known.into_iter().take(answered).collect())
    }

    async fn put(&self, incarnation: Incarnation, facts: &[Fact]) -> Result<(), CacheError> {
        self.reach().await?;
        let mut shared = self.shared.facts();
        if shared.incarnation != Some(incarnation) {
            shared.now.clear();
            shared.incarnation = Some(incarnation);
        }
        shared.now.extend(facts.iter().map(|fact| (fact.key, *fact)));
        Ok(())
    }
}
