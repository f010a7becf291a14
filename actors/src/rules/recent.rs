//! The keys this process committed lately: bounded, in two generations, flat in memory however many keys
//! are ever seen. Holds facts of one incarnation only.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::event::EventId;
use super::key::{BodyDigest, KeyHash};

/// What is known of a key that was committed by this process or seen in the cache.
pub type Known = (EventId, BodyDigest);

/// A bounded set of known keys. The newer half is always kept; the older half goes as a whole.
#[derive(Debug)]
pub struct Recent {
    half: usize,
    young: HashMap<KeyHash, Known, HashedAlready>,
    old: HashMap<KeyHash, Known, HashedAlready>,
}

impl Recent {
    /// Keeps between `bound / 2` and `bound` keys.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        let seed = HashedAlready::seeded();
        Self { half: bound.div_ceil(2), young: HashMap::with_hasher(seed.clone()), old: HashMap::with_hasher(seed) }
    }

    /// What is known of this key.
    #[must_use]
    pub fn get(&self, key: &KeyHash) -> Option<Known> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Keeps a fact, after its commit.
    pub fn insert(&mut self, key: KeyHash, known: Known) {
        if self.half == 0 {
            return;
        }
        if self.young.len() >= self.half {
            // the tables swap and keep their memory
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, known);
    }

    /// Forgets everything: the database history is another one now.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// How many keys are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Keys are hashes already: one multiplication with a number only this process knows is enough.
#[derive(Clone, Debug)]
pub(crate) struct HashedAlready {
    factor: u64,
}

impl HashedAlready {
    pub(crate) fn seeded() -> Self {
        Self { factor: RandomState::new().hash_one(0_u8) | 1 }
    }
}

impl BuildHasher for HashedAlready {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { factor: self.factor, value: 0 }
    }
}

/// Takes the first eight bytes it is given.
#[derive(Debug)]
pub(crate) struct Folded {
    factor: u64,
    value: u64,
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let mut first = [0; 8];
        let length = bytes.len().min(8);
        first[..length].copy_from_slice(&bytes[..length]);
        self.value ^= u64::from_le_bytes(first);
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        let wide = u128::from(self.value) * u128::from(self.factor);
        (wide as u64) ^ ((wide >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(number: u64) -> KeyHash {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        KeyHash(bytes)
    }

    fn known(number: u64) -> Known {
        (EventId(Uuid::from_u128(number.into())), BodyDigest([0; 16]))
    }

    #[test]
    fn stays_within_its_bound_and_keeps_the_newer_half() {
        let mut recent = Recent::new(1_000);
        for number in 0..100_000 {
            recent.insert(key(number), known(number));
            assert!(recent.len() <= 1_000);
        }
        assert!((99_500..100_000).all(|number| recent.get(&key(number)) == Some(known(number))));
        assert_eq!(recent.get(&key(5)), None);
    }

    #[test]
    fn a_bound_of_zero_keeps_nothing() {
        let mut recent = Recent::new(0);
        recent.insert(key(1), known(1));
        assert!(recent.is_empty());
    }

    #[test]
    fn forgets_at_once() {
        let mut recent = Recent::new(10);
        (0..8).for_each(|number| recent.insert(key(number), known(number)));
        recent.clear();
        assert!((0..8).all(|number| recent.get(&key(number)).is_none()));
    }
}
