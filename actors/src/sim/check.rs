//! The checker: after healing, what is stored must be what the model and the ledger say.
//!
//! Owns the questions asked at the end; those that can be asked at once are in [`super::ledger`]. Promises
//! that each finding names the promise it breaks. I9 to I12 are about deliveries, which are not built yet, and
//! I2 is checked as far as it is about stored bytes. I13 is about clocks: the engine must know how far off it is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::backend::hold_time;
use super::ledger::{Known, word};
use super::model::{Expected, Finding, Role, expected, expected_along, roles, taken, wrong_verdicts};
use super::node::Node;
use super::outcome::Violation;
use super::play::{Life, Play};
use super::policy::PolicyChoice;
use super::prepared::Prepared;
use super::senders::Stand;
use crate::ports::{
    Counts, EventFilter, EventRow, HeldFilter, Outcome, Reader, ResourceFilter, ResourceRow, StoreError,
};
use crate::rules::event::{EventId, Verdict};

/// Rows of one page.
const PAGE: u32 = 1_000;
/// How far off the engine may be about its clock: a pulse lies between.
const CLOCK_SLACK_MS: i64 = 1_500;
/// How long a drain may take when nothing is under way.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Everything that is stored.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) events: Vec<EventRow>,
    pub(super) resources: Vec<ResourceRow>,
    pub(super) counts: Counts,
    /// Held events that wait for a person.
    pub(super) parked: i64,
}

/// Held events that wait for a person, as far as one page shows them.
pub(super) async fn parked(reader: &dyn Reader) -> Result<i64, StoreError> {
    let held = reader.held(&HeldFilter::default(), None, PAGE).await?;
    Ok(held.rows.iter().filter(|row| row.parked).count() as i64)
}

/// Asks everything that is asked at the end; what is stored comes back.
pub(super) async fn check(play: &Play<'_>, life: &Life) -> Result<Stored, StoreError> {
    for node in life.nodes.iter().flatten() {
        at_rest(play, node).await;
    }
    let stored = hold_time(play.takes_real_time, read(&*life.opened.reader)).await?;
    let known = &mut *play.ledger.known();
    let at_ms = play.clock.elapsed_ms();
    let judge = Judge { prepared: &play.prepared, stored: &stored, at_ms };
    judge.settled(play, known);
    judge.rows(known);
    judge.counts(known);
    judge.states(known);
    Ok(stored)
}

/// Nothing is in flight, the node knows its clock, and it shuts down in order.
async fn at_rest(play: &Play<'_>, node: &Node) {
    let number = node.ground.node;
    let status = node.engine.status();
    let (events, bytes) = (status.in_flight_events.0, status.in_flight_bytes.0);
    if events > 0 || bytes > 0 {
        play.ledger.violate("I15", format!("node {number} holds room for {events} events, {bytes} bytes"), None);
    }
    if !status.ready {
        play.ledger.violate("liveness", format!("node {number} is not ready: {:?}", status.reasons), None);
    }
    let off_ms = node.clock.off_ms();
    if (status.clock_difference_ms + off_ms).abs() > CLOCK_SLACK_MS {
        let what = format!("node {number} is {off_ms} ms off and thinks {}", -status.clock_difference_ms);
        play.ledger.violate("I13", what, None);
    }
    for pool in status.pools.iter().filter(|pool| pool.panics > 0) {
        play.ledger.see(&format!("panic in {}", pool.name));
    }
    for pool in status.pools.iter().filter(|pool| pool.full > 0) {
        play.ledger.see(&format!("full {}", pool.name));
    }
    if !node.engine.drain(DRAIN_WITHIN).await.complete {
        play.ledger.violate("liveness", format!("node {number} does not shut down"), None);
    }
}

async fn read(reader: &dyn Reader) -> Result<Stored, StoreError> {
    let counts = reader.counts().await?;
    let parked = if counts.held > 0 { parked(reader).await? } else { 0 };
    let mut stored = Stored { counts, parked, ..Stored::default() };
    let mut after: Option<Uuid> = None;
    loop {
        let page = reader.events(&EventFilter::default(), after, PAGE).await?;
        stored.events.extend(page.rows);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for row in &mut stored.events {
        row.body = reader.event(row.id).await?.and_then(|row| row.body);
    }
    loop {
        let page = reader.resources(&ResourceFilter::default(), after, PAGE).await?;
        stored.resources.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(stored);
        }
    }
}

struct Judge<'a> {
    prepared: &'a Prepared,
    stored: &'a Stored,
    at_ms: u64,
}

