//! What a run tells: counts, violations, reached states, and the story of each resource.
//!
//! Owns plain data only. Everything here can be written as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trace::TraceLine;

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// What happened, in order; empty when it was not asked for.
    pub trace: Vec<TraceLine>,
    /// The hash of everything that happened: the same for the same plan, always.
    pub trace_hash: u64,
    /// What did not hold; empty when the run passed.
    pub violations: Vec<Violation>,
    /// How often what was seen.
    pub reached: Reached,
    /// Figures of the run.
    pub counts: RunCounts,
    /// The story of each resource; empty when it was not asked for.
    pub resources: Vec<Timeline>,
}

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Events of the plan, without those that were never sent.
    pub events: u64,
    /// Requests that reached the gate.
    pub deliveries: u64,
    /// Faults of the plan.
    pub faults: u64,
    /// Rows of events by verdict, at the end.
    pub rows: BTreeMap<String, u64>,
    /// Answers by verdict or reason.
    pub answers: BTreeMap<String, u64>,
    /// Commits that the store did.
    pub commits: u64,
    /// Lives of processes.
    pub lives: u64,
    /// How long it took in driven time, in milliseconds.
    pub ended_at_ms: u64,
    /// The longest time between an event's happening and its being applied.
    pub worst_delay_ms: u64,
    /// Events that were held at some time.
    pub held: u64,
    /// The longest time that one was held.
    pub worst_hold_ms: u64,
}

/// Something that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The promise it breaks, such as `I3`; `vacuous` when a run reached too little to mean anything.
    pub invariant: String,
    /// What was found, and what was expected.
    pub what: String,
    /// When it was seen, in milliseconds since the start.
    pub at_ms: u64,
    /// The event, as an index into the plan's events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u32>,
    /// The resource, as an index into the plan's resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<u32>,
}

/// How often what was seen, by name: faults that fired (`fault store-away`), verdicts (`verdict stale`),
/// refusals (`refused overloaded`), kills, retries and more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reached(pub BTreeMap<String, u64>);

impl Reached {
    /// Counts one more.
    pub fn see(&mut self, what: &str) {
        self.add(what, 1);
    }

    /// Counts several more.
    pub fn add(&mut self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.0.get_mut(what) {
            *known += count;
        } else {
            self.0.insert(what.to_owned(), count);
        }
    }

    /// How often it was seen.
    #[must_use]
    pub fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds what another run has seen.
    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            self.add(what, *count);
        }
    }
}

/// The story of one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The resource, as an index into the plan's resources.
    pub resource: u32,
    /// Its type and id.
    pub name: String,
    /// The word for its policy.
    pub policy: String,
    /// Everything that came for it, in the order of arrival.
    pub arrivals: Vec<Arrival>,
    /// States that the engine fetched for it and applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<FetchedState>,
    /// The stored version at the end.
    pub version: Option<String>,
    /// A delete was the last thing applied.
    pub deleted: bool,
    /// The place in the true order of the event whose state it holds at the end.
    pub state_truth: Option<u64>,
}

/// A state that the engine fetched and applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedState {
    /// When, in milliseconds since the start.
    pub at_ms: u64,
    /// Its version.
    pub version: Option<String>,
}

/// One event's arrival at the gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// The event, as an index into the plan's events.
    pub event: u32,
    /// When it happened at the sender, in milliseconds since the start.
    pub happened_at_ms: u64,
    /// When this request reached the gate.
    pub at_ms: u64,
    /// The node.
    pub node: u32,
    /// Its version.
    pub version: Option<String>,
    /// Its place in the true order.
    pub truth: u64,
    /// What became of it: a verdict, or the reason why it was refused; `None` when nobody heard.
    pub answer: Option<String>,
    /// When that was known.
    pub answered_at_ms: Option<u64>,
    /// What became of the event in the end, where this is the arrival that claimed the key.
    pub verdict: Option<String>,
    /// When its final verdict was committed; later than the answer for one that was held.
    pub settled_at_ms: Option<u64>,
    /// Why.
    pub why: Option<String>,
}

/// What one policy does with a stream, against the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The policy, by name.
    pub policy: String,
    /// Rows of events by verdict.
    pub rows: BTreeMap<String, u64>,
    /// Events that should have taken effect and never did.
    pub lost: Vec<Misfortune>,
    /// Events that took effect and should not have, or out of turn.
    pub wrong: Vec<Misfortune>,
    /// Resources whose final state is not the newest that happened.
    pub wrong_states: u64,
    /// The longest time between an event's happening and its being applied.
    pub worst_delay_ms: u64,
    /// What the run itself violated; empty for every policy that keeps its promises.
    pub violations: Vec<Violation>,
}

/// An event that a policy lost or applied wrongly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfortune {
    /// The event, as an index into the plan's events.
    pub event: u32,
    /// Its key.
    pub key: String,
    /// Type and id of its resource.
    pub resource: String,
    /// Its place in the true order.
    pub truth: u64,
    /// Its version.
    pub version: Option<String>,
    /// What went wrong, in words.
    pub what: String,
}

/// Many seeds of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Many {
    /// Seeds that were run.
    pub seeds: u64,
    /// Events in all.
    pub events: u64,
    /// Requests that reached the gate in all.
    pub deliveries: u64,
    /// Faults that were planned in all.
    pub faults: u64,
    /// Seeds that failed, each with what it violated.
    pub failed: Vec<FailedSeed>,
    /// What was seen in all of them.
    pub reached: Reached,
    /// What was never seen, although the scenario asks for it: then the whole means nothing.
    pub never_reached: Vec<String>,
    /// One hash over the traces of all seeds, in order.
    pub trace_hash: u64,
}

impl Many {
    /// Everything held, and everything was reached.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed.is_empty() && self.never_reached.is_empty()
    }
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// What it violated.
    pub violations: Vec<Violation>,
}

/// How far a run over many seeds is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seeds that are done.
    pub done: u64,
    /// Seeds in all.
    pub of: u64,
    /// Seeds that failed so far.
    pub failed: u64,
    /// Seeds a second so far.
    pub rate: f64,
}
