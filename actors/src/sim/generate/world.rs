//! Draws what happens at the sender: resources, their events in true order, versions, steps and bodies.

use bytes::Bytes;
use jiff::Timestamp;

use super::given::Lot;
use crate::rules::version::{Part, Version};
use crate::sim::chance::Chance;
use crate::sim::clock::EPOCH_MS;
use crate::sim::plan::{PlannedEvent, PlannedGuard, PlannedResource, PlannedVersion};
use crate::sim::policy::{PolicyChoice, VersionKind};
use crate::sim::scenario::{Scenario, Span};

/// The source of every drawn event.
const SOURCE: &str = "shop";
/// Top-level members that a drawn state may have.
const MEMBERS: u64 = 5;

/// What was drawn.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) policies: Vec<PolicyChoice>,
    pub(super) resources: Vec<PlannedResource>,
    pub(super) events: Vec<PlannedEvent>,
    /// For each event, who sends it, if anybody.
    pub(super) lots: Vec<Lot>,
}

/// A resource as it grows.
struct Growing {
    policy: u32,
    index: u32,
    events: u64,
    step: usize,
}

/// The world of a scenario.
pub(super) fn draw(scenario: &Scenario, chance: &mut Chance) -> Drawn {
    let mut making = Making::new(scenario, chance);
    let count = making.chance.within(scenario.world.events);
    let mut times: Vec<u64> =
        (0..count).map(|_| making.chance.within(Span::new(0, scenario.world.spread_ms))).collect();
    times.sort_unstable();
    for (number, at_ms) in times.into_iter().enumerate() {
        making.happen(number, at_ms);
    }
    making.drawn
}

struct Making<'a> {
    scenario: &'a Scenario,
    chance: &'a mut Chance,
    drawn: Drawn,
    growing: Vec<Growing>,
    /// Resources that only come along, and how often each did.
    along: Vec<(u32, u64)>,
    /// By how much each sender's clock is off.
    skews_ms: Vec<i64>,
}

impl<'a> Making<'a> {
    fn new(scenario: &'a Scenario, chance: &'a mut Chance) -> Self {
        let skew_ms = scenario.clock.sender_skew_ms;
        let skews_ms = (0..scenario.sender.senders).map(|_| chance.either_way(skew_ms)).collect();
        let drawn = Drawn { policies: scenario.order.policies.clone(), ..Drawn::default() };
        let mut making = Self { scenario, chance, drawn, growing: Vec::new(), along: Vec::new(), skews_ms };
        for _ in 0..making.chance.within(scenario.world.resources) {
            making.grow_another();
        }
        if scenario.world.also > 0.0 {
            for number in 0..3 {
                let index = making.resource("customer", format!("c{number}"));
                making.along.push((index, 0));
            }
        }
        making
    }

    fn resource(&mut self, kind: &str, id: String) -> u32 {
        let resource = PlannedResource { source: SOURCE.to_owned(), tenant: String::new(), kind: kind.to_owned(), id };
        self.drawn.resources.push(resource);
        self.drawn.resources.len() as u32 - 1
    }

    fn grow_another(&mut self) {
        let policy = self.chance.below(self.scenario.order.policies.len() as u64) as u32;
        let index = self.resource("order", format!("o{}", self.growing.len()));
        self.growing.push(Growing { policy, index, events: 0, step: 0 });
    }

    fn happen(&mut self, number: usize, at_ms: u64) {
        let world = &self.scenario.world;
        if self.chance.hits(world.unguarded) {
            let event = self.bare(format!("e{number}"), at_ms, "note", 0);
            return self.keep(event, None);
        }
        if self.chance.hits(world.unusable) {
            let event = PlannedEvent { unusable: true, ..self.bare(format!("u{number}"), at_ms, "", 0) };
            return self.keep(event, None);
        }
        let mut place = self.chance.below(self.growing.len() as u64) as usize;
        if self.steps_of(place).is_some_and(|steps| self.growing[place].step >= steps) {
            // its states are all done: another one begins
            self.grow_another();
            place = self.growing.len() - 1;
        }
        let mut event = self.guarded(format!("e{number}"), at_ms, place);
        if world.repeats > 0.0 && !event.poison && self.chance.hits(world.repeats) {
            event.effect_key = Some(format!("x{number}"));
            let repeat = PlannedEvent { key: format!("r{number}"), ..event.clone() };
            self.keep(repeat, Some(place));
        }
        let conflict = self
            .chance
            .hits(world.conflicts)
            .then(|| PlannedEvent { body: Bytes::from(format!("other bytes of {}", event.key)), ..event.clone() });
        self.keep(event, Some(place));
        if let Some(conflict) = conflict {
            self.keep(conflict, Some(place));
        }
    }

