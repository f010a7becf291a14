//! Writes what the rules decided, in one statement: all of it, or nothing because a rival came first.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError};
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::given::{Given, State};
use super::rows::{RowTypes, Rows};
use crate::store::sql::decide::{self, decide};

/// A row that tells a resource's state.
pub(crate) type StateRow = (Uuid, i64, Option<Vec<u8>>, Option<String>);

/// A resource's row as it was read.
pub(crate) struct Loaded {
    pub(crate) rev: i64,
    pub(crate) version: Option<Version>,
}

/// Resources' rows as they were read.
pub(crate) type States = HashMap<ResourceHash, Loaded>;

pub(crate) fn states(rows: Vec<StateRow>) -> States {
    let states = rows.into_iter().map(|(hash, rev, bytes, text)| {
        let version = bytes.map(|bytes| Version::stored(&bytes, text.unwrap_or_default()));
        (ResourceHash(hash.into_bytes()), Loaded { rev, version })
    });
    states.collect()
}

/// Lets the rules decide about the events at `indexes` (sorted by key) over the states that were read, and writes that
/// with `sql`, one of the statements made from `write.sql`.
pub(crate) async fn decide_and_write(
    connection: &mut PgConnection,
    (sql, phase): (&Arc<str>, Phase),
    types: &RowTypes,
    (batch, indexes): (&[Event], &[usize]),
    states: &States,
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let mut arrived = indexes.to_vec();
    arrived.sort_unstable();
    let events: Vec<&Event> = arrived.iter().map(|&index| &batch[index]).collect();
    let versions = states.iter().filter_map(|(&hash, state)| Some((hash, state.version.clone()?))).collect();
    let decided = decide(&events, &versions).map_err(StoreError::from)?;
    let outcomes: HashMap<usize, Outcome> = arrived.into_iter().zip(decided.outcomes).collect();

    let outcome = |index: &usize| (*index, outcomes[index]);
    let given = indexes.iter().map(outcome).map(|(index, outcome)| {
        let (verdict, tie) = decide::record(outcome);
        Given { verdict: Some(verdict), tie, ..Given::open(batch, index) }
    });
    let given: Vec<Given<'_>> = given.collect();
    let rev = |hash| states.get(&hash).map_or(0, |state| state.rev) + 1;
    let changed = decided.changed.iter().map(|changed| State { changed, rev: rev(changed.guard.resource.hash) });
    let changed: Vec<State<'_>> = changed.collect();
    let done = sqlx::query(AssertSqlSafe(sql.clone()))
        .bind(Rows::new(types, &given))
        .bind(count(&given))
        .bind(Rows::new(types, &changed))
        .bind(count(&changed))
        .execute(connection)
        .await
        .map_err(|error| classify(&error, phase))?;
    // The statement ends itself when a row is missing; this is for the day when it does not.
    if done.rows_affected() != given.len() as u64 {
        let text = format!("{} of {} events were written", done.rows_affected(), given.len());
        return Err(Fault::Ends(StoreError::Unknown(text)));
    }
    Ok(indexes.iter().map(outcome).collect())
}

fn count<T>(rows: &[T]) -> i64 {
    i64::try_from(rows.len()).unwrap_or(i64::MAX)
}
