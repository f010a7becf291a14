//! A batch with its repeats folded: each key once, in the order in which keys are locked.

use std::collections::HashMap;

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::key::{BodyDigest, KeyHash};

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
