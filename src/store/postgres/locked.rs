//! The locked way, for batches that rivals keep overtaking: claim, lock, load, let the rules decide, write, COMMIT.
//!
//! Locks are taken in the order of the other ways: keys, then resources, each sorted by hash.

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{AssertSqlSafe, Connection as _, Transaction};
use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::Event;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::rows::text;
use super::statements::Statements;
use super::write::{StateRow, States, decide_and_write, states};
use crate::store::sql::decide::resources;

/// Commits the events at `indexes` (sorted by key); returns the outcomes of those whose key was free.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let mut transaction = connection.begin().await.map_err(open)?;
    let claimed = claim(&mut transaction, statements, batch, indexes).await.map_err(open)?;
    if claimed.is_empty() {
        transaction.rollback().await.map_err(open)?;
        return Ok(Vec::new());
    }
    let events: Vec<&Event> = claimed.iter().map(|&index| &batch[index]).collect();
    let states = lock(&mut transaction, &events).await.map_err(open)?;
    let write = (&statements.write_claimed, Phase::Open);
    let done = decide_and_write(&mut transaction, write, &statements.types, (batch, &claimed), &states).await?;
    transaction.commit().await.map_err(|error| classify(&error, Phase::Committing))?;
    Ok(done)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn open(error: sqlx::Error) -> Fault {
    classify(&error, Phase::Open)
}

async fn claim(
    transaction: &mut Transaction<'_, Postgres>,
    statements: &Statements,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<usize>, sqlx::Error> {
    let events = || indexes.iter().map(|&index| &batch[index]);
    let claimed: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(statements.claim.clone()))
        .bind(events().map(|event| Uuid::from_bytes(event.key.hash.0)).collect::<Vec<_>>())
        .bind(events().map(|event| event.id.0).collect::<Vec<_>>())
        .bind(events().map(|event| Uuid::from_bytes(event.digest.0)).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    let claimed: HashSet<Uuid> = claimed.into_iter().collect();
    Ok(indexes.iter().copied().filter(|&index| claimed.contains(&batch[index].id.0)).collect())
}

async fn lock(transaction: &mut Transaction<'_, Postgres>, events: &[&Event]) -> Result<States, sqlx::Error> {
    let resources = resources(events);
    if resources.is_empty() {
        return Ok(States::new());
    }
    let each = || resources.values();
    let rows: Vec<StateRow> = sqlx::query_as(include_str!("statements/lock_states.sql"))
        .bind(each().map(|(_, guard)| Uuid::from_bytes(guard.resource.hash.0)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| text(&event.source)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| text(&event.tenant)).collect::<Vec<_>>())
        .bind(each().map(|(_, guard)| text(&guard.resource.kind)).collect::<Vec<_>>())
        .bind(each().map(|(_, guard)| text(&guard.resource.id)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| event.id.0).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    Ok(states(rows))
}
