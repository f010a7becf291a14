//! The store on Postgres 14 and later: the truth that many nodes share.
//!
//! Owns the connections, the statements and the tables in the schema `tidegate`. Promises what the port says, on
//! READ COMMITTED, by unique keys and row locks taken in one order: keys, then resources, each sorted by hash.
//! Knows no actor: two sessions of one process are as foreign to each other as two nodes.
//! On failure a session says whether anything can have been stored, and is not to be used again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnection, PgPool};
use tidegate_actors::ports::{Claimed, FetchClaim, Pulse, Reader, Session, Store, StoreError, Upkeep, Waits};
use tidegate_actors::rules::event::EventId;
use tidegate_actors::rules::key::ResourceHash;

use tokio::sync::OnceCell;

use super::{OpenError, Opened, StoreSettings};
use crate::effect::Effects;

mod checks;
mod connect;
mod effects;
mod errors;
mod given;
mod judged;
mod load;
mod locked;
mod migrate;
mod plain;
mod quarantine;
mod reader;
mod repeats;
mod rows;
mod session;
mod statements;
mod upkeep;
mod waits;
mod write;

use connect::Connector;
pub use connect::small_pool;
use errors::Fault;
pub use reader::PgReader;
use statements::Statements;

/// Connections that one node keeps for reading.
const READER_CONNECTIONS: u32 = 4;
/// How long a sign of life may take.
const PULSE_WITHIN: Duration = Duration::from_secs(2);

/// Which way a batch goes to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One statement where the batch allows it, else load, decide, write; with locks from the start only where
    /// rivals came first.
    Cheapest,
    /// Always load, decide, write. For the store suite, which holds the ways against each other.
    Loaded,
    /// Always lock, load, decide, write. For the store suite.
    Locked,
}

/// Opens sessions on one database.
#[derive(Clone)]
pub struct PgStore {
    connector: Connector,
    /// For signs of life only, so that slow readers never look like a dead store.
    pulse: PgPool,
    /// For what waits: a connection beside the writers'.
    waits: PgPool,
    waits_statements: Arc<OnceCell<Statements>>,
    keys_window: Duration,
    events_retention: Duration,
    effects: Arc<Effects>,
    way: Way,
}

/// Opens, migrates and checks a database.
pub async fn open(settings: &StoreSettings) -> Result<Opened, OpenError> {
    let connector = Connector::new(settings)?;
    let mut connection = connector.upkeep().await.map_err(|error| connector.closed(error))?;
    let found = checks::run(&mut connection, settings.clock_tolerance).await?;
    migrate::migrate(&mut connection).await?;
    effects::set_up(&mut connection, &settings.effects).await.map_err(OpenError::Effects)?;
    let store = PgStore::new(connector.clone(), settings, Way::Cheapest);
    // The first events find the day's partition there.
    upkeep::partitions(&mut connection).await.map_err(|error| OpenError::Migration(error.to_string()))?;
    connection.close().await.ok();
    let reader = PgReader::new(connector.pool(READER_CONNECTIONS));
    Ok(Opened {
        store: Arc::new(store),
        reader: Arc::new(reader),
        warnings: found.warnings,
        describe: format!("Postgres {} at {}", found.server_version, connector.place()),
    })
}

/// Opens a database only to read it: nothing is made or migrated.
pub async fn open_reader(settings: &StoreSettings) -> Result<Arc<dyn Reader>, OpenError> {
    let connector = Connector::new(settings)?;
    let mut connection = connector.upkeep().await.map_err(|error| connector.closed(error))?;
    migrate::check(&mut connection, &connector.place()).await?;
    connection.close().await.ok();
    Ok(Arc::new(PgReader::new(connector.pool(READER_CONNECTIONS))))
}

/// Asks a database whether it can run the effects.
pub async fn check_effects(settings: &StoreSettings) -> Result<(), OpenError> {
    let connector = Connector::new(settings)?;
    let mut connection = connector.upkeep().await.map_err(|error| connector.closed(error))?;
    let checked = effects::check(&mut connection, &settings.effects).await;
    connection.close().await.ok();
    checked.map_err(OpenError::Effects)
}

impl PgStore {
    /// A store over a database that [`open`] has migrated, with its own choice of way.
    pub fn with_way(settings: &StoreSettings, way: Way) -> Result<Self, OpenError> {
        Ok(Self::new(Connector::new(settings)?, settings, way))
    }

    fn new(connector: Connector, settings: &StoreSettings, way: Way) -> Self {
        let pulse = connector.pool(1);
        let waits = connector.waits();
        let StoreSettings { keys_window, events_retention, .. } = *settings;
        let effects = Arc::clone(&settings.effects);
        Self { connector, pulse, waits, waits_statements: Arc::default(), keys_window, events_retention, effects, way }
    }

    /// Does something about what waits, again where a rival was in the way.
    async fn waiting<T>(
        &self,
        work: impl AsyncFn(&mut PgConnection, &Statements) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut connection = self.waits.acquire().await.map_err(|error| errors::unavailable(&error))?;
        let statements = self.waits_statements.get_or_try_init(|| Statements::without_claims(&mut connection)).await;
        let statements = statements.map_err(|error| errors::unavailable(&error))?;
        let mut rival = String::new();
        for _ in 0..session::TRIES_MAX {
            match work(&mut connection, statements).await {
                Ok(done) => return Ok(done),
                Err(Fault::Redo(text)) => rival = text,
                Err(Fault::Ends(error)) => return Err(error),
            }
        }
        Err(StoreError::Unavailable(format!("what waits was left alone after {} tries: {rival}", session::TRIES_MAX)))
    }
}

#[async_trait(?Send)]
impl Store for PgStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        Ok(Box::new(session::PgSession::open(&self.connector, self.way, Arc::clone(&self.effects)).await?))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        let ask = async {
            let mut connection = self.pulse.acquire().await.map_err(|error| errors::unavailable(&error))?;
            let incarnation = connect::incarnation(&mut connection).await?;
            let now_ms = upkeep::now_ms(&mut connection).await?;
            Ok(Pulse { now_ms, incarnation })
        };
        let late = || StoreError::Unavailable(format!("no sign of life within {PULSE_WITHIN:?}"));
        tokio::time::timeout(PULSE_WITHIN, ask).await.unwrap_or_else(|_| Err(late()))
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        let due = async |connection: &mut PgConnection, statements: &Statements| {
            waits::settle_due(connection, statements, &self.effects, limit).await
        };
        self.waiting(due).await
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        let release = async |connection: &mut PgConnection, statements: &Statements| {
            waits::release(connection, statements, &self.effects, resource).await
        };
        self.waiting(release).await
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.waiting(async |connection, _| quarantine::discharge(connection, quarantined).await).await
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        self.waiting(async |connection, _| waits::claim_fetches(connection, limit, lease_ms).await).await
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        let failed = async |connection: &mut PgConnection, statements: &Statements| {
            waits::fetch_failed(connection, statements, &self.effects, claim, (why, retry_in_ms)).await
        };
        self.waiting(failed).await
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        let mut connection = self.connector.upkeep().await?;
        let done = upkeep::run(&mut connection, self.keys_window, self.events_retention).await;
        connection.close().await.ok();
        done
    }
}
