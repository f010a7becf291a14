//! A scenario: the dials that a seed is drawn from. Plain data, read from a scenario file as it stands here.
//!
//! Owns names, defaults and bounds. Promises that [`Scenario::faults`] names everything that makes no sense,
//! and that whatever passes can be drawn and run. Knows neither files nor engines.

use serde::{Deserialize, Serialize};

use super::fault::FaultName;
use super::policy::PolicyChoice;
use crate::rules::order::Policy;

/// From `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Span {
    /// From `min` to `max`, both included.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }
}

/// Everything a run is drawn from, together with a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Its name, as reports and `seeds.txt` say it.
    pub name: String,
    /// What it is about, in a sentence.
    pub about: String,
    /// What happens at the sender.
    pub world: World,
    /// How the sender sends.
    pub sender: Sender,
    /// What lies between sender and gate.
    pub network: Network,
    /// Whose clock is off, and how coarse timestamps are.
    pub clock: ClockModel,
    /// How events are ordered.
    pub order: OrderModel,
    /// What breaks.
    pub faults: FaultDials,
    /// The gate itself: nodes and bounds.
    pub gate: GateModel,
    /// How long everything may take to settle once nothing breaks any more, in milliseconds.
    pub heal_within_ms: u64,
}

/// What happens at the sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct World {
    /// Events in all.
    pub events: Span,
    /// Resources they happen to.
    pub resources: Span,
    /// Over how many milliseconds they happen.
    pub spread_ms: u64,
    /// Events in one request; more than one is a batch.
    pub batch: Span,
    /// Share of events without a resource.
    pub unguarded: f64,
    /// Share of events that carry a second resource, guarded by a version of its own.
    pub also: f64,
    /// Share of events that delete their resource.
    pub deletes: f64,
    /// Share of events nobody asked for: recorded as `ignored`.
    pub ignored: f64,
    /// Share of requests that are authentic and of no use: they go to quarantine.
    pub unusable: f64,
    /// Share of events that are sent a second time under the same key with other bytes.
    pub conflicts: f64,
    /// Share of events that are sent a second time under another key, with the same effect key.
    pub repeats: f64,
    /// Share of events that the store refuses, whatever is tried.
    pub poison: f64,
    /// Share of events that are never sent at all.
    pub never: f64,
}

/// How the sender sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sender {
    /// Senders, each with a clock and a line of its own.
    pub senders: u32,
    /// Requests that one sender has under way at once.
    pub parallel: u32,
    /// How long it waits for an answer, in milliseconds.
    pub timeout_ms: u64,
    /// Its first wait before it tries again, in milliseconds; it doubles.
    pub backoff_ms: u64,
    /// Its longest wait.
    pub backoff_max_ms: u64,
    /// Share of requests that are sent again although they were answered.
    pub duplicates: f64,
    /// How often such a request is sent again.
    pub copies: Span,
    /// How long after the first time, in milliseconds.
    pub copies_after_ms: Span,
}

/// What lies between sender and gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// One way, in milliseconds.
    pub delay_ms: Span,
    /// Share of requests that take much longer.
    pub slow: f64,
    /// How long those take: the window in which requests overtake one another.
    pub slow_ms: Span,
    /// Share of requests that never arrive.
    pub loss: f64,
    /// Share of answers that never arrive, although the request did.
    pub cut: f64,
}

/// Clocks that are off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockModel {
    /// By how much a sender's clock may be off, either way, in milliseconds.
    pub sender_skew_ms: u64,
    /// To how many milliseconds a sender's timestamps are cut; coarse ones tie.
    pub precision_ms: u64,
    /// By how much a node's clock may be off, either way, in milliseconds.
    pub node_skew_ms: u64,
}

/// How events are ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrderModel {
    /// The policies; each resource is given one of them.
    pub policies: Vec<PolicyChoice>,
}

/// What breaks, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultDials {
    /// Faults in a run.
    pub count: Span,
    /// Share of seeds that are mild: their faults last a tenth of the time.
    pub mild: f64,
    /// How long a fault lasts, in milliseconds.
    pub for_ms: Span,
    /// Which faults; all of them when empty.
    pub only: Vec<FaultName>,
}

/// The gate under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateModel {
    /// Nodes on one store.
    pub nodes: Span,
    /// Shards of each node.
    pub shards: Span,
    /// Share of seeds in which every mailbox, queue and table is tiny.
    pub tight: f64,
    /// Share of seeds in which the key cache is asked about every event.
    pub lookups: f64,
    /// How long a commit takes, in milliseconds.
    pub commit_ms: Span,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            about: String::new(),
            world: World::default(),
            sender: Sender::default(),
            network: Network::default(),
            clock: ClockModel::default(),
            order: OrderModel::default(),
            faults: FaultDials::default(),
            gate: GateModel::default(),
            heal_within_ms: 120_000,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            events: Span::new(200, 260),
            resources: Span::new(8, 40),
            spread_ms: 20_000,
            batch: Span::new(1, 1),
            unguarded: 0.03,
            also: 0.05,
            deletes: 0.03,
            ignored: 0.02,
            unusable: 0.01,
            conflicts: 0.02,
            repeats: 0.0,
            poison: 0.005,
            never: 0.0,
        }
    }
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            senders: 4,
            parallel: 8,
            timeout_ms: 3_000,
            backoff_ms: 200,
            backoff_max_ms: 5_000,
            duplicates: 0.1,
            copies: Span::new(1, 3),
            copies_after_ms: Span::new(0, 5_000),
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self { delay_ms: Span::new(1, 40), slow: 0.1, slow_ms: Span::new(100, 2_000), loss: 0.02, cut: 0.02 }
    }
}

