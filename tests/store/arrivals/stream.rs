//! Streams to be shuffled: what happened, under a rule of I17, and which of it is sent again.
//!
//! Draws are loose and are then made to fit the rule: versions that are never equal, numbers that come once, walks
//! through a graph without gaps. What is drawn shrinks to fewer and plainer happenings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tidegate_actors::rules::event::{Event, Guard};
use tidegate_actors::rules::order::{OnGap, Order, Policy, Tie};
use tidegate_actors::rules::version::{Part, Version};

use crate::events::{Words as _, event_of, resource};
use crate::policies::{graph, merging, ranks, sequence};

const CHAIN: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["e"])];
const SHORTCUTS: &[(&str, &[&str])] = &[
    ("created", &["paid", "cancelled"]),
    ("paid", &["shipped", "refunded"]),
    ("shipped", &["refunded", "delivered"]),
    ("delivered", &["refunded"]),
];
const ROUNDS: &[(&str, &[&str])] =
    &[("draft", &["open"]), ("open", &["paused", "closed"]), ("paused", &["open", "closed"]), ("closed", &["open"])];
const RANKS: &[&str] = &["created", "updated", "done", "deleted"];

/// A rule under which any order of arrival ends in one state (I17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Versions of two parts, of which the second decides.
    Newest,
    /// Numbers from 1, any of them missing.
    Sequence,
    /// A graph without shortcuts, any step missing.
    Chain { versions: bool },
    /// Ranks, any of them missing; several events of a rank where versions tell them apart.
    Ranks { versions: bool },
    /// A graph with shortcuts, walked without leaving a step out.
    Shortcuts { versions: bool },
    /// A graph with cycles, walked without leaving a step out.
    Rounds,
}

impl Rule {
    /// Whether every event is applied sooner or later, so that partial updates find their place.
    pub(crate) const fn applies_all(self) -> bool {
        matches!(self, Self::Sequence | Self::Chain { .. })
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) resource: String,
    pub(crate) version: Option<Version>,
    pub(crate) step: Option<&'static str>,
    /// An embedded object that comes along; its version is the happening's place in the stream.
    pub(crate) along: Option<String>,
    deletes: bool,
    members: Vec<(u8, u8)>,
    /// Its sender may tell of it under another id.
    effect: bool,
}

/// What is played in many orders.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) rule: Rule,
    pub(crate) fields: bool,
    pub(crate) happenings: Vec<Happening>,
    /// Of which happening, and whether under another id.
    pub(crate) repeats: Vec<(usize, bool)>,
    /// Decides orders of arrival and where batches are cut.
    pub(crate) seed: u64,
}

impl Stream {
    /// The rule that its events come with.
    pub(crate) fn order(&self) -> Arc<Order> {
        let order = match self.rule {
            Rule::Newest if !self.fields && self.happenings.iter().all(|one| !one.effect) => {
                return Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep }));
            }
            Rule::Newest => crate::policies::newest(),
            Rule::Sequence => sequence(OnGap::Expire),
            Rule::Chain { .. } => graph(CHAIN, OnGap::Expire),
            Rule::Ranks { .. } => ranks(RANKS, OnGap::Release),
            Rule::Shortcuts { .. } => graph(SHORTCUTS, OnGap::Expire),
            Rule::Rounds => graph(ROUNDS, OnGap::Release),
        };
        if self.fields { merging(&order) } else { order }
    }

    /// An event that tells of a happening, in a world of its own for each source and tenant.
    pub(crate) fn event(&self, source: &str, tenant: &str, happening: usize, order: &Arc<Order>) -> Event {
        let one = &self.happenings[happening];
        let guard = |id: &str, version| Guard { resource: resource(source, tenant, id), version };
        let mut event = event_of(source, tenant, &format!("k{happening}")).by(order);
        event.guards.push(guard(&one.resource, one.version.clone()));
        if let Some(along) = &one.along {
            event.guards.push(guard(along, Some(self.place(happening))));
        }
        event.step = one.step.map(str::to_owned);
        event.deletes = one.deletes;
        if one.effect {
            event = event.effect(&format!("e{happening}"));
        }
        if self.fields {
            let texts: Vec<(String, String)> =
                one.members.iter().map(|(name, value)| (format!("m{name}"), value.to_string())).collect();
            let members: Vec<(&str, &str)> =
                texts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            event = event.sets(&members);
        }
        event
    }

    /// The place in the stream as a version: two parts, the first of which two happenings share.
    fn place(&self, happening: usize) -> Version {
        tuple(happening)
    }
}

fn tuple(place: usize) -> Version {
    let number = Part::integer(&(place / 2).to_string()).expect("a number");
    Version::new(&[number, Part::Rank((place % 2) as u32)]).expect("a version")
}

fn number(number: usize) -> Version {
    Version::integer(&number.to_string()).expect("a version")
}

