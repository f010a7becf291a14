//! The plain way: where the rule is the version guard, one statement does it all.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError};
use tidegate_actors::rules::event::{Event, Intent};
use tidegate_actors::rules::order::Policy;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::given::Given;
use super::rows::Rows;
use super::statements::Statements;

/// How a batch can be committed by one statement that says what the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No resource comes twice.
    Once,
    /// Some resource comes several times.
    Several,
}

/// The shape of these events; `None` where only the rules can say what becomes of them.
pub(crate) fn shape(batch: &[Event], indexes: &[usize]) -> Option<Shape> {
    // With and without a version on one resource: what has none goes last, which the statement does not know.
    let mut versioned = HashMap::with_capacity(indexes.len());
    let mut shape = Shape::Once;
    for event in indexes.iter().map(|&index| &batch[index]).filter(|event| event.intent == Intent::Apply) {
        let guard = match event.guards.as_slice() {
            [] => continue,
            [guard] => guard,
            _ => return None,
        };
        if !event.is_plain() {
            return None;
        }
        let is_versioned = guard.version.is_some();
        if is_versioned && !matches!(event.order.policy, Policy::Newest { .. }) {
            return None;
        }
        if let Some(before) = versioned.insert(guard.resource.hash, is_versioned) {
            shape = Shape::Several;
            if before != is_versioned {
                return None;
            }
        }
    }
    Some(shape)
}

/// Commits the events at `indexes` (sorted by key); returns the outcomes of those whose key was free.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    shape: Shape,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let places: HashMap<Uuid, usize> = indexes.iter().map(|&index| (batch[index].id.0, index)).collect();
    let given: Vec<Given<'_>> = indexes.iter().map(|&index| Given::open(batch, index)).collect();
    let rows: Vec<(Uuid, String, bool)> = sqlx::query_as(AssertSqlSafe(statements.plain(shape)))
        .bind(Rows::new(&statements.types, &given))
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Committing))?;
    let place = |id: &Uuid| {
        let unknown =
            || StoreError::Unknown(format!("the statement answered about an event {id} that it was not given"));
        places.get(id).copied().ok_or_else(unknown)
    };
    rows.iter().map(|(id, verdict, tie)| Ok((place(id)?, outcome(verdict, *tie)?))).collect()
}

fn outcome(verdict: &str, tie: bool) -> Result<Outcome, StoreError> {
    match verdict {
        "applied" => Ok(Outcome::Applied { tie }),
        "stale" => Ok(Outcome::Stale { tie }),
        "ignored" => Ok(Outcome::Ignored),
        other => Err(StoreError::Unknown(format!("the statement answered with the verdict {other:?}"))),
    }
}
