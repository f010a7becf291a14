//! The ledger: what was sent, committed and answered, as seen from outside the engine, checked as it comes.
//!
//! Owns the record a run is judged by. Promises that what can be judged at once is judged at once: an answer
//! against what is stored at that moment, a stored version against the one before. The store wrapper writes it
//! beneath every planned fault, so it knows also what the engine was never told.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::DrivenClock;
use super::fault::FaultName;
use super::outcome::{Reached, Violation};
use super::prepared::Prepared;
use super::trace::{Happened, TraceLine};
use crate::admission::Refused;
use crate::ports::{Committed, Outcome, ResourceRow, Waits};
use crate::rules::event::{Event, EventId, Receipt, Unusable, Verdict};
use crate::rules::key::{BodyDigest, KeyHash, ResourceHash};

/// Violations that are kept; more of them say nothing new.
const VIOLATIONS_MAX: usize = 40;

/// One event's arrival at the gate.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) event: u32,
    pub(super) id: EventId,
    pub(super) node: u32,
    pub(super) at_ms: u64,
    pub(super) answer: Option<(String, u64)>,
    /// It was refused in a way that promises that nothing was kept.
    pub(super) refused_for_good: bool,
}

/// A claimed key.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) first: EventId,
    pub(super) event: u32,
    pub(super) digest: BodyDigest,
    pub(super) outcome: Outcome,
    pub(super) at_ms: u64,
    /// Number of the commit, and its place in that.
    pub(super) batch: u64,
}

/// A state that the engine fetched, as it was committed.
#[derive(Clone, Debug)]
pub(super) struct Fetched {
    pub(super) id: EventId,
    pub(super) resource: u32,
    pub(super) version: Option<Vec<u8>>,
    pub(super) number: Option<u64>,
    pub(super) deletes: bool,
    pub(super) outcome: Outcome,
    pub(super) at_ms: u64,
}

/// What is known of a run so far.
#[derive(Debug)]
pub(super) struct Ledger {
    prepared: Arc<Prepared>,
    clock: Arc<DrivenClock>,
    inner: Mutex<Known>,
}

/// The record itself.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) attempts: Vec<Attempt>,
    by_id: HashMap<EventId, u32>,
    /// In the order of their claims.
    pub(super) claims: Vec<Claim>,
    by_key: HashMap<KeyHash, u32>,
    /// Which event claimed an effect key.
    pub(super) effects: HashMap<KeyHash, EventId>,
    /// Epoch and version of each resource, as last seen.
    versions: HashMap<ResourceHash, (i64, Vec<u8>)>,
    /// What is kept in quarantine: the first of the same bytes.
    pub(super) quarantine: HashMap<BodyDigest, EventId>,
    /// States that the engine fetched by itself.
    pub(super) fetched: Vec<Fetched>,
    /// Resources of which something is held.
    holding: BTreeSet<ResourceHash>,
    pub(super) commits: u64,
    pub(super) deliveries: u64,
    pub(super) reached: Reached,
    pub(super) violations: Vec<Violation>,
    pub(super) answers: std::collections::BTreeMap<String, u64>,
    pub(super) trace: Option<Vec<TraceLine>>,
    pub(super) hash: TraceHash,
    /// Commits are refused for a while, whatever they hold.
    pub(super) refusing: bool,
}

impl Known {
    pub(super) fn claim(&self, key: &KeyHash) -> Option<&Claim> {
        self.by_key.get(key).map(|&place| &self.claims[place as usize])
    }

    /// The plan's event that an id names.
    pub(super) fn event(&self, id: EventId) -> Option<u32> {
        self.by_id.get(&id).map(|&place| self.attempts[place as usize].event)
    }
}

impl Ledger {
    pub(super) fn new(prepared: Arc<Prepared>, clock: Arc<DrivenClock>, keeps_trace: bool) -> Self {
        let known = Known { trace: keeps_trace.then(Vec::new), ..Known::default() };
        Self { prepared, clock, inner: Mutex::new(known) }
    }

    pub(super) fn happened(&self, what: Happened) {
        let at_ms = self.clock.elapsed_ms();
        self.known().note(at_ms, what);
    }

