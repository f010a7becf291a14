//! Writes what a plan says, in the caller's transaction: claims and events, then states, then what waits.
//!
//! Owns the order of the columns. Promises that a plan is written whole or the transaction fails; the guard of
//! the stored version stands in the statements once more (I5).

use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::{Event, EventId, Verdict};
use tidegate_actors::rules::judge::State;
use tidegate_actors::rules::key::KeyHash;
use tidegate_actors::rules::plan::{Changed, Fetching, NewHold, Plan, Rearmed, Recorded, Settled};
use tidegate_actors::rules::version::Version;

use super::error::Fault;
use super::execute::{add, add_list, add_nulls, execute, filled, write_rows};
use super::statements::{
    CHANGE_PARAMETERS, CLAIM_PARAMETERS, EVENT_PARAMETERS, FETCH_PARAMETERS, HOLD_PARAMETERS, REARM_PARAMETERS,
    SETTLE_PARAMETERS, STATE_PARAMETERS, Statements,
};

/// An event's row.
pub(super) struct EventRow<'a> {
    pub(super) event: &'a Event,
    pub(super) recorded: &'a Recorded,
    /// Of a duplicate that is kept: the event that holds its key or effect key.
    pub(super) conflicts_with: Option<EventId>,
}

/// Claims keys in a slot and records events.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    statements: &Statements,
    key_slot: usize,
    claims: &[(KeyHash, Claim)],
    events: &[EventRow<'_>],
) -> Result<(), Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("write the batch", &error);
    let (mut claims, mut events) = (claims, events);
    while !claims.is_empty() || !events.is_empty() {
        let text = statements.record[key_slot].fitting(claims.len().max(events.len()));
        let (claims_now, claims_later) = claims.split_at(claims.len().min(text.rows));
        let (events_now, events_later) = events.split_at(events.len().min(text.rows));
        let mut arguments = filled(text.rows * (CLAIM_PARAMETERS + EVENT_PARAMETERS));
        for claim in claims_now {
            add_claim(&mut arguments, claim).map_err(fault)?;
        }
        add_nulls(&mut arguments, (text.rows - claims_now.len()) * CLAIM_PARAMETERS).map_err(fault)?;
        for row in events_now {
            add_event(&mut arguments, row).map_err(fault)?;
        }
        add_nulls(&mut arguments, (text.rows - events_now.len()) * EVENT_PARAMETERS).map_err(fault)?;
        execute(connection, &text.sql, arguments, |_, _| Ok(())).await.map_err(fault)?;
        (claims, events) = (claims_later, events_later);
    }
    Ok(())
}

/// Keeps other bytes under a claimed key aside, each once (I7).
pub(super) async fn keep_aside(
    connection: &mut SqliteConnection,
    statements: &Statements,
    conflicts: &[(&Event, EventId)],
) -> Result<(), Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("keep a conflict aside", &error);
    for &(event, first) in conflicts {
        let outcome = Outcome::Duplicate { first, conflict: true };
        let recorded = Recorded { outcome, verdict: Verdict::Duplicate, tie: false, why: None };
        let mut arguments = filled(EVENT_PARAMETERS);
        let row = EventRow { event, recorded: &recorded, conflicts_with: Some(first) };
        add_event(&mut arguments, &row).map_err(fault)?;
        execute(connection, &statements.conflict, arguments, |_, _| Ok(())).await.map_err(fault)?;
    }
    Ok(())
}

/// Writes everything a plan says but the events of the batch.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    statements: &Statements,
    plan: &Plan<'_>,
    now_ms: i64,
) -> Result<(), Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("write states and what waits", &error);
    states(connection, statements, &plan.states).await?;
    let texts = statements;
    write_rows(connection, &texts.hold, HOLD_PARAMETERS, &plan.held, add_hold).await.map_err(fault)?;
    write_rows(connection, &texts.rearm, REARM_PARAMETERS, &plan.rearmed, add_rearmed).await.map_err(fault)?;
    settle(connection, statements, &plan.settled, now_ms).await.map_err(fault)?;
    let add_fetch = |arguments: &mut SqliteArguments, fetch: &&Fetching| {
        add(arguments, fetch.resource.0.as_slice())?;
        add(arguments, fetch.wanted.then_some(now_ms))
    };
    let (answered, asked): (Vec<&Fetching>, Vec<&Fetching>) =
        plan.fetches.iter().partition(|fetch| fetch.answered.is_some());
    write_rows(connection, &texts.answer, FETCH_PARAMETERS, &answered, add_fetch).await.map_err(fault)?;
    write_rows(connection, &texts.ask, FETCH_PARAMETERS, &asked, add_fetch).await.map_err(fault)?;
    Ok(())
}

