//! The settings, section by section, as the rest of the program reads them.
//!
//! What each means, its unit and its bounds are written in `config.toml`; here is where the bounds hold.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;

use super::reader::Reader;
use super::redact;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// `[server]`: the public entrance.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where to listen.
    pub listen: SocketAddr,
    /// HTTP worker threads; "auto" is already resolved to the number of cores.
    pub workers: usize,
    /// Open connections in all.
    pub max_connections: usize,
    /// Time for a request's headers.
    pub header_timeout: Duration,
    /// Time for a whole body.
    pub body_timeout: Duration,
    /// The slowest average for a body after its first second, bytes a second.
    pub body_rate: u64,
    /// How long an idle connection stays open.
    pub keep_alive: Duration,
    /// An event that is not durable by then is answered 503.
    pub answer_within: Duration,
    /// How long the drain after SIGTERM may take.
    pub drain_within: Duration,
}

impl Server {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            listen: reader.address("server.listen"),
            workers: reader.count_or_auto("server.workers", 1..=256).unwrap_or_else(cores).min(256),
            max_connections: reader.count("server.max_connections", 1..=1_000_000),
            header_timeout: reader.duration("server.header_timeout", 100 * MS..=5 * MINUTE),
            body_timeout: reader.duration("server.body_timeout", 100 * MS..=10 * MINUTE),
            body_rate: reader.rate("server.body_rate", 1..=GIB),
            keep_alive: reader.duration("server.keep_alive", SECOND..=60 * MINUTE),
            answer_within: reader.duration("server.answer_within", 100 * MS..=MINUTE),
            drain_within: reader.duration("server.drain_within", SECOND..=10 * MINUTE),
        }
    }
}

/// `[admin]`: the operator's entrance.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Where to listen.
    pub listen: SocketAddr,
}

impl Admin {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self { listen: reader.address("admin.listen") }
    }
}

/// `[store]`: where the truth is kept.
#[derive(Clone)]
pub struct Store {
    /// `sqlite:…` or `postgres://…`. May hold a password: show [`Store::shown`].
    pub url: String,
    /// The password for a URL without one.
    pub password: Option<SecretString>,
    /// Time for opening a connection.
    pub connect_timeout: Duration,
    /// Time for one statement.
    pub statement_timeout: Duration,
    /// Time for one statement of an effect.
    pub effect_timeout: Duration,
    /// Largest accepted difference between this clock and the store's.
    pub clock_tolerance: Duration,
}

impl Store {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            url: reader.url("store.url", &["sqlite:", "postgres://", "postgresql://"]),
            password: reader.secret("store.password"),
            connect_timeout: reader.duration("store.connect_timeout", 100 * MS..=MINUTE),
            statement_timeout: reader.duration("store.statement_timeout", 100 * MS..=5 * MINUTE),
            effect_timeout: reader.duration("store.effect_timeout", 10 * MS..=MINUTE),
            clock_tolerance: reader.duration("store.clock_tolerance", 100 * MS..=5 * MINUTE),
        }
    }

    /// Whether this is the single-node store.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    /// The URL without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        redact::url(&self.url)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("url", &self.shown())
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("clock_tolerance", &self.clock_tolerance)
            .finish_non_exhaustive()
    }
}

/// `[keys]`: how long a repeat is known as one.
#[derive(Clone, Debug)]
pub struct Keys {
    /// How long a key is remembered at least.
    pub window: Duration,
}

impl Keys {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self { window: reader.duration("keys.window", DAY..=400 * DAY) }
    }
}

/// `[events]`: the log of events.
#[derive(Clone, Debug)]
pub struct Events {
    /// How long events and quarantined requests are kept.
    pub retention: Duration,
}

impl Events {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self { retention: reader.duration("events.retention", DAY..=3650 * DAY) }
    }
}

/// `[fetch]`: asking providers for states.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// Questions under way at a time.
    pub at_once: usize,
    /// Tries of one question in all.
    pub attempts: u32,
    /// The pause after the first failed try.
    pub pause: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Fetch {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            at_once: reader.count("fetch.at_once", 1..=1000),
            attempts: u32::try_from(reader.count("fetch.attempts", 1..=100)).unwrap_or(100),
            pause: reader.duration("fetch.pause", 100 * MS..=60 * MINUTE),
            pause_max: reader.duration("fetch.pause_max", SECOND..=DAY),
        }
    }
}

