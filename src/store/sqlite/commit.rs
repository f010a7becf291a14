//! One batch, one transaction: load what the keys and resources hold, let the rules decide, write, commit.
//!
//! Owns the order of the steps and nothing between batches. Promises that keys, states and events of a batch
//! are stored together or not at all (I4), and that nothing is reported before COMMIT returned (I1). The write
//! lock is taken first, so what was loaded is still true when it is written. On failure the transaction is
//! rolled back, and the fault says whether the connection lives on.

use std::collections::HashMap;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Either, Encode, Executor as _, Row as _, Type};
use tidegate_actors::ports::{Committed, Outcome};
use tidegate_actors::rules::event::{Event, EventId, Incarnation, Verdict};
use tidegate_actors::rules::key::{BodyDigest, KeyHash, ResourceHash};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::KEY_SLOTS;
use super::error::Fault;
use super::statements::{CLAIM_PARAMETERS, EVENT_PARAMETERS, STATE_PARAMETERS, Sized, Statements};
use crate::store::sql::batch::Claim;
use crate::store::sql::decide::{Changed, decide, record, resources};

/// Commits a batch.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    statements: &Statements,
    batch: &[Event],
) -> Result<Committed, Fault> {
    match write_batch(connection, statements, batch).await {
        Ok(committed) => {
            finish(connection).await?;
            Ok(committed)
        }
        Err(fault) => Err(abandon(connection, fault).await),
    }
}

/// Ends a transaction for good.
pub(super) async fn finish(connection: &mut SqliteConnection) -> Result<(), Fault> {
    match connection.execute("COMMIT").await {
        Ok(_) => Ok(()),
        Err(error) => Err(abandon(connection, Fault::at_commit(&error)).await),
    }
}

/// Rolls back after a fault. Where SQLite rolled back by itself this fails, and a fresh connection is cheap.
pub(super) async fn abandon(connection: &mut SqliteConnection, fault: Fault) -> Fault {
    if fault.dead {
        return fault;
    }
    let dead = connection.execute("ROLLBACK").await.is_err();
    Fault { dead, ..fault }
}

async fn write_batch(
    connection: &mut SqliteConnection,
    statements: &Statements,
    batch: &[Event],
) -> Result<Committed, Fault> {
    let loaded = load(connection, statements, batch).await?;
    let plan = plan(batch, loaded.claims, &loaded.versions)?;
    write(connection, statements, loaded.key_slot, &plan).await?;
    Ok(Committed { outcomes: plan.outcomes, incarnation: loaded.incarnation, waits: Default::default() })
}

/// What is to be written, and what is to be said.
struct Plan<'a> {
    outcomes: Vec<Outcome>,
    recorded: Vec<Recorded<'a>>,
    /// Same key, other bytes: kept aside beside the event that holds the key (I7).
    conflicts: Vec<(&'a Event, EventId)>,
    states: Vec<Changed<'a>>,
}

/// An event to record, whose key is to be claimed.
struct Recorded<'a> {
    event: &'a Event,
    verdict: Verdict,
    tie: bool,
}

fn plan<'a>(
    batch: &'a [Event],
    mut claims: HashMap<KeyHash, Claim>,
    versions: &HashMap<ResourceHash, Version>,
) -> Result<Plan<'a>, Fault> {
    let mut met: Vec<Option<Outcome>> = Vec::with_capacity(batch.len());
    let mut fresh = Vec::with_capacity(batch.len());
    let mut conflicts = Vec::new();
    for event in batch {
        let outcome = claims.get(&event.key.hash).map(|claim| claim.meets(event));
        match outcome {
            Some(Outcome::Duplicate { first, conflict: true }) => conflicts.push((event, first)),
            Some(_) => {}
            None => {
                claims.insert(event.key.hash, Claim::of(event));
                fresh.push(event);
            }
        }
        met.push(outcome);
    }
    let decided = decide(&fresh, versions).map_err(|error| Fault::odd(error.to_string()))?;
    let recorded = fresh.iter().zip(&decided.outcomes).map(|(event, &outcome)| {
        let (verdict, tie) = record(outcome);
        Recorded { event, verdict, tie }
    });
    let recorded = recorded.collect();
    let mut decisions = decided.outcomes.into_iter();
    // as many decisions as gaps: each fresh event has one
    let outcomes = met.into_iter().filter_map(|outcome| outcome.or_else(|| decisions.next())).collect();
    Ok(Plan { outcomes, recorded, conflicts, states: decided.changed })
}

#[derive(Default)]
struct Loaded {
    incarnation: Option<Uuid>,
    key_slot: Option<i64>,
    claims: HashMap<KeyHash, Claim>,
    versions: HashMap<ResourceHash, Version>,
}

