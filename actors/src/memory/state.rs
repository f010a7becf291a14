//! The tables, and what a commit does to them.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::ports::{Committed, EventRow, Outcome, QuarantineRow, ResourceRow};
use crate::rules::event::{Event, EventId, Incarnation, Intent, Unusable, Verdict};
use crate::rules::key::{BodyDigest, KeyHash, ResourceHash};
use crate::rules::order::{Candidate, Decision, decide_resource};
use crate::rules::version::Version;

pub(super) struct State {
    pub(super) incarnation: Incarnation,
    /// A ring by time: `slot` takes claims, the others are only probed.
    keys: [HashMap<KeyHash, (EventId, BodyDigest)>; 3],
    slot: usize,
    slot_since_ms: i64,
    pub(super) events: BTreeMap<Uuid, EventRow>,
    pub(super) resources: BTreeMap<ResourceHash, Stored>,
    pub(super) quarantine: BTreeMap<Uuid, QuarantineRow>,
    quarantined: HashMap<SameBytes, EventId>,
    /// Conflicts kept aside: the event that has the key, and the other bytes.
    aside: HashMap<(EventId, BodyDigest), EventId>,
}

/// What makes two unusable requests the same: source, tenant, bytes.
type SameBytes = (String, String, BodyDigest);

/// A resource with its exact version.
pub(super) struct Stored {
    pub(super) row: ResourceRow,
    version: Option<Version>,
}

impl State {
    pub(super) fn new(incarnation: Incarnation, now_ms: i64) -> Self {
        Self {
            incarnation,
            keys: Default::default(),
            slot: 0,
            slot_since_ms: now_ms,
            events: BTreeMap::new(),
            resources: BTreeMap::new(),
            quarantine: BTreeMap::new(),
            quarantined: HashMap::new(),
            aside: HashMap::new(),
        }
    }

    /// Keys that are remembered.
    pub(super) fn keys(&self) -> usize {
        self.keys.iter().map(HashMap::len).sum()
    }

    /// Forgets the oldest part of the ring and claims in it from now on, if the current one had its time.
    pub(super) fn turn_ring(&mut self, now_ms: i64, span_ms: i64) -> bool {
        if now_ms.saturating_sub(self.slot_since_ms) < span_ms {
            return false;
        }
        self.slot = (self.slot + 1) % self.keys.len();
        self.keys[self.slot].clear();
        self.slot_since_ms = now_ms;
        true
    }

    /// Drops events and unusable requests that were received before then; tells how many.
    pub(super) fn drop_older(&mut self, before_ms: i64) -> u64 {
        let rows = |state: &Self| state.events.len() + state.quarantine.len();
        let all = rows(self);
        self.events.retain(|_, row| row.received_at_ms >= before_ms);
        self.quarantine.retain(|_, row| row.received_at_ms >= before_ms);
        let (events, quarantine) = (&self.events, &self.quarantine);
        self.aside.retain(|_, id| events.contains_key(&id.0));
        self.quarantined.retain(|_, id| quarantine.contains_key(&id.0));
        (all - rows(self)) as u64
    }

    /// Claims keys, decides per resource, writes states and events: all of it, as the caller holds the lock.
    pub(super) fn commit(&mut self, batch: &[Event]) -> Committed {
        let mut outcomes: Vec<Outcome> = batch.iter().map(|event| self.claim(event)).collect();
        for (hash, places) in guarded(batch, &outcomes) {
            self.decide(hash, &places, batch, &mut outcomes);
        }
        for (event, outcome) in batch.iter().zip(&outcomes) {
            self.record(event, *outcome);
        }
        Committed { outcomes, incarnation: self.incarnation }
    }

    /// The key's claim, and the outcome as far as it follows from it.
    fn claim(&mut self, event: &Event) -> Outcome {
        if let Some((first, digest)) = self.keys.iter().find_map(|slot| slot.get(&event.key.hash)) {
            return Outcome::Duplicate { first: *first, conflict: *digest != event.digest };
        }
        self.keys[self.slot].insert(event.key.hash, (event.id, event.digest));
        match event.intent {
            Intent::Apply => Outcome::Applied { tie: false },
            Intent::Ignore(_) => Outcome::Ignored,
        }
    }

