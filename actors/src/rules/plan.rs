//! What a transaction does, given what it loaded: the one place that says it, for every store.
//!
//! A store claims keys, loads and locks the resources of the events whose key was free, asks [`plan`], and
//! writes what it says in the same transaction. The same plan settles what is over its time.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use super::event::{Event, EventId, Guard, Intent, Outcome, Verdict};
use super::judge::{Hold, Item, Judgement, Kind, Push, State, Subject, Unjudged, Waiting, judge};
use super::key::ResourceHash;

/// A held event, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub id: EventId,
    /// What the rules need of it.
    pub subject: Subject,
    /// Until when, by the store's clock.
    pub until_ms: Option<i64>,
    /// The epoch it was parked in.
    pub parked_in: Option<i64>,
    /// The claimed fetch whose answer it waits for.
    pub fetch: Option<i64>,
}

/// A resource, as it is stored.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its state.
    pub state: State,
    /// Its held events, in the order they came. May be left empty where `state.held` is 0.
    pub held: Vec<Held>,
    /// The epoch of its fetch, if one was ever claimed.
    pub fetch: Option<i64>,
}

/// Everything that was loaded under locks.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The store's clock, milliseconds since 1970.
    pub now_ms: i64,
    /// The resources that are there.
    pub resources: HashMap<ResourceHash, Known>,
    /// Held events that cannot take effect now, whatever the rules say.
    pub blocked: HashMap<EventId, Blocked>,
}

/// How a held event waits on whose effect failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Until when; `None` gives it up.
    pub until_ms: Option<i64>,
    /// What failed.
    pub why: String,
}

/// What is written of a fresh event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What its sender is told.
    pub outcome: Outcome,
    /// What its row says.
    pub verdict: Verdict,
    /// Its version equalled the stored one.
    pub tie: bool,
    /// Why, where it was not plainly applied.
    pub why: Option<String>,
}

/// A resource's row after the transaction.
#[derive(Debug)]
pub struct Changed<'a> {
    /// The row's key.
    pub hash: ResourceHash,
    /// Where the row may be new: an event of the batch and the guard that names the resource.
    pub named_by: Option<(&'a Event, &'a Guard)>,
    /// Everything it holds afterwards.
    pub state: State,
}

/// A hold to write.
#[derive(Debug)]
pub struct NewHold<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its resource.
    pub resource: ResourceHash,
    /// How it waits.
    pub hold: Hold,
}

/// A hold that waits on in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rearmed {
    /// The held event.
    pub id: EventId,
    /// How it waits from now on.
    pub hold: Hold,
}

/// A hold that ended: its row goes, its event's row gets the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The event that was held.
    pub id: EventId,
    /// Its resource.
    pub resource: ResourceHash,
    /// Applied, stale or expired.
    pub verdict: Verdict,
    /// Its version equalled the stored one.
    pub tie: bool,
    /// Why.
    pub why: Option<String>,
}

/// What becomes of a resource's fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetching {
    /// The resource.
    pub resource: ResourceHash,
    /// The claim that was answered: its row rests, unless it is wanted again.
    pub answered: Option<i64>,
    /// The provider is to be asked, as soon as may be; a fetch that waits or runs already is enough.
    pub wanted: bool,
}

/// An event that takes effect with the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The event.
    pub id: EventId,
    /// Its place among the fresh events; `None` was held until now.
    pub fresh: Option<usize>,
}

/// What a transaction writes.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// One for each fresh event, in the order given.
    pub recorded: Vec<Recorded>,
    /// Rows of resources that changed, sorted by hash: the order of locks.
    pub states: Vec<Changed<'a>>,
    /// Holds that are new.
    pub held: Vec<NewHold<'a>>,
    /// Holds that changed.
    pub rearmed: Vec<Rearmed>,
    /// Holds that ended.
    pub settled: Vec<Settled>,
    /// Fetches asked for or answered.
    pub fetches: Vec<Fetching>,
    /// What takes effect, each resource's in the order they were applied.
    pub applied: Vec<Applied>,
    /// Fresh events that were parked.
    pub parked: u32,
    /// The earliest time at which a hold of these resources is over.
    pub next_due_ms: Option<i64>,
}

