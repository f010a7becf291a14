//! Connections: from the URL, within a deadline, with the settings that the statements rely on.

use std::str::FromStr as _;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::Incarnation;
use uuid::Uuid;

use super::errors::{describe, unavailable};
use crate::store::{OpenError, StoreSettings};

/// What every writer's connection is set to.
///
/// Plans are made once, on tables of any size: reading a table whole or looping over rows is priced out, joins are by
/// hash (a batch's own rows only). Such prices would switch the JIT compiler on. Locks end before a sender gives up.
/// A statement's time does not count its commit, which is therefore never cancelled.
const WRITER_SETTINGS: &str = "
    SET application_name = 'tidegate writer';
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_nestloop = off;
    SET enable_mergejoin = off;
    SET enable_hashjoin = on;
    SET jit = off;
    SET work_mem = '32MB';
    SET lock_timeout = '1500ms';
    SET idle_in_transaction_session_timeout = '5s';
    SET client_min_messages = warning;
";

/// What connections for reading are set to. They are rolled back after each use, and told each time that there was
/// nothing to roll back: only errors are worth a word.
const READER_SETTINGS: &str = "
    SET application_name = 'tidegate reader';
    SET jit = off;
    SET statement_timeout = '2s';
    SET lock_timeout = '1s';
    SET idle_in_transaction_session_timeout = '5s';
    SET client_min_messages = error;
";

/// What connections for upkeep are set to: they wait for locks shortly, since writers queue behind them.
const UPKEEP_SETTINGS: &str = "
    SET application_name = 'tidegate upkeep';
    SET jit = off;
    SET statement_timeout = '30s';
    SET lock_timeout = '500ms';
    SET idle_in_transaction_session_timeout = '10s';
    SET client_min_messages = warning;
";

/// Knows where the database is and how long to wait for it.
#[derive(Clone)]
pub(crate) struct Connector {
    options: PgConnectOptions,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

impl Connector {
    /// Reads the URL; opens nothing yet.
    pub(crate) fn new(settings: &StoreSettings) -> Result<Self, OpenError> {
        // sqlx quotes parts of the URL in some errors, so its text is not passed on.
        let options = PgConnectOptions::from_str(&settings.url).map_err(|_| {
            OpenError::Url(
                "it is no Postgres URL; write `postgres://user:password@host:port/database`, special characters as %xx"
                    .to_owned(),
            )
        })?;
        let options = match &settings.password {
            Some(password) => options.password(password.expose_secret()),
            None => options,
        };
        let StoreSettings { connect_timeout, statement_timeout, .. } = *settings;
        Ok(Self { options: options.disable_statement_logging(), connect_timeout, statement_timeout })
    }

    /// Where the database is, without secrets.
    pub(crate) fn place(&self) -> String {
        let options = &self.options;
        let database = options.get_database().unwrap_or(options.get_username());
        format!("{}:{}/{database}", options.get_host(), options.get_port())
    }

    /// Why the database cannot be opened, for whoever starts the program.
    pub(crate) fn closed(&self, error: StoreError) -> OpenError {
        let why = match error {
            StoreError::Unavailable(why) => why,
            other => other.to_string(),
        };
        OpenError::Unavailable(format!(
            "Postgres at {} does not let us in: {why}; see that it runs, and that `store.url` and the password are right",
            self.place()
        ))
    }

    /// Opens a writer's connection on the calling thread's runtime.
    pub(crate) async fn writer(&self) -> Result<PgConnection, StoreError> {
        let limit = format!("SET statement_timeout = {}", self.statement_timeout.as_millis());
        let mut connection = self.open(WRITER_SETTINGS).await?;
        connection.execute(AssertSqlSafe(limit)).await.map_err(|error| unavailable(&error))?;
        Ok(connection)
    }

    /// Opens a connection for upkeep, migrations and checks.
    pub(crate) async fn upkeep(&self) -> Result<PgConnection, StoreError> {
        self.open(UPKEEP_SETTINGS).await
    }

    /// How long a writer waits for the answer about a batch: twice what the server gives one statement.
    pub(crate) fn answer_within(&self) -> Duration {
        self.statement_timeout * 2
    }

