//! The store in one file: SQLite in WAL mode, one writer connection, readers apart.
//!
//! Owns the file, its lock, and the one connection that writes; all sessions and the upkeep of a process take
//! turns on it. Promises the same answers as the other stores: what the rules say decides, inside the
//! transaction. Knows nothing of other nodes, for there are none: a second process is refused.
//! On failure a transaction is rolled back, and a connection that cannot be trusted is replaced.

mod commit;
mod connect;
mod effects;
mod error;
mod execute;
mod load;
mod place;
#[cfg(test)]
mod plans;
mod quarantine;
mod reader;
mod rows;
mod schema;
mod session;
mod statements;
mod upkeep;
mod waiting;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;
use tidegate_actors::ports::{Claimed, Clock, FetchClaim, Pulse, Session, Store, StoreError, Upkeep, Waits};
use tidegate_actors::rules::event::{EventId, Incarnation};
use tidegate_actors::rules::key::ResourceHash;
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

use self::error::Fault;
use self::place::{FileIdentity, Lock};
use self::session::SqliteSession;
use self::statements::Statements;
use super::{OpenError, Opened, StoreSettings};
use crate::effect::Effects;

pub use self::reader::SqliteReader;

/// Tables in the ring of keys.
const KEY_SLOTS: usize = 3;

/// Opens the database that `settings.url` names, making it where it is missing.
pub async fn open(settings: &StoreSettings) -> Result<Opened, OpenError> {
    let store = SqliteStore::open(settings).await?;
    let path = store.shared.path.clone();
    let describe = format!("SQLite at {}", path.display());
    let reader = SqliteReader::over(path);
    Ok(Opened { store: Arc::new(store), reader: Arc::new(reader), warnings: Vec::new(), describe })
}

/// Opens the database only to read it, beside a process that serves.
pub async fn open_reader(settings: &StoreSettings) -> Result<SqliteReader, OpenError> {
    let path = place::path_of(&settings.url).map_err(OpenError::Url)?;
    SqliteReader::open(path).await
}

/// Asks the database whether it can run the effects, beside a process that serves.
pub async fn check_effects(settings: &StoreSettings) -> Result<(), OpenError> {
    let path = place::path_of(&settings.url).map_err(OpenError::Url)?;
    let mut connection = connect::scratch(&path).await?;
    let made = effects::set_up(&mut connection, &settings.effects).await;
    let checked = match made {
        Ok(()) => effects::prepare(&mut connection, &settings.effects).await,
        Err(faults) => Err(faults),
    };
    connect::close(connection).await;
    checked.map_err(OpenError::Effects)
}

/// One database file, open for writing.
pub struct SqliteStore {
    shared: Arc<Shared>,
    /// In place of the clock that SQLite reads.
    clock: Option<Arc<dyn Clock>>,
    keys_window: Duration,
    events_retention: Duration,
}

/// What sessions, reads and upkeep of one database share.
struct Shared {
    path: PathBuf,
    statements: Statements,
    effects: Arc<Effects>,
    reads: SqliteReader,
    lock: Lock,
    identity: FileIdentity,
    writer: Mutex<Writer>,
}

/// The place of the writer connection. Whoever uses it takes it out, so that one dropped in the middle of a
/// transaction closes, which rolls back, and the next one opens its own.
#[derive(Default)]
struct Writer {
    connection: Option<SqliteConnection>,
    /// A disk failure was seen, and the log was not copied back since.
    disk_failed: bool,
}

impl SqliteStore {
    /// Opens the database, alone: migrated, checked and locked.
    pub async fn open(settings: &StoreSettings) -> Result<Self, OpenError> {
        let path = place::path_of(&settings.url).map_err(OpenError::Url)?;
        place::prepare_folder(&path).map_err(OpenError::Unavailable)?;
        let lock = Lock::take(&path).map_err(OpenError::Unavailable)?;
        place::prepare_file(&path).map_err(OpenError::Unavailable)?;

        let mut connection = connect::writer(&path).await?;
        schema::migrate(&mut connection).await?;
        schema::enter(&mut connection, &lock).await?;
        effects::set_up(&mut connection, &settings.effects).await.map_err(OpenError::Effects)?;
        effects::prepare(&mut connection, &settings.effects).await.map_err(OpenError::Effects)?;
        let identity = FileIdentity::of(&path)
            .map_err(|error| OpenError::Unavailable(format!("cannot find {} again: {error}", path.display())))?;
        let shared = Shared {
            statements: Statements::new(),
            effects: Arc::clone(&settings.effects),
            reads: SqliteReader::over(path.clone()),
            lock,
            identity,
            writer: Mutex::new(Writer { connection: Some(connection), disk_failed: false }),
            path,
        };
        Ok(Self::over(Arc::new(shared), None, settings))
    }

