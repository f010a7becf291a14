//! A small model of what each policy promises, made from what was taken and when it took effect. It knows
//! nothing of the engine's rules: it says which state must be there in the end, and which verdicts were right.
//!
//! Time here is the store's. What took effect at one instant may have done so in any order.

#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, HashMap};

use super::clock::EPOCH_MS;
use super::ledger::{Fetched, Known};
use super::prepared::Prepared;
use crate::ports::{EventRow, Outcome};
use crate::rules::event::{EventId, Verdict};
use crate::rules::order::{Merge, Order, Policy, Tie};
use crate::rules::version::Version;

/// An event that was taken, as one resource sees it.
#[derive(Clone, Debug)]
pub(super) struct Taken<'a> {
    /// The plan's event; `None` of a state that was fetched.
    pub(super) event: Option<u32>,
    pub(super) id: EventId,
    /// Its version for this resource, as bytes that compare.
    pub(super) version: Option<&'a [u8]>,
    /// Its place in a row without gaps: the number of a sequence, the step of a state machine; from 1.
    pub(super) place: Option<u64>,
    /// The resource is its first.
    pub(super) first: bool,
    pub(super) deletes: bool,
    /// What was decided when it came.
    pub(super) outcome: Outcome,
    /// What became of it.
    pub(super) verdict: Verdict,
    /// Number of the commit that took it.
    batch: u64,
    /// When it was taken, and when its verdict was final.
    pub(super) taken_ms: u64,
    pub(super) settled_ms: u64,
}

/// What is wrong with a resource: the promise, the event, and what.
pub(super) type Finding = (&'static str, Option<u32>, String);

/// What must be stored of a resource in the end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) version: Option<Vec<u8>>,
    /// The event whose body is the state, where only one may be.
    pub(super) event: Option<EventId>,
    pub(super) deleted: Option<bool>,
    /// Members of a state that is put together.
    pub(super) members: Option<BTreeMap<String, String>>,
    /// How many events were applied, where that can be said.
    pub(super) applied: Option<i64>,
}

/// Everything that was taken for each resource, in the order of commits.
pub(super) fn taken<'a>(
    prepared: &'a Prepared,
    known: &'a Known,
    rows: &HashMap<EventId, &EventRow>,
) -> Vec<Vec<Taken<'a>>> {
    let mut taken: Vec<Vec<Taken<'a>>> = prepared.plan.resources.iter().map(|_| Vec::new()).collect();
    for claim in &known.claims {
        let planned = prepared.planned(claim.event);
        if planned.ignored || matches!(claim.outcome, Outcome::Repeat { .. }) {
            continue;
        }
        let row = rows.get(&claim.first);
        let settled_ms = row.and_then(|row| row.settled_at_ms).map(|at_ms| (at_ms - EPOCH_MS).max(0).cast_unsigned());
        let order = prepared.order(planned.policy);
        let guards = planned.guards.iter().zip(&prepared.template(claim.event).guards).enumerate();
        for (number, (guard, real)) in guards {
            taken[guard.resource as usize].push(Taken {
                event: Some(claim.event),
                id: claim.first,
                version: real.version.as_ref().map(Version::bytes),
                place: place(order, planned, real.version.as_ref()),
                first: number == 0,
                // what only comes along lives on
                deletes: planned.deletes && number == 0,
                outcome: claim.outcome,
                verdict: row.map_or(Verdict::Ignored, |row| row.verdict),
                batch: claim.batch,
                taken_ms: claim.at_ms,
                settled_ms: settled_ms.unwrap_or(claim.at_ms),
            });
        }
    }
    for fetched in &known.fetched {
        if let Some(taken) = taken.get_mut(fetched.resource as usize) {
            taken.push(of_fetched(fetched));
        }
    }
    taken
}

fn of_fetched(fetched: &Fetched) -> Taken<'_> {
    let applied = matches!(fetched.outcome, Outcome::Applied { .. });
    Taken {
        event: None,
        id: fetched.id,
        version: fetched.version.as_deref(),
        place: fetched.number,
        first: true,
        deletes: fetched.deletes,
        outcome: fetched.outcome,
        verdict: if applied { Verdict::Applied } else { Verdict::Stale },
        batch: u64::MAX,
        taken_ms: fetched.at_ms,
        settled_ms: fetched.at_ms,
    }
}

/// Its place in a row without gaps.
fn place(order: &Order, planned: &super::plan::PlannedEvent, version: Option<&Version>) -> Option<u64> {
    match &order.policy {
        Policy::Transition { .. } => Some(planned.truth),
        _ => version?.number()?.try_into().ok(),
    }
}