    pub(super) fn see(&self, what: &str) {
        self.known().reached.see(what);
    }

    pub(super) fn fired(&self, what: FaultName, node: u32, first: bool) {
        let at_ms = self.clock.elapsed_ms();
        let mut known = self.known();
        known.reached.see(&format!("fault {}", what.word()));
        known.refusing |= what == FaultName::CommitRefused;
        if first {
            known.note(at_ms, Happened::FaultFired { kind: what.word().to_owned(), node });
        }
    }

    /// A request with this event reached a node.
    pub(super) fn arrived(&self, event: u32, id: EventId, node: u32) {
        let at_ms = self.clock.elapsed_ms();
        let mut known = self.known();
        let place = known.attempts.len() as u32;
        known.by_id.insert(id, place);
        known.attempts.push(Attempt { event, id, node, at_ms, answer: None, refused_for_good: false });
    }

    /// The key of an event that the store refuses, if one is in the batch.
    pub(super) fn poison(&self, batch: &[Event]) -> Option<String> {
        let known = self.known();
        let poison = |event: &&Event| known.event(event.id).is_some_and(|index| self.prepared.planned(index).poison);
        batch.iter().find(poison).map(|event| event.key.text.clone())
    }

    /// The store committed a batch.
    pub(super) fn committed(&self, node: u32, batch: &[Event], committed: &Committed) {
        let at_ms = self.clock.elapsed_ms();
        let mut known = self.known();
        known.commits += 1;
        let mut events = Vec::with_capacity(batch.len());
        for (event, outcome) in batch.iter().zip(&committed.outcomes) {
            if event.fetched.is_some() {
                known.fetch(at_ms, event, outcome, &self.prepared);
                continue;
            }
            let Some(index) = known.event(event.id) else {
                known.violate(
                    "I2",
                    at_ms,
                    format!("an event that nobody sent was committed: {}", event.key.text),
                    None,
                );
                continue;
            };
            events.push((index, word(outcome).to_owned()));
            if matches!(outcome, Outcome::Repeat { .. }) {
                known.reached.see("committed repeat");
            }
            known.claimed(at_ms, index, self.prepared.template(index), event, outcome);
        }
        known.note(at_ms, Happened::Committed { node, events });
    }

    /// The store keeps unusable requests.
    pub(super) fn quarantined(&self, items: &[Unusable], ids: &[EventId]) {
        let mut known = self.known();
        for (item, id) in items.iter().zip(ids) {
            known.quarantine.entry(item.digest).or_insert(*id);
        }
    }

    /// Waiting ended in the store.
    pub(super) fn waited(&self, node: u32, waits: &Waits) {
        let &Waits { released, stale, expired, .. } = waits;
        let mut known = self.known();
        known.reached.add("released", u64::from(released));
        known.reached.add("stale after waiting", u64::from(stale));
        known.reached.add("expired", u64::from(expired));
        if released + stale + expired > 0 {
            let at_ms = self.clock.elapsed_ms();
            known.note(at_ms, Happened::Waited { node, released, stale, expired });
        }
    }

    /// Resources of which something is held.
    pub(super) fn holding(&self) -> Vec<ResourceHash> {
        self.known().holding.iter().copied().collect()
    }

    /// The row of a resource after a commit (I5).
    pub(super) fn stored(&self, row: &ResourceRow) {
        let at_ms = self.clock.elapsed_ms();
        let bytes = row.version.as_deref().and_then(|text| self.prepared.version_bytes(text)).unwrap_or_default();
        let mut known = self.known();
        if row.held > 0 {
            known.holding.insert(row.hash);
        } else {
            known.holding.remove(&row.hash);
        }
        let now = (row.epoch, bytes.to_vec());
        let before = known.versions.entry(row.hash).or_default();
        if now < *before {
            let what = format!("the stored version of {}/{} went back to {:?}", row.kind, row.id, row.version);
            let resource = self.prepared.resource(row.hash);
            known.push(Violation { invariant: "I5".to_owned(), what, at_ms, event: None, resource });
        } else {
            *before = now;
        }
    }

