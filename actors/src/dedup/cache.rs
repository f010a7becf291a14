//! The key cache as the dedup actor uses it: in batches, within a deadline, behind a breaker, written after
//! commits from a bounded queue. It may only ever save work (I8).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::{ActorFuture, ActorFutureExt as _, wrap_future};
use tokio::time::Instant;

use super::DedupActor;
use crate::figures::Figures;
use crate::ports::{CacheError, Fact, KeyCache};
use crate::rules::breaker::Breaker;
use crate::rules::event::Incarnation;
use crate::rules::key::KeyHash;
use crate::rules::lookup::{Ask, Lookup, LookupMode};
use crate::supervise::{guarded, guarded_future};
use crate::turn::Turn as _;
use crate::work::Learnt;

/// The most samples that wait to be asked.
const SAMPLES_MAX: usize = 64;

/// How the cache is used.
#[derive(Clone)]
pub(crate) struct CacheSettings {
    pub(crate) cache: Arc<dyn KeyCache>,
    pub(crate) mode: LookupMode,
    pub(crate) deadline: Duration,
    pub(crate) batch_max: usize,
    pub(crate) facts_max: usize,
    pub(crate) failures_max: u32,
    pub(crate) pause: Duration,
}

/// How a call to the cache ended.
pub(super) enum Ended<T> {
    InTime(T),
    Failed(CacheError),
    Late,
    Panicked,
}

/// A lookup that ended; `asked` says how many keys it was for.
pub(super) struct Facts {
    asked: usize,
    ended: Ended<Vec<Option<Fact>>>,
}

pub(super) struct Put {
    facts: usize,
    ended: Ended<()>,
}

pub(super) struct CacheLine {
    settings: CacheSettings,
    figures: Arc<Figures>,
    lookup: Lookup,
    breaker: Breaker,
    started: Instant,
    facts: Vec<Fact>,
    putting: bool,
    samples: Vec<KeyHash>,
    sampling: bool,
}

impl CacheLine {
    pub(super) fn new(settings: CacheSettings, figures: Arc<Figures>) -> Self {
        let pause_ms = u64::try_from(settings.pause.as_millis()).unwrap_or(u64::MAX);
        Self {
            lookup: Lookup::new(settings.mode),
            breaker: Breaker::new(settings.failures_max, pause_ms),
            started: Instant::now(),
            facts: Vec::new(),
            putting: false,
            samples: Vec::new(),
            sampling: false,
            settings,
            figures,
        }
    }

    pub(super) fn batch_max(&self) -> usize {
        self.settings.batch_max.max(1)
    }

    /// Whether to ask about the next event.
    pub(super) fn ask(&mut self) -> Ask {
        let ask = self.lookup.ask();
        if ask == Ask::Wait && !self.breaker.would_allow(self.now_ms()) {
            self.figures.cache.skipped.inc();
            return Ask::No;
        }
        ask
    }

