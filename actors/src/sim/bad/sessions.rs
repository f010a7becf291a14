//! Sessions that cheat: what they do to a batch before, after or instead of its commit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::ports::{Committed, Fact, KeyCache, Outcome, Session, StoreError, Waits};
use crate::rules::event::{Event, EventId, Incarnation, Unusable};
use crate::rules::key::{BodyDigest, KeyHash, ResourceHash};
use crate::rules::order::{OnGap, Order, Policy, Tie, Wait};

/// How a session cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cheat {
    AnswerFirst,
    MarkFirst,
    FreshKeys,
    Unguarded,
    Hoard,
    Impatient,
    OwnVersions,
    OnlyGreater,
}

/// What a process keeps in memory and should not trust.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The newest version this process has applied, by resource.
    newest: HashMap<ResourceHash, Vec<u8>>,
    /// The last number of a row, and what waits behind a gap.
    rows: HashMap<ResourceHash, (i128, Vec<Event>)>,
    fresh_keys: u64,
}

pub(super) struct CheatingSession {
    inner: Rc<Mutex<Box<dyn Session>>>,
    cheat: Cheat,
    memory: Rc<RefCell<Memory>>,
    cache: Arc<dyn KeyCache>,
    incarnation: Incarnation,
}

impl CheatingSession {
    pub(super) fn new(
        inner: Box<dyn Session>,
        cheat: Cheat,
        memory: Rc<RefCell<Memory>>,
        cache: Arc<dyn KeyCache>,
        incarnation: Incarnation,
    ) -> Self {
        Self { inner: Rc::new(Mutex::new(inner)), cheat, memory, cache, incarnation }
    }

    /// Says that all is done, and does it then.
    fn answer_first(&self, batch: Vec<Event>) -> Committed {
        let outcomes = vec![Outcome::Applied { tie: false }; batch.len()];
        let inner = Rc::clone(&self.inner);
        actix_rt::spawn(async move { inner.lock().await.commit(&batch).await.map(drop) });
        Committed { outcomes, incarnation: self.incarnation, waits: Waits::default() }
    }

    async fn mark(&self, batch: &[Event]) {
        let fact = |event: &Event| Fact { key: event.key.hash, first: event.id, digest: event.digest };
        let facts: Vec<Fact> = batch.iter().map(fact).collect();
        // a cache that is away is no reason not to commit
        let _ = self.cache.put(self.incarnation, &facts).await;
    }

    /// Keeps what is above a gap in memory, and hands in what waited once the gap is closed.
    async fn hoard(&self, batch: &[Event]) -> Result<Committed, StoreError> {
        let mut going = Vec::new();
        let mut places = Vec::new();
        {
            let memory = &mut *self.memory.borrow_mut();
            for event in batch {
                let number = in_row(event);
                let Some((hash, number)) = number else {
                    places.push(Some(going.len()));
                    going.push(event.clone());
                    continue;
                };
                let (last, waiting) = memory.rows.entry(hash).or_default();
                if number > *last + 1 {
                    waiting.push(event.clone());
                    places.push(None);
                    continue;
                }
                places.push(Some(going.len()));
                going.push(event.clone());
                *last = (*last).max(number);
                waiting.sort_by_key(|event| in_row(event).map(|(_, number)| number));
                while waiting.first().and_then(in_row).is_some_and(|(_, number)| number <= *last + 1) {
                    let next = waiting.remove(0);
                    *last = (*last).max(in_row(&next).map_or(0, |(_, number)| number));
                    going.push(next);
                }
            }
        }
        if going.is_empty() {
            let outcomes = vec![Outcome::Held; batch.len()];
            return Ok(Committed { outcomes, incarnation: self.incarnation, waits: Waits::default() });
        }
        let mut committed = self.inner.lock().await.commit(&going).await?;
        let outcomes = places.into_iter().map(|place| place.map_or(Outcome::Held, |place| committed.outcomes[place]));
        committed.outcomes = outcomes.collect();
        Ok(committed)
    }