async fn states(
    connection: &mut SqliteConnection,
    statements: &Statements,
    states: &[Changed<'_>],
) -> Result<(), Fault> {
    let fault = |error: sqlx::Error| Fault::before_commit("write states", &error);
    let named = |state: &Changed<'_>| state.named_by.is_some();
    let mut written = 0;
    // a batch names all of its resources, a settling none
    for stretch in states.chunk_by(|one, two| named(one) == named(two)) {
        written += if named(&stretch[0]) {
            write_rows(connection, &statements.put_states, STATE_PARAMETERS, stretch, add_state).await
        } else {
            write_rows(connection, &statements.change_states, CHANGE_PARAMETERS, stretch, add_change).await
        }
        .map_err(fault)?;
    }
    if written != states.len() as u64 {
        return Err(Fault::odd("a stored version was about to go back, so the batch was dropped".into()));
    }
    Ok(())
}

/// Verdicts of events that were held, and their holds gone: one execution for both.
async fn settle(
    connection: &mut SqliteConnection,
    statements: &Statements,
    settled: &[Settled],
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let mut rest = settled;
    while !rest.is_empty() {
        let text = statements.settle.fitting(rest.len());
        let (now, later) = rest.split_at(rest.len().min(text.rows));
        let mut arguments = filled(text.rows * (SETTLE_PARAMETERS + 1));
        for row in now {
            add(&mut arguments, row.id.0)?;
            add(&mut arguments, row.verdict.word())?;
            add(&mut arguments, row.tie)?;
            add(&mut arguments, row.why.as_deref())?;
            add(&mut arguments, now_ms)?;
        }
        add_nulls(&mut arguments, (text.rows - now.len()) * SETTLE_PARAMETERS)?;
        let ids: Vec<[u8; 16]> = now.iter().map(|row| row.id.0.into_bytes()).collect();
        add_list(&mut arguments, &ids, 0, text.rows)?;
        execute(connection, &text.sql, arguments, |_, _| Ok(())).await?;
        rest = later;
    }
    Ok(())
}

fn add_claim(arguments: &mut SqliteArguments, (hash, claim): &(KeyHash, Claim)) -> Result<(), sqlx::Error> {
    add(arguments, hash.0.as_slice())?;
    add(arguments, claim.first.0)?;
    add(arguments, claim.digest.0.as_slice())
}

fn add_event(arguments: &mut SqliteArguments, row: &EventRow<'_>) -> Result<(), sqlx::Error> {
    let event = row.event;
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
    add(arguments, row.recorded.verdict.word())?;
    add(arguments, row.recorded.tie)?;
    add(arguments, row.recorded.why.as_deref())?;
    add(arguments, row.conflicts_with.map(|id| id.0))?;
    add(arguments, event.digest.0.as_slice())?;
    add(arguments, event.headers.as_ref())?;
    add(arguments, event.body.as_ref())
}

fn add_state(arguments: &mut SqliteArguments, changed: &Changed<'_>) -> Result<(), sqlx::Error> {
    let Some((event, guard)) = changed.named_by else { return Ok(()) };
    add(arguments, changed.hash.0.as_slice())?;
    add(arguments, event.source.clone())?;
    add(arguments, event.tenant.clone())?;
    add(arguments, guard.resource.kind.as_str())?;
    add(arguments, guard.resource.id.as_str())?;
    add_values(arguments, &changed.state)
}

fn add_change(arguments: &mut SqliteArguments, changed: &Changed<'_>) -> Result<(), sqlx::Error> {
    add(arguments, changed.hash.0.as_slice())?;
    add_values(arguments, &changed.state)
}

fn add_values(arguments: &mut SqliteArguments, state: &State) -> Result<(), sqlx::Error> {
    add(arguments, state.version.as_ref().map(Version::bytes))?;
    add(arguments, state.version.as_ref().map(Version::text))?;
    add(arguments, state.epoch)?;
    add(arguments, state.step.as_deref())?;
    add(arguments, state.deleted)?;
    add(arguments, state.fields.as_ref().map(tidegate_actors::rules::fields::Fields::stored))?;
    add(arguments, state.event.map(|id| id.0))?;
    add(arguments, state.applied_at_ms)?;
    add(arguments, state.applied)?;
    add(arguments, state.held)
}

fn add_hold(arguments: &mut SqliteArguments, new: &NewHold<'_>) -> Result<(), sqlx::Error> {
    add(arguments, new.event.id.0)?;
    add(arguments, new.resource.0.as_slice())?;
    add(arguments, new.event.view().to_subject().stored())?;
    add(arguments, new.hold.until_ms)?;
    add(arguments, new.hold.parked_in)?;
    add(arguments, new.hold.fetch)?;
    add(arguments, new.hold.why.as_str())
}

fn add_rearmed(arguments: &mut SqliteArguments, rearmed: &Rearmed) -> Result<(), sqlx::Error> {
    add(arguments, rearmed.id.0)?;
    add(arguments, rearmed.hold.until_ms)?;
    add(arguments, rearmed.hold.parked_in)?;
    add(arguments, rearmed.hold.fetch)?;
    add(arguments, rearmed.hold.why.as_str())
}
