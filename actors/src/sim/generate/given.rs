//! Takes events that were recorded elsewhere as the world of a run.

use std::collections::HashMap;

use super::world::{Drawn, planned};
use crate::rules::event::{Event, Intent};
use crate::rules::key::{BodyDigest, Key};
use crate::sim::chance::Chance;
use crate::sim::plan::{PlannedEvent, PlannedGuard, PlannedResource};
use crate::sim::policy::PolicyChoice;
use crate::sim::scenario::Scenario;

/// An event of a stream that was recorded elsewhere.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    /// The event, as the gate would read it.
    pub event: Event,
    /// When it happened, in milliseconds since the first one.
    pub at_ms: u64,
}

/// Who sends an event, if anybody.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lot {
    pub(super) sender: u32,
    pub(super) never: bool,
}

/// The stream as a world; its order is the truth.
pub(super) fn take(scenario: &Scenario, stream: &[StreamEvent], chance: &mut Chance) -> Drawn {
    let mut drawn = Drawn::default();
    let mut resources = HashMap::new();
    let mut places = HashMap::new();
    for StreamEvent { event, at_ms } in stream {
        let guards: Vec<PlannedGuard> = event
            .guards
            .iter()
            .map(|guard| {
                let resource = *resources.entry(guard.resource.hash).or_insert_with(|| {
                    drawn.resources.push(PlannedResource {
                        source: event.source.to_string(),
                        tenant: event.tenant.to_string(),
                        kind: guard.resource.kind.clone(),
                        id: guard.resource.id.clone(),
                    });
                    drawn.resources.len() as u32 - 1
                });
                PlannedGuard { resource, version: guard.version.as_ref().map(planned) }
            })
            .collect();
        let truth = guards.first().map_or(0, |guard| {
            let place: &mut u64 = places.entry(guard.resource).or_default();
            *place += 1;
            *place
        });
        let policy = policy(&mut drawn.policies, event);
        drawn.events.push(of_event(event, *at_ms, guards, policy, truth));
        let sender = chance.below(u64::from(scenario.sender.senders)) as u32;
        drawn.lots.push(Lot { sender, never: chance.hits(scenario.world.never) });
    }
    drawn
}

fn policy(known: &mut Vec<PolicyChoice>, event: &Event) -> u32 {
    let choice = PolicyChoice::of(event);
    let place = known.iter().position(|known| *known == choice).unwrap_or_else(|| {
        known.push(choice);
        known.len() - 1
    });
    place as u32
}

fn of_event(event: &Event, at_ms: u64, guards: Vec<PlannedGuard>, policy: u32, truth: u64) -> PlannedEvent {
    let plain_key = Key::new(&event.source, &event.tenant, [event.key.text.as_str()]);
    let key_hash = plain_key.is_ok_and(|key| key.hash == event.key.hash);
    PlannedEvent {
        at_ms,
        source: event.source.to_string(),
        tenant: event.tenant.to_string(),
        key: event.key.text.clone(),
        key_hash: (!key_hash).then(|| event.key.hash.to_string()),
        effect_key: event.effect_key.as_ref().map(|key| key.text.clone()),
        kind: event.kind.clone(),
        guards,
        policy,
        step: event.step.clone(),
        truth,
        deletes: event.deletes,
        ignored: matches!(event.intent, Intent::Ignore(_)),
        poison: false,
        unusable: false,
        digest: (BodyDigest::of(&event.body) != event.digest).then(|| event.digest.to_string()),
        body: event.body.clone(),
    }
}
