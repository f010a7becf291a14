//! The model: keys and states in memory, decided by `rules` alone.

use std::collections::{BTreeMap, HashMap};

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, EventId, Intent};
use tidegate_actors::rules::judge::{Item, Judgement, Push, State, judge};
use tidegate_actors::rules::key::{BodyDigest, KeyHash, ResourceHash};

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
        let items: Vec<Item<'_>> = group.iter().map(|&(index, at)| batch[index].item(at)).collect();
        let before = self.states.get(&hash).cloned().unwrap_or_default();
        let judged = judge(before.clone(), &items, 0, Push::None).expect("room for it");
        for (&(index, at), judgement) in group.iter().zip(&judged.judgements) {
            if at == 0 {
                outcomes[index] = match judgement {
                    Judgement::Applied { tie, .. } => Outcome::Applied { tie: *tie },
                    Judgement::Stale { tie, .. } => Outcome::Stale { tie: *tie },
                    Judgement::Held(_) | Judgement::Expired { .. } => Outcome::Held,
                };
            }
        }
        if judged.state != before {
            self.states.insert(hash, judged.state);
        }
    }
}
