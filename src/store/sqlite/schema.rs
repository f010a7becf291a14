//! Brings a database to this binary's tables, and settles which database history it is.
//!
//! Promises: a step is done whole or not at all; tables of a newer binary, and databases of other programs,
//! are refused by name and left alone. A database that is older than what its lock file remembers was
//! restored, and gets a new incarnation, so that cached facts of its lost future are misses (I8).

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tidegate_actors::rules::event::Incarnation;
use uuid::Uuid;

use super::error::unavailable;
use super::place::{Lock, Mark};
use crate::store::OpenError;
use crate::store::sql::migration::{Migration, current, pending};

const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "0001_start", sql: include_str!("migrations/0001_start.sql") }];

/// "Tide": tells our files from those of other programs.
const APPLICATION_ID: i64 = 0x5469_6465;

/// Applies what is missing.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let found = version(connection).await?;
    for migration in pending(MIGRATIONS, found).map_err(OpenError::Migration)? {
        let Migration { version, name, sql } = migration;
        let step = format!(
            "BEGIN IMMEDIATE; {sql}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}; COMMIT"
        );
        if let Err(error) = connection.execute(sqlx::raw_sql(AssertSqlSafe(step))).await {
            let _ = connection.execute("ROLLBACK").await;
            return Err(OpenError::Migration(format!("{name}: {error}")));
        }
        tracing::info!(migration = name, "the tables were migrated");
    }
    Ok(())
}

/// Refuses tables that are not exactly this binary's: for connections that only read.
pub(super) async fn check(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let found = version(connection).await?;
    current(MIGRATIONS, found).map_err(OpenError::Migration)
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, OpenError> {
    let broken = |error: sqlx::Error| OpenError::Unavailable(unavailable("read the database", &error).to_string());
    let row = sqlx::query(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) \
         FROM pragma_application_id, pragma_user_version",
    )
    .fetch_one(connection)
    .await
    .map_err(broken)?;
    let field = |place| row.try_get::<i64, _>(place).map_err(broken);
    let (application, version, tables) = (field(0)?, field(1)?, field(2)?);
    if application == APPLICATION_ID || (application == 0 && version == 0 && tables == 0) {
        return Ok(version);
    }
    Err(OpenError::Migration("the file is a database of another program: set `store.url` to a file of its own".into()))
}

/// Counts this opening, and gives the database a new incarnation where its lock file does not vouch for it.
pub(super) async fn enter(connection: &mut SqliteConnection, lock: &Lock) -> Result<Incarnation, OpenError> {
    let broken = |error: sqlx::Error| OpenError::Unavailable(unavailable("read the database", &error).to_string());
    let now = read_mark(connection).await.map_err(broken)?;
    let same = |left: Mark| left.incarnation == now.incarnation && left.opened == now.opened && left.seq <= now.seq;
    // a fresh database has no past to be mistaken about
    let vouched = now.opened == 0 || lock.left().is_some_and(same);
    let update = if vouched {
        "UPDATE meta SET opened = opened + 1"
    } else {
        "UPDATE meta SET opened = opened + 1, incarnation = randomblob(16)"
    };
    connection.execute(update).await.map_err(broken)?;
    let mark = read_mark(connection).await.map_err(broken)?;
    if !vouched {
        tracing::warn!("the database was copied or restored: it has a new incarnation, and cached facts are not used");
    }
    lock.leave(mark).map_err(|error| OpenError::Unavailable(format!("cannot write the lock file: {error}")))?;
    Ok(Incarnation(mark.incarnation))
}

/// How far the database has come.
pub(super) async fn read_mark(connection: &mut SqliteConnection) -> Result<Mark, sqlx::Error> {
    let row = sqlx::query("SELECT incarnation, opened, (SELECT coalesce(max(seq), 0) FROM events) FROM meta")
        .fetch_one(connection)
        .await?;
    Ok(Mark { incarnation: row.try_get::<Uuid, _>(0)?, opened: row.try_get(1)?, seq: row.try_get(2)? })
}