struct Ready {
    incarnation: Incarnation,
    key_slot: usize,
    claims: HashMap<KeyHash, Claim>,
    versions: HashMap<ResourceHash, Version>,
}

/// Takes the write lock and loads everything the batch needs, in one execution up to the largest size.
async fn load(connection: &mut SqliteConnection, statements: &Statements, batch: &[Event]) -> Result<Ready, Fault> {
    let fault = |error: &sqlx::Error| Fault::before_commit("load keys and states", error);
    let keys: Vec<[u8; 16]> = batch.iter().map(|event| event.key.hash.0).collect();
    let events: Vec<&Event> = batch.iter().collect();
    let resources: Vec<[u8; 16]> = resources(&events).into_keys().map(|hash| hash.0).collect();

    let mut loaded = Loaded::default();
    let longest = keys.len().max(resources.len());
    let mut done = 0;
    while done == 0 || done < longest {
        let left = longest - done;
        let (text, before) = if done == 0 { (statements.begin_and_load(left), 2) } else { (statements.load(left), 0) };
        let mut arguments = SqliteArguments::default();
        // the keys once for each table of the ring
        for list in [&keys, &keys, &keys, &resources] {
            add_list(&mut arguments, list, done, text.rows).map_err(|error| fault(&error))?;
        }
        execute(connection, text, arguments, |place, row| match (place, before) {
            (1, 2) => loaded.take_meta(&row),
            _ if place == before => loaded.take_claim(&row),
            _ => loaded.take_state(&row),
        })
        .await
        .map_err(|error| fault(&error))?;
        done += text.rows;
    }
    loaded.ready()
}

impl Loaded {
    fn take_meta(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        self.incarnation = Some(row.try_get(0)?);
        self.key_slot = Some(row.try_get(1)?);
        Ok(())
    }

    fn take_claim(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        let claim = Claim { first: EventId(row.try_get(1)?), digest: BodyDigest(bytes16(row, 2)?) };
        self.claims.insert(KeyHash(bytes16(row, 0)?), claim);
        Ok(())
    }

    fn take_state(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        self.versions.insert(ResourceHash(bytes16(row, 0)?), Version::stored(row.try_get(1)?, row.try_get(2)?));
        Ok(())
    }

    fn ready(self) -> Result<Ready, Fault> {
        let key_slot = self.key_slot.and_then(|slot| usize::try_from(slot).ok()).filter(|&slot| slot < KEY_SLOTS);
        let (Some(incarnation), Some(key_slot)) = (self.incarnation, key_slot) else {
            return Err(Fault::odd("the database's `meta` row is missing or odd: restore it from a backup".into()));
        };
        let incarnation = Incarnation(incarnation);
        Ok(Ready { incarnation, key_slot, claims: self.claims, versions: self.versions })
    }
}

async fn write(
    connection: &mut SqliteConnection,
    statements: &Statements,
    key_slot: usize,
    plan: &Plan<'_>,
) -> Result<(), Fault> {
    let fault = |error: &sqlx::Error| Fault::before_commit("write the batch", error);
    let mut rest = plan.recorded.as_slice();
    while !rest.is_empty() {
        let text = statements.record(key_slot, rest.len());
        let (now, later) = rest.split_at(rest.len().min(text.rows));
        let mut arguments = filled(text.rows * (CLAIM_PARAMETERS + EVENT_PARAMETERS));
        for recorded in now {
            add_claim(&mut arguments, recorded.event).map_err(|error| fault(&error))?;
        }
        add_nulls(&mut arguments, (text.rows - now.len()) * CLAIM_PARAMETERS).map_err(|error| fault(&error))?;
        for recorded in now {
            add_event(&mut arguments, recorded, None).map_err(|error| fault(&error))?;
        }
        add_nulls(&mut arguments, (text.rows - now.len()) * EVENT_PARAMETERS).map_err(|error| fault(&error))?;
        execute(connection, text, arguments, |_, _| Ok(())).await.map_err(|error| fault(&error))?;
        rest = later;
    }
    for &(event, first) in &plan.conflicts {
        let recorded = Recorded { event, verdict: Verdict::Duplicate, tie: false };
        let mut arguments = filled(EVENT_PARAMETERS);
        add_event(&mut arguments, &recorded, Some(first)).map_err(|error| fault(&error))?;
        let text = Sized { sql: statements.conflict.clone(), rows: 1 };
        execute(connection, &text, arguments, |_, _| Ok(())).await.map_err(|error| fault(&error))?;
    }
    let mut rest = plan.states.as_slice();
    while !rest.is_empty() {
        let text = statements.states(rest.len());
        let (now, later) = rest.split_at(rest.len().min(text.rows));
        let mut arguments = filled(text.rows * STATE_PARAMETERS);
        for state in now {
            add_state(&mut arguments, state).map_err(|error| fault(&error))?;
        }
        add_nulls(&mut arguments, (text.rows - now.len()) * STATE_PARAMETERS).map_err(|error| fault(&error))?;
        let written = execute(connection, text, arguments, |_, _| Ok(())).await.map_err(|error| fault(&error))?;
        if written != now.len() as u64 {
            return Err(Fault::odd("a stored version was about to go back, so the batch was dropped".into()));
        }
        rest = later;
    }
    Ok(())
}