    /// Decides all guards on one resource; `places` are (event, guard) in the order they came.
    fn decide(&mut self, hash: ResourceHash, places: &[(usize, usize)], batch: &[Event], outcomes: &mut [Outcome]) {
        let candidates: Vec<Candidate<'_>> = places
            .iter()
            .map(|&(event, guard)| Candidate {
                policy: batch[event].policy,
                version: batch[event].guards[guard].version.as_ref(),
            })
            .collect();
        let stored = self.resources.get(&hash);
        let decided = decide_resource(stored.and_then(|stored| stored.version.as_ref()), &candidates);
        for (&(event, guard), decision) in places.iter().zip(&decided.decisions) {
            // the first guard's decision is the event's verdict
            if guard == 0 {
                outcomes[event] = match *decision {
                    Decision::Apply { tie } => Outcome::Applied { tie },
                    Decision::Stale { tie } => Outcome::Stale { tie },
                };
            }
        }
        let Some(winner) = decided.state else { return };
        let (event, guard) = places[winner];
        let event = &batch[event];
        let resource = &event.guards[guard].resource;
        let applied = decided.decisions.iter().filter(|decision| matches!(decision, Decision::Apply { .. })).count();
        let row = ResourceRow {
            hash,
            source: event.source.to_string(),
            tenant: event.tenant.to_string(),
            kind: resource.kind.clone(),
            id: resource.id.clone(),
            version: decided.version.map(|version| version.text().to_owned()),
            deleted: event.deletes,
            event: event.id,
            applied_at_ms: event.received_at_ms,
            applied: stored.map_or(0, |stored| stored.row.applied) + applied as i64,
        };
        let version = decided.version.cloned();
        self.resources.insert(hash, Stored { row, version });
    }

    /// The event's row. A plain duplicate leaves none; other bytes are kept aside, each once (I7).
    fn record(&mut self, event: &Event, outcome: Outcome) {
        let (verdict, tie, conflicts_with) = match outcome {
            Outcome::Applied { tie } => (Verdict::Applied, tie, None),
            Outcome::Stale { tie } => (Verdict::Stale, tie, None),
            Outcome::Ignored => (Verdict::Ignored, false, None),
            Outcome::Duplicate { conflict: false, .. } => return,
            Outcome::Duplicate { first, conflict: true } => {
                if self.aside.contains_key(&(first, event.digest)) {
                    return;
                }
                self.aside.insert((first, event.digest), event.id);
                (Verdict::Duplicate, false, Some(first))
            }
        };
        let guard = event.guards.first();
        let row = EventRow {
            id: event.id,
            received_at_ms: event.received_at_ms,
            source: event.source.to_string(),
            tenant: event.tenant.to_string(),
            key: event.key.text.clone(),
            kind: event.kind.clone(),
            resource: guard.map(|guard| (guard.resource.kind.clone(), guard.resource.id.clone())),
            version: guard.and_then(|guard| guard.version.as_ref()).map(|version| version.text().to_owned()),
            verdict,
            tie,
            conflicts_with,
            headers: Some(event.headers.to_vec()),
            body: Some(event.body.to_vec()),
            body_bytes: event.body.len() as i64,
        };
        self.events.insert(event.id.0, row);
    }

    pub(super) fn quarantine(&mut self, items: &[Unusable]) -> Vec<EventId> {
        items.iter().map(|item| self.keep(item)).collect()
    }

    fn keep(&mut self, item: &Unusable) -> EventId {
        let same = (item.source.to_string(), item.tenant.to_string(), item.digest);
        let known = self.quarantined.get(&same).copied();
        if let Some(row) = known.and_then(|id| self.quarantine.get_mut(&id.0)) {
            row.times += 1;
            return row.id;
        }
        let row = QuarantineRow {
            id: item.id,
            received_at_ms: item.received_at_ms,
            source: item.source.to_string(),
            tenant: item.tenant.to_string(),
            code: item.code.to_owned(),
            reason: item.reason.clone(),
            times: 1,
            body: Some(item.body.to_vec()),
        };
        self.quarantined.insert(same, item.id);
        self.quarantine.insert(item.id.0, row);
        item.id
    }
}

/// The guards of events that claimed their key and may apply, by resource.
fn guarded(batch: &[Event], outcomes: &[Outcome]) -> BTreeMap<ResourceHash, Vec<(usize, usize)>> {
    let mut resources: BTreeMap<ResourceHash, Vec<(usize, usize)>> = BTreeMap::new();
    for (place, event) in batch.iter().enumerate() {
        if !matches!(outcomes[place], Outcome::Applied { .. }) {
            continue;
        }
        for (guard, guarded) in event.guards.iter().enumerate() {
            resources.entry(guarded.resource.hash).or_default().push((place, guard));
        }
    }
    resources
}