/// The resources whose rows must be loaded and locked for these events, sorted by hash, each with an event
/// and the guard that names it.
#[must_use]
pub fn resources<'a>(events: &[&'a Event]) -> BTreeMap<ResourceHash, (&'a Event, &'a Guard)> {
    let mut resources = BTreeMap::new();
    for event in events {
        for (_, guard) in guards(event) {
            resources.entry(guard.resource.hash).or_insert((*event, guard));
        }
    }
    resources
}

/// Says what becomes of fresh events, given in the order they came, and of what is held on their resources.
/// Without events, of everything loaded, and then it never fails: only an event that just came can be refused.
pub fn plan<'a>(fresh: &[&'a Event], loaded: &Loaded, push: Push) -> Result<Plan<'a>, Unjudged> {
    let mut groups: BTreeMap<ResourceHash, Vec<(usize, usize)>> = BTreeMap::new();
    let mut plan = Plan::default();
    for (place, event) in fresh.iter().enumerate() {
        let late = is_late_answer(event, loaded);
        plan.recorded.push(before_judging(event, late));
        if !late && event.intent == Intent::Apply && event.guards.is_empty() {
            plan.applied.push(Applied { id: event.id, fresh: Some(place) });
        }
        if !late {
            for (number, guard) in guards(event) {
                groups.entry(guard.resource.hash).or_default().push((place, number));
            }
        }
    }
    if fresh.is_empty() {
        groups.extend(loaded.resources.keys().map(|hash| (*hash, Vec::new())));
    }
    let unseen = Known::default();
    for (hash, group) in groups {
        let known = loaded.resources.get(&hash).unwrap_or(&unseen);
        let (blocked, held) = known.held.iter().partition(|held| loaded.blocked.contains_key(&held.id));
        let resource = Resource { hash, known, held, group, fresh, now_ms: loaded.now_ms };
        resource.plan(push, blocked, &loaded.blocked, &mut plan)?;
    }
    Ok(plan)
}

/// One resource and its events.
struct Resource<'a, 'b> {
    hash: ResourceHash,
    known: &'b Known,
    /// What is held and can take effect.
    held: Vec<&'b Held>,
    /// Places among the fresh events, each with the number of the guard.
    group: Vec<(usize, usize)>,
    fresh: &'b [&'a Event],
    now_ms: i64,
}

impl<'a> Resource<'a, '_> {
    fn plan(
        self,
        push: Push,
        blocked: Vec<&Held>,
        how: &HashMap<EventId, Blocked>,
        plan: &mut Plan<'a>,
    ) -> Result<(), Unjudged> {
        let held = self.held.iter().copied().map(item_of_held);
        let came = self.group.iter().map(|&(place, guard)| self.fresh[place].item(guard));
        let items: Vec<Item<'_>> = held.chain(came).collect();
        let mut judged = judge(self.known.state.clone(), &items, self.now_ms, push)?;
        for held in blocked {
            judged.state.held += i64::from(self.waits_on(held, &how[&held.id], plan));
        }
        plan.applied.extend(judged.applied.iter().filter_map(|&place| self.applied(place)));
        plan.parked += judged.parked;
        let answered = items.iter().find_map(|item| item.fetched);
        if judged.wants_fetch || answered.is_some() {
            plan.fetches.push(Fetching { resource: self.hash, answered, wanted: judged.wants_fetch });
        }
        let mut judgements = judged.judgements.into_iter();
        for (held, judgement) in self.held.iter().zip(judgements.by_ref()) {
            self.settle(held, judgement, plan);
        }
        for (&(place, guard), judgement) in self.group.iter().zip(judgements) {
            // the first guard's judgement is the event's verdict
            if guard > 0 {
                continue;
            }
            let event = self.fresh[place];
            plan.recorded[place] = recorded(&judgement);
            if let Judgement::Held(hold) = judgement {
                due(plan, hold.until_ms);
                plan.held.push(NewHold { event, resource: self.hash, hold });
            }
        }
        if judged.state != self.known.state {
            let named_by =
                self.group.first().map(|&(place, guard)| (self.fresh[place], &self.fresh[place].guards[guard]));
            plan.states.push(Changed { hash: self.hash, named_by, state: judged.state });
        }
        Ok(())
    }

    /// What comes along with an event takes effect with that, and not by itself.
    fn applied(&self, place: usize) -> Option<Applied> {
        let Some(number) = place.checked_sub(self.held.len()) else {
            return Some(Applied { id: self.held[place].id, fresh: None });
        };
        let (place, guard) = self.group[number];
        (guard == 0).then(|| Applied { id: self.fresh[place].id, fresh: Some(place) })
    }

    /// Whether an event whose effect failed is held still.
    fn waits_on(&self, held: &Held, blocked: &Blocked, plan: &mut Plan<'a>) -> bool {
        let Blocked { until_ms, why } = blocked;
        if until_ms.is_none() {
            let (verdict, why) = (Verdict::Expired, Some(why.clone()));
            plan.settled.push(Settled { id: held.id, resource: self.hash, verdict, tie: false, why });
            return false;
        }
        due(plan, *until_ms);
        let hold = Hold { kind: Kind::Gap, until_ms: *until_ms, parked_in: None, fetch: None, why: why.clone() };
        plan.rearmed.push(Rearmed { id: held.id, hold });
        true
    }

    fn settle(&self, held: &Held, judgement: Judgement, plan: &mut Plan<'a>) {
        let recorded = recorded(&judgement);
        if let Judgement::Held(hold) = judgement {
            due(plan, hold.until_ms);
            if (hold.until_ms, hold.parked_in, hold.fetch) != (held.until_ms, held.parked_in, held.fetch) {
                plan.rearmed.push(Rearmed { id: held.id, hold });
            }
            return;
        }
        let Recorded { verdict, tie, why, .. } = recorded;
        plan.settled.push(Settled { id: held.id, resource: self.hash, verdict, tie, why });
    }
}

