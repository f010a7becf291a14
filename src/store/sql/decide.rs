//! Load ▸ decide ▸ write: what the rules say of newly claimed events, given the states they meet.

use std::collections::{BTreeMap, HashMap};

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, Intent, Verdict};
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::order::{Candidate, Decision, decide_resource};
use tidegate_actors::rules::version::Version;

use tidegate_actors::rules::event::Guard;

/// A resource's row after the batch.
#[derive(Debug)]
pub struct Changed<'a> {
    /// The resource, with the guard it was changed by.
    pub guard: &'a Guard,
    /// The stored version afterwards.
    pub version: Option<Version>,
    /// The event whose body is the state now.
    pub event: &'a Event,
    /// How many events of the batch were applied to it.
    pub applied: i64,
}

/// What a batch comes to.
#[derive(Debug)]
pub struct Decided<'a> {
    /// One outcome for each event, in the order given; never `Duplicate`.
    pub outcomes: Vec<Outcome>,
    /// The rows to write, sorted by resource hash: the order of locks.
    pub changed: Vec<Changed<'a>>,
}

/// The resources whose rows must be loaded and locked for these events, sorted by hash.
#[must_use]
pub fn resources<'a>(events: &[&'a Event]) -> BTreeMap<ResourceHash, (&'a Event, &'a Guard)> {
    let mut resources = BTreeMap::new();
    for event in events {
        for guard in guards(event) {
            resources.entry(guard.resource.hash).or_insert((*event, guard));
        }
    }
    resources
}

/// Decides about claimed events, given in the order they came, over the stored versions of their resources.
#[must_use]
pub fn decide<'a>(events: &[&'a Event], stored: &HashMap<ResourceHash, Version>) -> Decided<'a> {
    let mut groups: BTreeMap<ResourceHash, Vec<(usize, &'a Guard)>> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        for guard in guards(event) {
            groups.entry(guard.resource.hash).or_default().push((index, guard));
        }
    }

    let mut outcomes: Vec<Outcome> = events.iter().map(|event| unguarded(event)).collect();
    let mut changed = Vec::with_capacity(groups.len());
    for (hash, group) in &groups {
        let candidates: Vec<Candidate<'_>> = group
            .iter()
            .map(|&(index, guard)| Candidate { policy: events[index].policy, version: guard.version.as_ref() })
            .collect();
        let decided = decide_resource(stored.get(hash), &candidates);
        for (&(index, guard), &decision) in group.iter().zip(&decided.decisions) {
            let first = events[index].guards.first();
            if first.is_some_and(|first| std::ptr::eq(first, guard)) {
                outcomes[index] = outcome(decision);
            }
        }
        let applied = decided.decisions.iter().filter(|decision| matches!(decision, Decision::Apply { .. })).count();
        if let Some(state) = decided.state {
            let (index, guard) = group[state];
            let applied = i64::try_from(applied).unwrap_or(i64::MAX);
            changed.push(Changed { guard, version: decided.version.cloned(), event: events[index], applied });
        }
    }
    Decided { outcomes, changed }
}

/// The word and the tie mark that an outcome leaves in the event's row.
#[must_use]
pub fn record(outcome: Outcome) -> (Verdict, bool) {
    match outcome {
        Outcome::Applied { tie } => (Verdict::Applied, tie),
        Outcome::Stale { tie } => (Verdict::Stale, tie),
        Outcome::Ignored => (Verdict::Ignored, false),
        Outcome::Duplicate { .. } => (Verdict::Duplicate, false),
    }
}

/// The guards that matter: none of an ignored event, and each resource once.
fn guards(event: &Event) -> impl Iterator<Item = &Guard> {
    let all: &[Guard] = if event.intent == Intent::Apply { &event.guards } else { &[] };
    let seen_before =
        |index: usize| all[..index].iter().any(|earlier| earlier.resource.hash == all[index].resource.hash);
    all.iter().enumerate().filter(move |&(index, _)| !seen_before(index)).map(|(_, guard)| guard)
}

fn unguarded(event: &Event) -> Outcome {
    match event.intent {
        Intent::Apply => Outcome::Applied { tie: false },
        Intent::Ignore(_) => Outcome::Ignored,
    }
}

fn outcome(decision: Decision) -> Outcome {
    match decision {
        Decision::Apply { tie } => Outcome::Applied { tie },
        Decision::Stale { tie } => Outcome::Stale { tie },
    }
}
