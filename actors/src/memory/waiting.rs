//! What waits: holds and fetches, loaded for the rules, written as a plan says, settled by time.

use uuid::Uuid;

use super::state::{State, Stored};
use crate::ports::{Claimed, FetchClaim, FetchRow, HeldRow, StoreError, Waits};
use crate::rules::judge::{Hold, Push};
use crate::rules::key::ResourceHash;
use crate::rules::plan::{Fetching, Held, Known, Loaded, Plan, plan};

/// A held event.
pub(super) struct HeldEvent {
    resource: ResourceHash,
    held: Held,
    why: String,
}

/// A fetch of a resource: due, claimed, or at rest.
#[derive(Clone, Default)]
pub(super) struct Fetch {
    epoch: i64,
    attempts: i64,
    due_ms: Option<i64>,
    leased_until_ms: Option<i64>,
    last_error: Option<String>,
}

impl Fetch {
    pub(super) fn row(&self) -> FetchRow {
        FetchRow { attempts: self.attempts, due_ms: self.due_ms, last_error: self.last_error.clone() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.due_ms.is_some()
    }

    /// When somebody may claim it.
    fn claimable_ms(&self) -> Option<i64> {
        self.due_ms.map(|due| self.leased_until_ms.unwrap_or(due).max(due))
    }
}

impl State {
    pub(super) fn load(&self, resources: impl IntoIterator<Item = ResourceHash>, now_ms: i64) -> Loaded {
        let known = |hash: ResourceHash| {
            let stored = self.resources.get(&hash)?;
            let held = if stored.state.held == 0 { Vec::new() } else { self.held_of(hash) };
            let fetch = self.fetches.get(&hash).map(|fetch| fetch.epoch);
            Some((hash, Known { state: stored.state.clone(), held, fetch }))
        };
        Loaded { now_ms, resources: resources.into_iter().filter_map(known).collect(), ..Loaded::default() }
    }

    fn held_of(&self, hash: ResourceHash) -> Vec<Held> {
        self.held.values().filter(|row| row.resource == hash).map(|row| row.held.clone()).collect()
    }

    /// Writes everything a plan says but the events of the batch.
    pub(super) fn write(&mut self, plan: Plan<'_>, now_ms: i64) {
        for changed in plan.states {
            let hash = changed.hash;
            let stored = match (self.resources.remove(&hash), changed.named_by) {
                (Some(stored), _) => Stored { state: changed.state, ..stored },
                (None, Some((event, guard))) => Stored {
                    source: event.source.to_string(),
                    tenant: event.tenant.to_string(),
                    kind: guard.resource.kind.clone(),
                    id: guard.resource.id.clone(),
                    state: changed.state,
                },
                (None, None) => continue,
            };
            self.resources.insert(hash, stored);
        }
        for held in plan.held {
            let Hold { until_ms, parked_in, fetch, why, .. } = held.hold;
            let subject = held.event.view().to_subject();
            let row = Held { id: held.event.id, subject, until_ms, parked_in, fetch };
            self.held.insert(held.event.id.0, HeldEvent { resource: held.resource, held: row, why });
        }
        for rearmed in plan.rearmed {
            if let Some(row) = self.held.get_mut(&rearmed.id.0) {
                row.held.until_ms = rearmed.hold.until_ms;
                row.held.parked_in = rearmed.hold.parked_in;
                row.held.fetch = rearmed.hold.fetch;
                row.why = rearmed.hold.why;
            }
        }
        for settled in plan.settled {
            self.held.remove(&settled.id.0);
            if let Some(row) = self.events.get_mut(&settled.id.0) {
                row.verdict = settled.verdict;
                row.tie = settled.tie;
                row.why = settled.why;
                row.settled_at_ms = Some(now_ms);
            }
        }
        for Fetching { resource, answered, wanted } in plan.fetches {
            let fetch = self.fetches.entry(resource).or_default();
            if answered.is_some() {
                *fetch = Fetch { epoch: fetch.epoch, ..Fetch::default() };
            }
            if wanted && fetch.due_ms.is_none() {
                fetch.due_ms = Some(now_ms);
            }
        }
    }

