//! Looks after the tables: moves the ring of key tables on, and prunes what outlived its retention.
//!
//! Owns no state; where the ring stands is in the database. Promises short turns: a chunk a transaction, so
//! that commits go in between, and an end to a round however much is left for the next one. A round that
//! breaks off anywhere leaves nothing to repair.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tidegate_actors::ports::{StoreError, Upkeep};
use tokio::time::Instant;

use super::commit::{abandon, finish};
use super::error::Fault;
use super::{KEY_SLOTS, SqliteStore, Turn, schema};

/// One round takes no longer than this, give or take a chunk.
const ROUND: Duration = Duration::from_secs(2);
const KEYS_A_CHUNK: u64 = 5_000;
/// A chunk of events: so many rows, and fewer where bodies are large.
const EVENTS_A_CHUNK: u64 = 500;
const BYTES_A_CHUNK: i64 = 4 << 20;

/// One round.
pub(super) async fn round(store: &SqliteStore, now_ms: i64) -> Result<Upkeep, StoreError> {
    let started = Instant::now();
    let mut done = Upkeep::default();
    for work in [Work::Keys, Work::Events, Work::Quarantine] {
        loop {
            let step = step(store, work, now_ms).await?;
            done.keys_rotated |= step.rotated;
            done.dropped += step.dropped;
            if !step.more || started.elapsed() >= ROUND {
                break;
            }
        }
    }
    Ok(done)
}

#[derive(Clone, Copy)]
enum Work {
    Keys,
    Events,
    Quarantine,
}

#[derive(Default)]
struct Step {
    rotated: bool,
    dropped: u64,
    more: bool,
}

/// One transaction, in a turn of its own.
async fn step(store: &SqliteStore, work: Work, now_ms: i64) -> Result<Step, StoreError> {
    let mut turn = Turn::wait(&store.shared).await;
    let mut connection = turn.take().await?;
    let result = transaction(&mut connection, store, work, now_ms).await;
    if let (Work::Quarantine, Ok(mark)) = (work, schema::read_mark(&mut connection).await) {
        // only makes the next start more careful where it fails
        let _ = store.shared.lock.leave(mark);
    }
    turn.settle(connection, result).await
}

async fn transaction(
    connection: &mut SqliteConnection,
    store: &SqliteStore,
    work: Work,
    now_ms: i64,
) -> Result<Step, Fault> {
    let result = match connection.execute("BEGIN IMMEDIATE").await {
        Err(error) => Err(error),
        Ok(_) => match work {
            Work::Keys => keys(connection, now_ms, span_ms(store.keys_window)).await,
            Work::Events => events(connection, now_ms.saturating_sub(millis(store.events_retention))).await,
            Work::Quarantine => quarantine(connection, now_ms.saturating_sub(millis(store.events_retention))).await,
        },
    };
    match result {
        Ok(step) => {
            finish(connection).await?;
            Ok(step)
        }
        Err(error) => Err(abandon(connection, Fault::before_commit("look after the tables", &error)).await),
    }
}

/// Two of the three key tables together are the window: when the third one's turn comes, its youngest key is
/// at least a window old.
fn span_ms(window: Duration) -> i64 {
    millis(window).saturating_add(1) / 2
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Empties the oldest key table chunk by chunk once its turn has come, and then makes it the current one.
async fn keys(connection: &mut SqliteConnection, now_ms: i64, span_ms: i64) -> Result<Step, sqlx::Error> {
    let meta = sqlx::query("SELECT key_slot, key_slot_since_ms FROM meta").fetch_one(&mut *connection).await?;
    let (slot, since_ms): (i64, i64) = (meta.try_get(0)?, meta.try_get(1)?);
    if since_ms > now_ms {
        // the clock went back: count from now, which keeps keys longer and never shorter
        set_ring(connection, slot, now_ms).await?;
        return Ok(Step::default());
    }
    if now_ms.saturating_sub(since_ms) < span_ms {
        return Ok(Step::default());
    }
    let next = (slot + 1) % KEY_SLOTS as i64;
    let emptied = format!(
        "DELETE FROM keys_{next} WHERE hash IN (SELECT hash FROM keys_{next} ORDER BY hash LIMIT {KEYS_A_CHUNK})"
    );
    let dropped = sqlx::query(AssertSqlSafe(emptied)).execute(&mut *connection).await?.rows_affected();
    if dropped == KEYS_A_CHUNK {
        return Ok(Step { rotated: false, dropped, more: true });
    }
    set_ring(connection, next, now_ms).await?;
    Ok(Step { rotated: true, dropped, more: false })
}

async fn set_ring(connection: &mut SqliteConnection, slot: i64, since_ms: i64) -> Result<(), sqlx::Error> {
    let sql = "UPDATE meta SET key_slot = ?1, key_slot_since_ms = ?2";
    sqlx::query(sql).bind(slot).bind(since_ms).execute(connection).await.map(drop)
}

/// The head of the log, as far as it is old enough: rows came in order of time, so nothing behind it is older.
/// What still waits stays whatever its age, for it is to be applied with its bytes (I15).
async fn events(connection: &mut SqliteConnection, before_ms: i64) -> Result<Step, sqlx::Error> {
    let sql = "DELETE FROM events WHERE seq IN ( \
                   SELECT seq FROM ( \
                       SELECT seq, received_at_ms, sum(length(body)) OVER (ORDER BY seq) - length(body) AS bytes_before \
                       FROM (SELECT seq, received_at_ms, body FROM events WHERE verdict <> 'held' ORDER BY seq LIMIT ?1)) \
                   WHERE received_at_ms < ?2 AND bytes_before < ?3)";
    let rows = i64::try_from(EVENTS_A_CHUNK).unwrap_or(i64::MAX);
    let query = sqlx::query(sql).bind(rows).bind(before_ms).bind(BYTES_A_CHUNK);
    let dropped = query.execute(connection).await?.rows_affected();
    Ok(Step { rotated: false, dropped, more: dropped > 0 })
}

async fn quarantine(connection: &mut SqliteConnection, before_ms: i64) -> Result<Step, sqlx::Error> {
    let sql = "DELETE FROM quarantine WHERE seq IN (SELECT seq FROM quarantine WHERE last_at_ms < ?1 LIMIT 50)";
    let mut dropped = sqlx::query(sql).bind(before_ms).execute(&mut *connection).await?.rows_affected();
    // whose effect failed and who never came again
    let sql = "DELETE FROM failures WHERE name IN (SELECT name FROM failures WHERE last_at_ms < ?1 LIMIT 500)";
    dropped += sqlx::query(sql).bind(before_ms).execute(connection).await?.rows_affected();
    Ok(Step { rotated: false, dropped, more: dropped > 0 })
}
