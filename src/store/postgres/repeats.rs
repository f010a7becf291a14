//! Events whose key was taken: who claimed it, and bodies that differ.

use std::collections::HashMap;

use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError};
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::key::{BodyDigest, KeyHash};
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::given::Given;
use super::rows::{RowTypes, Rows};

type ClaimRow = (Option<Uuid>, Option<Uuid>, Option<Uuid>, Option<i16>);

/// What the key table says now.
pub(crate) struct Claims {
    /// The slot of the ring that takes new claims.
    pub(crate) slot: i16,
    /// Who claimed the keys asked for.
    pub(crate) found: HashMap<KeyHash, Claim>,
}

/// Asks the key table about these keys.
pub(crate) async fn find(connection: &mut PgConnection, keys: impl Iterator<Item = KeyHash>) -> Result<Claims, Fault> {
    let hashes: Vec<Uuid> = keys.map(|hash| Uuid::from_bytes(hash.0)).collect();
    let rows: Vec<ClaimRow> = sqlx::query_as(include_str!("statements/find_claims.sql"))
        .bind(hashes)
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Open))?;
    let mut slot = None;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        match row {
            (Some(hash), Some(first), Some(digest), _) => {
                let claim = Claim { first: EventId(first), digest: BodyDigest(digest.into_bytes()) };
                found.insert(KeyHash(hash.into_bytes()), claim);
            }
            (_, _, _, current) => slot = current.or(slot),
        }
    }
    let slot = slot.ok_or_else(|| StoreError::Unavailable("the table `tidegate.meta` has no row".to_owned()))?;
    Ok(Claims { slot, found })
}

/// Keeps aside the events that met their key with another body, each such body once.
pub(crate) async fn keep_conflicts(
    connection: &mut PgConnection,
    types: &RowTypes,
    batch: &[Event],
    outcomes: &[Outcome],
) -> Result<(), Fault> {
    let mut conflicts: Vec<(usize, EventId)> = outcomes
        .iter()
        .enumerate()
        .filter_map(|(index, outcome)| match outcome {
            Outcome::Duplicate { first, conflict: true } => Some((index, *first)),
            _ => None,
        })
        .collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    conflicts.sort_by_key(|&(index, _)| (batch[index].key.hash, batch[index].digest));
    let rows: Vec<Given<'_>> = conflicts
        .into_iter()
        .map(|(index, first)| Given { conflicts_with: Some(first), ..Given::open(&batch[index], index) })
        .collect();
    sqlx::query(include_str!("statements/keep_conflicts.sql"))
        .bind(Rows::new(types, &rows))
        .execute(connection)
        .await
        .map_err(|error| classify(&error, Phase::Committing))?;
    Ok(())
}
