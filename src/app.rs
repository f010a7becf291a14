//! Puts the parts together: opens store and cache, starts the engine, opens the doors, and closes them in
//! order. The only place that knows which adapter is used.
//!
//! Owns the order of start-up (store, cache, engine, listeners) and of shutdown (refuse new events, finish
//! what was accepted, close). Promises that no door opens before the store was checked, and that shutdown
//! ends in time. Knows nothing of what an event means. Whatever fails at start is said with the setting it
//! belongs to and what to do.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_server::ServerHandle;
use prometheus_client::registry::Registry;
use tidegate_actors::ports::{Clock, KeyCache, Reader, Store};
use tidegate_actors::rules::lookup::LookupMode;
use tidegate_actors::{Drained, Engine, EngineSettings, Ports};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::clock::SystemClock;
use crate::config::{self, Config};
use crate::fetch::{self, Confirmer, Provider};
use crate::http::{self, AdminParts, Gate, GateParts, ListenError, ListenSettings, RequestLimits};
use crate::source::{Problem, Source};
use crate::{cache, store};

/// Connections that the kernel may hold for a listener.
const BACKLOG: u32 = 1024;
/// How long a connection may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// Connections to the admin listener at once.
const ADMIN_CONNECTIONS: usize = 64;
/// What the last steps of shutdown may take beyond the time for draining.
const CLOSING: Duration = Duration::from_secs(1);

/// Why the gate did not open.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The cache.
    #[error("`cache.url`: {0}")]
    Cache(#[from] cache::OpenError),
    /// The sources.
    #[error("{0}")]
    Settings(Problems),
    /// The client that asks providers.
    #[error(transparent)]
    Fetch(#[from] fetch::OpenError),
    /// The client for handshakes.
    #[error("cannot make a client for handshakes: {0}")]
    Confirm(String),
    /// A listener.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Something of the system.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// Everything that is wrong with the sources.
#[derive(Debug)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("; "))
    }
}

/// The adapters behind the engine.
pub struct Backends {
    /// The one truth.
    pub store: Arc<dyn Store>,
    /// Reads it.
    pub reader: Arc<dyn Reader>,
    /// The shared cache.
    pub cache: Arc<dyn KeyCache>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// The store for people, without its password.
    pub store_name: String,
    /// The cache for people, without its password.
    pub cache_name: String,
    /// What weakens a promise of the store.
    pub warnings: Vec<String>,
}

impl Backends {
    /// Opens what the settings name.
    pub async fn open(config: &Config) -> Result<Self, StartError> {
        let opened = store::open(&config.store_settings()).await?;
        let cache = cache::open(&config.cache)?;
        let cache_name = config.cache.shown().unwrap_or_else(|| "in this process only".to_owned());
        Ok(Self {
            store: opened.store,
            reader: opened.reader,
            cache,
            clock: Arc::new(SystemClock::new()),
            store_name: opened.describe,
            cache_name,
            warnings: opened.warnings,
        })
    }
}

/// A gate that is open.
pub struct Running {
    /// Where webhooks come in.
    pub public: SocketAddr,
    /// Where figures and status are.
    pub admin: SocketAddr,
    /// Reads the store.
    pub reader: Arc<dyn Reader>,
    gate: Arc<Gate>,
    engine: Engine,
    public_server: Serving,
    admin_server: Serving,
}

struct Serving {
    handle: ServerHandle,
    done: JoinHandle<std::io::Result<()>>,
}

impl Serving {
    fn start(server: actix_server::Server) -> Self {
        Self { handle: server.handle(), done: actix_rt::spawn(server) }
    }

    /// Stops; what does not stop in time is left behind.
    async fn stop(self, gracefully: bool, within: Duration) {
        let stopped = async {
            self.handle.stop(gracefully).await;
            self.done.await
        };
        // An error is a server that is gone already, or one that is left behind: the process ends either way.
        let _ = timeout(within, stopped).await;
    }
}