    /// Settles what is over its time, of at most `limit` resources.
    pub(super) fn settle_due(&mut self, now_ms: i64, limit: usize) -> Result<Waits, StoreError> {
        let mut due: Vec<(i64, ResourceHash)> = Vec::new();
        for row in self.held.values() {
            due.extend(row.held.until_ms.filter(|&until| until <= now_ms).map(|until| (until, row.resource)));
        }
        due.sort_unstable();
        let mut hashes: Vec<ResourceHash> = due.into_iter().map(|(_, hash)| hash).collect();
        let mut seen = std::collections::BTreeSet::new();
        hashes.retain(|hash| seen.insert(*hash));
        hashes.truncate(limit);
        let mut waits = Waits::default();
        for hash in hashes {
            waits = waits.and(self.settle(hash, now_ms, Push::None)?);
        }
        let next = self.held.values().filter_map(|row| row.held.until_ms).min();
        waits.due_in_ms = next.map(|next| next.saturating_sub(now_ms).max(0));
        Ok(waits)
    }

    /// Judges one resource without a new event.
    pub(super) fn settle(&mut self, hash: ResourceHash, now_ms: i64, push: Push) -> Result<Waits, StoreError> {
        let loaded = self.load([hash], now_ms);
        let plan = plan(&[], &loaded, push)?;
        let waits = Waits::of(&plan, now_ms);
        self.write(plan, now_ms);
        Ok(waits)
    }

    pub(super) fn release(&mut self, hash: ResourceHash, now_ms: i64) -> Result<Option<Waits>, StoreError> {
        if self.resources.get(&hash).is_none_or(|stored| stored.state.held == 0) {
            return Ok(None);
        }
        self.settle(hash, now_ms, Push::Release).map(Some)
    }

    pub(super) fn claim_fetches(&mut self, now_ms: i64, limit: usize, lease_ms: i64) -> Claimed {
        let due = |fetch: &Fetch| fetch.claimable_ms().is_some_and(|at| at <= now_ms);
        let mut open: Vec<(Option<i64>, ResourceHash)> =
            self.fetches.iter().filter(|(_, fetch)| due(fetch)).map(|(hash, fetch)| (fetch.due_ms, *hash)).collect();
        open.sort_unstable();
        let mut claims = Vec::new();
        for (_, hash) in open.into_iter().take(limit) {
            let (Some(fetch), Some(stored)) = (self.fetches.get_mut(&hash), self.resources.get(&hash)) else {
                continue;
            };
            fetch.epoch += 1;
            fetch.attempts += 1;
            fetch.leased_until_ms = Some(now_ms.saturating_add(lease_ms));
            for row in self.held.values_mut().filter(|row| row.resource == hash) {
                // what waits for the provider, and not for a person or for time
                if row.held.until_ms.is_none() && row.held.parked_in.is_none() {
                    row.held.fetch = Some(fetch.epoch);
                }
            }
            claims.push(FetchClaim {
                resource: hash,
                source: stored.source.clone(),
                tenant: stored.tenant.clone(),
                kind: stored.kind.clone(),
                id: stored.id.clone(),
                epoch: fetch.epoch,
                attempt: u32::try_from(fetch.attempts).unwrap_or(u32::MAX),
            });
        }
        let next = self.fetches.values().filter_map(Fetch::claimable_ms).min();
        Claimed { claims, due_in_ms: next.map(|next| next.saturating_sub(now_ms).max(0)) }
    }

    pub(super) fn fetch_failed(
        &mut self,
        claim: &FetchClaim,
        why: &str,
        retry_in_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<Waits, StoreError> {
        let Some(fetch) = self.fetches.get_mut(&claim.resource).filter(|fetch| fetch.epoch == claim.epoch) else {
            return Ok(Waits::default());
        };
        fetch.last_error = Some(why.to_owned());
        fetch.leased_until_ms = None;
        fetch.due_ms = retry_in_ms.map(|pause| now_ms.saturating_add(pause));
        if retry_in_ms.is_some() {
            return Ok(Waits { due_in_ms: retry_in_ms, ..Waits::default() });
        }
        fetch.attempts = 0;
        self.settle(claim.resource, now_ms, Push::GiveUp(claim.epoch))
    }

    /// Held events, for people.
    pub(super) fn held_rows(&self) -> impl Iterator<Item = (ResourceHash, HeldRow)> {
        self.held.iter().filter_map(|(id, row)| Some((row.resource, self.held_row(*id, row)?)))
    }

    fn held_row(&self, id: Uuid, row: &HeldEvent) -> Option<HeldRow> {
        let event = self.events.get(&id)?;
        Some(HeldRow {
            event: event.id,
            received_at_ms: event.received_at_ms,
            source: event.source.clone(),
            tenant: event.tenant.clone(),
            kind: event.kind.clone(),
            resource: event.resource.clone()?,
            version: event.version.clone(),
            why: row.why.clone(),
            until_ms: row.held.until_ms,
            parked: row.held.parked_in.is_some(),
        })
    }
}
