//! What a transaction needs to know, read behind the write lock, so that it is still true when it writes.
//!
//! Owns no state. Promises everything the rules ask for: claims of both kinds of keys, states, and behind them
//! what waits, which is asked for only where a state says that something does.

use std::collections::HashMap;

use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Executor as _, Row as _};
use tidegate_actors::ports::Clock;
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::{Event, EventId, Incarnation};
use tidegate_actors::rules::fields::Fields;
use tidegate_actors::rules::judge::{State, Subject};
use tidegate_actors::rules::key::{BodyDigest, KeyHash, ResourceHash};
use tidegate_actors::rules::plan::{Held, Known, Loaded, resources};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::KEY_SLOTS;
use super::error::Fault;
use super::execute::{add_list, bytes16, execute, look_up};
use super::statements::{BEGIN, Statements};

/// What the meta row says.
#[derive(Clone, Copy)]
pub(super) struct Meta {
    pub(super) incarnation: Incarnation,
    pub(super) key_slot: usize,
    /// The store's clock.
    pub(super) now_ms: i64,
}

/// What is there of a batch.
pub(super) struct Ready {
    pub(super) meta: Meta,
    pub(super) claims: HashMap<KeyHash, Claim>,
    pub(super) known: HashMap<ResourceHash, Known>,
}

/// Begins a transaction and loads claims and states, up to the largest size in one execution.
pub(super) async fn batch(
    connection: &mut SqliteConnection,
    statements: &Statements,
    batch: &[Event],
    clock: Option<&dyn Clock>,
) -> Result<Ready, Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("load keys and states", &error);
    let effects = batch.iter().filter_map(|event| event.effect_key.as_ref());
    let keys = batch.iter().map(|event| &event.key).chain(effects).map(|key| key.hash.0);
    let keys: Vec<[u8; 16]> = keys.collect();
    let events: Vec<&Event> = batch.iter().collect();
    let resources: Vec<[u8; 16]> = resources(&events).into_keys().map(|hash| hash.0).collect();

    let mut meta = None;
    let mut claims = HashMap::new();
    let mut known = HashMap::new();
    let longest = keys.len().max(resources.len());
    let mut done = 0;
    while done == 0 || done < longest {
        let sizes = if done == 0 { &statements.begin_and_load } else { &statements.load };
        let (text, before) = (sizes.fitting(longest - done), if done == 0 { 2 } else { 0 });
        let mut arguments = SqliteArguments::default();
        // the keys once for each table of the ring
        for list in [&keys, &keys, &keys, &resources] {
            add_list(&mut arguments, list, done, text.rows).map_err(fault)?;
        }
        let take = |place, row: SqliteRow| match (place, before) {
            (1, 2) => meta_of(&row, clock).map(|found| meta = found),
            _ if place == before => take_claim(&mut claims, &row),
            _ => take_state(&mut known, &row),
        };
        execute(connection, &text.sql, arguments, take).await.map_err(fault)?;
        done += text.rows;
    }
    Ok(Ready { meta: meta.ok_or_else(no_meta)?, claims, known })
}

/// What the rules need to judge these events: of resources that have something waiting, that too, and the claims
/// of fetches where an event is an answer. Mostly there is nothing more to load.
pub(super) async fn behind(
    connection: &mut SqliteConnection,
    statements: &Statements,
    fresh: &[&Event],
    mut known: HashMap<ResourceHash, Known>,
    now_ms: i64,
) -> Result<Loaded, Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("load what waits", &error);
    if fresh.is_empty() || known.values().any(|known| known.state.held > 0) {
        // a repeat moves nothing, so what waits behind it is left alone
        let judged = resources(fresh);
        known.retain(|hash, _| judged.contains_key(hash));
        waiting(connection, statements, &mut known).await.map_err(fault)?;
    }
    let answers = fresh.iter().filter(|event| event.fetched.is_some()).filter_map(|event| event.guards.first());
    let answered: Vec<[u8; 16]> = answers.map(|guard| guard.resource.hash.0).collect();
    fetches(connection, statements, &answered, &mut known).await.map_err(fault)?;
    Ok(Loaded { now_ms, resources: known, ..Loaded::default() })
}

/// Begins a transaction.
pub(super) async fn begin(connection: &mut SqliteConnection, clock: Option<&dyn Clock>) -> Result<Meta, Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("begin", &error);
    let row = connection.fetch_one(BEGIN).await.map_err(fault)?;
    meta_of(&row, clock).map_err(fault)?.ok_or_else(no_meta)
}

