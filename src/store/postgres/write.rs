//! Writes what a plan says, in one statement: all of it, or nothing because a rival came first.
//!
//! Whatever changes of a resource, its holds or its fetch raises the row's revision, which was read with them: so a
//! row that has it still vouches for all that was loaded.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::EventId;
use tidegate_actors::rules::key::{KeyHash, ResourceHash};
use tidegate_actors::rules::plan::{Held, Plan};

use super::errors::{Fault, Phase, classify};
use super::given::{Given, HoldRow, StateRow};
use super::load::Read;
use super::rows::Rows;
use super::statements::{Claiming, Statements};

/// What one transaction writes.
pub(crate) struct Work<'a> {
    /// Keys to claim, in the order of locks.
    pub(crate) claims: Vec<(KeyHash, Claim)>,
    /// Events to record.
    pub(crate) given: Vec<Given<'a>>,
    /// What becomes of resources and of what waits.
    pub(crate) plan: &'a Plan<'a>,
    /// What that was decided on.
    pub(crate) read: &'a Read,
}

/// Writes it. `phase` says whether the statement commits by itself.
pub(crate) async fn write(
    connection: &mut PgConnection,
    statements: &Statements,
    claiming: Claiming,
    work: &Work<'_>,
    phase: Phase,
) -> Result<(), Fault> {
    let plan = work.plan;
    let holds = holds(plan, &work.read.loaded.resources.iter().flat_map(held_of).collect());
    let states = states(plan, &holds, work.read);
    let waits = !(holds.is_empty() && plan.settled.is_empty() && plan.fetches.is_empty());
    if !waits && states.is_empty() && work.claims.is_empty() && work.given.is_empty() {
        return Ok(());
    }
    let types = &statements.types;
    let mut query = sqlx::query_scalar(AssertSqlSafe(statements.write(claiming, waits)))
        .bind(Rows::new(types, &work.claims))
        .bind(Rows::new(types, &states))
        .bind(Rows::new(types, &work.given));
    if waits {
        query = query
            .bind(Rows::new(types, &holds))
            .bind(Rows::new(types, &plan.settled))
            .bind(Rows::new(types, &plan.fetches))
            .bind(work.read.loaded.now_ms);
    }
    let recorded: i64 = query.fetch_one(connection).await.map_err(|error| classify(&error, phase))?;
    // The statement ends itself when a row is missing; this is for the day when it does not.
    if usize::try_from(recorded) != Ok(work.given.len()) {
        let text = format!("{recorded} of {} events were written", work.given.len());
        return Err(Fault::Ends(StoreError::Unknown(text)));
    }
    Ok(())
}

type HeldBefore<'a> = HashMap<EventId, (ResourceHash, &'a Held)>;

fn held_of<'a>(
    (hash, known): (&'a ResourceHash, &'a tidegate_actors::rules::plan::Known),
) -> impl Iterator<Item = (EventId, (ResourceHash, &'a Held))> {
    known.held.iter().map(|held| (held.id, (*hash, held)))
}

fn holds<'a>(plan: &'a Plan<'_>, before: &HeldBefore<'a>) -> Vec<HoldRow<'a>> {
    let new = plan.held.iter().map(|new| HoldRow {
        event: new.event.id,
        resource: new.resource,
        hold: &new.hold,
        subject: Cow::Owned(new.event.view().to_subject()),
    });
    let rearmed = plan.rearmed.iter().filter_map(|rearmed| {
        let (resource, held) = *before.get(&rearmed.id)?;
        let subject = Cow::Borrowed(&held.subject);
        Some(HoldRow { event: rearmed.id, resource, hold: &rearmed.hold, subject })
    });
    new.chain(rearmed).collect()
}

/// The rows of resources to write, sorted by hash: those that change, and those of which only a hold or the fetch does.
fn states<'a>(plan: &'a Plan<'_>, holds: &[HoldRow<'_>], read: &'a Read) -> Vec<StateRow<'a>> {
    let rev = |hash: &ResourceHash| read.revs.get(hash).copied().unwrap_or(0) + 1;
    let mut rows: BTreeMap<ResourceHash, StateRow<'a>> = BTreeMap::new();
    for changed in &plan.states {
        let (hash, named_by) = (changed.hash, changed.named_by);
        rows.insert(hash, StateRow { hash, rev: rev(&hash), named_by, state: Cow::Borrowed(&changed.state) });
    }
    let by_hold = holds.iter().map(|hold| hold.resource);
    let by_end = plan.settled.iter().map(|settled| settled.resource);
    let by_fetch = plan.fetches.iter().map(|fetching| fetching.resource);
    for hash in by_hold.chain(by_end).chain(by_fetch) {
        let Some(known) = read.loaded.resources.get(&hash) else { continue };
        rows.entry(hash).or_insert_with(|| StateRow {
            hash,
            rev: rev(&hash),
            named_by: None,
            state: Cow::Borrowed(&known.state),
        });
    }
    rows.into_values().collect()
}
