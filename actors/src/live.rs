//! The live resources of a shard, in order of their last use: bounded, with room made by what rests longest.
//!
//! Owns the table and the order. Promises constant time per use. What rests and what works is told by a
//! counter each entry shares with its actor on the same arbiter.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::rules::key::ResourceHash;
use crate::rules::recent::HashedAlready;

const NONE: usize = usize::MAX;

/// How many events of a resource are on their way; shared by the table and the resource's actor.
pub(crate) type Work = Rc<Cell<u32>>;

#[derive(Debug)]
struct Entry<T> {
    hash: ResourceHash,
    value: T,
    work: Work,
    used_at: u64,
    newer: usize,
    older: usize,
}

/// Live resources by hash, the least recently used one at hand.
#[derive(Debug)]
pub(crate) struct Live<T> {
    bound: usize,
    places: HashMap<ResourceHash, usize, HashedAlready>,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
}

impl<T> Live<T> {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            bound: bound.max(1),
            places: HashMap::with_hasher(HashedAlready::seeded()),
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The resource, marked as used at `now`.
    pub(crate) fn touch(&mut self, hash: &ResourceHash, now: u64) -> Option<(&T, &Work)> {
        let place = *self.places.get(hash)?;
        if self.newest != place {
            self.unlink(place);
            self.link_newest(place);
        }
        let entry = self.entries[place].as_mut()?;
        entry.used_at = now;
        Some((&entry.value, &entry.work))
    }

    /// Makes room for one more, if there is none: the least recently used one without work goes.
    /// `Err` when every one has work in flight.
    pub(crate) fn make_room(&mut self) -> Result<Option<T>, ()> {
        if self.len() < self.bound {
            return Ok(None);
        }
        for _ in 0..self.len() {
            let place = self.oldest;
            if self.works(place) {
                // it is in use after all: look at it again last
                self.unlink(place);
                self.link_newest(place);
            } else {
                return Ok(self.remove(place));
            }
        }
        Err(())
    }

    /// Adds a resource that is not there. Call [`Self::make_room`] first.
    pub(crate) fn insert(&mut self, hash: ResourceHash, value: T, work: Work, now: u64) {
        let entry = Some(Entry { hash, value, work, used_at: now, newer: NONE, older: NONE });
        let place = if let Some(place) = self.free.pop() {
            self.entries[place] = entry;
            place
        } else {
            self.entries.push(entry);
            self.entries.len() - 1
        };
        self.places.insert(hash, place);
        self.link_newest(place);
    }

    /// Takes out a resource whose actor is gone.
    pub(crate) fn forget(&mut self, hash: &ResourceHash) -> Option<T> {
        let place = *self.places.get(hash)?;
        self.remove(place)
    }

    /// Takes out the least recently used resource, if it has no work and was last used before `before`.
    pub(crate) fn pop_idle(&mut self, before: u64) -> Option<T> {
        let place = self.oldest;
        let entry = self.entries.get(place)?.as_ref()?;
        if entry.used_at >= before || entry.work.get() > 0 {
            return None;
        }
        self.remove(place)
    }

    /// Takes out everything.
    pub(crate) fn clear(&mut self) -> usize {
        let count = self.len();
        *self = Self::new(self.bound);
        count
    }

    fn works(&self, place: usize) -> bool {
        self.entries[place].as_ref().is_some_and(|entry| entry.work.get() > 0)
    }

    fn remove(&mut self, place: usize) -> Option<T> {
        self.unlink(place);
        let entry = self.entries[place].take()?;
        self.places.remove(&entry.hash);
        self.free.push(place);
        Some(entry.value)
    }

    fn unlink(&mut self, place: usize) {
        let Some(entry) = self.entries[place].as_mut() else { return };
        let (newer, older) = (entry.newer, entry.older);
        (entry.newer, entry.older) = (NONE, NONE);
        match self.entries.get_mut(newer).and_then(Option::as_mut) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older).and_then(Option::as_mut) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, place: usize) {
        let before = self.newest;
        if let Some(entry) = self.entries[place].as_mut() {
            (entry.newer, entry.older) = (NONE, before);
        }
        match self.entries.get_mut(before).and_then(Option::as_mut) {
            Some(entry) => entry.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> ResourceHash {
        ResourceHash([number; 16])
    }

    fn work(count: u32) -> Work {
        Rc::new(Cell::new(count))
    }

    fn filled(bound: usize, works: &[u32]) -> Live<u8> {
        let mut live = Live::new(bound);
        for (number, &count) in (0_u8..).zip(works) {
            live.insert(hash(number), number, work(count), u64::from(number));
        }
        live
    }

    #[test]
    fn the_least_recently_used_one_goes_first() {
        let mut live = filled(3, &[0, 0, 0]);
        assert!(live.touch(&hash(0), 9).is_some());
        assert_eq!(live.make_room(), Ok(Some(1)));
        live.insert(hash(7), 7, work(0), 10);
        assert_eq!((live.make_room(), live.make_room()), (Ok(Some(2)), Ok(None)));
        assert_eq!(live.len(), 2);
    }

    #[test]
    fn what_has_work_in_flight_never_goes() {
        let mut live = filled(3, &[1, 1, 0]);
        assert_eq!(live.make_room(), Ok(Some(2)));
        live.insert(hash(3), 3, work(1), 3);
        assert_eq!(live.make_room(), Err(()));
        assert_eq!(live.len(), 3);
    }

    #[test]
    fn idle_ones_go_by_their_last_use() {
        let mut live = filled(9, &[0, 0, 1, 0]);
        assert_eq!((live.pop_idle(2), live.pop_idle(2), live.pop_idle(2)), (Some(0), Some(1), None));
        assert_eq!(live.pop_idle(9), None, "the oldest left has work");
    }

    #[test]
    fn places_are_used_again() {
        let mut live = filled(2, &[0, 0]);
        for number in 2..200 {
            assert!(live.make_room().is_ok_and(|gone| gone.is_some()));
            live.insert(hash(number), number, work(0), u64::from(number));
        }
        assert_eq!((live.len(), live.entries.len()), (2, 2));
        assert_eq!(live.forget(&hash(199)), Some(199));
        assert_eq!(live.make_room(), Ok(None));
    }
}