    pub(super) fn sample(&mut self, key: KeyHash) {
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(key);
        }
    }

    pub(super) fn lookup(&self, incarnation: Incarnation, keys: Vec<KeyHash>) -> impl Future<Output = Facts> + use<> {
        let (cache, figures) = (Arc::clone(&self.settings.cache), Arc::clone(&self.figures));
        let deadline = self.settings.deadline;
        async move {
            let call = async { cache.get(incarnation, &keys).await };
            let ended = ended(&figures, deadline, call).await;
            Facts { asked: keys.len(), ended }
        }
    }

    /// The facts of a lookup, in order; nothing at all if anything is odd about it.
    pub(super) fn looked_up(&mut self, facts: Facts) -> Vec<Option<Fact>> {
        let Facts { asked, ended } = facts;
        match self.settle(ended) {
            Some(known) if known.len() == asked => {
                let hits = known.iter().flatten().count();
                self.figures.cache.hits.inc_by(hits as u64);
                self.figures.cache.misses.inc_by((asked - hits) as u64);
                known
            }
            Some(odd) => {
                self.figures.cache.failed.inc();
                tracing::warn!(asked, answered = odd.len(), "the key cache answered for another number of keys");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    pub(super) fn knew(&mut self) {
        self.lookup.cache_knew();
    }

    /// Asks about the samples, if there are any, beside the way.
    pub(super) fn sampling(&mut self, incarnation: Incarnation) -> Option<impl Future<Output = Facts> + use<>> {
        if self.sampling || self.samples.is_empty() {
            return None;
        }
        let keys = std::mem::take(&mut self.samples);
        if !self.breaker_allows() {
            return None;
        }
        self.sampling = true;
        Some(self.lookup(incarnation, keys))
    }

    pub(super) fn sampled(&mut self, facts: Facts) {
        self.sampling = false;
        for _ in self.looked_up(facts).into_iter().flatten() {
            self.lookup.sample_knew();
        }
    }

    /// Keeps what a commit taught, to be written.
    pub(super) fn learn(&mut self, learnt: Learnt) {
        (0..learnt.repeats_asked).for_each(|_| self.lookup.store_knew(true));
        (0..learnt.repeats_unasked).for_each(|_| self.lookup.store_knew(false));
        (0..learnt.new).for_each(|_| self.lookup.was_new());
        if self.settings.mode == LookupMode::Never {
            return;
        }
        let room = self.settings.facts_max.saturating_sub(self.facts.len());
        let dropped = learnt.facts.len().saturating_sub(room);
        self.facts.extend(learnt.facts.into_iter().take(room));
        self.figures.cache.dropped.inc_by(dropped as u64);
    }

    /// Writes what waits, one call at a time.
    pub(super) fn put(&mut self, incarnation: Incarnation) -> Option<impl Future<Output = Put> + use<>> {
        if self.putting || self.facts.is_empty() {
            return None;
        }
        let facts = std::mem::take(&mut self.facts);
        if !self.breaker_allows() {
            self.figures.cache.dropped.inc_by(facts.len() as u64);
            return None;
        }
        self.putting = true;
        let (cache, figures) = (Arc::clone(&self.settings.cache), Arc::clone(&self.figures));
        let deadline = self.settings.deadline;
        Some(async move {
            let call = async { cache.put(incarnation, &facts).await };
            let ended = ended(&figures, deadline, call).await;
            Put { facts: facts.len(), ended }
        })
    }

    pub(super) fn put_done(&mut self, put: Put) {
        self.putting = false;
        let kept = self.settle(put.ended).is_some();
        let counter = if kept { &self.figures.cache.kept } else { &self.figures.cache.dropped };
        counter.inc_by(put.facts as u64);
    }

    /// Facts of another history are worth nothing.
    pub(super) fn forget(&mut self) {
        self.facts.clear();
        self.samples.clear();
    }

    pub(super) fn reset(&mut self) {
        self.forget();
        self.lookup = Lookup::new(self.settings.mode);
    }

    pub(super) fn breaker_allows(&mut self) -> bool {
        let now_ms = self.now_ms();
        self.breaker.allows(now_ms)
    }

    fn settle<T>(&mut self, ended: Ended<T>) -> Option<T> {
        let was_open = self.breaker.is_open();
        let counted = match ended {
            Ended::InTime(answer) => {
                self.breaker.succeeded();
                return Some(answer);
            }
            Ended::Failed(error) => {
                if !was_open {
                    tracing::debug!(%error, "the key cache failed; the store decides");
                }
                &self.figures.cache.failed
            }
            Ended::Panicked => &self.figures.cache.failed,
            Ended::Late => &self.figures.cache.late,
        };
        counted.inc();
        let now_ms = self.now_ms();
        self.breaker.failed(now_ms);
        if !was_open && self.breaker.is_open() {
            tracing::warn!("the key cache does not answer; going on without it for a while");
        }
        None
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

async fn ended<T>(
    figures: &Figures,
    deadline: Duration,
    call: impl Future<Output = Result<T, CacheError>>,
) -> Ended<T> {
    match guarded_future(&figures.dedup, tokio::time::timeout(deadline, call)).await {
        None => Ended::Panicked,
        Some(Err(_)) => Ended::Late,
        Some(Ok(Err(error))) => Ended::Failed(error),
        Some(Ok(Ok(answer))) => Ended::InTime(answer),
    }
}

/// Runs a call beside the mailbox, hands its end to the actor, and lets it gather again.
pub(super) fn then<T: 'static>(
    call: impl Future<Output = T> + 'static,
    with: impl FnOnce(&mut DedupActor, T) + 'static,
) -> impl ActorFuture<DedupActor, Output = ()> {
    wrap_future::<_, DedupActor>(call).map(move |end, actor: &mut DedupActor, ctx| {
        let figures = Arc::clone(&actor.figures);
        if guarded(&figures.dedup, || with(actor, end)).is_none() {
            actor.reset();
        }
        actor.turn(ctx);
    })
}