    /// What this process has seen to be older needs no guard.
    async fn trust(&self, batch: &[Event]) -> Result<Committed, StoreError> {
        let newer = |event: &Event| {
            let (hash, version) = guard(event)?;
            self.memory.borrow().newest.get(&hash).map(|known| known.as_slice() < version)
        };
        let batch = changed(batch, |event| {
            if is_newest(event) && newer(event) == Some(true) {
                event.order = Arc::new(Order::plain(Policy::Arrival));
            }
        });
        let committed = self.inner.lock().await.commit(&batch).await?;
        let newest = &mut self.memory.borrow_mut().newest;
        for (event, outcome) in batch.iter().zip(&committed.outcomes) {
            if let (Outcome::Applied { .. }, Some((hash, version))) = (outcome, guard(event)) {
                let known = newest.entry(hash).or_default();
                if known.as_slice() < version {
                    *known = version.to_vec();
                }
            }
        }
        Ok(committed)
    }

    fn fresh_key(&self, event: &mut Event) {
        let memory = &mut *self.memory.borrow_mut();
        memory.fresh_keys += 1;
        let unique = format!("{} {} {:p}", event.id, memory.fresh_keys, Rc::as_ptr(&self.memory));
        event.key.hash = KeyHash(BodyDigest::of(unique.as_bytes()).0);
    }
}

#[async_trait(?Send)]
impl Session for CheatingSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        let batch = match self.cheat {
            Cheat::AnswerFirst => return Ok(self.answer_first(batch.to_vec())),
            Cheat::Hoard => return self.hoard(batch).await,
            Cheat::OwnVersions => return self.trust(batch).await,
            Cheat::MarkFirst => {
                self.mark(batch).await;
                batch.to_vec()
            }
            Cheat::FreshKeys => changed(batch, |event| self.fresh_key(event)),
            Cheat::Unguarded => changed(batch, unguard),
            Cheat::Impatient => changed(batch, hurry),
            Cheat::OnlyGreater => changed(batch, |event| {
                if matches!(event.order.policy, Policy::Newest { tie: Tie::Apply }) {
                    event.order =
                        Arc::new(Order { policy: Policy::Newest { tie: Tie::Keep }, ..(*event.order).clone() });
                }
            }),
        };
        self.inner.lock().await.commit(&batch).await
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.inner.lock().await.quarantine(items).await
    }
}

fn changed(batch: &[Event], mut change: impl FnMut(&mut Event)) -> Vec<Event> {
    let mut batch = batch.to_vec();
    batch.iter_mut().for_each(&mut change);
    batch
}

/// The first resource of an event, with its version.
fn guard(event: &Event) -> Option<(ResourceHash, &[u8])> {
    let guard = event.guards.first()?;
    Some((guard.resource.hash, guard.version.as_ref()?.bytes()))
}

/// The first resource of an event in a row without gaps, with its number.
fn in_row(event: &Event) -> Option<(ResourceHash, i128)> {
    let guard = event.guards.first()?;
    let sequence = matches!(event.order.policy, Policy::Sequence { .. });
    Some((guard.resource.hash, guard.version.as_ref()?.number()?)).filter(|_| sequence)
}

fn is_newest(event: &Event) -> bool {
    matches!(event.order.policy, Policy::Newest { .. })
}

fn unguard(event: &mut Event) {
    if !is_newest(event) {
        return;
    }
    event.guards.iter_mut().for_each(|guard| guard.version = None);
    event.order = Arc::new(Order::plain(Policy::Arrival));
}

fn hurry(event: &mut Event) {
    let soon = Wait { hold_for_ms: 50, on_gap: OnGap::Release };
    let mut order = (*event.order).clone();
    match &mut order.policy {
        Policy::Sequence { wait, .. } | Policy::Transition { wait, .. } => *wait = soon,
        _ => return,
    }
    event.order = Arc::new(order);
}
