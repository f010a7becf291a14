//! Looking after the tables: the key ring turns, days are made ahead and dropped.
//!
//! Safe on many nodes at once: who does not get the lock leaves it to the other. Locks that writers would queue behind
//! are waited for shortly; what was not done is done by the next round.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tidegate_actors::ports::{StoreError, Upkeep};
use uuid::Uuid;

use super::errors::{describe, unavailable};
use super::migrate::exists;

/// Taken by whoever looks after the tables: "tideward" as a number.
const LOCK: i64 = 0x7469_6465_7761_7264;
const DAY_MS: i64 = 86_400_000;
/// Days for which partitions are made ahead of time.
const DAYS_AHEAD: i64 = 3;
/// Rows that one round deletes from a table that has no partitions.
const ROWS_MAX: i64 = 10_000;

/// One round.
pub(crate) async fn run(
    connection: &mut PgConnection,
    keys_window: Duration,
    events_retention: Duration,
) -> Result<Upkeep, StoreError> {
    // Each is tried whatever became of the others: a lock that was not to be had today must not stop the days.
    let made = partitions(connection).await;
    let rotated = rotate(connection, millis(keys_window)).await;
    let dropped = drop_expired(connection, millis(events_retention)).await;
    summarize(connection).await;
    made?;
    let keys_rotated = rotated.map_err(|error| unavailable(&error))?;
    let dropped = dropped.map_err(|error| unavailable(&error))?;
    Ok(Upkeep { keys_rotated, dropped })
}

/// Lets the index by resource know the rows that came since. Without it such rows are read whole, which is only slow.
async fn summarize(connection: &mut PgConnection) {
    let sql = "SELECT coalesce(sum(brin_summarize_new_values(i.indexrelid::regclass)), 0)::bigint
               FROM pg_inherits p JOIN pg_index i ON i.indrelid = p.inhrelid
               JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
               WHERE p.inhparent = 'tidegate.events'::regclass AND a.amname = 'brin'";
    let done = sqlx::query_scalar::<_, i64>(sql).fetch_one(connection).await;
    if let Err(error) = done {
        tracing::debug!(error = describe(&error), "the index of events by resource waits for the next round");
    }
}

/// The server's clock.
pub(crate) async fn now_ms(connection: &mut PgConnection) -> Result<i64, StoreError> {
    clock(connection).await.map_err(|error| unavailable(&error))
}

async fn clock(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT tidegate.now_ms()").fetch_one(connection).await
}

/// Turns the key ring once the current slot has taken claims for half the window. A key stays claimed for its own
/// slot's turn and the next one's, so for at least the window.
async fn rotate(connection: &mut PgConnection, window_ms: i64) -> Result<bool, sqlx::Error> {
    let now_ms = clock(connection).await?;
    let due = |since_ms: i64| now_ms.saturating_sub(since_ms) >= window_ms / 2;

    // First the oldest slot is emptied, alone: nobody holds two of the ring's locks, so no writer can deadlock.
    let mut transaction = connection.begin().await?;
    if !try_lock(&mut transaction).await? {
        transaction.rollback().await?;
        return Ok(false);
    }
    let (slot, since_ms) = ring(&mut transaction).await?;
    if !due(since_ms) {
        transaction.rollback().await?;
        return Ok(false);
    }
    let next = (slot + 1) % 3;
    transaction.execute(AssertSqlSafe(format!("TRUNCATE tidegate.keys_{next}"))).await?;
    transaction.commit().await?;

    let mut transaction = connection.begin().await?;
    if !try_lock(&mut transaction).await? || ring(&mut transaction).await? != (slot, since_ms) {
        transaction.rollback().await?;
        return Ok(false);
    }
    // Waits for running writers and holds back new ones. A writer takes its table locks before its snapshot, so those
    // held back see the new slot, claim nothing and come again: no key is ever claimed in two slots.
    transaction.execute(AssertSqlSafe(format!("LOCK TABLE tidegate.keys_{slot} IN EXCLUSIVE MODE"))).await?;
    sqlx::query("UPDATE tidegate.meta SET key_slot = $1, key_slot_since_ms = $2 WHERE one")
        .bind(next)
        .bind(now_ms)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(true)
}

async fn ring(connection: &mut PgConnection) -> Result<(i16, i64), sqlx::Error> {
    sqlx::query_as("SELECT key_slot, key_slot_since_ms FROM tidegate.meta WHERE one").fetch_one(connection).await
}

async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(LOCK).fetch_one(connection).await
}

/// Makes the partitions of today and the next days.
pub(crate) async fn partitions(connection: &mut PgConnection) -> Result<(), StoreError> {
    let now_ms = now_ms(connection).await?;
    for ahead in 0..=DAYS_AHEAD {
        let day_ms = now_ms - now_ms.rem_euclid(DAY_MS) + ahead * DAY_MS;
        make_day(connection, day_ms).await.map_err(|error| unavailable(&error))?;
    }
    Ok(())
}

