//! A key cache in memory, bounded, with faults to plan.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{CacheError, Fact, KeyCache};
use crate::rules::event::Incarnation;
use crate::rules::key::KeyHash;
use crate::rules::recent::Recent;

/// What happens to every call until it is changed.
#[derive(Clone, Debug, Default)]
pub enum CacheFault {
    /// Nothing.
    #[default]
    None,
    /// It fails.
    Fails,
    /// It answers after this long.
    Slow(Duration),
    /// It panics.
    Panics,
    /// It says of every key that it is done, with these facts.
    Lies(Fact),
    /// It answers for one key fewer than asked.
    Short,
}

/// A bounded cache of facts. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryCache {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    facts: Recent,
    incarnation: Option<Incarnation>,
    fault: CacheFault,
    asked: u64,
    calls: u64,
}

impl MemoryCache {
    /// Keeps at most `bound` facts.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        let inner = Inner { facts: Recent::new(bound), incarnation: None, fault: CacheFault::None, asked: 0, calls: 0 };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// What is to go wrong from now on.
    pub fn set_fault(&self, fault: CacheFault) {
        self.inner().fault = fault;
    }

    /// Forgets everything, as a flushed cache does.
    pub fn flush(&self) {
        self.inner().facts.clear();
    }

    /// Keys that were asked for.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.inner().asked
    }

    /// Lookups that were made.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// Facts it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner().facts.len()
    }

    /// It holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    async fn faulty(&self) -> Result<CacheFault, CacheError> {
        let fault = self.inner().fault.clone();
        match &fault {
            CacheFault::Fails => return Err(CacheError("as planned".to_owned())),
            CacheFault::Slow(time) => tokio::time::sleep(*time).await,
            CacheFault::Panics => std::panic::panic_any("a panic, as planned"),
            CacheFault::None | CacheFault::Lies(_) | CacheFault::Short => {}
        }
        Ok(fault)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait(?Send)]
impl KeyCache for MemoryCache {
    async fn get(&self, incarnation: Incarnation, keys: &[KeyHash]) -> Result<Vec<Option<Fact>>, CacheError> {
        {
            let mut inner = self.inner();
            inner.calls += 1;
            inner.asked += keys.len() as u64;
        }
        let fault = self.faulty().await?;
        if let CacheFault::Lies(fact) = fault {
            return Ok(keys.iter().map(|_| Some(fact)).collect());
        }
        let inner = self.inner();
        let same = inner.incarnation == Some(incarnation);
        let known = |key: &KeyHash| {
            let found = inner.facts.get(key).filter(|_| same);
            found.map(|(first, digest)| Fact { key: *key, first, digest })
        };
        let asked = if matches!(fault, CacheFault::Short) { &keys[..keys.len().saturating_sub(1)] } else { keys };
        Ok(asked.iter().map(known).collect())
    }

    async fn put(&self, incarnation: Incarnation, facts: &[Fact]) -> Result<(), CacheError> {
        self.faulty().await?;
        let mut inner = self.inner();
        if inner.incarnation != Some(incarnation) {
            inner.facts.clear();
            inner.incarnation = Some(incarnation);
        }
        for fact in facts {
            inner.facts.insert(fact.key, (fact.first, fact.digest));
        }
        Ok(())
    }
}
