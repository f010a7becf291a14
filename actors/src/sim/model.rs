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
use super::plan::PlannedEvent;
use super::policy::PolicyChoice;
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
        let policy = &prepared.plan.policies[planned.policy as usize];
        let guards = planned.guards.iter().zip(&prepared.template(claim.event).guards).enumerate();
        for (number, (guard, real)) in guards {
            taken[guard.resource as usize].push(Taken {
                event: Some(claim.event),
                id: claim.first,
                version: real.version.as_ref().map(Version::bytes),
                place: place(policy, order, planned, real.version.as_ref()),
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

/// Its place in a row without gaps: the number of a sequence, or that of a step where steps come one by one.
fn place(policy: &PolicyChoice, order: &Order, planned: &PlannedEvent, version: Option<&Version>) -> Option<u64> {
    match (policy, &order.policy) {
        (PolicyChoice::Transition { steps, .. }, _) => {
            let step = steps.iter().position(|step| Some(step) == planned.step.as_ref())?;
            Some(step as u64 + 1)
        }
        (_, Policy::Transition { .. }) => None,
        _ => version?.number()?.try_into().ok(),
    }
}

/// What may be said of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Its events are all of this policy, and it is the first resource of each.
    First(u32),
    /// It only comes along with events of other resources.
    Along,
    /// Some of both, or of several policies, or of a counter that may start again: nothing but I5.
    Mixed,
}

/// What may be said of each resource.
pub(super) fn roles(prepared: &Prepared) -> Vec<Role> {
    let mut roles: Vec<Option<Role>> = vec![None; prepared.plan.resources.len()];
    for event in &prepared.plan.events {
        for (number, guard) in event.guards.iter().enumerate() {
            let counts_anew = prepared.order(event.policy).epoch_on.is_some();
            let role = match number {
                _ if counts_anew => Role::Mixed,
                0 => Role::First(event.policy),
                _ => Role::Along,
            };
            let known = roles[guard.resource as usize].get_or_insert(role);
            if *known != role {
                *known = Role::Mixed;
            }
        }
    }
    roles.into_iter().map(|role| role.unwrap_or(Role::Mixed)).collect()
}

/// Everything that is wrong with the verdicts of a resource whose events are all of one policy.
pub(super) fn wrong_verdicts(order: &Order, strict: bool, taken: &[Taken<'_>]) -> Vec<Finding> {
    match (&order.policy, order.merge) {
        (Policy::Newest { .. }, Merge::Replace) => guarded(taken),
        (Policy::Newest { .. }, Merge::Fields) => Vec::new(),
        (Policy::Arrival, _) => {
            let refused = taken.iter().filter(|one| one.verdict != Verdict::Applied);
            refused.map(|one| ("I17", one.event, format!("its event is {}", one.verdict))).collect()
        }
        (Policy::Sequence { start, wait }, _) => waiting::in_row(*wait, (*start).cast_unsigned(), true, taken),
        (Policy::Transition { wait, .. }, _) => waiting::in_row(*wait, 1, strict, taken),
        (Policy::Window { window_ms, .. }, _) => waiting::in_window(window_ms.cast_unsigned(), taken),
        (Policy::Refetch, _) => waiting::signals(taken),
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

/// What must be stored in the end of a resource whose events are all of one policy.
pub(super) fn expected(order: &Order, taken: &[Taken<'_>], bodies: &Prepared) -> Expected {
    let newest = taken.iter().filter_map(|one| one.version).max();
    let mut tied = taken.iter().filter(|one| one.version == newest);
    let state = match order.policy {
        Policy::Newest { tie: Tie::Keep } => tied.next(),
        Policy::Newest { tie: Tie::Apply } => tied.next_back(),
        Policy::Arrival => last_come(taken),
        _ => return after_waiting(order, taken),
    };
    // one without a version applies whenever it comes
    let some_have_none = taken.iter().any(|one| one.version.is_none());
    let unsaid = order.merge == Merge::Fields || (some_have_none && order.policy != Policy::Arrival);
    Expected {
        version: newest.map(<[u8]>::to_vec),
        event: state.map(|one| one.id).filter(|_| !unsaid),
        deleted: state.map(|one| one.deletes).filter(|_| !unsaid),
        members: (order.merge == Merge::Fields).then(|| members(taken, bodies)),
        applied: Some(taken.iter().filter(|one| one.verdict == Verdict::Applied).count() as i64),
    }
}

/// What must be stored in the end of a resource that only comes along: the newest of it.
pub(super) fn expected_along(taken: &[Taken<'_>]) -> Expected {
    let newest = taken.iter().filter_map(|one| one.version).max();
    let mut tied = taken.iter().filter(|one| one.version == newest);
    let state = tied.next().filter(|_| tied.next().is_none());
    Expected {
        version: newest.map(<[u8]>::to_vec),
        event: state.map(|one| one.id).filter(|_| newest.is_some()),
        deleted: Some(false),
        ..Expected::default()
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
