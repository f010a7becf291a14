//! Keeps unusable requests: the same bytes of a sender are one row, and counted.

use sqlx::sqlite::SqliteConnection;
use sqlx::{Executor as _, Row as _};
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::{EventId, Unusable};
use uuid::Uuid;

use super::commit::{abandon, finish};
use super::error::Fault;
use super::{SqliteStore, waiting};

const KEEP: &str = "\
    INSERT INTO quarantine (id, received_at_ms, last_at_ms, source, tenant, code, reason, digest, times, headers, body) \
    VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9) \
    ON CONFLICT (source, tenant, digest) DO UPDATE SET \
        times = times + 1, last_at_ms = max(last_at_ms, excluded.last_at_ms) \
    RETURNING id";

/// Keeps the items in one transaction and answers under which names.
pub(super) async fn keep(connection: &mut SqliteConnection, items: &[Unusable]) -> Result<Vec<EventId>, Fault> {
    match write(connection, items).await {
        Ok(ids) => {
            finish(connection).await?;
            Ok(ids)
        }
        Err(error) => Err(abandon(connection, Fault::before_commit("write to quarantine", &error)).await),
    }
}

async fn write(connection: &mut SqliteConnection, items: &[Unusable]) -> Result<Vec<EventId>, sqlx::Error> {
    connection.execute("BEGIN IMMEDIATE").await?;
    let mut ids = Vec::with_capacity(items.len());
    for item in items {
        let row = sqlx::query(KEEP)
            .bind(item.id.0)
            .bind(item.received_at_ms)
            .bind(item.source.as_ref())
            .bind(item.tenant.as_ref())
            .bind(item.code)
            .bind(item.reason.as_str())
            .bind(item.digest.0.as_slice())
            .bind(item.headers.as_ref())
            .bind(item.body.as_ref())
            .fetch_one(&mut *connection)
            .await?;
        ids.push(EventId(row.try_get::<Uuid, _>(0)?));
    }
    Ok(ids)
}

/// Takes one out.
pub(super) async fn discharge(store: &SqliteStore, id: EventId) -> Result<bool, StoreError> {
    waiting::transaction(store, async |connection, _| {
        let done = sqlx::query("DELETE FROM quarantine WHERE id = ?1").bind(id.0).execute(&mut *connection).await;
        let done = done.map_err(|error| Fault::before_commit("take out of quarantine", &error))?;
        Ok(done.rows_affected() > 0)
    })
    .await
}