/// Everything that is wrong with the verdicts of a resource.
pub(super) fn wrong_verdicts(order: &Order, strict: bool, taken: &[Taken<'_>]) -> Vec<Finding> {
    if !taken.iter().any(|one| one.first) {
        return Vec::new();
    }
    match (&order.policy, order.merge) {
        (Policy::Newest { .. }, Merge::Replace) => guarded(taken),
        (Policy::Sequence { start, wait }, _) => waiting::in_row(*wait, (*start).cast_unsigned(), true, taken),
        (Policy::Transition { wait, .. }, _) => waiting::in_row(*wait, 1, strict, taken),
        (Policy::Window { window_ms, .. }, _) => waiting::in_window(window_ms.cast_unsigned(), taken),
        (Policy::Refetch, _) => waiting::signals(taken),
        _ => Vec::new(),
    }
}

/// Under `newest`: nothing older over newer, nothing newer called stale.
fn guarded(taken: &[Taken<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, one) in taken.iter().enumerate().filter(|(_, one)| one.first) {
        let Some(version) = one.version else { continue };
        let before = taken[..place].iter().filter(|other| other.batch < one.batch);
        let newer_before = before.filter_map(|other| other.version).any(|other| other > version);
        let together = taken.iter().filter(|other| other.batch <= one.batch && other.id != one.id);
        let newest = together.filter_map(|other| other.version).all(|other| other < version);
        let (promise, what) = match one.verdict {
            Verdict::Applied if newer_before => ("I5", "was applied over a newer version"),
            Verdict::Stale if newest => ("I17", "was called stale and is newer than all before it"),
            _ => continue,
        };
        found.push((promise, one.event, format!("its event {:?} {what}", one.place)));
    }
    found
}

/// What must be stored in the end.
pub(super) fn expected(order: &Order, taken: &[Taken<'_>], bodies: &Prepared) -> Expected {
    let first_of_all = taken.iter().all(|one| one.first);
    let holds = first_of_all && !matches!(order.policy, Policy::Newest { .. } | Policy::Arrival);
    if holds {
        return after_waiting(order, taken);
    }
    let newest = taken.iter().filter_map(|one| one.version).max();
    let mut tied = taken.iter().filter(|one| one.version == newest);
    let state = match (&order.policy, order.tie()) {
        (Policy::Arrival, _) if first_of_all => last_come(taken),
        (_, Tie::Keep) => tied.next(),
        (_, Tie::Apply) => tied.next_back(),
    };
    let fields = first_of_all && order.merge == Merge::Fields;
    let applied = taken.iter().filter(|one| one.verdict == Verdict::Applied).count() as i64;
    Expected {
        version: newest.map(<[u8]>::to_vec),
        event: state.map(|one| one.id).filter(|_| !fields),
        deleted: state.map(|one| one.deletes).filter(|_| !fields),
        members: fields.then(|| members(taken, bodies)),
        applied: first_of_all.then_some(applied),
    }
}

/// Where events wait: the state of the last that was applied, which is the newest of those.
fn after_waiting(order: &Order, taken: &[Taken<'_>]) -> Expected {
    let signals = order.policy == Policy::Refetch;
    let applied = || taken.iter().filter(|one| one.verdict == Verdict::Applied && (!signals || one.event.is_none()));
    let last = applied().max_by_key(|one| one.version);
    let only = applied().filter(|one| Some(one.version) == last.map(|last| last.version)).count() == 1;
    Expected {
        version: last.and_then(|last| last.version).map(<[u8]>::to_vec),
        event: last.map(|last| last.id).filter(|_| only),
        deleted: last.map(|last| last.deletes).filter(|_| only),
        members: None,
        applied: (!signals).then(|| applied().count() as i64),
    }
}

/// The last of the last commit; within a commit events are taken in version order, those without one last.
fn last_come<'a, 'b>(taken: &'b [Taken<'a>]) -> Option<&'b Taken<'a>> {
    let last = taken.last()?.batch;
    let together = taken.iter().filter(|one| one.batch == last);
    together.max_by_key(|one| (one.version.is_none(), one.version))
}

/// Each member as the newest event that sets it says, unless a newer one deleted everything.
fn members(taken: &[Taken<'_>], bodies: &Prepared) -> BTreeMap<String, String> {
    let floor = taken.iter().filter(|one| one.deletes).filter_map(|one| one.version).max();
    let mut members: BTreeMap<String, (Option<&[u8]>, String)> = BTreeMap::new();
    for one in taken.iter().filter(|one| !one.deletes && one.version > floor) {
        let Some(event) = one.event else { continue };
        let Some(patch) = &bodies.template(event).patch else { continue };
        for (name, value) in &patch.0 {
            let newer = members.get(name).is_none_or(|(version, _)| one.version > *version);
            if newer {
                members.insert(name.clone(), (one.version, value.clone()));
            }
        }
    }
    members.into_iter().map(|(name, (_, value))| (name, value)).collect()
}