/// Loads resources and what they have waiting, inside a transaction.
pub(super) async fn known(
    connection: &mut SqliteConnection,
    statements: &Statements,
    resources: &[[u8; 16]],
    now_ms: i64,
) -> Result<Loaded, Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("load what waits", &error);
    let mut known = HashMap::with_capacity(resources.len());
    let take = |row: SqliteRow| take_state(&mut known, &row);
    look_up(connection, &statements.load_states, resources, take).await.map_err(fault)?;
    waiting(connection, statements, &mut known).await.map_err(fault)?;
    Ok(Loaded { now_ms, resources: known, ..Loaded::default() })
}

/// Held events of the resources that have some.
async fn waiting(
    connection: &mut SqliteConnection,
    statements: &Statements,
    known: &mut HashMap<ResourceHash, Known>,
) -> Result<(), sqlx::Error> {
    let waited_for = known.iter().filter(|(_, known)| known.state.held > 0);
    let waited_for: Vec<[u8; 16]> = waited_for.map(|(hash, _)| hash.0).collect();
    let take = |row: SqliteRow| {
        let held = Held {
            id: EventId(row.try_get(1)?),
            subject: Subject::from_stored(row.try_get(2)?).map_err(odd)?,
            until_ms: row.try_get(3)?,
            parked_in: row.try_get(4)?,
            fetch: row.try_get(5)?,
        };
        if let Some(known) = known.get_mut(&ResourceHash(bytes16(&row, 0)?)) {
            known.held.push(held);
        }
        Ok(())
    };
    look_up(connection, &statements.load_holds, &waited_for, take).await
}

/// The claims of fetches, where an answer is to be told from a late one.
async fn fetches(
    connection: &mut SqliteConnection,
    statements: &Statements,
    resources: &[[u8; 16]],
    known: &mut HashMap<ResourceHash, Known>,
) -> Result<(), sqlx::Error> {
    let take = |row: SqliteRow| {
        if let Some(known) = known.get_mut(&ResourceHash(bytes16(&row, 0)?)) {
            known.fetch = row.try_get(1)?;
        }
        Ok(())
    };
    look_up(connection, &statements.load_fetches, resources, take).await
}

fn meta_of(row: &SqliteRow, clock: Option<&dyn Clock>) -> Result<Option<Meta>, sqlx::Error> {
    let incarnation = Incarnation(row.try_get::<Uuid, _>(0)?);
    let slot: i64 = row.try_get(1)?;
    let now_ms = match clock {
        Some(clock) => clock.now_ms(),
        None => row.try_get(2)?,
    };
    let slot = usize::try_from(slot).ok().filter(|&slot| slot < KEY_SLOTS);
    Ok(slot.map(|key_slot| Meta { incarnation, key_slot, now_ms }))
}

fn no_meta() -> Fault {
    Fault::odd("the database's `meta` row is missing or odd: restore it from a backup".into())
}

fn take_claim(claims: &mut HashMap<KeyHash, Claim>, row: &SqliteRow) -> Result<(), sqlx::Error> {
    let claim = Claim { first: EventId(row.try_get(1)?), digest: BodyDigest(bytes16(row, 2)?) };
    claims.insert(KeyHash(bytes16(row, 0)?), claim);
    Ok(())
}

fn take_state(known: &mut HashMap<ResourceHash, Known>, row: &SqliteRow) -> Result<(), sqlx::Error> {
    let version: Option<&[u8]> = row.try_get(1)?;
    let version = match version {
        Some(bytes) => Some(Version::stored(bytes, row.try_get(2)?)),
        None => None,
    };
    let fields: Option<&str> = row.try_get(6)?;
    let state = State {
        version,
        epoch: row.try_get(3)?,
        step: row.try_get(4)?,
        deleted: row.try_get(5)?,
        fields: fields.map(Fields::from_stored).transpose().map_err(odd)?,
        event: row.try_get::<Option<Uuid>, _>(7)?.map(EventId),
        applied_at_ms: row.try_get(8)?,
        applied: row.try_get(9)?,
        held: row.try_get(10)?,
    };
    known.insert(ResourceHash(bytes16(row, 0)?), Known { state, ..Known::default() });
    Ok(())
}

/// A stored text that this program did not write.
fn odd(text: String) -> sqlx::Error {
    sqlx::Error::Decode(text.into())
}
