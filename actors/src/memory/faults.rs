//! What is to go wrong in a store in memory: a plan that a test writes.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ports::StoreError;
use crate::rules::event::Event;
use crate::rules::key::KeyHash;

/// What happens to one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is stored.
    Unavailable,
    /// Everything is stored, and nobody hears of it.
    LostAnswer,
    /// It takes this long, and then succeeds.
    Delay(Duration),
    /// The adapter panics; nothing is stored.
    Panic,
}

/// The plan. Everything can be changed at any time.
#[derive(Debug, Default)]
pub struct Faults {
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    commits: VecDeque<Fault>,
    refused: HashSet<KeyHash>,
    away: bool,
    hangs: bool,
    every_commit: Duration,
    batches: u64,
    opened: u64,
}

impl Faults {
    /// The next commit that has no fault yet gets this one.
    pub fn at_next_commit(&self, fault: Fault) {
        self.plan().commits.push_back(fault);
    }

    /// A batch with this key is refused from now on.
    pub fn refuse(&self, key: KeyHash) {
        self.plan().refused.insert(key);
    }

    /// The store is away, or is back.
    pub fn set_away(&self, away: bool) {
        self.plan().away = away;
    }

    /// A session that is being opened never comes.
    pub fn set_open_hangs(&self, hangs: bool) {
        self.plan().hangs = hangs;
    }

    /// How long each commit takes.
    pub fn set_commit_time(&self, time: Duration) {
        self.plan().every_commit = time;
    }

    /// Commits that were tried.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.plan().batches
    }

    /// Sessions that were opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.plan().opened
    }

    pub(super) fn reach(&self) -> Result<(), StoreError> {
        if self.plan().away {
            return Err(StoreError::Unavailable("the store is away, as planned".to_owned()));
        }
        Ok(())
    }

    pub(super) async fn open(&self) -> Result<(), StoreError> {
        let hangs = self.plan().hangs;
        if hangs {
            std::future::pending::<()>().await;
        }
        self.reach()?;
        self.plan().opened += 1;
        Ok(())
    }

    /// What to do about a commit, after its time.
    pub(super) async fn commit(&self, batch: &[Event]) -> Result<Option<Fault>, StoreError> {
        let (fault, time) = {
            let mut plan = self.plan();
            plan.batches += 1;
            (plan.commits.pop_front(), plan.every_commit)
        };
        let time = if let Some(Fault::Delay(time)) = fault { time } else { time };
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        self.reach()?;
        assert!(fault != Some(Fault::Panic), "a panic, as planned");
        if fault == Some(Fault::Unavailable) {
            return Err(StoreError::Unavailable("as planned".to_owned()));
        }
        let refused = batch.iter().find(|event| self.plan().refused.contains(&event.key.hash));
        match refused {
            Some(event) => Err(StoreError::Refused(format!("key {} is refused, as planned", event.key.text))),
            None => Ok(fault),
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
