//! One batch, one transaction: load what the keys and resources hold, let the rules decide, write, commit.
//!
//! Owns the order of the steps and nothing between batches. Promises that keys, states and events of a batch
//! are stored together or not at all (I4), and that nothing is reported before COMMIT returned (I1). The write
//! lock is taken first, so what was loaded is still true when it is written. On failure the transaction is
//! rolled back, and the fault says whether the connection lives on.

use sqlx::Executor as _;
use sqlx::sqlite::SqliteConnection;
use tidegate_actors::ports::{Clock, Committed, Outcome, Waits};
use tidegate_actors::rules::claim::meet;
use tidegate_actors::rules::event::{Event, EventId, Verdict};
use tidegate_actors::rules::judge::Push;
use tidegate_actors::rules::plan::{Recorded, plan};

use super::super::effects::Exempt;
use super::effects::{Staged, block, transaction};
use super::error::Fault;
use super::statements::Statements;
use super::write::EventRow;
use super::{load, write};
use crate::effect::Effects;

/// Commits a batch with its effects; those of which one fails are not taken.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    statements: &Statements,
    effects: &Effects,
    batch: &[Event],
    clock: Option<&dyn Clock>,
) -> Result<Committed, Fault> {
    let work = async |connection: &mut SqliteConnection, exempt: &Exempt| {
        let rest = exempt.rest(batch);
        write_batch(connection, statements, effects, (&rest, exempt), clock).await
    };
    let (committed, exempt) = transaction(connection, effects, batch, work).await?;
    Ok(Committed { outcomes: exempt.outcomes(batch, committed.outcomes), ..committed })
}

/// Ends a transaction as its work came out: commits it, or rolls it back.
pub(super) async fn end<T>(connection: &mut SqliteConnection, result: Result<T, Fault>) -> Result<T, Fault> {
    match result {
        Ok(done) => {
            finish(connection).await?;
            Ok(done)
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
    effects: &Effects,
    (batch, exempt): (&[Event], &Exempt),
    clock: Option<&dyn Clock>,
) -> Result<Staged<Committed>, Fault> {
    let load::Ready { meta, mut claims, known } = load::batch(connection, statements, batch, clock).await?;
    let met = meet(batch, &mut claims);
    let mut loaded = load::behind(connection, statements, &met.fresh, known, meta.now_ms).await?;
    block(connection, effects, &mut loaded, exempt).await?;
    let mut plan = plan(&met.fresh, &loaded, Push::None).map_err(Fault::unjudged)?;

    let repeats: Vec<Recorded> = met.repeats.iter().map(|&(_, first)| repeat(first)).collect();
    let fresh = met.fresh.iter().zip(&plan.recorded).map(|(&event, recorded)| (event, recorded, None));
    let repeated = met.repeats.iter().zip(&repeats).map(|(&(event, first), recorded)| (event, recorded, Some(first)));
    let events: Vec<EventRow<'_>> = fresh
        .chain(repeated)
        .map(|(event, recorded, conflicts_with)| EventRow { event, recorded, conflicts_with })
        .collect();
    write::record(connection, statements, meta.key_slot, &met.claims, &events).await?;
    write::keep_aside(connection, statements, &met.conflicts).await?;
    write::plan(connection, statements, &plan, meta.now_ms).await?;

    let waits = Waits::of(&plan, meta.now_ms);
    let mut judged = plan.recorded.iter().map(|recorded| recorded.outcome);
    // as many as there are gaps: each fresh event has one
    let outcomes = met.outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| judged.next())).collect();
    let done = Committed { outcomes, incarnation: meta.incarnation, waits };
    Ok(Staged { done, applied: std::mem::take(&mut plan.applied), now_ms: meta.now_ms })
}

/// What the row of an event says whose effect key was taken.
fn repeat(first: EventId) -> Recorded {
    let why = Some("its effect key was claimed under another id".to_owned());
    Recorded { outcome: Outcome::Repeat { first }, verdict: Verdict::Duplicate, tie: false, why }
}
