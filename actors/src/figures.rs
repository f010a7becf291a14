//! What the engine counts and measures, as handles that cost one atomic addition each.
//!
//! Owns the metrics of all pools. Promises bounded label sets (pools, verdicts, reasons and the configured
//! sources) and no lookup by label on the hot path. Knows nothing of how they are read. Cannot fail.

use std::collections::HashMap;
use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::admission::Refused;
use crate::ports::Waits;
use crate::rules::event::{Receipt, Verdict};

/// The most sources that get figures of their own; those beyond count as `other`.
const SOURCES_MAX: usize = 1_000;

/// The names of the pools, as in the settings and in the metrics.
pub const POOLS: [&str; 8] = ["ingress", "dedup", "ordering", "resource", "writer", "reaper", "holds", "fetch"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PoolLabel {
    pool: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VerdictLabel {
    source: String,
    verdict: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SourceLabel {
    source: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The figures of one pool.
#[derive(Clone, Debug)]
pub struct PoolFigures {
    /// The pool's name.
    pub name: &'static str,
    /// Actors alive.
    pub actors: Gauge,
    /// Messages in the mailboxes.
    pub depth: Gauge,
    /// The bound of one mailbox.
    pub bound: Gauge,
    /// Messages refused because a mailbox was full.
    pub full: Counter,
    /// Panics caught.
    pub panics: Counter,
    /// How long a message lay in a mailbox, sampled.
    pub wait: Histogram,
    /// How long the work took.
    pub service: Histogram,
}

/// What the key cache did.
#[derive(Clone, Debug)]
pub struct CacheFigures {
    /// Keys it knew.
    pub hits: Counter,
    /// Keys it did not know.
    pub misses: Counter,
    /// Calls that failed.
    pub failed: Counter,
    /// Calls that were not answered in time.
    pub late: Counter,
    /// Lookups left out because the breaker was open.
    pub skipped: Counter,
    /// Facts written.
    pub kept: Counter,
    /// Facts dropped because the cache was slow or away.
    pub dropped: Counter,
}

/// What became of asking providers.
#[derive(Clone, Debug)]
pub(crate) struct FetchFigures {
    /// Answers handed in.
    pub(crate) answered: Counter,
    /// Tries that failed.
    pub(crate) failed: Counter,
}

/// What became of held events.
#[derive(Clone, Debug)]
struct HoldFigures {
    released: Counter,
    stale: Counter,
    expired: Counter,
    regressions: Counter,
}

/// All figures of the engine.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) ingress: PoolFigures,
    pub(crate) dedup: PoolFigures,
    pub(crate) ordering: PoolFigures,
    pub(crate) resource: PoolFigures,
    pub(crate) writer: PoolFigures,
    pub(crate) reaper: PoolFigures,
    pub(crate) holds: PoolFigures,
    pub(crate) fetch: PoolFigures,
    pub(crate) in_flight_events: Gauge,
    pub(crate) in_flight_bytes: Gauge,
    pub(crate) batch_events: Histogram,
    pub(crate) live: Gauge,
    pub(crate) woken: Counter,
    pub(crate) passivated: Counter,
    pub(crate) recent_hits: Counter,
    pub(crate) recent_keys: Gauge,
    pub(crate) cache: CacheFigures,
    pub(crate) fetches: FetchFigures,
    settled: HoldFigures,
    pub(crate) refused: [Counter; Refused::REASONS.len()],
    pub(crate) clock_difference_ms: Gauge,
    pub(crate) store_up: Gauge,
    pub(crate) upkeep_dropped: Counter,
    events: Family<VerdictLabel, Counter>,
    ties: Family<SourceLabel, Counter>,
    conflicts: Family<SourceLabel, Counter>,
}

impl Figures {
    /// Makes all figures known to the registry.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("tidegate");
        let pools = Pools::register(registry);
        let refused = Family::<ReasonLabel, Counter>::default();
        registry.register("refused", "Events not taken, by reason", refused.clone());
        let cache = Family::<ResultLabel, Counter>::default();
        registry.register("key_cache", "Key cache: keys looked up and facts written, by result", cache.clone());
        let of_cache = |result| cache.get_or_create_owned(&ResultLabel { result });

        let settled = Family::<ResultLabel, Counter>::default();
        registry.register("holds_settled", "Held events whose waiting ended, by result", settled.clone());
        let of_holds = |result| settled.get_or_create_owned(&ResultLabel { result });
        let regressions = Counter::default();
        registry.register("version_regressions", "Events parked because a counter fell", regressions.clone());
        let fetches = Family::<ResultLabel, Counter>::default();
        registry.register("fetches", "Tries to fetch a state from a provider, by result", fetches.clone());
        let of_fetches = |result| fetches.get_or_create_owned(&ResultLabel { result });

        let figures = Self {
            fetches: FetchFigures { answered: of_fetches("answered"), failed: of_fetches("failed") },
            settled: HoldFigures {
                released: of_holds("released"),
                stale: of_holds("stale"),
                expired: of_holds("expired"),
                regressions,
            },
            ingress: pools.of("ingress"),
            dedup: pools.of("dedup"),
            ordering: pools.of("ordering"),
            resource: pools.of("resource"),
            writer: pools.of("writer"),
            reaper: pools.of("reaper"),
            holds: pools.of("holds"),
            fetch: pools.of("fetch"),
            in_flight_events: Gauge::default(),
            in_flight_bytes: Gauge::default(),
            batch_events: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            live: Gauge::default(),
            woken: Counter::default(),
            passivated: Counter::default(),
            recent_hits: Counter::default(),
            recent_keys: Gauge::default(),
            cache: CacheFigures {
                hits: of_cache("hit"),
                misses: of_cache("miss"),
                failed: of_cache("failed"),
                late: of_cache("late"),
                skipped: of_cache("skipped"),
                kept: of_cache("kept"),
                dropped: of_cache("dropped"),
            },
            refused: Refused::REASONS.map(|reason| refused.get_or_create_owned(&ReasonLabel { reason })),
            clock_difference_ms: Gauge::default(),
            store_up: Gauge::default(),
            upkeep_dropped: Counter::default(),
            events: Family::default(),
            ties: Family::default(),
            conflicts: Family::default(),
        };
        registry.register("events", "Events by what became of them", figures.events.clone());
        registry.register("ties", "Events whose version equalled the stored one", figures.ties.clone());
        registry.register("conflicts", "Repeats of a key with other bytes", figures.conflicts.clone());
        registry.register("in_flight_events", "Events accepted and not yet answered", figures.in_flight_events.clone());
        registry.register("in_flight_bytes", "Bytes reserved by requests", figures.in_flight_bytes.clone());
        registry.register("batch_events", "Events in one commit", figures.batch_events.clone());
        registry.register("live_resources", "Live resource actors", figures.live.clone());
        registry.register("resources_woken", "Resource actors started", figures.woken.clone());
        registry.register("resources_passivated", "Idle resource actors stopped", figures.passivated.clone());
        registry.register("recent_hits", "Duplicates known to this process", figures.recent_hits.clone());
        registry.register("recent_keys", "Keys known to this process", figures.recent_keys.clone());
        registry.register(
            "store_clock_difference_ms",
            "The store's clock minus this node's, in milliseconds",
            figures.clock_difference_ms.clone(),
        );
        registry.register("store_up", "1 while the store answers", figures.store_up.clone());
        registry.register("store_dropped", "Partitions or rows dropped by age", figures.upkeep_dropped.clone());
        figures
    }

    pub(crate) fn pools(&self) -> [&PoolFigures; POOLS.len()] {
        [
            &self.ingress,
            &self.dedup,
            &self.ordering,
            &self.resource,
            &self.writer,
            &self.reaper,
            &self.holds,
            &self.fetch,
        ]
    }

    /// Counts what a transaction did to events that wait.
    pub(crate) fn waited(&self, waits: &Waits) {
        let counts = [
            (&self.settled.released, waits.released),
            (&self.settled.stale, waits.stale),
            (&self.settled.expired, waits.expired),
            (&self.settled.regressions, waits.parked),
        ];
        for (counter, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            counter.inc_by(u64::from(count));
        }
        if waits.parked > 0 {
            tracing::warn!(
                events = waits.parked,
                "a sender's counter fell: events are parked; see `events --held`, and `resources release` begins a new epoch"
            );
        }
    }

    pub(crate) fn refuse(&self, refused: &Refused) {
        self.refused[refused.index()].inc();
    }
}

struct Pools {
    actors: Family<PoolLabel, Gauge>,
    depth: Family<PoolLabel, Gauge>,
    bound: Family<PoolLabel, Gauge>,
    full: Family<PoolLabel, Counter>,
    panics: Family<PoolLabel, Counter>,
    wait: Family<PoolLabel, Histogram, fn() -> Histogram>,
    service: Family<PoolLabel, Histogram, fn() -> Histogram>,
}

impl Pools {
    fn register(registry: &mut Registry) -> Self {
        let pools = Self {
            actors: Family::default(),
            depth: Family::default(),
            bound: Family::default(),
            full: Family::default(),
            panics: Family::default(),
            wait: Family::new_with_constructor(seconds),
            service: Family::new_with_constructor(seconds),
        };
        registry.register("pool_actors", "Actors alive, by pool", pools.actors.clone());
        registry.register("mailbox_depth", "Messages in the mailboxes, by pool", pools.depth.clone());
        registry.register("mailbox_bound", "The bound of one mailbox, by pool", pools.bound.clone());
        registry.register("mailbox_full", "Messages refused by a full mailbox, by pool", pools.full.clone());
        registry.register("panics", "Panics caught, by pool", pools.panics.clone());
        registry.register("wait_seconds", "Time in a mailbox, sampled, by pool", pools.wait.clone());
        registry.register("service_seconds", "Time of the work itself, by pool", pools.service.clone());
        pools
    }

    fn of(&self, pool: &'static str) -> PoolFigures {
        let label = PoolLabel { pool };
        PoolFigures {
            name: pool,
            actors: self.actors.get_or_create_owned(&label),
            depth: self.depth.get_or_create_owned(&label),
            bound: self.bound.get_or_create_owned(&label),
            full: self.full.get_or_create_owned(&label),
            panics: self.panics.get_or_create_owned(&label),
            wait: self.wait.get_or_create_owned(&label),
            service: self.service.get_or_create_owned(&label),
        }
    }
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 2.5, 14))
}

