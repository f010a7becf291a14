//! The engine as a whole: settings, start, status, drain.
//!
//! Owns the shards, the budgets and the reaper. Promises that every size in its settings is a hard bound,
//! and that after a drain everything that was accepted has been answered or the time was up. Knows only
//! ports. If the store is away the engine starts all the same, says it is not ready, and takes events as
//! soon as the store is back.

mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, AsyncContext};
use prometheus_client::registry::Registry;

use crate::admission::Admission;
use crate::alarm::Alarms;
use crate::dedup::{CacheSettings, DedupActor};
use crate::fetch::FetchActor;
use crate::figures::Figures;
use crate::holds::{Discharge, HoldsActor, Release};
use crate::ingress::Ingress;
use crate::ordering::OrderingActor;
use crate::ports::{Clock, Fetcher, KeyCache, Store, StoreError, Waits};
use crate::reaper::{ReaperActor, ReaperSettings, SharedHealth};
use crate::resource::{Desk, Waiting};
use crate::rules::event::{EventId, Incarnation};
use crate::rules::key::ResourceHash;
use crate::work::{Stop, post};
use crate::writer::{WriterActor, WriterSettings};

pub use self::settings::EngineSettings;

/// What the engine needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// The one truth.
    pub store: Arc<dyn Store>,
    /// The hint in front of it.
    pub cache: Arc<dyn KeyCache>,
    /// Wall time and fresh names.
    pub clock: Arc<dyn Clock>,
    /// Asks providers for states.
    pub fetcher: Arc<dyn Fetcher>,
}

/// How the engine is.
#[derive(Clone, Debug)]
pub struct Status {
    /// It takes events.
    pub ready: bool,
    /// Why not, if not.
    pub reasons: Vec<String>,
    /// The store's clock minus this node's, in milliseconds; 0 until the store was asked.
    pub clock_difference_ms: i64,
    /// The database history, once known.
    pub incarnation: Option<Incarnation>,
    /// Events accepted and not yet answered, and the bound.
    pub in_flight_events: (usize, usize),
    /// Bytes reserved by requests, and the bound.
    pub in_flight_bytes: (usize, usize),
    /// Live resources.
    pub live_resources: usize,
    /// Each pool.
    pub pools: Vec<PoolStatus>,
}

/// How one pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// Its name.
    pub name: &'static str,
    /// Actors alive.
    pub actors: i64,
    /// Messages in its mailboxes.
    pub depth: i64,
    /// The bound of one mailbox.
    pub bound: i64,
    /// Messages refused by a full mailbox or queue since the start.
    pub full: u64,
    /// Panics caught since the start.
    pub panics: u64,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Everything that was accepted has been answered.
    pub complete: bool,
    /// Events left without an answer when the time was up.
    pub left: usize,
}

/// The running engine. Clones share it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    settings: EngineSettings,
    shards: Vec<Shard>,
    reaper: Addr<ReaperActor>,
    holds: Addr<HoldsActor>,
    fetch: Addr<FetchActor>,
    admission: Arc<Admission>,
    health: Arc<SharedHealth>,
    figures: Arc<Figures>,
}

struct Shard {
    dedup: Addr<DedupActor>,
    writer_up: Arc<AtomicBool>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the engine inside a running actix system: each shard on an arbiter of its own, or all on the
    /// current one.
    #[must_use]
    pub fn start(settings: EngineSettings, ports: Ports, registry: &mut Registry) -> Self {
        let figures = Arc::new(Figures::register(registry));
        let settings = settings.within_bounds();
        settings.announce(&figures);
        let alarms = Arc::new(Alarms::default());
        let shard = |_| Shard::start(&settings, &ports, &alarms, &figures);
        let shards: Vec<Shard> = (0..settings.shards).map(shard).collect();
        let health = Arc::new(SharedHealth::new());
        let Ports { store, clock, fetcher, cache: _ } = ports;
        let holds = HoldsActor::start(
            Arc::clone(&store),
            Arc::clone(&alarms),
            settings.holds_sweep,
            settings.holds_mailbox,
            Arc::clone(&figures),
        );
        let of_fetch = settings.fetch();
        let fetching = Arc::clone(&store);
        let reaper = ReaperActor::start(
            store,
            clock,
            shards.iter().map(|shard| shard.dedup.clone()).collect(),
            ReaperSettings {
                pulse_every: settings.pulse_every,
                pulse_within: settings.pulse_within,
                upkeep_every: settings.upkeep_every,
            },
            Arc::clone(&health),
            Arc::clone(&figures),
        );
        let admission = Arc::new(Admission::new(
            settings.in_flight_events,
            settings.in_flight_bytes,
            figures.in_flight_events.clone(),
            figures.in_flight_bytes.clone(),
        ));
        let way_in = |shards: &[Shard]| {
            Ingress::start(
                shards.iter().map(|shard| shard.dedup.clone()).collect(),
                settings.ingress_mailbox,
                settings.answer_within,
                Arc::clone(&admission),
                Arc::clone(&figures),
            )
        };
        let fetch = FetchActor::start(fetching, fetcher, way_in(&shards), alarms, of_fetch, Arc::clone(&figures));
        Self { inner: Arc::new(Inner { settings, shards, reaper, holds, fetch, admission, health, figures }) }
    }

