//! Opens connections, with every setting that durability and speed rest on, and checks that they took.
//!
//! | setting | why |
//! | --- | --- |
//! | `journal_mode = WAL` | one sync a commit, and readers never wait for the writer |
//! | `synchronous = FULL` | in WAL mode anything less may lose commits at a power cut (I1) |
//! | `fullfsync`, `checkpoint_fullfsync` | on macOS a plain fsync stops at the drive's cache; no effect elsewhere |
//! | `page_size = 4096` | a random key dirties one page; larger ones write more a claim, smaller ones hold fewer bodies |
//! | `wal_autocheckpoint` | the commit that crosses it copies the log back, so the log stays bounded however busy the writer is |
//! | `journal_size_limit` | a log that a long read made large shrinks again |
//! | `cache_size` | the upper levels of the key trees, and all of them while they are young |
//! | `mmap_size = 0` | a failing disk answers with an error, not with a signal that ends the process |
//! | `temp_store = MEMORY` | a statement's undo pages never go to a file |
//! | `foreign_keys = OFF` | there are none |
//! | `trusted_schema = OFF` | a planted view or trigger cannot call functions |
//! | `busy_timeout` | a shell or a backup that holds the lock for a moment is waited for |

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tidegate_actors::ports::StoreError;

use super::error::unavailable;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages in the log at which a commit copies it back: 16 MB.
const WAL_PAGES: u32 = 4_000;
/// The log is cut to this once all of it was copied back.
const WAL_BYTES_KEPT: u32 = 64 << 20;
/// Negative: KiB.
const CACHE_KIB_WRITER: &str = "-65536";
const CACHE_KIB_READER: &str = "-8192";

/// The one connection that writes.
pub(super) async fn writer(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = common(path)
        .page_size(4096)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("fullfsync", "ON")
        .pragma("checkpoint_fullfsync", "ON")
        .pragma("wal_autocheckpoint", WAL_PAGES.to_string())
        .pragma("journal_size_limit", WAL_BYTES_KEPT.to_string())
        .pragma("cache_size", CACHE_KIB_WRITER)
        .pragma("temp_store", "MEMORY");
    let mut connection = options.connect().await.map_err(|error| unopened(path, "", &error))?;
    check(&mut connection).await?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) async fn reader(path: &Path) -> Result<SqliteConnection, StoreError> {
    let options = common(path).read_only(true).pragma("cache_size", CACHE_KIB_READER).pragma("query_only", "ON");
    options.connect().await.map_err(|error| unopened(path, " for reading", &error))
}

/// A database in memory with the tables of this one and nothing in them: to try statements on.
pub(super) async fn scratch(path: &Path) -> Result<SqliteConnection, StoreError> {
    let broken = |error| unavailable("copy the tables to try effects on", &error);
    let mut real = reader(path).await?;
    let made = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' \
                ORDER BY type = 'table' DESC, type = 'index' DESC, rowid";
    let made: Vec<String> = sqlx::query_scalar(made).fetch_all(&mut real).await.map_err(broken)?;
    close(real).await;
    let options = SqliteConnectOptions::new().in_memory(true).pragma("trusted_schema", "OFF");
    let mut scratch = options.connect().await.map_err(broken)?;
    for sql in made {
        scratch.execute(AssertSqlSafe(sql)).await.map_err(broken)?;
    }
    Ok(scratch)
}

fn unopened(path: &Path, why: &str, error: &sqlx::Error) -> StoreError {
    unavailable(&format!("open the database {}{why}", path.display()), error)
}

fn common(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(false)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("mmap_size", "0")
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging()
        .thread_name(|id| format!("sqlite-{id}"))
}

/// A file system without shared memory silently keeps another journal mode, and then "durable" means less.
async fn check(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let broken = |error| unavailable("read the database's settings", &error);
    let row = sqlx::query("SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous")
        .fetch_one(&mut *connection)
        .await
        .map_err(broken)?;
    let mode: String = row.try_get(0).map_err(broken)?;
    let synchronous: i64 = row.try_get(1).map_err(broken)?;
    if mode.eq_ignore_ascii_case("wal") && synchronous == 2 {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!(
        "the database runs with journal_mode {mode} and synchronous {synchronous} where wal and 2 are needed: put it on a local disk"
    )))
}

/// Copies all of the log into the database and syncs it. After the disk failed, this is what makes true again
/// that everything readable is also durable: a sync that failed once may claim success the next time.
pub(super) async fn copy_back(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let broken = |error| unavailable("copy the write-ahead log back", &error);
    let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(connection).await.map_err(broken)?;
    let busy: i64 = row.try_get(0).map_err(broken)?;
    if busy == 0 {
        return Ok(());
    }
    Err(StoreError::Unavailable(
        "after a disk failure the write-ahead log must be copied back, and a long read holds it: end that read".into(),
    ))
}

/// Closes a connection behind everything it was told before; what was left open is rolled back.
pub(super) async fn close(connection: SqliteConnection) {
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "closing a broken database connection");
    }
}
