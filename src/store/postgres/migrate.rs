//! Brings the tables to this binary's version: one transaction a step, one node at a time.
//!
//! The lock belongs to the transaction, so it cannot outlive a failed start or leak through a pooler.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::errors::describe;
use crate::store::OpenError;
use crate::store::sql::migration::{Migration, current, pending};

/// Every step, in order.
pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "0001_start", sql: include_str!("migrations/0001_start.sql") }];

/// Taken by whoever migrates: "tidegate" as a number.
const LOCK: i64 = 0x7469_6465_6761_7465;

/// Applies what is missing; another node that does the same is waited for.
pub(crate) async fn migrate(connection: &mut PgConnection) -> Result<(), OpenError> {
    let found = version(connection).await.map_err(|error| failed("reading the version", &error))?;
    // Nothing to do needs no right to create anything.
    for migration in pending(MIGRATIONS, found).map_err(OpenError::Migration)? {
        step(connection, migration).await.map_err(|error| failed(migration.name, &error))?;
    }
    Ok(())
}

/// For whoever only reads: the tables have to be this binary's already.
pub(crate) async fn check(connection: &mut PgConnection, place: &str) -> Result<(), OpenError> {
    let found = version(connection).await.map_err(|error| failed("reading the version", &error))?;
    if found == 0 {
        return Err(OpenError::Empty(format!("no table of ours in Postgres at {place}")));
    }
    current(MIGRATIONS, found).map_err(OpenError::Migration)
}

async fn step(connection: &mut PgConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    transaction.execute("SET LOCAL lock_timeout = '10s'").await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await?;
    // Another node may have done it while this one waited.
    if version(&mut transaction).await? >= migration.version {
        return transaction.rollback().await;
    }
    if !schema_exists(&mut transaction).await? {
        transaction.execute("CREATE SCHEMA tidegate").await?;
    }
    sqlx::raw_sql(AssertSqlSafe(migration.sql)).execute(&mut *transaction).await?;
    sqlx::query("UPDATE tidegate.meta SET schema_version = $1 WHERE one")
        .bind(migration.version)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    tracing::info!(migration = migration.name, "the tables were migrated");
    Ok(())
}

/// The version of the tables; 0 where there are none.
async fn version(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    if !exists(connection, "meta").await? {
        return Ok(0);
    }
    sqlx::query_scalar("SELECT schema_version FROM tidegate.meta WHERE one").fetch_one(connection).await
}

/// Whether there is a table of this name. Read from the catalog: `to_regclass` may answer from what the server session
/// remembers, and miss what another node made while this one waited for the lock.
pub(crate) async fn exists(connection: &mut PgConnection, table: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                        WHERE n.nspname = 'tidegate' AND c.relname = $1)",
    )
    .bind(table)
    .fetch_one(connection)
    .await
}

async fn schema_exists(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'tidegate')")
        .fetch_one(connection)
        .await
}

fn failed(what: &str, error: &sqlx::Error) -> OpenError {
    let hint = match error.as_database_error().and_then(|answer| answer.code()).as_deref() {
        Some("42501") => {
            "; the user may not create it: run `tidegate` once as the database's owner, or `CREATE SCHEMA tidegate AUTHORIZATION` that user"
        }
        Some("55P03") => "; another program holds a lock on the tables: end it and start again",
        _ => "",
    };
    OpenError::Migration(format!("{what}: {}{hint}", describe(error)))
}