impl Default for ClockModel {
    fn default() -> Self {
        Self { sender_skew_ms: 0, precision_ms: 1, node_skew_ms: 500 }
    }
}

impl Default for OrderModel {
    fn default() -> Self {
        Self { policies: vec![PolicyChoice::default()] }
    }
}

impl Default for FaultDials {
    fn default() -> Self {
        Self { count: Span::new(5, 14), mild: 0.3, for_ms: Span::new(20, 1_500), only: Vec::new() }
    }
}

impl Default for GateModel {
    fn default() -> Self {
        Self { nodes: Span::new(1, 2), shards: Span::new(1, 2), tight: 0.2, lookups: 0.4, commit_ms: Span::new(0, 6) }
    }
}

impl Scenario {
    /// Everything about it that makes no sense: the dial's name and what it must be.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let spans = [
            ("world.events", self.world.events, 1, 100_000),
            ("world.resources", self.world.resources, 1, 100_000),
            ("world.batch", self.world.batch, 1, 100),
            ("sender.copies", self.sender.copies, 1, 100),
            ("sender.copies_after_ms", self.sender.copies_after_ms, 0, TIME_MAX),
            ("network.delay_ms", self.network.delay_ms, 0, TIME_MAX),
            ("network.slow_ms", self.network.slow_ms, 0, TIME_MAX),
            ("faults.count", self.faults.count, 0, 1_000),
            ("faults.for_ms", self.faults.for_ms, 1, TIME_MAX),
            ("gate.nodes", self.gate.nodes, 1, 8),
            ("gate.shards", self.gate.shards, 1, 8),
            ("gate.commit_ms", self.gate.commit_ms, 0, 10_000),
        ];
        for (name, span, least, most) in spans {
            if span.min > span.max || span.min < least || span.max > most {
                faults.push(format!(
                    "`{name}` must be a span within {least} and {most}, got {} to {}",
                    span.min, span.max
                ));
            }
        }
        let shares = [
            ("world.unguarded", self.world.unguarded),
            ("world.also", self.world.also),
            ("world.deletes", self.world.deletes),
            ("world.ignored", self.world.ignored),
            ("world.unusable", self.world.unusable),
            ("world.conflicts", self.world.conflicts),
            ("world.repeats", self.world.repeats),
            ("world.poison", self.world.poison),
            ("world.never", self.world.never),
            ("sender.duplicates", self.sender.duplicates),
            ("network.slow", self.network.slow),
            ("network.loss", self.network.loss),
            ("network.cut", self.network.cut),
            ("faults.mild", self.faults.mild),
            ("gate.tight", self.gate.tight),
            ("gate.lookups", self.gate.lookups),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                faults.push(format!("`{name}` is a share and must be within 0 and 1, got {share}"));
            }
        }
        let sizes = [
            ("world.spread_ms", self.world.spread_ms, 0),
            ("sender.senders", self.sender.senders.into(), 1),
            ("sender.parallel", self.sender.parallel.into(), 1),
            ("sender.timeout_ms", self.sender.timeout_ms, 1),
            ("sender.backoff_ms", self.sender.backoff_ms, 1),
            ("sender.backoff_max_ms", self.sender.backoff_max_ms, self.sender.backoff_ms),
            ("clock.precision_ms", self.clock.precision_ms, 1),
            ("heal_within_ms", self.heal_within_ms, 1_000),
        ];
        for (name, size, least) in sizes {
            if size < least || size > TIME_MAX {
                faults.push(format!("`{name}` must be within {least} and {TIME_MAX}, got {size}"));
            }
        }
        self.policy_faults(&mut faults);
        faults
    }

    fn policy_faults(&self, faults: &mut Vec<String>) {
        if self.order.policies.is_empty() {
            faults.push("`order.policies` must name at least one policy".to_owned());
        }
        for policy in &self.order.policies {
            match policy.rule() {
                Err(fault) => faults.push(format!("`order.policies`, {}: {fault}", policy.name())),
                Ok(rule) => {
                    let window_ms = if let Policy::Window { window_ms, .. } = rule.policy { window_ms } else { 0 };
                    let wait_ms = rule.wait().map_or(window_ms, |wait| wait.hold_for_ms);
                    if wait_ms >= self.heal_within_ms.cast_signed() {
                        faults.push(format!(
                            "`heal_within_ms` must be longer than anything is held ({wait_ms}), got {}",
                            self.heal_within_ms
                        ));
                    }
                }
            }
        }
    }
}

/// Thirty days: what is longer than any sender retries is a slip of the pen.
const TIME_MAX: u64 = 30 * 86_400_000;