fn due(plan: &mut Plan<'_>, until_ms: Option<i64>) {
    plan.next_due_ms = match (plan.next_due_ms, until_ms) {
        (Some(known), Some(until)) => Some(known.min(until)),
        (known, until) => known.or(until),
    };
}

fn item_of_held(held: &Held) -> Item<'_> {
    let mut item = Item::new(held.id, held.subject.view());
    item.waiting = Waiting { held: true, until_ms: held.until_ms, parked_in: held.parked_in, fetch: held.fetch };
    item
}

/// The guards that matter: none of an ignored event, and each resource once.
fn guards(event: &Event) -> impl Iterator<Item = (usize, &Guard)> {
    let all: &[Guard] = if event.intent == Intent::Apply { &event.guards } else { &[] };
    let seen_before =
        |number: usize| all[..number].iter().any(|earlier| earlier.resource.hash == all[number].resource.hash);
    all.iter().enumerate().filter(move |&(number, _)| !seen_before(number))
}

/// The answer of a fetch that another one has taken over since (I9).
fn is_late_answer(event: &Event, loaded: &Loaded) -> bool {
    let Some(epoch) = event.fetched else { return false };
    let current = event.guards.first().and_then(|guard| loaded.resources.get(&guard.resource.hash));
    current.and_then(|known| known.fetch) != Some(epoch)
}

/// What an event is that has no resource, or changes nothing.
fn before_judging(event: &Event, late: bool) -> Recorded {
    let of = |outcome, verdict, why: Option<String>| Recorded { outcome, verdict, tie: false, why };
    match event.intent {
        Intent::Apply if late => of(Outcome::Ignored, Verdict::Ignored, Some("another fetch took over".to_owned())),
        Intent::Apply => of(Outcome::Applied { tie: false }, Verdict::Applied, None),
        Intent::Ignore(_) => of(Outcome::Ignored, Verdict::Ignored, None),
    }
}

fn recorded(judgement: &Judgement) -> Recorded {
    let (outcome, verdict, tie, why) = match judgement {
        Judgement::Applied { tie, why } => (Outcome::Applied { tie: *tie }, Verdict::Applied, *tie, why.clone()),
        Judgement::Stale { tie, why } => (Outcome::Stale { tie: *tie }, Verdict::Stale, *tie, Some(why.clone())),
        Judgement::Held(hold) => (Outcome::Held, Verdict::Held, false, Some(hold.why.clone())),
        Judgement::Expired { why } => (Outcome::Held, Verdict::Expired, false, Some(why.clone())),
    };
    Recorded { outcome, verdict, tie, why }
}
