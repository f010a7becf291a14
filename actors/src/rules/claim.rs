//! Claims of keys: who took a key, and what an event is that meets a claim.

use std::collections::HashMap;

use super::event::{Event, EventId, Outcome};
use super::key::{BodyDigest, KeyHash};

/// Who claimed a key, as the key table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The event that claimed it.
    pub first: EventId,
    /// The digest of that event's body.
    pub digest: BodyDigest,
}

impl Claim {
    /// What an event is that met this claim.
    #[must_use]
    pub fn meets(self, event: &Event) -> Outcome {
        Outcome::Duplicate { first: self.first, conflict: self.digest != event.digest }
    }

    /// The claim that an event makes.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        Self { first: event.id, digest: event.digest }
    }
}

/// The events of a batch whose key comes first in it, and the others.
#[derive(Debug, Default)]
pub struct Folded {
    /// Indexes of the first event of each key, sorted by key hash: the order of locks.
    pub distinct: Vec<usize>,
    /// Indexes of later events of a key, each with the index of the first.
    pub repeats: Vec<(usize, usize)>,
}

/// Folds a batch: of events with one key, the first wins.
#[must_use]
pub fn fold(batch: &[Event]) -> Folded {
    let mut firsts: HashMap<KeyHash, usize> = HashMap::with_capacity(batch.len());
    let mut folded = Folded { distinct: Vec::with_capacity(batch.len()), repeats: Vec::new() };
    for (index, event) in batch.iter().enumerate() {
        let first = *firsts.entry(event.key.hash).or_insert(index);
        if first == index {
            folded.distinct.push(index);
        } else {
            folded.repeats.push((index, first));
        }
    }
    folded.distinct.sort_unstable_by_key(|&index| batch[index].key.hash);
    folded
}

/// A batch beside the claims it met.
#[derive(Debug, Default)]
pub struct Met<'a> {
    /// What is known from the claims alone; `None` is fresh and is to be judged.
    pub outcomes: Vec<Option<Outcome>>,
    /// The fresh events, in the order they came.
    pub fresh: Vec<&'a Event>,
    /// Claims to write: those of fresh events and of repeats under a new id.
    pub claims: Vec<(KeyHash, Claim)>,
    /// Same key, other bytes: kept aside beside the event that holds the key (I7).
    pub conflicts: Vec<(&'a Event, EventId)>,
    /// New id, same effect key: recorded as a duplicate of that event.
    pub repeats: Vec<(&'a Event, EventId)>,
}

/// Sorts a batch by the claims that are there, and makes the new ones: the first of a key wins, also within
/// the batch. `claims` holds idempotency and effect keys alike; their hashes never meet.
#[must_use]
pub fn meet<'a>(batch: &'a [Event], claims: &mut HashMap<KeyHash, Claim>) -> Met<'a> {
    let mut met = Met::default();
    for event in batch {
        let outcome = claims.get(&event.key.hash).map(|claim| claim.meets(event));
        if let Some(outcome) = outcome {
            if let Outcome::Duplicate { first, conflict: true } = outcome {
                met.conflicts.push((event, first));
            }
            met.outcomes.push(Some(outcome));
            continue;
        }
        let mut claim = |hash: KeyHash| {
            claims.insert(hash, Claim::of(event));
            met.claims.push((hash, Claim::of(event)));
        };
        claim(event.key.hash);
        let Some(effect) = &event.effect_key else {
            met.fresh.push(event);
            met.outcomes.push(None);
            continue;
        };
        match claims.get(&effect.hash).copied() {
            Some(first) => {
                met.repeats.push((event, first.first));
                met.outcomes.push(Some(Outcome::Repeat { first: first.first }));
            }
            None => {
                claims.insert(effect.hash, Claim::of(event));
                met.claims.push((effect.hash, Claim::of(event)));
                met.fresh.push(event);
                met.outcomes.push(None);
            }
        }
    }
    met
}
