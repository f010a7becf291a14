//! The model: keys and states in memory, decided by `rules` alone.

use std::collections::{BTreeMap, HashMap};

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, EventId, Intent};
use tidegate_actors::rules::key::{BodyDigest, KeyHash, ResourceHash};
use tidegate_actors::rules::order::{Candidate, Decision, decide_resource};
use tidegate_actors::rules::version::Version;

/// A resource as the model has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) version: Option<Version>,
    pub(crate) event: EventId,
    pub(crate) deleted: bool,
    pub(crate) applied: i64,
}

/// What a right store would hold.
#[derive(Default)]
pub(crate) struct Model {
    keys: HashMap<KeyHash, (EventId, BodyDigest)>,
    pub(crate) states: BTreeMap<ResourceHash, State>,
}

impl Model {
    /// Commits a batch; outcomes in its order.
    pub(crate) fn commit(&mut self, batch: &[Event]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut groups: BTreeMap<ResourceHash, Vec<(usize, usize)>> = BTreeMap::new();
        for (index, event) in batch.iter().enumerate() {
            if let Some(&(first, digest)) = self.keys.get(&event.key.hash) {
                outcomes.push(Outcome::Duplicate { first, conflict: digest != event.digest });
                continue;
            }
            self.keys.insert(event.key.hash, (event.id, event.digest));
            if event.intent != Intent::Apply {
                outcomes.push(Outcome::Ignored);
                continue;
            }
            outcomes.push(Outcome::Applied { tie: false });
            for (at, guard) in event.guards.iter().enumerate() {
                groups.entry(guard.resource.hash).or_default().push((index, at));
            }
        }
        for (hash, group) in groups {
            self.decide(batch, hash, &group, &mut outcomes);
        }
        outcomes
    }

    fn decide(&mut self, batch: &[Event], hash: ResourceHash, group: &[(usize, usize)], outcomes: &mut [Outcome]) {
        let candidates: Vec<Candidate<'_>> = group
            .iter()
            .map(|&(index, at)| Candidate {
                policy: batch[index].policy,
                version: batch[index].guards[at].version.as_ref(),
            })
            .collect();
        let before = self.states.get(&hash).cloned();
        let stored = before.as_ref().and_then(|state| state.version.as_ref());
        let decided = decide_resource(stored, &candidates);
        for (&(index, at), decision) in group.iter().zip(&decided.decisions) {
            if at == 0 {
                outcomes[index] = match *decision {
                    Decision::Apply { tie } => Outcome::Applied { tie },
                    Decision::Stale { tie } => Outcome::Stale { tie },
                };
            }
        }
        let Some(winner) = decided.state else { return };
        let event = &batch[group[winner].0];
        let more = decided.decisions.iter().filter(|decision| matches!(decision, Decision::Apply { .. })).count();
        let state = State {
            version: decided.version.cloned(),
            event: event.id,
            deleted: event.deletes,
            applied: before.as_ref().map_or(0, |state| state.applied) + i64::try_from(more).expect("few events"),
        };
        self.states.insert(hash, state);
    }
}
