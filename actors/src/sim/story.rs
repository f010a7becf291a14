//! The story of a run, resource by resource, for reports and pictures.

use std::collections::HashMap;

use super::check::{Stored, policies};
use super::ledger::{Known, applies, word};
use super::outcome::{Arrival, Timeline};
use super::prepared::Prepared;
use crate::ports::ResourceRow;

/// The longest time between an event's happening and its effect.
pub(super) fn worst_delay_ms(prepared: &Prepared, known: &Known) -> u64 {
    let applied = known.claims.iter().filter(|claim| applies(&claim.outcome));
    applied.map(|claim| claim.at_ms.saturating_sub(prepared.planned(claim.event).at_ms)).max().unwrap_or(0)
}

/// Everything that came for each resource.
pub(super) fn timelines(prepared: &Prepared, known: &Known, stored: &Stored) -> Vec<Timeline> {
    let rows: HashMap<_, &ResourceRow> =
        stored.resources.iter().map(|row| (prepared.resource(row.hash), row)).collect();
    let policies = policies(prepared);
    let timeline = |(index, resource): (u32, &super::plan::PlannedResource)| Timeline {
        resource: index,
        name: format!("{}/{}", resource.kind, resource.id),
        policy: prepared.plan.policies[policies[index as usize] as usize].name().to_owned(),
        arrivals: Vec::new(),
        version: rows.get(&Some(index)).and_then(|row| row.version.clone()),
        deleted: rows.get(&Some(index)).is_some_and(|row| row.deleted),
    };
    let mut timelines: Vec<Timeline> = (0..).zip(&prepared.plan.resources).map(timeline).collect();
    for attempt in &known.attempts {
        let planned = prepared.planned(attempt.event);
        let Some(guard) = planned.guards.first() else { continue };
        let claim = known.claim(&prepared.template(attempt.event).key.hash).filter(|claim| claim.first == attempt.id);
        timelines[guard.resource as usize].arrivals.push(Arrival {
            event: attempt.event,
            happened_at_ms: planned.at_ms,
            at_ms: attempt.at_ms,
            node: attempt.node,
            version: guard.version.as_ref().map(|version| version.text.clone()),
            truth: planned.truth,
            answer: attempt.answer.as_ref().map(|(word, _)| word.clone()),
            answered_at_ms: attempt.answer.as_ref().map(|(_, at_ms)| *at_ms),
            verdict: claim.map(|claim| word(&claim.outcome).to_owned()),
            settled_at_ms: claim.map(|claim| claim.at_ms),
            why: None,
        });
    }
    timelines
}
