//! What becomes of the events of one resource: the meaning of every policy, said here and nowhere else.
//!
//! Given the stored state, the events that are held and those that came, [`judge`] says what each of them is
//! now and what the state is afterwards. Time is an argument. Events are taken in version order and again
//! until none moves, so an event that closes a gap releases what waited behind it in the same transaction.

mod item;
mod settle;
mod state;
#[cfg(test)]
mod tests;

pub use self::item::{Hold, Item, Judgement, Kind, Subject, View, Waiting};
pub use self::state::State;

use super::fields::Merged;
use super::graph::Reach;
use super::order::{Merge, OnGap, Policy, Tie};

/// The most events of one resource that may be held.
pub const HELD_MAX: usize = 1_000;

/// What a person asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Push {
    /// Nothing.
    #[default]
    None,
    /// Wait no longer: gaps are given up, and parked events begin a new epoch.
    Release,
    /// The fetch claimed under this epoch failed for good: who waits for it expires.
    GiveUp(i64),
}

/// One more event would be held than a resource may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{HELD_MAX} events of the resource are held already")]
pub struct Full;

/// Why a batch cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjudged {
    /// Too many held events; room comes when they are released or expire.
    #[error(transparent)]
    Full(#[from] Full),
    /// Too many members; the event can never be taken as it is.
    #[error("the resource would have more than {} members", super::fields::MEMBERS_MAX)]
    Members,
}

/// What became of a resource.
#[derive(Debug)]
pub struct Judged {
    /// The state afterwards.
    pub state: State,
    /// One for each item, in the order given.
    pub judgements: Vec<Judgement>,
    /// The provider is to be asked for the current state.
    pub wants_fetch: bool,
    /// Fresh events that were parked.
    pub parked: u32,
    /// The places of what was applied and carries state, in the order it was.
    pub applied: Vec<usize>,
}

/// Judges the events of one resource: `items` in the order they came, held ones first.
pub fn judge(state: State, items: &[Item<'_>], now_ms: i64, push: Push) -> Result<Judged, Unjudged> {
    let mut pending: Vec<usize> = (0..items.len()).collect();
    pending.sort_by_key(|&place| items[place].rank());
    let mut court = Court {
        state,
        items,
        now_ms,
        push,
        pending,
        done: items.iter().map(|_| None).collect(),
        fetched: None,
        parked: 0,
        applied: Vec::new(),
    };
    loop {
        court.pass()?;
        if !court.overdue()? {
            break;
        }
    }
    court.finish()
}

/// What one try at an event says.
enum Attempt {
    Apply {
        tie: bool,
    },
    /// Each member decides for itself.
    Merge,
    /// It applies as the first of a new epoch.
    NewEpoch,
    Stale {
        tie: bool,
        why: String,
    },
    Wait {
        kind: Kind,
        why: String,
    },
}

/// One resource being judged.
struct Court<'a, 'b> {
    state: State,
    items: &'b [Item<'a>],
    now_ms: i64,
    push: Push,
    /// What is not decided yet, in version order.
    pending: Vec<usize>,
    done: Vec<Option<Judgement>>,
    /// The fetch whose answer came, and whether it applied.
    fetched: Option<(i64, bool)>,
    parked: u32,
    applied: Vec<usize>,
}

impl Court<'_, '_> {
    /// Tries what is pending, in version order, until nothing moves.
    fn pass(&mut self) -> Result<(), Unjudged> {
        loop {
            let mut moved = false;
            for place in std::mem::take(&mut self.pending) {
                match self.attempt(&self.items[place]) {
                    Attempt::Wait { kind, why } => {
                        self.done[place] = Some(Judgement::Held(self.hold(place, kind, why)));
                        self.pending.push(place);
                        continue;
                    }
                    Attempt::Stale { tie, why } => self.done[place] = Some(Judgement::Stale { tie, why }),
                    Attempt::Apply { tie } => {
                        self.apply(place, tie, None)?;
                        moved = true;
                    }
                    Attempt::Merge => moved |= self.merge(place)?,
                    Attempt::NewEpoch => {
                        self.new_epoch(place)?;
                        moved = true;
                    }
                }
                if let Some(epoch) = self.items[place].fetched {
                    let applied = matches!(self.done[place], Some(Judgement::Applied { .. }));
                    self.fetched = Some((epoch, applied));
                    moved = true;
                }
            }
            if !moved || self.pending.is_empty() {
                return Ok(());
            }
        }
    }