    /// The gate answered for one event.
    pub(super) fn answered(&self, id: EventId, node: u32, answer: &Result<Receipt, Refused>) {
        let at_ms = self.clock.elapsed_ms();
        let mut known = self.known();
        let Some(&place) = known.by_id.get(&id) else { return };
        let event = known.attempts[place as usize].event;
        let word = match answer {
            Ok(receipt) if receipt.verdict == Verdict::Quarantined => {
                known.reached.see("answered quarantined");
                if known.quarantine.get(&self.prepared.template(event).digest) != Some(&receipt.id) {
                    let what = format!("{} was answered as quarantined and is not there", receipt.id);
                    known.violate("I1", at_ms, what, Some(event));
                }
                receipt_word(receipt)
            }
            Ok(receipt) => {
                known.acknowledged(at_ms, event, id, receipt, self.prepared.template(event));
                receipt_word(receipt)
            }
            Err(refused) => {
                let poison = self.prepared.planned(event).poison;
                known.refused(at_ms, place, event, refused, poison);
                refused.reason()
            }
        };
        *known.answers.entry(word.to_owned()).or_default() += 1;
        known.attempts[place as usize].answer = Some((word.to_owned(), at_ms));
        known.note(at_ms, Happened::Answered { event, node, answer: word.to_owned() });
    }

    pub(super) fn violate(&self, invariant: &str, what: String, event: Option<u32>) {
        let at_ms = self.clock.elapsed_ms();
        self.known().violate(invariant, at_ms, what, event);
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, at_ms: u64, what: Happened) {
        self.hash.add(at_ms, &what);
        if let Some(trace) = &mut self.trace {
            trace.push(TraceLine { at_ms, what });
        }
    }

    pub(super) fn violate(&mut self, invariant: &str, at_ms: u64, what: String, event: Option<u32>) {
        self.push(Violation { invariant: invariant.to_owned(), what, at_ms, event, resource: None });
    }

    pub(super) fn push(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }

    /// `sent` is the event as it was sent, `event` as it came to the store.
    fn claimed(&mut self, at_ms: u64, index: u32, sent: &Event, event: &Event, outcome: &Outcome) {
        let claim = self.claim(&sent.key.hash).cloned();
        match (outcome, claim) {
            (Outcome::Duplicate { first, conflict }, Some(claim)) => {
                if *first != claim.first {
                    let what = format!("{first} is said to hold key {}, but {} does", event.key.text, claim.first);
                    self.violate("I7", at_ms, what, Some(index));
                }
                if *conflict != (claim.digest != event.digest) {
                    let what = format!("key {} came with other bytes: said {conflict}", event.key.text);
                    self.violate("I7", at_ms, what, Some(index));
                }
            }
            (Outcome::Duplicate { .. }, None) => {
                let what = format!("key {} is called a duplicate and was never claimed", event.key.text);
                self.violate("I7", at_ms, what, Some(index));
            }
            (_, Some(claim)) => {
                let what = format!("key {} took effect twice, first as {}", event.key.text, claim.first);
                self.violate("I3", at_ms, what, Some(index));
            }
            (_, None) => {
                self.effect(at_ms, index, sent, event.id, outcome);
                let claim = Claim {
                    first: event.id,
                    event: index,
                    digest: event.digest,
                    outcome: *outcome,
                    at_ms,
                    batch: self.commits,
                };
                self.by_key.insert(sent.key.hash, self.claims.len() as u32);
                self.claims.push(claim);
            }
        }
    }

    /// One effect key, one effect (I3).
    fn effect(&mut self, at_ms: u64, index: u32, sent: &Event, id: EventId, outcome: &Outcome) {
        let Some(key) = &sent.effect_key else { return };
        let first = self.effects.get(&key.hash).copied();
        let wrong = match (outcome, first) {
            (Outcome::Repeat { first: said }, Some(first)) if *said == first => return,
            (Outcome::Repeat { first: said }, first) => {
                format!("is called a repeat of {said}, and {first:?} was first")
            }
            (_, Some(first)) => format!("took effect twice, first as {first}"),
            (_, None) => {
                self.effects.insert(key.hash, id);
                return;
            }
        };
        self.violate("I3", at_ms, format!("effect key {} {wrong}", key.text), Some(index));
    }

