//! The tables, and what a commit does to them.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::waiting::{Fetch, HeldEvent};
use crate::ports::{Committed, EventRow, Outcome, QuarantineRow, ResourceRow, StoreError, Waits};
use crate::rules::claim::{Claim, meet};
use crate::rules::event::{Event, EventId, Incarnation, Unusable, Verdict};
use crate::rules::fields::Fields;
use crate::rules::judge::{self, Push};
use crate::rules::key::{BodyDigest, KeyHash, ResourceHash};
use crate::rules::plan::{Recorded, plan, resources};

pub(super) struct State {
    pub(super) incarnation: Incarnation,
    /// A ring by time: `slot` takes claims, the others are only probed.
    keys: [HashMap<KeyHash, Claim>; 3],
    slot: usize,
    slot_since_ms: i64,
    pub(super) events: BTreeMap<Uuid, EventRow>,
    pub(super) resources: BTreeMap<ResourceHash, Stored>,
    pub(super) held: BTreeMap<Uuid, HeldEvent>,
    pub(super) fetches: BTreeMap<ResourceHash, Fetch>,
    pub(super) quarantine: BTreeMap<Uuid, QuarantineRow>,
    quarantined: HashMap<SameBytes, EventId>,
    /// Conflicts kept aside: the event that has the key, and the other bytes.
    aside: HashMap<(EventId, BodyDigest), EventId>,
}

/// What makes two unusable requests the same: source, tenant, bytes.
type SameBytes = (String, String, BodyDigest);

/// A resource: its names and its state.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) source: String,
    pub(super) tenant: String,
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) state: judge::State,
}

impl Stored {
    /// The row, for people.
    pub(super) fn row(&self, hash: ResourceHash) -> ResourceRow {
        ResourceRow {
            hash,
            source: self.source.clone(),
            tenant: self.tenant.clone(),
            kind: self.kind.clone(),
            id: self.id.clone(),
            version: self.state.version.as_ref().map(|version| version.text().to_owned()),
            deleted: self.state.deleted,
            event: self.state.event,
            applied_at_ms: self.state.applied_at_ms,
            applied: self.state.applied,
            epoch: self.state.epoch,
            step: self.state.step.clone(),
            held: self.state.held,
            fields: self.state.fields.as_ref().map(Fields::document),
        }
    }
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
            held: BTreeMap::new(),
            fetches: BTreeMap::new(),
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

    /// Drops events and unusable requests that were received before then; tells how many. What still waits stays:
    /// it is to be applied with its bytes (I15).
    pub(super) fn drop_older(&mut self, before_ms: i64) -> u64 {
        let rows = |state: &Self| state.events.len() + state.quarantine.len();
        let all = rows(self);
        self.events.retain(|_, row| row.received_at_ms >= before_ms || row.verdict == Verdict::Held);
        self.quarantine.retain(|_, row| row.received_at_ms >= before_ms);
        let (events, quarantine) = (&self.events, &self.quarantine);
        self.aside.retain(|_, id| events.contains_key(&id.0));
        self.quarantined.retain(|_, id| quarantine.contains_key(&id.0));
        (all - rows(self)) as u64
    }

    /// Claims keys, judges, writes states and events: all of it, as the caller holds the lock, or nothing.
    pub(super) fn commit(&mut self, batch: &[Event], now_ms: i64) -> Result<Committed, StoreError> {
        let mut claims = HashMap::new();
        for event in batch {
            for hash in std::iter::once(event.key.hash).chain(event.effect_key.as_ref().map(|key| key.hash)) {
                if let Some(claim) = self.keys.iter().find_map(|slot| slot.get(&hash)) {
                    claims.insert(hash, *claim);
                }
            }
        }
        let met = meet(batch, &mut claims);
        let loaded = self.load(resources(&met.fresh).into_keys(), now_ms);
        let plan = plan(&met.fresh, &loaded, Push::None)?;
        self.keys[self.slot].extend(met.claims);
        let waits = Waits::of(&plan, now_ms);
        for (event, recorded) in met.fresh.iter().zip(&plan.recorded) {
            self.events.insert(event.id.0, row(event, recorded, None));
        }
        for (event, first) in met.conflicts {
            self.keep_aside(event, first);
        }
        for (event, first) in met.repeats {
            self.events.insert(event.id.0, row(event, &repeat(first), Some(first)));
        }
        let mut judged = plan.recorded.iter().map(|recorded| recorded.outcome);
        // as many as there are gaps: each fresh event has one
        let outcomes = met.outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| judged.next())).collect();
        self.write(plan, now_ms);
        Ok(Committed { outcomes, incarnation: self.incarnation, waits })
    }

    /// Other bytes under a claimed key are kept aside, each once (I7).
    fn keep_aside(&mut self, event: &Event, first: EventId) {
        if self.aside.contains_key(&(first, event.digest)) {
            return;
        }
        self.aside.insert((first, event.digest), event.id);
        let recorded = Recorded {
            outcome: Outcome::Duplicate { first, conflict: true },
            verdict: Verdict::Duplicate,
            tie: false,
            why: None,
        };
        self.events.insert(event.id.0, row(event, &recorded, Some(first)));
    }

    pub(super) fn quarantine(&mut self, items: &[Unusable]) -> Vec<EventId> {
        items.iter().map(|item| self.keep(item)).collect()
    }

    pub(super) fn discharge(&mut self, id: EventId) -> bool {
        self.quarantined.retain(|_, known| *known != id);
        self.quarantine.remove(&id.0).is_some()
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
            headers: Some(item.headers.to_vec()),
            body: Some(item.body.to_vec()),
        };
        self.quarantined.insert(same, item.id);
        self.quarantine.insert(item.id.0, row);
        item.id
    }
}

fn repeat(first: EventId) -> Recorded {
    let why = Some("its effect key was claimed under another id".to_owned());
    Recorded { outcome: Outcome::Repeat { first }, verdict: Verdict::Duplicate, tie: false, why }
}

fn row(event: &Event, recorded: &Recorded, conflicts_with: Option<EventId>) -> EventRow {
    let guard = event.guards.first();
    EventRow {
        id: event.id,
        received_at_ms: event.received_at_ms,
        source: event.source.to_string(),
        tenant: event.tenant.to_string(),
        key: event.key.text.clone(),
        kind: event.kind.clone(),
        resource: guard.map(|guard| (guard.resource.kind.clone(), guard.resource.id.clone())),
        version: guard.and_then(|guard| guard.version.as_ref()).map(|version| version.text().to_owned()),
        verdict: recorded.verdict,
        tie: recorded.tie,
        why: recorded.why.clone(),
        settled_at_ms: None,
        conflicts_with,
        headers: Some(event.headers.to_vec()),
        body: Some(event.body.to_vec()),
        body_bytes: event.body.len() as i64,
    }
}