    /// The way in for the calling thread, which must run an actix arbiter. Call it once on each HTTP worker
    /// and keep it: the bound of a mailbox counts by address.
    #[must_use]
    pub fn ingress(&self) -> Ingress {
        let inner = &*self.inner;
        Ingress::start(
            inner.shards.iter().map(|shard| shard.dedup.clone()).collect(),
            inner.settings.ingress_mailbox,
            inner.settings.answer_within,
            Arc::clone(&inner.admission),
            Arc::clone(&inner.figures),
        )
    }

    /// Ends the waiting of a resource, as a person asks: gaps are given up, parked events begin a new epoch.
    /// `None` when nothing of it waits.
    pub async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        let inner = &*self.inner;
        let (reply, answer) = tokio::sync::oneshot::channel();
        let failed = |why: &str| StoreError::Unavailable(why.to_owned());
        post(&inner.holds, &inner.figures.holds, Release { resource, reply })
            .map_err(|(refused, _)| failed(&refused.to_string()))?;
        match tokio::time::timeout(inner.settings.answer_within, answer).await {
            Ok(Ok(released)) => released,
            Ok(Err(_)) => Err(failed("the work failed and was given up")),
            Err(_) => Err(failed("no answer in time; it may still be released")),
        }
    }

    /// How many events one caller may have on their way without meeting a full mailbox on an idle engine.
    #[must_use]
    pub fn at_once(&self) -> usize {
        self.inner.settings.at_once()
    }

    /// Takes a request out of quarantine, once it was run again or a person gave it up. `false`: it is not there.
    pub async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        let inner = &*self.inner;
        let (reply, answer) = tokio::sync::oneshot::channel();
        let failed = |why: &str| StoreError::Unavailable(why.to_owned());
        post(&inner.holds, &inner.figures.holds, Discharge { quarantined, reply })
            .map_err(|(refused, _)| failed(&refused.to_string()))?;
        match tokio::time::timeout(inner.settings.answer_within, answer).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(failed("the work failed and was given up")),
            Err(_) => Err(failed("no answer in time; it may still be done")),
        }
    }

    /// How the engine is now.
    #[must_use]
    pub fn status(&self) -> Status {
        let inner = &*self.inner;
        let health = inner.health.read();
        let reasons = self.reasons(health.error.as_deref(), health.answered);
        let pools = inner.figures.pools().map(|pool| PoolStatus {
            name: pool.name,
            actors: pool.actors.get(),
            depth: pool.depth.get(),
            bound: pool.bound.get(),
            full: pool.full.get(),
            panics: pool.panics.get(),
        });
        Status {
            ready: reasons.is_empty(),
            reasons,
            clock_difference_ms: health.clock_difference_ms,
            incarnation: health.incarnation,
            in_flight_events: (inner.admission.in_flight_events(), inner.settings.in_flight_events),
            in_flight_bytes: (inner.admission.in_flight_bytes(), inner.settings.in_flight_bytes),
            live_resources: usize::try_from(inner.figures.live.get()).unwrap_or(0),
            pools: pools.to_vec(),
        }
    }

    fn reasons(&self, store_error: Option<&str>, answered: Option<tokio::time::Instant>) -> Vec<String> {
        let inner = &*self.inner;
        let mut reasons = Vec::new();
        if inner.admission.is_draining() {
            reasons.push("shutting down".to_owned());
        }
        let patience = inner.settings.pulse_every * 3 + inner.settings.pulse_within;
        if let Some(error) = store_error {
            reasons.push(format!("the store does not answer: {error}"));
        } else if answered.is_none_or(|at| at.elapsed() > patience) {
            reasons.push("the store was not heard of for too long".to_owned());
        }
        for (number, shard) in inner.shards.iter().enumerate() {
            if !shard.dedup.connected() {
                reasons.push(format!("shard {number} has stopped"));
            } else if !shard.writer_up.load(Ordering::Relaxed) {
                reasons.push(format!("the writer of shard {number} has no session"));
            }
        }
        reasons
    }

    /// Takes nothing new, finishes what was accepted, and stops the actors. Returns when all is answered or
    /// `within` is over.
    pub async fn drain(&self, within: Duration) -> Drained {
        let inner = &*self.inner;
        let complete = tokio::time::timeout(within, inner.admission.drain()).await.is_ok();
        let left = inner.admission.in_flight_events();
        if complete {
            for shard in &inner.shards {
                let _ = post(&shard.dedup, &inner.figures.dedup, Stop);
            }
            let _ = post(&inner.holds, &inner.figures.holds, Stop);
            let _ = post(&inner.fetch, &inner.figures.fetch, Stop);
            let _ = post(&inner.reaper, &inner.figures.reaper, Stop);
        }
        Drained { complete, left }
    }
}

