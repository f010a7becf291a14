//! The locked way, for batches that rivals keep overtaking: claim, lock, load, let the rules decide, write, COMMIT.
//!
//! Locks are taken in the order of the other ways: keys, then effect keys, then resources, each sorted by hash.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::rules::claim::{Claim, meet};
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::judge::State;
use tidegate_actors::rules::key::KeyHash;
use tidegate_actors::rules::plan::{Applied, resources};
use uuid::Uuid;

use super::super::effects::Exempt;
use super::effects::{block, transaction};
use super::errors::{Fault, Phase, classify};
use super::given::StateRow;
use super::judged::{Done, decide_and_write};
use super::load::{answers_a_fetch, load};
use super::repeats;
use super::rows::Rows;
use super::statements::{Claiming, Statements};
use crate::effect::Effects;

/// Commits a batch with its effects; those of which one fails are not taken.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    effects: &Effects,
) -> Result<Done, Fault> {
    let work = async |connection: &mut PgConnection, exempt: &Exempt| {
        let rest = exempt.rest(batch);
        stage(connection, statements, effects, (&rest, exempt)).await
    };
    let (Done { outcomes, waits }, exempt) = transaction(connection, effects, batch, work).await?;
    Ok(Done { outcomes: exempt.outcomes(batch, outcomes), waits })
}

/// Claims, locks, loads, decides and writes, in the caller's transaction.
async fn stage(
    connection: &mut PgConnection,
    statements: &Statements,
    effects: &Effects,
    (batch, exempt): (&[Event], &Exempt),
) -> Result<(Done, Vec<Applied>), Fault> {
    let ours = claim_all(connection, statements, batch).await?;
    let asked = hashes(batch).filter(|hash| !ours.contains(hash));
    let mut claims = repeats::find(connection, asked).await?.found;
    let met = meet(batch, &mut claims);
    if met.claims.iter().any(|(hash, _)| !ours.contains(hash)) {
        return Err(Fault::Redo("keys were neither free nor taken: the key ring moved on".to_owned()));
    }
    lock(connection, statements, &met.fresh).await?;
    let resources = resources(&met.fresh).into_keys();
    let mut read = load(connection, resources, answers_a_fetch(&met.fresh)).await?;
    block(connection, effects, &mut read.loaded, exempt).await?;
    decide_and_write(connection, statements, (batch, met), &read, Claiming::Before).await
}

/// All keys that a batch may claim.
pub(crate) fn hashes(batch: &[Event]) -> impl Iterator<Item = KeyHash> {
    batch.iter().flat_map(|event| std::iter::once(&event.key).chain(&event.effect_key)).map(|key| key.hash)
}

/// Claims the keys that are free, then the effect keys of events whose key is claimed now.
async fn claim_all(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
) -> Result<HashSet<KeyHash>, Fault> {
    let mut keys: HashMap<KeyHash, Claim> = HashMap::with_capacity(batch.len());
    for event in batch {
        keys.entry(event.key.hash).or_insert_with(|| Claim::of(event));
    }
    let mut ours = claim(connection, statements, &keys).await?;
    let mut effects: HashMap<KeyHash, Claim> = HashMap::new();
    for event in batch {
        // The first event of a key has it; the others are its repeats.
        let has_it = ours.contains(&event.key.hash) && keys[&event.key.hash].first == event.id;
        if let Some(effect) = event.effect_key.as_ref().filter(|_| has_it) {
            effects.entry(effect.hash).or_insert_with(|| Claim::of(event));
        }
    }
    ours.extend(claim(connection, statements, &effects).await?);
    Ok(ours)
}

async fn claim(
    connection: &mut PgConnection,
    statements: &Statements,
    claims: &HashMap<KeyHash, Claim>,
) -> Result<HashSet<KeyHash>, Fault> {
    if claims.is_empty() {
        return Ok(HashSet::new());
    }
    let mut claims: Vec<(KeyHash, Claim)> = claims.iter().map(|(&hash, &claim)| (hash, claim)).collect();
    claims.sort_unstable_by_key(|(hash, _)| *hash);
    let claimed: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(statements.claim.clone()))
        .bind(Rows::new(&statements.types, &claims))
        .fetch_all(connection)
        .await
        .map_err(open)?;
    Ok(claimed.into_iter().map(|hash| KeyHash(hash.into_bytes())).collect())
}

/// Locks the rows of the events' resources, and makes those that are not there.
async fn lock(connection: &mut PgConnection, statements: &Statements, events: &[&Event]) -> Result<(), Fault> {
    let state = State::default();
    let row = |(hash, named_by)| StateRow { hash, rev: 0, named_by: Some(named_by), state: Cow::Borrowed(&state) };
    let rows: Vec<StateRow<'_>> = resources(events).into_iter().map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(include_str!("statements/lock_states.sql"))
        .bind(Rows::new(&statements.types, &rows))
        .execute(connection)
        .await
        .map_err(open)?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn open(error: sqlx::Error) -> Fault {
    classify(&error, Phase::Open)
}
