//! Load ▸ decide ▸ write: what the rules say of newly claimed events, given the states they meet.

use std::collections::{BTreeMap, HashMap};

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, Intent, Verdict};
use tidegate_actors::rules::judge::{Push, State};
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::plan::{Known, Loaded, plan};
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
pub fn decide<'a>(
    events: &[&'a Event],
    stored: &HashMap<ResourceHash, Version>,
) -> Result<Decided<'a>, tidegate_actors::rules::judge::Unjudged> {
    let known = |version: &Version| {
        let state = State { version: Some(version.clone()), ..State::default() };
        Known { state, ..Known::default() }
    };
    let resources = stored.iter().map(|(hash, version)| (*hash, known(version))).collect();
    let plan = plan(events, &Loaded { now_ms: 0, resources }, Push::None)?;
    let outcomes = plan.recorded.iter().map(|recorded| recorded.outcome).collect();
    let changed = plan.states.into_iter().filter_map(|changed| {
        let event = events.iter().find(|event| Some(event.id) == changed.state.event)?;
        let guard = event.guards.iter().find(|guard| guard.resource.hash == changed.hash)?;
        Some(Changed { guard, version: changed.state.version, event, applied: changed.state.applied })
    });
    Ok(Decided { outcomes, changed: changed.collect() })
}

/// The word and the tie mark that an outcome leaves in the event's row.
#[must_use]
pub fn record(outcome: Outcome) -> (Verdict, bool) {
    match outcome {
        Outcome::Applied { tie } => (Verdict::Applied, tie),
        Outcome::Stale { tie } => (Verdict::Stale, tie),
        Outcome::Held => (Verdict::Held, false),
        Outcome::Ignored => (Verdict::Ignored, false),
        Outcome::Repeat { .. } | Outcome::Duplicate { .. } => (Verdict::Duplicate, false),
    }
}

/// The guards that matter: none of an ignored event, and each resource once.
fn guards(event: &Event) -> impl Iterator<Item = &Guard> {
    let all: &[Guard] = if event.intent == Intent::Apply { &event.guards } else { &[] };
    let seen_before =
        |index: usize| all[..index].iter().any(|earlier| earlier.resource.hash == all[index].resource.hash);
    all.iter().enumerate().filter(move |&(index, _)| !seen_before(index)).map(|(_, guard)| guard)
}