impl Judge<'_> {
    fn say(&self, known: &mut Known, invariant: &str, event: Option<u32>, resource: Option<u32>, what: String) {
        known.push(Violation { invariant: invariant.to_owned(), what, at_ms: self.at_ms, event, resource });
    }

    /// What senders were told holds at the end (I1, I14).
    fn settled(&self, play: &Play<'_>, known: &mut Known) {
        for (index, message) in (0..).zip(&self.prepared.plan.messages) {
            let stand = play.senders.stand(index);
            for &event in &message.events {
                let (planned, template) = (self.prepared.planned(event), self.prepared.template(event));
                let kept = known.quarantine.contains_key(&template.digest);
                let claimed = if planned.unusable { kept } else { known.claim(&template.key.hash).is_some() };
                match stand {
                    Stand::Settled if !claimed => {
                        let what = format!("{} was answered with 2xx and is not stored", planned.key);
                        self.say(known, "I1", Some(event), None, what);
                    }
                    Stand::GivenUp if !planned.poison => {
                        let what = format!("{} was rejected although nothing is wrong with it", planned.key);
                        self.say(known, "I14", Some(event), None, what);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The rows are those that were claimed, once each, with the bytes that were sent (I2, I3, I4, I15).
    fn rows(&self, known: &mut Known) {
        let mut effects: BTreeMap<(&str, &str, &str), u32> = BTreeMap::new();
        let mut rows = HashMap::with_capacity(self.stored.events.len());
        let mut found = Vec::new();
        for row in &self.stored.events {
            rows.insert(row.id, row);
            if row.verdict != Verdict::Duplicate {
                *effects.entry((&row.source, &row.tenant, &row.key)).or_default() += 1;
            }
            match known.event(row.id) {
                None if known.fetched.iter().any(|fetched| fetched.id == row.id) => {}
                None => found.push(("I2", None, format!("row {} of {} was never sent", row.id, row.key))),
                Some(event) if row.body.as_deref() != Some(&*self.prepared.planned(event).body) => {
                    found.push(("I2", Some(event), format!("row {} of {} has other bytes", row.id, row.key)));
                }
                Some(_) => {}
            }
        }
        for ((_, _, key), count) in effects.into_iter().filter(|(_, count)| *count > 1) {
            found.push(("I3", None, format!("key {key} took effect {count} times")));
        }
        for claim in &known.claims {
            let planned = self.prepared.planned(claim.event);
            match rows.get(&claim.first) {
                None => found.push(("I4", Some(claim.event), format!("{} was committed and has no row", planned.key))),
                Some(row) if !agrees(&claim.outcome, row.verdict) => {
                    let what = format!("{} was {} and its row says {}", planned.key, word(&claim.outcome), row.verdict);
                    found.push(("I4", Some(claim.event), what));
                }
                Some(_) => {}
            }
        }
        for attempt in known.attempts.iter().filter(|attempt| attempt.refused_for_good) {
            if rows.contains_key(&attempt.id) {
                let what = format!("{} was refused and is stored", attempt.id);
                found.push(("I15", Some(attempt.event), what));
            }
        }
        for (invariant, event, what) in found {
            self.say(known, invariant, event, None, what);
        }
    }

    /// The store's own bookkeeping agrees with its rows, and both with what was claimed (I7, I16).
    fn counts(&self, known: &mut Known) {
        let counted = |quarantined: bool| {
            let counts = self.stored.counts.events.iter();
            counts.filter(move |(verdict, _)| (*verdict == Verdict::Quarantined) == quarantined).map(|(_, count)| count)
        };
        let (counted, quarantined) = (counted(false).sum::<i64>(), counted(true).sum::<i64>());
        if quarantined != known.quarantine.len() as i64 {
            let what = format!("{} requests are in quarantine, counted as {quarantined}", known.quarantine.len());
            self.say(known, "I16", None, None, what);
        }
        let rows = self.stored.events.len() as i64;
        let effects = self.stored.events.iter().filter(|row| row.verdict != Verdict::Duplicate).count();
        if counted != rows {
            self.say(known, "I16", None, None, format!("{rows} rows of events are counted as {counted}"));
        }
        let claims = known.claims.len() + known.fetched.len();
        let repeats = known.claims.iter().filter(|claim| matches!(claim.outcome, Outcome::Repeat { .. })).count();
        let keys = self.stored.counts.keys;
        if effects + repeats != claims || keys != (claims + known.effects.len()) as i64 {
            let what = format!(
                "{claims} keys and {} effect keys were claimed, {keys} are stored, with {effects} effects and {repeats} repeats",
                known.effects.len()
            );
            self.say(known, "I16", None, None, what);
        }
        if self.stored.counts.held > self.stored.parked {
            let what = format!("{} events are held when everything is settled", self.stored.counts.held);
            self.say(known, "I6", None, None, what);
        }
        let aside: HashSet<_> = self.stored.events.iter().filter_map(|row| row.conflicts_with).collect();
        let mut missing = Vec::new();
        for attempt in &known.attempts {
            let conflict = attempt.answer.as_ref().is_some_and(|(word, _)| word == "conflict");
            let claim = known.claim(&self.prepared.template(attempt.event).key.hash);
            if conflict && claim.is_some_and(|claim| !aside.contains(&claim.first)) {
                missing.push(attempt.event);
            }
        }
        for event in missing {
            self.say(known, "I7", Some(event), None, "other bytes of its key were not kept aside".to_owned());
        }
    }

    /// Every resource is in the state the model says, and every verdict was right (I5, I6, I17).
    fn states(&self, known: &mut Known) {
        let rows: HashMap<u32, &ResourceRow> = self
            .stored
            .resources
            .iter()
            .filter_map(|row| self.prepared.resource(row.hash).map(|resource| (resource, row)))
            .collect();
        let events: HashMap<EventId, &EventRow> = self.stored.events.iter().map(|row| (row.id, row)).collect();
        let roles = roles(self.prepared);
        let mut found: Vec<(u32, Finding)> = Vec::new();
        for (resource, taken) in (0..).zip(taken(self.prepared, known, &events)) {
            if taken.is_empty() {
                continue;
            }
            let must = match roles[resource as usize] {
                Role::Mixed => continue,
                Role::Along => expected_along(&taken),
                Role::First(policy) => {
                    let order = self.prepared.order(policy);
                    let choice = &self.prepared.plan.policies[policy as usize];
                    let strict = !matches!(choice, PolicyChoice::Transition { strict: false, .. });
                    let wrong = wrong_verdicts(order, strict, &taken);
                    found.extend(wrong.into_iter().map(|finding| (resource, finding)));
                    expected(order, &taken, self.prepared)
                }
            };
            let row = rows.get(&resource);
            let state = row.map_or_else(|| Some("has no row".to_owned()), |row| self.wrong_state(row, &must));
            found.extend(state.map(|what| (resource, ("I17", None, what))));
        }
        for (resource, (invariant, event, what)) in found {
            let name = &self.prepared.plan.resources[resource as usize];
            let what = format!("{}/{}: {what}", name.kind, name.id);
            self.say(known, invariant, event, Some(resource), what);
        }
    }

    /// What of a row is not as it must be.
    fn wrong_state(&self, row: &ResourceRow, must: &Expected) -> Option<String> {
        let version = row.version.as_deref().and_then(|text| self.prepared.version_bytes(text)).map(<[u8]>::to_vec);
        if version != must.version {
            let must = must.version.as_deref().map(hex::encode);
            return Some(format!("holds version {:?}, and must hold {must:?}", row.version));
        }
        if must.event.is_some() && must.event != row.event {
            return Some(format!("is in the state of {:?}, and must be in that of {:?}", row.event, must.event));
        }
        if must.deleted.is_some_and(|deleted| deleted != row.deleted) {
            return Some(format!("deleted is {}, and must not be", row.deleted));
        }
        if must.applied.is_some_and(|applied| applied != row.applied) {
            return Some(format!("counts {} applied events, and must count {:?}", row.applied, must.applied));
        }
        if let Some(members) = &must.members {
            let stored: BTreeMap<String, serde_json::Value> =
                row.fields.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            let stored: BTreeMap<String, String> =
                stored.into_iter().map(|(name, value)| (name, value.to_string())).collect();
            if stored != *members {
                return Some(format!("has the members {stored:?}, and must have {members:?}"));
            }
        }
        (row.held != 0 && self.stored.parked == 0).then(|| format!("says that {} of its events are held", row.held))
    }
}

/// What a row may say of an event after what was decided when it came.
fn agrees(outcome: &Outcome, verdict: Verdict) -> bool {
    match outcome {
        Outcome::Repeat { .. } => verdict == Verdict::Duplicate,
        // whether something may still be held is asked on its own: parked ones wait for a person
        Outcome::Held => {
            matches!(verdict, Verdict::Applied | Verdict::Stale | Verdict::Expired | Verdict::Held)
        }
        _ => word(outcome).starts_with(verdict.word()),
    }
}
