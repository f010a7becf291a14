//! From a scenario and a seed to a plan. Pure: the same scenario and seed give the same plan.
//!
//! Owns the order in which chance is asked. World, traffic and faults each have a stream of their own.

mod faults;
mod given;
mod traffic;
mod world;

use super::chance::Chance;
use super::plan::{Gate, Plan};
use super::scenario::{Scenario, Span};

pub(super) use self::faults::kinds as fault_kinds;
pub use self::given::StreamEvent;

/// After the last thing that happens at a sender, faults go on for so long.
const FAULTS_GO_ON_MS: u64 = 2_000;

/// Draws a world, its traffic and its faults.
#[must_use]
pub fn generate(scenario: &Scenario, seed: u64) -> Plan {
    let mut chance = Chance::new(seed, "world");
    let world = world::draw(scenario, &mut chance);
    plan(scenario, seed, world)
}

/// The same traffic and faults around events that are given, in the order they happened.
#[must_use]
pub fn generate_from(scenario: &Scenario, seed: u64, stream: &[StreamEvent]) -> Plan {
    plan(scenario, seed, given::take(scenario, stream, &mut Chance::new(seed, "world")))
}

fn plan(scenario: &Scenario, seed: u64, world: world::Drawn) -> Plan {
    let gate = gate(scenario, &mut Chance::new(seed, "gate"));
    let nodes = gate.nodes.len() as u64;
    let messages = traffic::draw(scenario, &world, nodes, &mut Chance::new(seed, "traffic"));
    let heal_at_ms = messages.iter().map(|message| message.at_ms).max().unwrap_or(0) + FAULTS_GO_ON_MS;
    let faults = faults::draw(scenario, heal_at_ms, nodes, &mut Chance::new(seed, "faults"));
    Plan {
        scenario: scenario.name.clone(),
        seed,
        policies: world.policies,
        resources: world.resources,
        events: world.events,
        messages,
        faults,
        gate,
        sender: scenario.sender.clone(),
        heal_at_ms,
        heal_within_ms: scenario.heal_within_ms,
    }
}

fn gate(scenario: &Scenario, chance: &mut Chance) -> Gate {
    let model = &scenario.gate;
    let nodes = chance.within(model.nodes);
    Gate {
        nodes: (0..nodes).map(|_| chance.either_way(scenario.clock.node_skew_ms)).collect(),
        shards: chance.within(model.shards) as u32,
        tight: chance.hits(model.tight).then(|| chance.within(Span::new(1, 8)) as u32),
        lookups: chance.hits(model.lookups),
        answer_within_ms: *chance.pick(&[1_000, 2_500, 10_000]),
        commit_ms: (model.commit_ms.min, model.commit_ms.max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_plan_and_another_one_is_not() {
        let scenario = Scenario::default();
        assert_eq!(generate(&scenario, 7), generate(&scenario, 7));
        assert_ne!(generate(&scenario, 7).events, generate(&scenario, 8).events);
    }

    #[test]
    fn turning_a_dial_of_the_network_leaves_the_world_as_it_was() {
        let calm = Scenario::default();
        let mut lossy = calm.clone();
        lossy.network.loss = 0.5;
        let (calm, lossy) = (generate(&calm, 7), generate(&lossy, 7));
        assert_eq!((calm.events, calm.faults), (lossy.events, lossy.faults));
        assert_ne!(calm.messages, lossy.messages);
    }

    #[test]
    fn a_plan_is_as_large_as_the_scenario_asks() {
        for seed in 0..50 {
            let plan = generate(&Scenario::default(), seed);
            assert!(plan.events.len() >= 200 && plan.faults.len() >= 5, "seed {seed}");
            assert!(plan.faults.iter().all(|fault| fault.at_ms + fault.for_ms <= plan.heal_at_ms), "seed {seed}");
            let carried: usize = plan.messages.iter().map(|message| message.events.len()).sum();
            assert_eq!(carried, plan.events.len(), "seed {seed}: each event is in one message");
        }
    }
}