impl Shard {
    /// One line of actors on one arbiter: thread hops cost more than actors do (measured).
    fn start(settings: &EngineSettings, ports: &Ports, alarms: &Arc<Alarms>, figures: &Arc<Figures>) -> Self {
        let writer_up = Arc::new(AtomicBool::new(false));
        let (settings, ports) = (settings.clone(), ports.clone());
        let (alarms, figures) = (Arc::clone(alarms), Arc::clone(figures));
        let own_arbiter = settings.own_arbiters;
        let up = Arc::clone(&writer_up);
        let line = move |ctx: &mut actix::Context<DedupActor>| {
            ctx.set_mailbox_capacity(settings.dedup_mailbox);
            line_of_actors(&settings, ports, alarms, figures, up, ctx.address())
        };
        let dedup = if own_arbiter {
            DedupActor::start_in_arbiter(&Arbiter::new().handle(), line)
        } else {
            DedupActor::create(line)
        };
        Self { dedup, writer_up }
    }
}

fn line_of_actors(
    settings: &EngineSettings,
    ports: Ports,
    alarms: Arc<Alarms>,
    figures: Arc<Figures>,
    up: Arc<AtomicBool>,
    dedup: Addr<DedupActor>,
) -> DedupActor {
    let of_writer = WriterSettings {
        batch_events: settings.batch_events,
        batch_bytes: settings.batch_bytes,
        waiting_max: settings.writer_waiting,
        open_within: settings.open_within,
        pause_min: settings.reopen_pause_min,
        pause_max: settings.reopen_pause_max,
    };
    let waiting = Waiting::default();
    let writer = WriterActor::create(|ctx| {
        ctx.set_mailbox_capacity(settings.writer_mailbox);
        WriterActor::new(ports.store, dedup, alarms, Arc::clone(&figures), of_writer, up, Rc::clone(&waiting))
    });
    let desk = Desk {
        writer: writer.clone(),
        figures: Arc::clone(&figures),
        mailbox: settings.resource_mailbox,
        gather_events: settings.resource_gather,
        gather_bytes: settings.batch_bytes,
        waiting_max: settings.resource_waiting,
        waiting,
    };
    let live = settings.live_resources.div_ceil(settings.shards);
    let ordering = OrderingActor::create(|ctx| {
        ctx.set_mailbox_capacity(settings.ordering_mailbox);
        OrderingActor::new(desk, live, settings.resource_idle, Arc::clone(&figures))
    });
    let cache = CacheSettings {
        cache: ports.cache,
        mode: settings.lookup,
        deadline: settings.lookup_deadline,
        batch_max: settings.lookup_batch,
        facts_max: settings.facts_waiting,
        failures_max: settings.cache_failures,
        pause: settings.cache_pause,
    };
    let recent = settings.recent_keys.div_ceil(settings.shards);
    DedupActor::new(ordering, writer, figures, recent, settings.dedup_waiting, cache)
}