/// When the shared cache is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// While it pays.
    Auto,
    /// For every key this process does not know.
    Always,
    /// Never; facts are still written for others.
    Never,
}

/// `[cache]`: the shared key cache.
#[derive(Clone)]
pub struct Cache {
    /// `redis://…` or `rediss://…`; `None` for no shared cache. May hold a password: show [`Cache::shown`].
    pub url: Option<String>,
    /// The password for a URL without one.
    pub password: Option<SecretString>,
    /// What vouches for cached facts.
    pub secret: Option<SecretString>,
    /// When it is asked.
    pub lookup: Lookup,
    /// Time for one question.
    pub deadline: Duration,
    /// How long a fact stays there.
    pub keep: Duration,
}

impl Cache {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let url = reader.url("cache.url", &["", "redis://", "rediss://"]);
        let password = reader.secret("cache.password");
        let lookups = [("auto", Lookup::Auto), ("always", Lookup::Always), ("never", Lookup::Never)];
        Self {
            url: (!url.is_empty()).then_some(url),
            password,
            secret: reader.secret("cache.secret"),
            lookup: reader.choice("cache.lookup", &lookups),
            deadline: reader.duration("cache.deadline", MS..=50 * MS),
            keep: reader.duration("cache.keep", MINUTE..=400 * DAY),
        }
    }

    /// The URL without user and password.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        self.url.as_deref().map(redact::url)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("url", &self.shown())
            .field("lookup", &self.lookup)
            .field("deadline", &self.deadline)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

/// `[limits]`: what may be in flight at once.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest body of a request.
    pub body_bytes: u64,
    /// Events taken and not answered.
    pub in_flight_events: usize,
    /// Bytes of bodies read and not answered.
    pub in_flight_bytes: u64,
}

impl Limits {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            body_bytes: reader.size("limits.body_bytes", KIB..=64 * MIB),
            in_flight_events: reader.count("limits.in_flight_events", 1..=1_000_000),
            in_flight_bytes: reader.size("limits.in_flight_bytes", MIB..=64 * GIB),
        }
    }
}

/// `[pools.…]`: the actors and their mailboxes.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Messages waiting for one ingress actor.
    pub ingress_mailbox: usize,
    /// Messages waiting for one dedup actor.
    pub dedup_mailbox: usize,
    /// Recent keys this process remembers, all shards together.
    pub recent: usize,
    /// Messages waiting for one ordering actor.
    pub ordering_mailbox: usize,
    /// Live resource actors, all shards together.
    pub live: usize,
    /// Idle time after which a resource actor ends.
    pub idle: Duration,
    /// Events waiting for one resource.
    pub resource_mailbox: usize,
    /// Shards, each with one writer.
    pub shards: usize,
    /// Events waiting for one writer.
    pub writer_mailbox: usize,
    /// The most events in one transaction.
    pub batch_events: usize,
    /// The most bytes in one transaction.
    pub batch_bytes: u64,
}

impl Pools {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        const MAILBOX: std::ops::RangeInclusive<usize> = 1..=1_000_000;
        Self {
            ingress_mailbox: reader.count("pools.ingress.mailbox", MAILBOX),
            dedup_mailbox: reader.count("pools.dedup.mailbox", MAILBOX),
            recent: reader.count("pools.dedup.recent", 0..=100_000_000),
            ordering_mailbox: reader.count("pools.ordering.mailbox", MAILBOX),
            live: reader.count("pools.ordering.live", 1..=10_000_000),
            idle: reader.duration("pools.ordering.idle", SECOND..=DAY),
            resource_mailbox: reader.count("pools.ordering.resource_mailbox", 1..=100_000),
            shards: reader.count("pools.writer.shards", 1..=64),
            writer_mailbox: reader.count("pools.writer.mailbox", MAILBOX),
            batch_events: reader.count("pools.writer.batch_events", 1..=2_000),
            batch_bytes: reader.size("pools.writer.batch_bytes", 64 * KIB..=256 * MIB),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Coloured text on a terminal, plain text elsewhere.
    Auto,
    /// Plain text.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[log]`: what is logged, and how.
#[derive(Clone, Debug)]
pub struct Log {
    /// A filter as `tracing_subscriber::EnvFilter` reads it; already checked.
    pub filter: String,
    /// How lines look.
    pub format: LogFormat,
}

impl Log {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let formats = [("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)];
        Self { filter: reader.text("log.filter"), format: reader.choice("log.format", &formats) }
    }
}
