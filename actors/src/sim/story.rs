//! The story of a run, resource by resource, for reports and pictures.

use std::collections::HashMap;

use super::check::Stored;
use super::clock::EPOCH_MS;
use super::ledger::Known;
use super::outcome::{Arrival, FetchedState, Timeline};
use super::prepared::Prepared;
use crate::ports::{EventRow, Outcome, ResourceRow};
use crate::rules::event::{EventId, Verdict};

/// How long events took.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// The longest time between an event's happening and its effect.
    pub(super) worst_ms: u64,
    /// Events that were held, and the longest time that one was.
    pub(super) held: u64,
    pub(super) worst_hold_ms: u64,
}

/// How long events took.
pub(super) fn delays(prepared: &Prepared, known: &Known, rows: &HashMap<EventId, &EventRow>) -> Delays {
    let mut delays = Delays::default();
    for claim in &known.claims {
        let Some(row) = rows.get(&claim.first) else { continue };
        let settled_ms = settled_ms(row).unwrap_or(claim.at_ms);
        if row.verdict == Verdict::Applied {
            let delay_ms = settled_ms.saturating_sub(prepared.planned(claim.event).at_ms);
            delays.worst_ms = delays.worst_ms.max(delay_ms);
        }
        if claim.outcome == Outcome::Held {
            delays.held += 1;
            delays.worst_hold_ms = delays.worst_hold_ms.max(settled_ms.saturating_sub(claim.at_ms));
        }
    }
    delays
}

fn settled_ms(row: &EventRow) -> Option<u64> {
    row.settled_at_ms.map(|at_ms| (at_ms - EPOCH_MS).max(0).cast_unsigned())
}

/// Everything that came for each resource.
pub(super) fn timelines(prepared: &Prepared, known: &Known, stored: &Stored) -> Vec<Timeline> {
    let events: HashMap<EventId, &EventRow> = stored.events.iter().map(|row| (row.id, row)).collect();
    let rows: HashMap<_, &ResourceRow> =
        stored.resources.iter().map(|row| (prepared.resource(row.hash), row)).collect();
    let mut policies: HashMap<u32, u32> = HashMap::new();
    for event in &prepared.plan.events {
        if let Some(guard) = event.guards.first() {
            policies.entry(guard.resource).or_insert(event.policy);
        }
    }
    let truth = |state: EventId| {
        let fetched = || known.fetched.iter().find(|fetched| fetched.id == state).and_then(|fetched| fetched.number);
        known.event(state).map(|event| prepared.planned(event).truth).or_else(fetched)
    };
    let timeline = |(index, resource): (u32, &super::plan::PlannedResource)| Timeline {
        resource: index,
        name: format!("{}/{}", resource.kind, resource.id),
        policy: policies
            .get(&index)
            .map_or("along", |policy| prepared.plan.policies[*policy as usize].name())
            .to_owned(),
        arrivals: Vec::new(),
        fetched: Vec::new(),
        version: rows.get(&Some(index)).and_then(|row| row.version.clone()),
        deleted: rows.get(&Some(index)).is_some_and(|row| row.deleted),
        state_truth: rows.get(&Some(index)).and_then(|row| row.event).and_then(truth),
    };
    let mut timelines: Vec<Timeline> = (0..).zip(&prepared.plan.resources).map(timeline).collect();
    for attempt in &known.attempts {
        let planned = prepared.planned(attempt.event);
        let Some(guard) = planned.guards.first() else { continue };
        let claim = known.claim(&prepared.template(attempt.event).key.hash).filter(|claim| claim.first == attempt.id);
        let row = claim.and_then(|claim| events.get(&claim.first));
        timelines[guard.resource as usize].arrivals.push(Arrival {
            event: attempt.event,
            happened_at_ms: planned.at_ms,
            at_ms: attempt.at_ms,
            node: attempt.node,
            version: guard.version.as_ref().map(|version| version.text.clone()),
            truth: planned.truth,
            answer: attempt.answer.as_ref().map(|(word, _)| word.clone()),
            answered_at_ms: attempt.answer.as_ref().map(|(_, at_ms)| *at_ms),
            verdict: row.map(|row| row.verdict.word().to_owned()),
            settled_at_ms: claim.map(|claim| row.and_then(|row| settled_ms(row)).unwrap_or(claim.at_ms)),
            why: row.and_then(|row| row.why.clone()),
        });
    }
    for fetched in known.fetched.iter().filter(|fetched| matches!(fetched.outcome, Outcome::Applied { .. })) {
        let Some(timeline) = timelines.get_mut(fetched.resource as usize) else { continue };
        let version = events.get(&fetched.id).and_then(|row| row.version.clone());
        timeline.fetched.push(FetchedState { at_ms: fetched.at_ms, version });
    }
    timelines
}
