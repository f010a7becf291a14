//! Draws what breaks, when, where and for how long.

use crate::sim::chance::Chance;
use crate::sim::fault::{Fault, FaultName};
use crate::sim::policy::PolicyChoice;
use crate::sim::scenario::{Scenario, Span};

/// The kinds that a scenario may see.
pub(in crate::sim) fn kinds(scenario: &Scenario) -> Vec<FaultName> {
    if !scenario.faults.only.is_empty() {
        return scenario.faults.only.clone();
    }
    let asks = scenario.order.policies.iter().any(PolicyChoice::asks);
    let alone = scenario.gate.nodes.max < 2;
    let seen = |kind: &FaultName| match kind {
        FaultName::FetchFails | FaultName::FetchSlow => asks,
        FaultName::KillNode => !alone,
        _ => true,
    };
    FaultName::ALL.iter().copied().filter(seen).collect()
}

/// All of it is over when healing begins.
pub(super) fn draw(scenario: &Scenario, heal_at_ms: u64, nodes: u64, chance: &mut Chance) -> Vec<Fault> {
    let dials = &scenario.faults;
    let kinds = kinds(scenario);
    let mild = chance.hits(dials.mild);
    let count = chance.within(dials.count);
    let mut faults: Vec<Fault> =
        (0..count).map(|_| fault(dials.for_ms, &kinds, mild, heal_at_ms, nodes, chance)).collect();
    faults.sort_by_key(|fault| fault.at_ms);
    faults
}

fn fault(for_ms: Span, kinds: &[FaultName], mild: bool, heal_at_ms: u64, nodes: u64, chance: &mut Chance) -> Fault {
    let what = match *chance.pick(kinds) {
        // a node alone is the whole
        FaultName::KillNode if nodes < 2 => FaultName::Kill,
        what => what,
    };
    let long = chance.within(for_ms);
    let for_ms = if mild { long / 10 + 1 } else { long }.min(heal_at_ms);
    let at_ms = chance.within(Span::new(0, heal_at_ms - for_ms));
    let one_node = matches!(what, FaultName::KillNode | FaultName::Restart | FaultName::ClockJump) || chance.hits(0.3);
    let node = one_node.then(|| chance.below(nodes) as u32).filter(|_| nodes > 1 || what != FaultName::Kill);
    let node =
        if matches!(what, FaultName::Kill | FaultName::NetworkDown | FaultName::RetryStorm) { None } else { node };
    let by_ms = match what {
        FaultName::FetchSlow => chance.within(Span::new(100, 8_000)).cast_signed(),
        FaultName::CommitSlow => chance.within(Span::new(20, 2_000)).cast_signed(),
        FaultName::CacheSlow => chance.within(Span::new(10, 200)).cast_signed(),
        FaultName::ClockJump => chance.either_way(600_000),
        _ => 0,
    };
    Fault { what, at_ms, for_ms, node, by_ms }
}