/// The counters of one source.
#[derive(Clone, Debug)]
struct SourceFigures {
    verdicts: [Counter; Verdict::ALL.len()],
    ties: Counter,
    conflicts: Counter,
}

/// Counts verdicts for one actor: keeps the handles of the sources it has met.
#[derive(Debug)]
pub(crate) struct Tally {
    figures: Arc<Figures>,
    sources: HashMap<Arc<str>, SourceFigures>,
    last: Option<(Arc<str>, SourceFigures)>,
}

impl Tally {
    pub(crate) fn new(figures: Arc<Figures>) -> Self {
        Self { figures, sources: HashMap::new(), last: None }
    }

    /// Counts what became of one event.
    pub(crate) fn count(&mut self, source: &Arc<str>, receipt: &Receipt) {
        let of_source = self.of(source);
        of_source.verdicts[receipt.verdict as usize].inc();
        if receipt.tie {
            of_source.ties.inc();
        }
        if receipt.conflict {
            of_source.conflicts.inc();
        }
    }

    pub(crate) fn count_quarantined(&mut self, source: &Arc<str>) {
        self.of(source).verdicts[Verdict::Quarantined as usize].inc();
    }

    fn of(&mut self, source: &Arc<str>) -> &SourceFigures {
        // events of one source come in rows: a pointer comparison usually suffices
        let same = self.last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, source));
        if !same {
            let found = self.find(source);
            self.last = Some((Arc::clone(source), found));
        }
        let make = || (Arc::clone(source), SourceFigures::of(&self.figures, "other"));
        &self.last.get_or_insert_with(make).1
    }

    fn find(&mut self, source: &Arc<str>) -> SourceFigures {
        if let Some(found) = self.sources.get(source) {
            return found.clone();
        }
        if self.sources.len() >= SOURCES_MAX {
            return SourceFigures::of(&self.figures, "other");
        }
        let made = SourceFigures::of(&self.figures, source);
        self.sources.insert(Arc::clone(source), made.clone());
        made
    }
}

impl SourceFigures {
    fn of(figures: &Figures, source: &str) -> Self {
        let label = SourceLabel { source: source.to_owned() };
        Self {
            verdicts: Verdict::ALL.map(|verdict| {
                let label = VerdictLabel { source: source.to_owned(), verdict: verdict.word() };
                figures.events.get_or_create_owned(&label)
            }),
            ties: figures.ties.get_or_create_owned(&label),
            conflicts: figures.conflicts.get_or_create_owned(&label),
        }
    }
}