    /// A pool for what waits: one connection, set to what the writers' statements rely on.
    pub(crate) fn waits(&self) -> PgPool {
        let limit = format!("SET statement_timeout = {}", self.statement_timeout.as_millis());
        PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.connect_timeout)
            .max_lifetime(Duration::from_secs(300))
            .after_connect(move |connection, _| {
                let limit = limit.clone();
                Box::pin(async move {
                    connection.execute(WRITER_SETTINGS).await?;
                    connection
                        .execute("SET application_name = 'tidegate waits'; SET client_min_messages = error")
                        .await?;
                    connection.execute(AssertSqlSafe(limit)).await.map(|_| ())
                })
            })
            .after_release(|connection, _| Box::pin(async move { Ok(connection.execute("ROLLBACK").await.is_ok()) }))
            .connect_lazy_with(self.options.clone())
    }

    /// A small pool for reading.
    pub(crate) fn pool(&self, connections: u32) -> PgPool {
        small_pool(self.options.clone(), connections, self.connect_timeout)
    }

    async fn open(&self, settings: &'static str) -> Result<PgConnection, StoreError> {
        let open = async {
            let mut connection = PgConnection::connect_with(&self.options).await?;
            connection.execute(settings).await?;
            Ok::<_, sqlx::Error>(connection)
        };
        match tokio::time::timeout(self.connect_timeout, open).await {
            Ok(opened) => opened.map_err(|error| unavailable(&error)),
            Err(_) => Err(StoreError::Unavailable(format!("no connection within {:?}", self.connect_timeout))),
        }
    }
}

/// A small pool for reading. A reader may be dropped at any await, so what comes back is rolled back first: sqlx
/// leaves a session inside a transaction when its `begin` is dropped, and later statements on it vanish.
#[must_use]
pub fn small_pool(options: PgConnectOptions, connections: u32, acquire_timeout: Duration) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(acquire_timeout)
        .max_lifetime(Duration::from_secs(300))
        .idle_timeout(Duration::from_secs(60))
        .after_connect(|connection, _| Box::pin(async move { connection.execute(READER_SETTINGS).await.map(|_| ()) }))
        .after_release(|connection, _| Box::pin(async move { Ok(connection.execute("ROLLBACK").await.is_ok()) }))
        .connect_lazy_with(options)
}

/// The identity of the database history behind a connection: the row made by the first migration, mixed with what
/// changes when a copy is restored, a standby promoted or another server answers.
pub(crate) async fn incarnation(connection: &mut PgConnection) -> Result<Incarnation, StoreError> {
    let base: (Uuid, i64) = sqlx::query_as(
        "SELECT m.incarnation, d.oid::bigint FROM tidegate.meta m, pg_database d WHERE m.one AND d.datname = current_database()",
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| unavailable(&error))?;
    let system = optional(connection, "SELECT system_identifier::text FROM pg_control_system()").await;
    // The first eight digits of a WAL file's name are the timeline that is written now.
    let timeline = optional(connection, "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)").await;
    Ok(mixed(base.0, base.1, system.as_deref(), timeline.as_deref()))
}

/// Some servers allow these functions to their administrators only; then the history is told less finely.
async fn optional(connection: &mut PgConnection, sql: &'static str) -> Option<String> {
    let read = sqlx::query_scalar::<_, String>(sql).fetch_one(connection).await;
    read.inspect_err(|error| tracing::debug!(error = describe(error), "part of the incarnation is not readable")).ok()
}

fn mixed(base: Uuid, database: i64, system: Option<&str>, timeline: Option<&str>) -> Incarnation {
    let hash = Sha256::new()
        .chain_update(base.as_bytes())
        .chain_update(database.to_be_bytes())
        .chain_update(system.unwrap_or("-"))
        .chain_update("/")
        .chain_update(timeline.unwrap_or("-"))
        .finalize();
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    Incarnation(Uuid::from_bytes(half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promoted_restored_or_copied_database_has_another_incarnation() {
        let base = Uuid::from_u128(7);
        let now = mixed(base, 5, Some("1"), Some("00000001"));
        assert_eq!(now, mixed(base, 5, Some("1"), Some("00000001")));
        assert_ne!(now, mixed(base, 5, Some("1"), Some("00000002")));
        assert_ne!(now, mixed(base, 5, Some("2"), Some("00000001")));
        assert_ne!(now, mixed(base, 6, Some("1"), Some("00000001")));
        assert_ne!(now, mixed(Uuid::from_u128(8), 5, Some("1"), Some("00000001")));
    }
}