/// A loose draw of a happening.
#[derive(Clone, Debug)]
struct Draw {
    resource: u8,
    pick: usize,
    along: Option<u8>,
    deletes: bool,
    members: BTreeMap<u8, u8>,
    effect: bool,
}

fn draw() -> impl Strategy<Value = Draw> {
    (
        0_u8..2,
        0_usize..12,
        proptest::option::weighted(0.25, 0_u8..2),
        proptest::bool::weighted(0.15),
        proptest::collection::btree_map(0_u8..3, 0_u8..9, 0..3),
        proptest::bool::weighted(0.15),
    )
        .prop_map(|(resource, pick, along, deletes, members, effect)| Draw {
            resource,
            pick,
            along,
            deletes,
            members,
            effect,
        })
}

fn rule() -> impl Strategy<Value = Rule> {
    let flag = any::<bool>();
    prop_oneof![
        2 => Just(Rule::Newest),
        2 => Just(Rule::Sequence),
        1 => flag.prop_map(|versions| Rule::Chain { versions }),
        1 => flag.prop_map(|versions| Rule::Ranks { versions }),
        1 => flag.prop_map(|versions| Rule::Shortcuts { versions }),
        1 => Just(Rule::Rounds),
    ]
}

/// Streams of at most so many happenings.
pub(crate) fn stream(happenings_max: usize) -> impl Strategy<Value = Stream> {
    let draws = proptest::collection::vec(draw(), 1..=happenings_max);
    let repeats = proptest::collection::vec((any::<proptest::sample::Index>(), any::<bool>()), 0..3);
    (rule(), any::<bool>(), draws, repeats, any::<u64>()).prop_map(|(rule, fields, draws, repeats, seed)| {
        let fields = fields && (rule == Rule::Newest || rule.applies_all());
        let happenings = fit(rule, &draws);
        let again = |(index, other_id): (proptest::sample::Index, bool)| {
            let place = index.index(happenings.len());
            (place, other_id && happenings[place].effect)
        };
        let repeats = repeats.into_iter().map(again).collect();
        Stream { rule, fields, happenings, repeats, seed }
    })
}

/// Makes draws fit a rule; what does not fit is left out, never the first.
fn fit(rule: Rule, draws: &[Draw]) -> Vec<Happening> {
    let mut taken = BTreeSet::new();
    let mut walks: BTreeMap<u8, (&'static str, usize)> = BTreeMap::new();
    let mut happenings: Vec<Happening> = Vec::new();
    for draw in draws {
        let mut once = |pick: usize| taken.insert((draw.resource, pick)).then_some(pick);
        let place = happenings.len();
        let fitted = match rule {
            Rule::Newest => Some((Some(tuple(place)), None)),
            Rule::Sequence => once(1 + draw.pick % 6).map(|n| (Some(number(n)), None)),
            Rule::Chain { versions } => {
                once(draw.pick % 5).map(|n| (versions.then(|| number(n)), Some(["a", "b", "c", "d", "e"][n])))
            }
            Rule::Ranks { versions: false } => once(draw.pick % 4).map(|n| (None, Some(RANKS[n]))),
            // the versions go up with the ranks
            Rule::Ranks { versions: true } => once(draw.pick).map(|n| (Some(number(n)), Some(RANKS[n / 3]))),
            Rule::Shortcuts { versions } => {
                let walked = walk(SHORTCUTS, walks.get(&draw.resource), draw.pick);
                walked.map(|(step, n)| (versions.then(|| number(n)), Some(step)))
            }
            Rule::Rounds => {
                walk(ROUNDS, walks.get(&draw.resource), draw.pick).map(|(step, n)| (Some(number(n)), Some(step)))
            }
        };
        let Some((version, step)) = fitted else { continue };
        if let Some(step) = step {
            let steps = walks.get(&draw.resource).map_or(1, |&(_, steps)| steps + 1);
            walks.insert(draw.resource, (step, steps));
        }
        happenings.push(Happening {
            resource: format!("r{}", draw.resource),
            version,
            step,
            along: draw.along.map(|along| along_of(rule, draw.resource, along)),
            deletes: draw.deletes,
            members: draw.members.clone().into_iter().collect(),
            effect: draw.effect,
        });
    }
    happenings
}

/// Under `newest` any other resource may come along; elsewhere what comes along is only ever an embedded object.
fn along_of(rule: Rule, resource: u8, along: u8) -> String {
    if rule == Rule::Newest && along == 1 { format!("r{}", 1 - resource) } else { format!("embedded{along}") }
}

/// The next step of a walk, and its number.
fn walk(
    edges: &'static [(&'static str, &'static [&'static str])],
    at: Option<&(&'static str, usize)>,
    pick: usize,
) -> Option<(&'static str, usize)> {
    let Some(&(step, steps)) = at else { return Some((edges[0].0, 1)) };
    let following = edges.iter().find(|(from, _)| *from == step)?.1;
    Some((following[pick % following.len()], steps + 1))
}
