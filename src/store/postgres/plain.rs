//! The plain way: where the rule is the version guard, one statement does it all.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError};
use tidegate_actors::rules::event::{Event, Intent};
use tidegate_actors::rules::order::Policy;

use super::columns::Columns;
use super::errors::{Fault, Phase, classify};
use super::session::Statements;

/// Whether the plain statement says of these events what the rules say.
pub(crate) fn allows(batch: &[Event], indexes: &[usize]) -> bool {
    // With and without a version on one resource: what has none goes last, which the statement does not know.
    let mut versioned = HashMap::with_capacity(indexes.len());
    indexes.iter().map(|&index| &batch[index]).filter(|event| event.intent == Intent::Apply).all(|event| {
        let [guard] = event.guards.as_slice() else { return event.guards.is_empty() };
        let is_versioned = guard.version.is_some();
        let by_guard = !is_versioned || matches!(event.policy, Policy::Newest { .. });
        by_guard && *versioned.entry(guard.resource.hash).or_insert(is_versioned) == is_versioned
    })
}

/// Commits the events at `indexes` (sorted by key); returns the outcomes of those whose key was free.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let columns = Columns::of(batch, indexes.iter().copied());
    let rows: Vec<(i64, String, bool)> = sqlx::query_as(AssertSqlSafe(statements.commit_plain.clone()))
        .bind(columns.n)
        .bind(columns.hash)
        .bind(columns.id)
        .bind(columns.digest)
        .bind(columns.received_at_ms)
        .bind(columns.source)
        .bind(columns.tenant)
        .bind(columns.key)
        .bind(columns.kind)
        .bind(columns.resource_hash)
        .bind(columns.resource_kind)
        .bind(columns.resource_id)
        .bind(columns.version)
        .bind(columns.version_text)
        .bind(columns.ties_apply)
        .bind(columns.deletes)
        .bind(columns.ignored)
        .bind(columns.headers)
        .bind(columns.body)
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Committing))?;
    rows.iter().map(|(n, verdict, tie)| Ok((position(*n, batch)?, outcome(verdict, *tie)?))).collect()
}

fn position(n: i64, batch: &[Event]) -> Result<usize, StoreError> {
    let index = usize::try_from(n).ok().filter(|&index| index < batch.len());
    index.ok_or_else(|| StoreError::Unknown(format!("the statement answered about event {n} of {}", batch.len())))
}

fn outcome(verdict: &str, tie: bool) -> Result<Outcome, StoreError> {
    match verdict {
        "applied" => Ok(Outcome::Applied { tie }),
        "stale" => Ok(Outcome::Stale { tie }),
        "ignored" => Ok(Outcome::Ignored),
        other => Err(StoreError::Unknown(format!("the statement answered with the verdict {other:?}"))),
    }
}
