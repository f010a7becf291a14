//! The loaded way: load, let the rules decide, write if nothing has changed since.
//!
//! Two round trips and no explicit transaction: loading takes no lock, and the one statement that writes claims the
//! keys and ends itself where a key was taken or a state has another revision than the one that was read. Then all of
//! it is done again. Locks are taken in the order of the other ways: keys, then resources, each sorted by hash.

use sqlx::postgres::PgConnection;
use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::Event;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::statements::Statements;
use super::write::{StateRow, States, decide_and_write, states};
use crate::store::sql::decide::resources;

/// Commits the events at `indexes` (sorted by key): all of them, or a rival came first.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let states = load(connection, batch, indexes).await?;
    let write = (&statements.write, Phase::Committing);
    decide_and_write(connection, write, &statements.types, (batch, indexes), &states).await
}

async fn load(connection: &mut PgConnection, batch: &[Event], indexes: &[usize]) -> Result<States, Fault> {
    let events: Vec<&Event> = indexes.iter().map(|&index| &batch[index]).collect();
    let hashes: Vec<Uuid> = resources(&events).keys().map(|hash| Uuid::from_bytes(hash.0)).collect();
    if hashes.is_empty() {
        return Ok(States::new());
    }
    let rows: Vec<StateRow> = sqlx::query_as(include_str!("statements/load.sql"))
        .bind(hashes)
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Open))?;
    Ok(states(rows))
}
