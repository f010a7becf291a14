//! The loaded way: claim, lock and load, let the rules decide, write, COMMIT.
//!
//! Locks are taken in the order of the plain way: keys, then resources, each sorted by hash.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{AssertSqlSafe, Connection as _, Transaction};
use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::given::{Given, GivenType, text, ties_apply};
use super::session::Statements;
use crate::store::sql::decide::{self, Changed, decide, resources};

type StateRow = (Uuid, Option<Vec<u8>>, Option<String>);

/// Commits the events at `indexes` (sorted by key); returns the outcomes of those whose key was free.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let mut transaction = connection.begin().await.map_err(open)?;
    let mut fresh = claim(&mut transaction, statements, batch, indexes).await.map_err(open)?;
    if fresh.is_empty() {
        transaction.rollback().await.map_err(open)?;
        return Ok(Vec::new());
    }
    fresh.sort_unstable();
    let events: Vec<&Event> = fresh.iter().map(|&index| &batch[index]).collect();
    let stored = load(&mut transaction, &events).await.map_err(open)?;
    let decided = decide(&events, &stored).map_err(|error| Fault::Ends(error.into()))?;
    let expected = decided.changed.len();
    let written = write(&mut transaction, &decided.changed).await.map_err(open)?;
    let recorded = record(&mut transaction, statements.given, batch, &fresh, &decided.outcomes).await.map_err(open)?;
    // A COMMIT after a failed statement answers ROLLBACK and sqlx says Ok, so the writes' own counts are checked.
    if written != expected as u64 || recorded != fresh.len() as u64 {
        let text = format!("{written} of {expected} states and {recorded} of {} events were written", fresh.len());
        transaction.rollback().await.map_err(open)?;
        return Err(Fault::Redo(text));
    }
    transaction.commit().await.map_err(|error| classify(&error, Phase::Committing))?;
    Ok(fresh.into_iter().zip(decided.outcomes).collect())
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

async fn load(
    transaction: &mut Transaction<'_, Postgres>,
    events: &[&Event],
) -> Result<HashMap<ResourceHash, Version>, sqlx::Error> {
    let resources = resources(events);
    if resources.is_empty() {
        return Ok(HashMap::new());
    }
    let each = || resources.values();
    let rows: Vec<StateRow> = sqlx::query_as(include_str!("statements/load_states.sql"))
        .bind(each().map(|(_, guard)| Uuid::from_bytes(guard.resource.hash.0)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| text(&event.source)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| text(&event.tenant)).collect::<Vec<_>>())
        .bind(each().map(|(_, guard)| text(&guard.resource.kind)).collect::<Vec<_>>())
        .bind(each().map(|(_, guard)| text(&guard.resource.id)).collect::<Vec<_>>())
        .bind(each().map(|(event, _)| event.id.0).collect::<Vec<_>>())
        .fetch_all(&mut **transaction)
        .await?;
    let stored = rows.into_iter().filter_map(|(hash, bytes, text)| {
        Some((ResourceHash(hash.into_bytes()), Version::stored(&bytes?, text.unwrap_or_default())))
    });
    Ok(stored.collect())
}

async fn write(transaction: &mut Transaction<'_, Postgres>, changed: &[Changed<'_>]) -> Result<u64, sqlx::Error> {
    if changed.is_empty() {
        return Ok(0);
    }
    let each = || changed.iter();
    let done = sqlx::query(include_str!("statements/write_states.sql"))
        .bind(each().map(|row| Uuid::from_bytes(row.guard.resource.hash.0)).collect::<Vec<_>>())
        .bind(each().map(|row| row.version.as_ref().map(Version::bytes)).collect::<Vec<_>>())
        .bind(each().map(|row| row.version.as_ref().map(Version::text)).collect::<Vec<_>>())
        .bind(each().map(|row| ties_apply(row.event, row.guard)).collect::<Vec<_>>())
        .bind(each().map(|row| row.event.deletes).collect::<Vec<_>>())
        .bind(each().map(|row| row.event.id.0).collect::<Vec<_>>())
        .bind(each().map(|row| row.event.received_at_ms).collect::<Vec<_>>())
        .bind(each().map(|row| row.applied).collect::<Vec<_>>())
        .execute(&mut **transaction)
        .await?;
    Ok(done.rows_affected())
}

async fn record(
    transaction: &mut Transaction<'_, Postgres>,
    given: GivenType,
    batch: &[Event],
    fresh: &[usize],
    outcomes: &[Outcome],
) -> Result<u64, sqlx::Error> {
    let (verdict, tie): (Vec<&str>, Vec<bool>) =
        outcomes.iter().map(|&outcome| decide::record(outcome)).map(|(verdict, tie)| (verdict.word(), tie)).unzip();
    let done = sqlx::query(include_str!("statements/record.sql"))
        .bind(Given { of: given, batch, indexes: fresh })
        .bind(verdict)
        .bind(tie)
        .execute(&mut **transaction)
        .await?;
    Ok(done.rows_affected())
}