/// Opens the gate. Runs inside an actix system, which must go on running until [`Running::stop`].
pub async fn start(config: Config, backends: Backends) -> Result<Running, StartError> {
    let providers = sources(&config)?;
    let keys = fetch::open_keys(&providers)?;
    let sources: Vec<Arc<Source>> = providers.iter().map(|provider| Arc::clone(&provider.source)).collect();
    let public_listener = http::bind("server.listen", config.server.listen, BACKLOG)?;
    let admin_listener = http::bind("admin.listen", config.admin.listen, BACKLOG)?;
    let (public, admin) = (public_listener.local_addr()?, admin_listener.local_addr()?);

    let mut registry = Registry::default();
    let ports = Ports {
        store: backends.store,
        cache: backends.cache,
        clock: Arc::clone(&backends.clock),
        fetcher: fetch::open(providers, Arc::clone(&backends.clock))?,
    };
    let engine = Engine::start(engine_settings(&config), ports, &mut registry);
    let public_settings = public_settings(&config);
    let limits = request_limits(&config);
    let names = sources.iter().map(|source| source.name().to_string()).collect();
    let confirm = Arc::new(Confirmer::open().map_err(StartError::Confirm)?);
    let parts = GateParts { engine: engine.clone(), clock: backends.clock, keys, sources, confirm, limits };
    let gate = Arc::new(Gate::new(parts, &mut registry));
    let admin_parts = AdminParts {
        gate: Arc::clone(&gate),
        reader: Arc::clone(&backends.reader),
        registry,
        store: backends.store_name,
        cache: backends.cache_name,
        sources: names,
    };
    let public_server = http::serve_public(public_settings, public_listener, Arc::clone(&gate))?;
    let admin_server = http::serve_admin(admin_settings(public_settings), admin_listener, Arc::new(admin_parts))?;
    Ok(Running {
        public,
        admin,
        reader: backends.reader,
        gate,
        engine,
        public_server: Serving::start(public_server),
        admin_server: Serving::start(admin_server),
    })
}

impl Running {
    /// Refuses new events, finishes what was accepted, closes the listeners. Takes no longer than `within`
    /// and a little for closing; tells what was left.
    pub async fn stop(self, within: Duration) -> Drained {
        let until = Instant::now() + within;
        self.gate.drain();
        // at once: no new connections and requests, and the engine finishes what it has
        let (drained, ()) = tokio::join!(self.engine.drain(within), self.public_server.stop(true, within));
        let left = until.saturating_duration_since(Instant::now());
        self.admin_server.stop(false, left.max(CLOSING)).await;
        drained
    }
}

/// The sources that are on, with what they send along when they ask their providers.
fn sources(config: &Config) -> Result<Vec<Provider>, StartError> {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for entry in config.sources.iter().filter(|entry| entry.enabled) {
        match Source::compile_with(&entry.spec, &entry.secrets, &entry.config) {
            Ok(source) => sources.push(Provider {
                source: Arc::new(source),
                headers: entry.headers.clone(),
                key_headers: entry.key_headers.clone(),
            }),
            Err(faults) => problems.extend(faults),
        }
    }
    if problems.is_empty() { Ok(sources) } else { Err(StartError::Settings(Problems(problems))) }
}

fn engine_settings(config: &Config) -> EngineSettings {
    let (pools, limits, cache) = (&config.pools, &config.limits, &config.cache);
    EngineSettings {
        shards: pools.shards,
        own_arbiters: true,
        in_flight_events: limits.in_flight_events,
        in_flight_bytes: size(limits.in_flight_bytes),
        answer_within: config.server.answer_within,
        ingress_mailbox: pools.ingress_mailbox,
        dedup_mailbox: pools.dedup_mailbox,
        dedup_waiting: pools.dedup_mailbox,
        recent_keys: pools.recent,
        lookup: match cache.lookup {
            _ if cache.url.is_none() => LookupMode::Never,
            config::Lookup::Auto => LookupMode::Auto,
            config::Lookup::Always => LookupMode::Always,
            config::Lookup::Never => LookupMode::Never,
        },
        lookup_deadline: cache.deadline,
        ordering_mailbox: pools.ordering_mailbox,
        live_resources: pools.live,
        resource_idle: pools.idle,
        resource_mailbox: pools.resource_mailbox,
        resource_waiting: pools.resource_mailbox,
        writer_mailbox: pools.writer_mailbox,
        writer_waiting: pools.writer_mailbox,
        batch_events: pools.batch_events,
        batch_bytes: size(pools.batch_bytes),
        fetch_slots: config.fetch.at_once,
        fetch_attempts: config.fetch.attempts,
        fetch_pause_min: config.fetch.pause,
        fetch_pause_max: config.fetch.pause_max,
        ..EngineSettings::default()
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn public_settings(config: &Config) -> ListenSettings {
    let server = &config.server;
    ListenSettings {
        workers: server.workers,
        connections: server.max_connections,
        header_within: server.header_timeout,
        keep_alive: server.keep_alive,
        close_within: CLOSE_WITHIN,
        stop_within: server.drain_within,
    }
}

fn admin_settings(public: ListenSettings) -> ListenSettings {
    ListenSettings { workers: 1, connections: ADMIN_CONNECTIONS, stop_within: CLOSING, ..public }
}

fn request_limits(config: &Config) -> RequestLimits {
    RequestLimits {
        body_bytes: size(config.limits.body_bytes),
        body_within: config.server.body_timeout,
        body_bytes_per_second: config.server.body_rate,
        clock_tolerance: config.store.clock_tolerance,
        answer_within: config.server.answer_within,
    }
}