    /// The same, with another clock for pulse, holds, fetches and upkeep: for simulated time.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The same open database once more, which remembers as long as these settings say.
    #[must_use]
    pub fn beside(&self, settings: &StoreSettings) -> Self {
        Self::over(Arc::clone(&self.shared), self.clock.clone(), settings)
    }

    fn over(shared: Arc<Shared>, clock: Option<Arc<dyn Clock>>, settings: &StoreSettings) -> Self {
        Self { shared, clock, keys_window: settings.keys_window, events_retention: settings.events_retention }
    }

    /// One round of upkeep at a time of the caller's choosing.
    pub async fn upkeep_at(&self, now_ms: i64) -> Result<Upkeep, StoreError> {
        upkeep::round(self, now_ms).await
    }
}

#[async_trait(?Send)]
impl Store for SqliteStore {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        // opens the connection where the last one was lost, so that trouble shows here
        let mut turn = Turn::wait(&self.shared).await;
        let connection = turn.take().await?;
        turn.put(connection);
        Ok(Box::new(SqliteSession::new(Arc::clone(&self.shared), self.clock.clone())))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.shared.same_file()?;
        let sql = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER), incarnation FROM meta";
        let row = self.shared.reads.one(sql).await?;
        let broken = |error| error::unavailable("read the meta row", &error);
        let incarnation = Incarnation(row.try_get::<Uuid, _>(1).map_err(broken)?);
        let now_ms = match &self.clock {
            Some(clock) => clock.now_ms(),
            None => row.try_get(0).map_err(broken)?,
        };
        Ok(Pulse { now_ms, incarnation })
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        waiting::settle_due(self, limit).await
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        waiting::release(self, resource).await
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        quarantine::discharge(self, quarantined).await
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        waiting::claim_fetches(self, limit, lease_ms).await
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        waiting::fetch_failed(self, claim, why, retry_in_ms).await
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        let now_ms = self.pulse().await?.now_ms;
        self.upkeep_at(now_ms).await
    }
}

impl Shared {
    /// A file that was moved or replaced would take commits with it that nobody can read again.
    fn same_file(&self) -> Result<(), StoreError> {
        let path = self.path.display();
        match FileIdentity::of(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Ok(_) => Err(StoreError::Unavailable(format!("another file took the place of {path}: restart to use it"))),
            Err(error) => Err(StoreError::Unavailable(format!(
                "the database {path} is gone: {error}; put it back, or restart to begin a new one"
            ))),
        }
    }
}

/// One user's turn on the writer connection. Turns are taken in the order they were asked for.
struct Turn<'a> {
    shared: &'a Shared,
    writer: MutexGuard<'a, Writer>,
}

impl<'a> Turn<'a> {
    async fn wait(shared: &'a Shared) -> Self {
        Self { shared, writer: shared.writer.lock().await }
    }

    /// The connection, opened anew where the last one was lost.
    async fn take(&mut self) -> Result<SqliteConnection, StoreError> {
        self.shared.same_file()?;
        if let Some(connection) = self.writer.connection.take() {
            return Ok(connection);
        }
        let mut connection = connect::writer(&self.shared.path).await?;
        if self.writer.disk_failed {
            connect::copy_back(&mut connection).await?;
            self.writer.disk_failed = false;
        }
        Ok(connection)
    }

    fn put(&mut self, connection: SqliteConnection) {
        self.writer.connection = Some(connection);
    }

    /// Gives the connection back as the outcome allows.
    async fn settle<T>(&mut self, connection: SqliteConnection, result: Result<T, Fault>) -> Result<T, StoreError> {
        match result {
            Ok(done) => {
                self.put(connection);
                Ok(done)
            }
            Err(fault) => {
                self.writer.disk_failed |= fault.disk;
                if fault.dead {
                    connect::close(connection).await;
                } else {
                    self.put(connection);
                }
                Err(fault.error)
            }
        }
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(text)
            | StoreError::Unknown(text)
            | StoreError::Refused(text)
            | StoreError::Full(text) => Self::Unavailable(text),
        }
    }
}
