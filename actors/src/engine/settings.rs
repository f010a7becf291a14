//! Every size and time of the engine, as plain numbers.

use std::time::Duration;

use crate::fetch::FetchSettings;
use crate::figures::Figures;
use crate::rules::lookup::LookupMode;
use crate::rules::retry::Retry;

/// The settings of the engine. Each size is a hard bound; what is beyond it is refused, not queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Shards: lines of actors with a session each. One is right up to about four cores.
    pub shards: usize,
    /// Each shard on an arbiter (thread) of its own; otherwise all on the one that starts the engine, as
    /// tests want it.
    pub own_arbiters: bool,
    /// Events accepted and not yet answered, in the whole process.
    pub in_flight_events: usize,
    /// Bytes of requests not yet answered, in the whole process.
    pub in_flight_bytes: usize,
    /// How long a sender waits for an answer.
    pub answer_within: Duration,
    /// Mailbox of each ingress actor.
    pub ingress_mailbox: usize,
    /// Mailbox of each dedup actor.
    pub dedup_mailbox: usize,
    /// Events of a shard that wait for a lookup or behind one.
    pub dedup_waiting: usize,
    /// Keys this process remembers, over all shards.
    pub recent_keys: usize,
    /// When to ask the key cache.
    pub lookup: LookupMode,
    /// How long a call to the key cache may take.
    pub lookup_deadline: Duration,
    /// Keys in one lookup.
    pub lookup_batch: usize,
    /// Facts of a shard that wait to be written to the key cache.
    pub facts_waiting: usize,
    /// Failures in a row after which the key cache is left alone.
    pub cache_failures: u32,
    /// How long it is left alone.
    pub cache_pause: Duration,
    /// Mailbox of each ordering actor.
    pub ordering_mailbox: usize,
    /// Live resource actors, over all shards.
    pub live_resources: usize,
    /// How long an unused resource actor stays.
    pub resource_idle: Duration,
    /// Mailbox of each resource actor.
    pub resource_mailbox: usize,
    /// Events of one resource that wait for its commit.
    pub resource_waiting: usize,
    /// Events of one resource in one commit.
    pub resource_gather: usize,
    /// Mailbox of each writer.
    pub writer_mailbox: usize,
    /// Events of a shard that wait for the next commit.
    pub writer_waiting: usize,
    /// Events in one commit.
    pub batch_events: usize,
    /// Bytes in one commit.
    pub batch_bytes: usize,
    /// How long events wait for a session to be opened before they are refused.
    pub open_within: Duration,
    /// Pause before the second try to open a session; it doubles up to the longest.
    pub reopen_pause_min: Duration,
    /// The longest pause between tries.
    pub reopen_pause_max: Duration,
    /// How often the store is asked for a sign of life.
    pub pulse_every: Duration,
    /// How long that may take.
    pub pulse_within: Duration,
    /// How often the store's tables are looked after.
    pub upkeep_every: Duration,
    /// How often holds are looked for that nobody here knows of: those of other nodes and earlier lives.
    pub holds_sweep: Duration,
    /// Mailbox of the holds actor: requests to release by hand.
    pub holds_mailbox: usize,
    /// Fetches under way at a time.
    pub fetch_slots: usize,
    /// How long a fetch may take; another node may take over after it.
    pub fetch_lease: Duration,
    /// Tries of a fetch in all.
    pub fetch_attempts: u32,
    /// The pause after the first failed fetch; it doubles up to the longest.
    pub fetch_pause_min: Duration,
    /// The longest pause between fetches of a resource.
    pub fetch_pause_max: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            shards: 1,
            own_arbiters: true,
            in_flight_events: 4_096,
            in_flight_bytes: 64 << 20,
            answer_within: Duration::from_secs(10),
            ingress_mailbox: 4_096,
            dedup_mailbox: 4_096,
            dedup_waiting: 4_096,
            recent_keys: 200_000,
            lookup: LookupMode::Auto,
            lookup_deadline: Duration::from_millis(50),
            lookup_batch: 500,
            facts_waiting: 8_192,
            cache_failures: 3,
            cache_pause: Duration::from_secs(2),
            ordering_mailbox: 4_096,
            live_resources: 100_000,
            resource_idle: Duration::from_secs(60),
            resource_mailbox: 1_024,
            resource_waiting: 1_024,
            resource_gather: 256,
            writer_mailbox: 4_096,
            writer_waiting: 4_096,
            batch_events: 500,
            batch_bytes: 4 << 20,
            open_within: Duration::from_secs(2),
            reopen_pause_min: Duration::from_millis(100),
            reopen_pause_max: Duration::from_secs(5),
            pulse_every: Duration::from_secs(1),
            pulse_within: Duration::from_secs(2),
            upkeep_every: Duration::from_secs(60),
            holds_sweep: Duration::from_secs(5),
            holds_mailbox: 64,
            fetch_slots: 8,
            fetch_lease: Duration::from_secs(30),
            fetch_attempts: 12,
            fetch_pause_min: Duration::from_secs(1),
            fetch_pause_max: Duration::from_secs(600),
        }
    }
}

impl EngineSettings {
    /// Zero would be "no bound" to actix and "no progress" to us: the least of every size is one. A commit
    /// never holds less than what one resource gathers.
    pub(super) fn within_bounds(mut self) -> Self {
        let sizes = [
            &mut self.shards,
            &mut self.in_flight_events,
            &mut self.ingress_mailbox,
            &mut self.dedup_mailbox,
            &mut self.dedup_waiting,
            &mut self.lookup_batch,
            &mut self.ordering_mailbox,
            &mut self.live_resources,
            &mut self.resource_mailbox,
            &mut self.resource_waiting,
            &mut self.resource_gather,
            &mut self.writer_mailbox,
            &mut self.writer_waiting,
            &mut self.batch_events,
            &mut self.holds_mailbox,
            &mut self.fetch_slots,
        ];
        for size in sizes {
            *size = (*size).max(1);
        }
        self.resource_gather = self.resource_gather.min(self.batch_events);
        self
    }

    /// How many events one caller may have on their way without meeting a full mailbox on an idle engine.
    pub(super) fn at_once(&self) -> usize {
        let line = [self.ingress_mailbox, self.dedup_mailbox, self.ordering_mailbox, self.resource_mailbox];
        let waiting = [self.resource_waiting, self.writer_waiting, self.in_flight_events];
        line.into_iter().chain(waiting).min().unwrap_or(1)
    }

    /// Shows the bounds beside what they bound.
    pub(super) fn announce(&self, figures: &Figures) {
        let bounds = [
            (&figures.ingress, self.ingress_mailbox),
            (&figures.dedup, self.dedup_mailbox),
            (&figures.ordering, self.ordering_mailbox),
            (&figures.resource, self.resource_mailbox),
            (&figures.writer, self.writer_mailbox),
            (&figures.holds, self.holds_mailbox),
        ];
        for (pool, bound) in bounds {
            pool.bound.set(i64::try_from(bound).unwrap_or(i64::MAX));
        }
        // actix's own default: one message a pulse never fills it
        figures.reaper.bound.set(16);
        figures.fetch.bound.set(16);
    }

    pub(super) fn fetch(&self) -> FetchSettings {
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        FetchSettings {
            slots: self.fetch_slots,
            lease: self.fetch_lease,
            sweep_every: self.holds_sweep,
            retry: Retry {
                attempts: self.fetch_attempts.max(1),
                first_ms: ms(self.fetch_pause_min),
                max_ms: ms(self.fetch_pause_max),
            },
        }
    }
}