async fn make_day(connection: &mut PgConnection, day_ms: i64) -> Result<(), sqlx::Error> {
    let Some(name) = name_of_day(day_ms) else { return Ok(()) };
    if exists(connection, &name).await? {
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    if !try_lock(&mut transaction).await? || exists(&mut transaction, &name).await? {
        return transaction.rollback().await;
    }
    // Made apart and attached: that holds no writer back, except for a look at the stragglers' partition. What already
    // lies there for this day moves over.
    let (from, to) = (first_id(day_ms), first_id(day_ms + DAY_MS));
    let sql = format!(
        "CREATE TABLE tidegate.{name} (LIKE tidegate.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
         LOCK TABLE tidegate.events_other IN ACCESS EXCLUSIVE MODE;
         WITH moved AS (DELETE FROM tidegate.events_other WHERE id >= '{from}' AND id < '{to}' RETURNING *)
         INSERT INTO tidegate.{name} SELECT * FROM moved;
         ALTER TABLE tidegate.events ATTACH PARTITION tidegate.{name} FOR VALUES FROM ('{from}') TO ('{to}');"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Drops days that ended before the retention, and such rows of the tables without days.
async fn drop_expired(connection: &mut PgConnection, retention_ms: i64) -> Result<u64, sqlx::Error> {
    let cutoff_ms = clock(connection).await?.saturating_sub(retention_ms);
    let mut dropped = 0;
    for name in days(connection).await? {
        let over = day_of_name(&name).is_some_and(|day_ms| day_ms + DAY_MS <= cutoff_ms);
        if over && drop_day(connection, &name).await? {
            dropped += 1;
        }
    }
    let cutoff = first_id(cutoff_ms);
    for (table, column) in [
        ("events_other", "id"),
        ("conflicts", "event_id"),
        ("settled", "event_id"),
        ("failures", "event_id"),
        ("quarantine", "id"),
    ] {
        // What still waits is to be applied some day, with its bytes.
        let held = format!("EXISTS (SELECT FROM tidegate.holds h WHERE h.event_id = t.{column})");
        let old = format!("SELECT ctid FROM tidegate.{table} t WHERE {column} < $1 AND NOT {held} LIMIT $2");
        let sql = format!("DELETE FROM tidegate.{table} WHERE ctid = ANY (ARRAY({old}))");
        let done = sqlx::query(AssertSqlSafe(sql)).bind(cutoff).bind(ROWS_MAX).execute(&mut *connection).await?;
        dropped += done.rows_affected();
    }
    Ok(dropped)
}

async fn drop_day(connection: &mut PgConnection, name: &str) -> Result<bool, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    if !try_lock(&mut transaction).await? || !exists(&mut transaction, name).await? {
        transaction.rollback().await?;
        return Ok(false);
    }
    // What still waits moves to the stragglers.
    let sql = format!(
        "ALTER TABLE tidegate.events DETACH PARTITION tidegate.{name};
         INSERT INTO tidegate.events SELECT e.* FROM tidegate.{name} e JOIN tidegate.holds h ON h.event_id = e.id;
         DROP TABLE tidegate.{name};"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn days(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'tidegate.events'::regclass AND c.relname ~ '^events_[0-9]{8}$' ORDER BY 1",
    )
    .fetch_all(connection)
    .await
}

fn name_of_day(day_ms: i64) -> Option<String> {
    let date = Timestamp::from_millisecond(day_ms).ok()?.to_zoned_datetime(TimeZone::UTC).date();
    Some(format!("events_{:04}{:02}{:02}", date.year(), date.month(), date.day()))
}

fn day_of_name(name: &str) -> Option<i64> {
    let digits = name.strip_prefix("events_").filter(|digits| digits.len() == 8)?;
    let part = |range: std::ops::Range<usize>| digits.get(range);
    let date = Date::new(part(0..4)?.parse().ok()?, part(4..6)?.parse().ok()?, part(6..8)?.parse().ok()?).ok()?;
    Some(TimeZone::UTC.to_timestamp(date.to_datetime(Time::midnight())).ok()?.as_millisecond())
}

/// The least id that an event received at `at_ms` can have: UUIDv7 begins with the milliseconds.
fn first_id(at_ms: i64) -> Uuid {
    let at_ms = u128::from(at_ms.max(0).unsigned_abs());
    Uuid::from_u128((at_ms & 0xffff_ffff_ffff) << 80)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_its_partition_name_each_other() {
        let day_ms = 1_796_083_200_000;
        let name = name_of_day(day_ms).expect("a name");
        assert_eq!(name, "events_20261201");
        assert_eq!(day_of_name(&name), Some(day_ms));
        assert_eq!(day_of_name("events_other"), None);
        assert_eq!(day_of_name("events_20261301"), None);
    }

    #[test]
    fn ids_order_like_the_times_they_begin_with() {
        assert!(first_id(0) < first_id(1));
        assert!(first_id(DAY_MS * 20_000) < first_id(DAY_MS * 20_000 + 1));
        assert_eq!(first_id(-5), first_id(0));
    }
}