    fn attempt(&self, item: &Item<'_>) -> Attempt {
        let View { version, order, .. } = item.subject;
        if item.fetched.is_some() {
            return self.by_version(item, Tie::Apply);
        }
        if item.along {
            return self.by_version(item, order.tie());
        }
        if let Some(reset) = self.reset(item) {
            return reset;
        }
        match &order.policy {
            Policy::Newest { tie } => self.by_version(item, *tie),
            Policy::Arrival => Attempt::Apply { tie: false },
            Policy::Sequence { start, .. } => self.in_sequence(item, *start),
            Policy::Transition { tie, .. } => self.transition(item, *tie),
            Policy::Window { tie, .. } => match self.by_version(item, *tie) {
                Attempt::Apply { .. } | Attempt::Merge if version.is_some() => {
                    Attempt::Wait { kind: Kind::Window, why: "waits for its window to close".to_owned() }
                }
                other => other,
            },
            Policy::Refetch => match (self.fetched, item.waiting.fetch) {
                (Some((answered, true)), Some(awaited)) if answered == awaited => Attempt::Apply { tie: false },
                (Some((answered, false)), Some(awaited)) if answered == awaited => {
                    Attempt::Stale { tie: false, why: "what was fetched is older than the state".to_owned() }
                }
                _ => Attempt::Wait { kind: Kind::Signal, why: "waits for the provider's answer".to_owned() },
            },
        }
    }

    /// A counter that fell by a lot: parked, or the first of a new epoch.
    fn reset(&self, item: &Item<'_>) -> Option<Attempt> {
        let rule = item.subject.order.epoch_on?;
        let stored = self.state.version.as_ref()?;
        let version = item.subject.version?;
        if item.waiting.parked_in.is_some_and(|epoch| epoch != self.state.epoch) {
            return None;
        }
        let fell = stored.number()?.checked_sub(version.number()?)?;
        if fell <= i128::from(rule.falls_by) {
            return None;
        }
        let idle_ms = item.subject.received_at_ms.saturating_sub(self.state.applied_at_ms);
        if item.is_new() && rule.after_idle_ms.is_some_and(|after| idle_ms >= after) {
            return Some(Attempt::NewEpoch);
        }
        Some(Attempt::Wait { kind: Kind::Parked, why: format!("parked: fell from {stored} to {version}") })
    }

    /// The version guard.
    fn by_version(&self, item: &Item<'_>, tie: Tie) -> Attempt {
        let View { version, order, .. } = item.subject;
        if order.merge == Merge::Fields && !item.along && matches!(order.policy, Policy::Newest { .. }) {
            return Attempt::Merge;
        }
        let (Some(stored), Some(version)) = (self.state.version.as_ref(), version) else {
            return Attempt::Apply { tie: false };
        };
        match version.cmp(stored) {
            std::cmp::Ordering::Greater => Attempt::Apply { tie: false },
            std::cmp::Ordering::Less => Attempt::Stale { tie: false, why: format!("older than {stored}") },
            std::cmp::Ordering::Equal if tie == Tie::Apply => Attempt::Apply { tie: true },
            std::cmp::Ordering::Equal => Attempt::Stale { tie: true, why: format!("equals {stored}") },
        }
    }

    fn in_sequence(&self, item: &Item<'_>, start: i64) -> Attempt {
        let Some(version) = item.subject.version else { return Attempt::Apply { tie: false } };
        let stored = self.state.version.as_ref();
        let expected = match stored {
            None => Some(i128::from(start)),
            Some(stored) => stored.number().and_then(|number| number.checked_add(1)),
        };
        // what has no next one is ordered as the newest
        let (Some(number), Some(expected)) = (version.number(), expected) else {
            return self.by_version(item, Tie::Keep);
        };
        match number.cmp(&expected) {
            std::cmp::Ordering::Equal => Attempt::Apply { tie: false },
            std::cmp::Ordering::Greater => Attempt::Wait { kind: Kind::Gap, why: format!("waits for {expected}") },
            std::cmp::Ordering::Less => match stored {
                Some(stored) if stored == version => Attempt::Stale { tie: true, why: format!("equals {stored}") },
                Some(stored) => Attempt::Stale { tie: false, why: format!("older than {stored}") },
                None => Attempt::Stale { tie: false, why: format!("before the start, {start}") },
            },
        }
    }