    fn fetch(&mut self, at_ms: u64, event: &Event, outcome: &Outcome, prepared: &Prepared) {
        let guard = event.guards.first();
        let resource = guard.and_then(|guard| prepared.resource(guard.resource.hash));
        // the same answer handed in twice, after a commit nobody knew of
        if matches!(outcome, Outcome::Duplicate { .. }) {
            return;
        }
        let version = guard.and_then(|guard| guard.version.as_ref());
        self.fetched.push(Fetched {
            id: event.id,
            resource: resource.unwrap_or(u32::MAX),
            version: version.map(|version| version.bytes().to_vec()),
            number: version.and_then(crate::rules::version::Version::number).and_then(|number| number.try_into().ok()),
            deletes: event.deletes,
            outcome: *outcome,
            at_ms,
        });
    }

    /// A 2xx: it must be true now (I1, I7).
    fn acknowledged(&mut self, at_ms: u64, event: u32, id: EventId, receipt: &Receipt, sent: &Event) {
        let Some(claim) = self.claim(&sent.key.hash) else {
            let what = format!("{} was answered {} and is not stored", sent.key.text, receipt.verdict);
            return self.violate("I1", at_ms, what, Some(event));
        };
        let same_bytes = claim.digest == sent.digest;
        // what repeats another under a new id is a duplicate of that, and keeps its own key
        let first = match claim.outcome {
            Outcome::Repeat { first } if claim.first == id => first,
            _ => claim.first,
        };
        let is_first = first == id;
        if is_first && !word(&claim.outcome).starts_with(receipt.verdict.word()) {
            let what = format!("{} was answered {} and is {}", sent.key.text, receipt.verdict, word(&claim.outcome));
            self.violate("I16", at_ms, what, Some(event));
        }
        if is_first == (receipt.verdict == Verdict::Duplicate) {
            let what = format!("{} was answered {}, but the first is {first}", sent.key.text, receipt.verdict);
            self.violate("I7", at_ms, what, Some(event));
        }
        if receipt.id != first || receipt.conflict == same_bytes {
            let what = format!("{} was answered with {receipt:?}, but the first is {first}", sent.key.text);
            self.violate("I7", at_ms, what, Some(event));
        }
        self.reached.see(&format!("answered {}", receipt_word(receipt)));
    }

    fn refused(&mut self, at_ms: u64, place: u32, event: u32, refused: &Refused, poison: bool) {
        self.reached.see(&format!("refused {}", refused.reason()));
        match refused {
            Refused::Rejected(why) if !poison && !self.refusing => {
                self.violate("I14", at_ms, format!("a good event was rejected: {why}"), Some(event));
            }
            Refused::Overloaded | Refused::Draining | Refused::Rejected(_) => {
                self.attempts[place as usize].refused_for_good = true;
            }
            Refused::Unavailable(_) | Refused::Unknown(_) | Refused::TooLate | Refused::EffectFailed => {}
        }
    }
}

/// The word for what a commit decided.
pub(super) fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied { tie: false } => "applied",
        Outcome::Applied { tie: true } => "applied tie",
        Outcome::Stale { tie: false } => "stale",
        Outcome::Stale { tie: true } => "stale tie",
        Outcome::Held => "held",
        Outcome::Ignored => "ignored",
        Outcome::Failed => "failed",
        Outcome::Repeat { .. } => "repeat",
        Outcome::Duplicate { conflict: false, .. } => "duplicate",
        Outcome::Duplicate { conflict: true, .. } => "conflict",
    }
}

fn receipt_word(receipt: &Receipt) -> &'static str {
    if receipt.conflict { "conflict" } else { receipt.verdict.word() }
}

/// A hash over all that happened, the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl TraceHash {
    fn add(&mut self, at_ms: u64, what: &Happened) {
        use std::hash::{Hash as _, Hasher as _};
        self.write_u64(at_ms);
        what.hash(self);
    }

    pub(super) const fn value(self) -> u64 {
        self.0
    }
}

impl std::hash::Hasher for TraceHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
