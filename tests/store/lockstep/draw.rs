//! Random lives of a store: batches under every policy, mixed, with time passing, people pushing and providers
//! answering, late and in vain.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::order::{OnGap, Order, Policy, Tie};

use crate::events::{Words as _, event};
use crate::policies::{HOLD_MS, graph, merging, newest, ranks, refetch, resetting, sequence, window};

pub(crate) const RESOURCES: u8 = 3;
const DAY_MS: i64 = 86_400_000;
const RANKS: &[&str] = &["created", "updated", "deleted"];
const GRAPH: &[(&str, &[&str])] = &[("created", &["updated", "deleted"]), ("updated", &["deleted"])];

/// What happens to a store.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Commit(Vec<Draw>),
    /// Half of the time of a hold and a lease, and a little more.
    Pass,
    Settle,
    Release(u8),
    Claim,
    /// Of a claim made before, and whether for good.
    Fail(usize, bool),
    /// To a claim made before, with a version.
    Answer(usize, u32),
}

/// What an event is made of.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    key: u8,
    resource: u8,
    version: Option<u32>,
    rule: usize,
    step: usize,
    along: Option<(u8, u32)>,
    members: BTreeMap<u8, u8>,
    effect: Option<u8>,
    deletes: bool,
    ignored: bool,
    /// Received a week later than it is.
    later: bool,
}

pub(crate) fn life() -> impl Strategy<Value = Vec<Act>> {
    proptest::collection::vec(act(), 1..14)
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => proptest::collection::vec(draw(), 1..7).prop_map(Act::Commit),
        3 => Just(Act::Pass),
        3 => Just(Act::Settle),
        1 => (0..RESOURCES).prop_map(Act::Release),
        2 => Just(Act::Claim),
        1 => (0_usize..4, any::<bool>()).prop_map(|(claim, last)| Act::Fail(claim, last)),
        2 => (0_usize..4, 0_u32..8).prop_map(|(claim, version)| Act::Answer(claim, version)),
    ]
}

fn draw() -> impl Strategy<Value = Draw> {
    // small numbers, and now and then one so high that small ones are a counter that started again
    let version = prop_oneof![1 => Just(None), 12 => (0_u32..8).prop_map(Some), 1 => Just(Some(5_000))];
    let what = (0_u8..30, 0..RESOURCES, version, 0..rules().len(), 0_usize..3);
    let along = proptest::option::weighted(0.2, (0..RESOURCES, 0_u32..8));
    let members = proptest::collection::btree_map(0_u8..3, 0_u8..9, 0..3);
    let effect = proptest::option::weighted(0.2, 0_u8..6);
    let rarely = || proptest::bool::weighted(0.1);
    (what, along, members, effect, (rarely(), rarely(), rarely())).prop_map(
        |((key, resource, version, rule, step), along, members, effect, (deletes, ignored, later))| Draw {
            key,
            resource,
            version,
            rule,
            step,
            along,
            members,
            effect,
            deletes,
            ignored,
            later,
        },
    )
}

/// Every policy, and what goes with it.
fn rules() -> [Arc<Order>; 13] {
    [
        newest(),
        Arc::new(Order::judged(Policy::Newest { tie: Tie::Apply })),
        Arc::new(Order::judged(Policy::Arrival)),
        merging(&newest()),
        sequence(OnGap::Expire),
        sequence(OnGap::Release),
        sequence(OnGap::Refetch),
        merging(&sequence(OnGap::Release)),
        ranks(RANKS, OnGap::Release),
        graph(GRAPH, OnGap::Expire),
        window(HOLD_MS),
        refetch(),
        resetting(Some(7 * DAY_MS)),
    ]
}

pub(crate) fn id(resource: u8) -> String {
    format!("r{resource}")
}

/// An event of a draw.
pub(crate) fn make(draw: &Draw) -> Event {
    let rules = rules();
    let rule = &rules[draw.rule % rules.len()];
    let mut made = event(&format!("k{}", draw.key)).by(rule);
    made = match draw.version {
        Some(version) => made.on(&id(draw.resource), version),
        None => made.on_unversioned(&id(draw.resource)),
    };
    if let Some((resource, version)) = draw.along {
        made = made.on(&id(resource), version);
    }
    if matches!(rule.policy, Policy::Transition { .. }) {
        made = made.step(RANKS[draw.step]);
    }
    let texts: Vec<(String, String)> =
        draw.members.iter().map(|(name, value)| (format!("m{name}"), value.to_string())).collect();
    let members: Vec<(&str, &str)> = texts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    made = made.sets(&members);
    if let Some(effect) = draw.effect {
        made = made.effect(&format!("e{effect}"));
    }
    // few bodies differ, so that most repeats are honest
    made = made.body(format!("{{\"body\":{}}}", draw.resource / 2).as_bytes());
    made.deletes = draw.deletes;
    if draw.later {
        let at_ms = made.received_at_ms + 8 * DAY_MS;
        made = made.at(at_ms);
    }
    if draw.ignored { made.ignored() } else { made }
}