    fn transition(&self, item: &Item<'_>, tie: Tie) -> Attempt {
        let View { version, step, order, .. } = item.subject;
        let (Policy::Transition { graph, .. }, Some(step)) = (&order.policy, step) else {
            return self.by_version(item, tie);
        };
        if let (Some(stored), Some(version)) = (&self.state.version, version)
            && version < stored
        {
            return Attempt::Stale { tie: false, why: format!("older than {stored}") };
        }
        let current = self.state.step.as_deref();
        match graph.reach(current, step) {
            Reach::Edge => Attempt::Apply { tie: false },
            Reach::Later => {
                let before = graph.before(step).join(" or ");
                Attempt::Wait { kind: Kind::Gap, why: format!("waits for {before}") }
            }
            Reach::Never => {
                Attempt::Stale { tie: false, why: format!("{step} does not follow {}", current.unwrap_or("the start")) }
            }
            Reach::Same if version > self.state.version.as_ref() => Attempt::Apply { tie: false },
            Reach::Same if tie == Tie::Apply => Attempt::Apply { tie: true },
            Reach::Same => Attempt::Stale { tie: true, why: format!("{step} already") },
        }
    }

    fn apply(&mut self, place: usize, tie: bool, why: Option<String>) -> Result<(), Unjudged> {
        let item = &self.items[place];
        // the answer of a fetch became the state: its signals only tell that it was needed
        if !item.is_signal() {
            if self.state.apply(item) == Merged::TooMany {
                return self.no_room(place);
            }
            self.applied.push(place);
        }
        self.done[place] = Some(Judgement::Applied { tie, why });
        Ok(())
    }

    /// Applies what is newer of a partial update. Whether the resource moved.
    fn merge(&mut self, place: usize) -> Result<bool, Unjudged> {
        let item = &self.items[place];
        let before = self.state.version.clone();
        let merged = self.state.apply(item);
        let advances = item.subject.version > before.as_ref();
        self.done[place] = Some(match (merged, &before) {
            (Merged::TooMany, _) => return self.no_room(place).map(|()| false),
            (Merged::Changed { tie }, _) => Judgement::Applied { tie, why: None },
            (Merged::Unchanged { .. }, _) if advances => Judgement::Applied { tie: false, why: None },
            (Merged::Unchanged { tie }, Some(stored)) => {
                Judgement::Stale { tie, why: format!("every member is older; the newest is of {stored}") }
            }
            (Merged::Unchanged { tie }, None) => Judgement::Stale { tie, why: "every member is older".to_owned() },
        });
        let moved = matches!(self.done[place], Some(Judgement::Applied { .. }));
        if moved {
            self.applied.push(place);
        }
        Ok(moved)
    }

    /// An event that just came is refused. One that was held was accepted, and it must not stop whoever closes its
    /// gap, nor everything else that is due: it ends with a record.
    fn no_room(&mut self, place: usize) -> Result<(), Unjudged> {
        if self.items[place].is_new() {
            return Err(Unjudged::Members);
        }
        self.done[place] = Some(Judgement::Expired { why: Unjudged::Members.to_string() });
        Ok(())
    }

    fn new_epoch(&mut self, place: usize) -> Result<(), Unjudged> {
        let from = self.state.version.as_ref().map_or_else(String::new, ToString::to_string);
        self.state.begin_epoch();
        let why = format!("begins epoch {}, after {from}", self.state.epoch);
        self.apply(place, false, Some(why))
    }
}

/// Whether this policy applies what is over its time, or gives it up.
const fn on_time(policy: &Policy) -> Option<OnGap> {
    match policy {
        Policy::Sequence { wait, .. } | Policy::Transition { wait, .. } => Some(wait.on_gap),
        Policy::Window { .. } => Some(OnGap::Release),
        _ => None,
    }
}