/// Runs a text of one or more statements; rows come with the place of their statement. Answers how many rows
/// were changed.
async fn execute(
    connection: &mut SqliteConnection,
    text: &Sized,
    arguments: SqliteArguments,
    mut take: impl FnMut(usize, SqliteRow) -> Result<(), sqlx::Error>,
) -> Result<u64, sqlx::Error> {
    let query = sqlx::query_with::<Sqlite, _>(AssertSqlSafe(text.sql.clone()), arguments);
    let mut results = connection.fetch_many(query);
    let mut place = 0;
    let mut changed = 0;
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Left(done) => {
                place += 1;
                changed += done.rows_affected();
            }
            Either::Right(row) => take(place, row)?,
        }
    }
    Ok(changed)
}

fn bytes16(row: &SqliteRow, column: usize) -> Result<[u8; 16], sqlx::Error> {
    row.try_get::<Uuid, _>(column).map(Uuid::into_bytes)
}

fn filled(count: usize) -> SqliteArguments {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(count, 0);
    arguments
}

fn add<'t, T>(arguments: &mut SqliteArguments, value: T) -> Result<(), sqlx::Error>
where
    T: Encode<'t, Sqlite> + Type<Sqlite>,
{
    arguments.add(value).map_err(sqlx::Error::Encode)
}

fn add_nulls(arguments: &mut SqliteArguments, count: usize) -> Result<(), sqlx::Error> {
    (0..count).try_for_each(|_| add(arguments, None::<i64>))
}

/// One stretch of a list, filled up to a size.
fn add_list(arguments: &mut SqliteArguments, list: &[[u8; 16]], skip: usize, size: usize) -> Result<(), sqlx::Error> {
    let stretch = list.iter().skip(skip).take(size);
    let missing = size - stretch.len();
    for hash in stretch {
        add(arguments, hash.as_slice())?;
    }
    add_nulls(arguments, missing)
}

fn add_claim(arguments: &mut SqliteArguments, event: &Event) -> Result<(), sqlx::Error> {
    add(arguments, event.key.hash.0.as_slice())?;
    add(arguments, event.id.0)?;
    add(arguments, event.digest.0.as_slice())
}

fn add_event(
    arguments: &mut SqliteArguments,
    recorded: &Recorded<'_>,
    conflicts_with: Option<EventId>,
) -> Result<(), sqlx::Error> {
    let event = recorded.event;
    let guard = event.guards.first();
    let version = guard.and_then(|guard| guard.version.as_ref());
    add(arguments, event.id.0)?;
    add(arguments, event.received_at_ms)?;
    add(arguments, event.source.clone())?;
    add(arguments, event.tenant.clone())?;
    add(arguments, event.key.text.as_str())?;
    add(arguments, event.kind.as_str())?;
    add(arguments, guard.map(|guard| guard.resource.hash.0.to_vec()))?;
    add(arguments, guard.map(|guard| guard.resource.kind.as_str()))?;
    add(arguments, guard.map(|guard| guard.resource.id.as_str()))?;
    add(arguments, version.map(Version::bytes))?;
    add(arguments, version.map(Version::text))?;
    add(arguments, recorded.verdict.word())?;
    add(arguments, recorded.tie)?;
    add(arguments, conflicts_with.map(|id| id.0))?;
    add(arguments, event.digest.0.as_slice())?;
    add(arguments, event.headers.as_ref())?;
    add(arguments, event.body.as_ref())
}

fn add_state(arguments: &mut SqliteArguments, state: &Changed<'_>) -> Result<(), sqlx::Error> {
    let (event, resource) = (state.event, &state.guard.resource);
    add(arguments, resource.hash.0.as_slice())?;
    add(arguments, event.source.clone())?;
    add(arguments, event.tenant.clone())?;
    add(arguments, resource.kind.as_str())?;
    add(arguments, resource.id.as_str())?;
    add(arguments, state.version.as_ref().map(Version::bytes))?;
    add(arguments, state.version.as_ref().map(Version::text))?;
    add(arguments, event.deletes)?;
    add(arguments, event.id.0)?;
    add(arguments, event.received_at_ms)?;
    add(arguments, state.applied)
}