    fn bare(&self, key: String, at_ms: u64, kind: &str, policy: u32) -> PlannedEvent {
        PlannedEvent {
            at_ms,
            source: SOURCE.to_owned(),
            tenant: String::new(),
            body: Bytes::from(format!("body of {key}")),
            key,
            key_hash: None,
            effect_key: None,
            kind: kind.to_owned(),
            guards: Vec::new(),
            policy,
            step: None,
            truth: 0,
            deletes: false,
            ignored: false,
            poison: false,
            unusable: false,
            digest: None,
        }
    }

    fn steps_of(&self, place: usize) -> Option<usize> {
        match &self.scenario.order.policies[self.growing[place].policy as usize] {
            PolicyChoice::Transition { steps, .. } => Some(steps.len()),
            _ => None,
        }
    }

    fn guarded(&mut self, key: String, at_ms: u64, place: usize) -> PlannedEvent {
        let (world, policies) = (&self.scenario.world, &self.scenario.order.policies);
        let (policy, resource) = (self.growing[place].policy, self.growing[place].index);
        let mut event = self.bare(key, at_ms, "updated", policy);
        if self.chance.hits(world.ignored) {
            event.ignored = true;
            event.guards.push(PlannedGuard { resource, version: None });
            return event;
        }
        self.growing[place].events += 1;
        event.truth = self.growing[place].events;
        let choice = &policies[policy as usize];
        if let PolicyChoice::Transition { steps, .. } = choice {
            event.step = Some(steps[self.growing[place].step].clone());
            self.growing[place].step += 1;
        }
        if matches!(choice, PolicyChoice::Fields) {
            event.body = Bytes::from(self.members(&event.key));
        }
        let version = self.version(choice, at_ms, event.truth, place);
        event.guards.push(PlannedGuard { resource, version: Some(version) });
        event.deletes = self.chance.hits(world.deletes);
        event.poison = self.chance.hits(world.poison);
        if self.chance.hits(world.also) && !self.along.is_empty() {
            let along = self.chance.below(self.along.len() as u64) as usize;
            self.along[along].1 += 1;
            let (resource, number) = self.along[along];
            event.guards.push(PlannedGuard { resource, version: Some(number_version(number)) });
        }
        event
    }

    /// A state with some of its members, each saying which event set it.
    fn members(&mut self, key: &str) -> String {
        let all = (0..MEMBERS).filter(|_| self.chance.hits(0.4)).collect::<Vec<_>>();
        let all = if all.is_empty() { vec![self.chance.below(MEMBERS)] } else { all };
        let members: Vec<String> = all.iter().map(|member| format!("\"f{member}\":\"{key}\"")).collect();
        format!("{{{}}}", members.join(","))
    }

    fn version(&mut self, policy: &PolicyChoice, at_ms: u64, truth: u64, place: usize) -> PlannedVersion {
        let kind = match policy {
            PolicyChoice::Newest { version, .. } | PolicyChoice::Arrival { version } => *version,
            PolicyChoice::Window { .. } => VersionKind::Time,
            _ => VersionKind::Number,
        };
        if kind == VersionKind::Number {
            return number_version(truth);
        }
        let skew_ms = self.skews_ms[place % self.skews_ms.len()];
        let precision_ms = self.scenario.clock.precision_ms.cast_signed().max(1);
        let time_ms = EPOCH_MS + at_ms.cast_signed() + skew_ms;
        let time_ms = time_ms - time_ms.rem_euclid(precision_ms);
        let mut parts = Vec::from_iter(Timestamp::from_millisecond(time_ms).ok().map(Part::Instant));
        if kind == VersionKind::TimeAndRank {
            parts.push(Part::Rank(truth as u32));
        }
        planned(&Version::new(&parts).unwrap_or_else(|_| Version::stored(&[], String::new())))
    }

    fn keep(&mut self, event: PlannedEvent, place: Option<usize>) {
        let senders = u64::from(self.scenario.sender.senders);
        // most events of a resource come from one sender
        let home = place.map(|place| place as u64 % senders).filter(|_| !self.chance.hits(0.2));
        let sender = home.unwrap_or_else(|| self.chance.below(senders)) as u32;
        let never = self.chance.hits(self.scenario.world.never);
        self.drawn.lots.push(Lot { sender, never });
        self.drawn.events.push(event);
    }
}

fn number_version(number: u64) -> PlannedVersion {
    planned(&Version::integer(&number.to_string()).unwrap_or_else(|_| Version::stored(&[], String::new())))
}

pub(super) fn planned(version: &Version) -> PlannedVersion {
    PlannedVersion { bytes: hex::encode(version.bytes()), text: version.text().to_owned() }
}
