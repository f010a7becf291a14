//! Policies as a scenario names them, and the versions that go with each.
//!
//! Owns the short form of a policy and its way to the engine's own rule. What a policy means is in
//! [`crate::rules`] and nowhere here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::rules::event::Event;
use crate::rules::graph::{Graph, GraphError};
use crate::rules::order::{Merge, OnGap, Order, Policy, Tie, Wait};

/// A policy, and the kind of version its events carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolicyChoice {
    /// What is newer applies, what is older is stale.
    Newest {
        /// What the version is made of.
        #[serde(default)]
        version: VersionKind,
        /// What an equal version does.
        #[serde(default)]
        tie: TieChoice,
    },
    /// Everything applies as it comes.
    Arrival {
        /// What the version is made of.
        #[serde(default)]
        version: VersionKind,
    },
    /// Contiguous numbers from 1; what is above a gap waits.
    Sequence {
        /// How long it waits, in milliseconds.
        #[serde(default = "hold_for_ms")]
        hold_for_ms: u64,
        /// What then.
        #[serde(default)]
        on_gap: GapChoice,
    },
    /// States that follow one another, each event one step.
    Transition {
        /// How long a step that is not reachable yet waits, in milliseconds.
        #[serde(default = "hold_for_ms")]
        hold_for_ms: u64,
        /// What then.
        #[serde(default)]
        on_gap: GapChoice,
        /// The steps in order; each may be reached from every one before it (`ranks`).
        #[serde(default = "steps")]
        steps: Vec<String>,
        /// Only the next step may follow, so that a step that is missing is waited for.
        #[serde(default)]
        strict: bool,
    },
    /// Times without gaps: held for a while, then taken in version order.
    Window {
        /// How long, in milliseconds.
        #[serde(default = "window_ms")]
        window_ms: u64,
    },
    /// An event only says that something changed; the state is fetched.
    Refetch,
    /// `newest`, and each member of the state has a version of its own.
    Fields,
    /// The rule of a source, as it stands.
    Given {
        /// The rule.
        rule: Order,
    },
}

/// What a version is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionKind {
    /// A whole number that rises with each event of the resource.
    #[default]
    Number,
    /// The sender's own time, cut to its precision: may tie, and may be off.
    Time,
    /// The sender's time, and the rank of the event's type behind it.
    TimeAndRank,
}

/// What an equal version does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieChoice {
    /// The first stays.
    #[default]
    Keep,
    /// The last applies.
    Apply,
}

/// What becomes of an event whose wait is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapChoice {
    /// The gap is given up.
    #[default]
    Release,
    /// The event expires, with a record.
    Expire,
    /// The state is fetched.
    Refetch,
}

const fn hold_for_ms() -> u64 {
    30_000
}

const fn window_ms() -> u64 {
    2_000
}

fn steps() -> Vec<String> {
    ["created", "paid", "packed", "shipped", "delivered"].map(str::to_owned).to_vec()
}

impl Default for PolicyChoice {
    fn default() -> Self {
        Self::Newest { version: VersionKind::Number, tie: TieChoice::Keep }
    }
}

impl PolicyChoice {
    /// The word for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Given { rule } => match (&rule.merge, &rule.policy) {
                (Merge::Fields, _) => "fields",
                (_, Policy::Newest { .. }) => "newest",
                (_, Policy::Arrival) => "arrival",
                (_, Policy::Sequence { .. }) => "sequence",
                (_, Policy::Transition { .. }) => "transition",
                (_, Policy::Window { .. }) => "window",
                (_, Policy::Refetch) => "refetch",
            },
            Self::Newest { .. } => "newest",
            Self::Arrival { .. } => "arrival",
            Self::Sequence { .. } => "sequence",
            Self::Transition { .. } => "transition",
            Self::Window { .. } => "window",
            Self::Refetch => "refetch",
            Self::Fields => "fields",
        }
    }

    /// The policy of this name, with its defaults: what `--compare` is given.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "newest" => Self::default(),
            "arrival" => Self::Arrival { version: VersionKind::default() },
            "sequence" => Self::Sequence { hold_for_ms: hold_for_ms(), on_gap: GapChoice::default() },
            "transition" => Self::Transition {
                hold_for_ms: hold_for_ms(),
                on_gap: GapChoice::default(),
                steps: steps(),
                strict: true,
            },
            "window" => Self::Window { window_ms: window_ms() },
            "refetch" => Self::Refetch,
            "fields" => Self::Fields,
            _ => return None,
        })
    }
}

impl PolicyChoice {
    /// The rule an event came with.
    pub(super) fn of(event: &Event) -> Self {
        Self::Given { rule: (*event.order).clone() }
    }

    /// The provider may be asked.
    #[must_use]
    pub fn asks(&self) -> bool {
        let Ok(rule) = self.rule() else { return false };
        rule.policy == Policy::Refetch || rule.wait().is_some_and(|wait| wait.on_gap == OnGap::Refetch)
    }

    /// The engine's own rule for it; says what is wrong with it where there is none.
    pub fn rule(&self) -> Result<Order, String> {
        Ok(match self {
            Self::Newest { tie, .. } => Order::plain(Policy::Newest { tie: (*tie).into() }),
            Self::Arrival { .. } => Order::plain(Policy::Arrival),
            Self::Sequence { hold_for_ms, on_gap } => {
                Order::judged(Policy::Sequence { start: 1, wait: wait(*hold_for_ms, *on_gap) })
            }
            Self::Transition { hold_for_ms, on_gap, steps, strict } => {
                let graph = if *strict { chain(steps) } else { Graph::ranks(steps.iter().cloned()) };
                let graph = Arc::new(graph.map_err(|error| format!("`steps`: {error}"))?);
                Order::judged(Policy::Transition { graph, tie: Tie::Keep, wait: wait(*hold_for_ms, *on_gap) })
            }
            Self::Window { window_ms } => {
                Order::judged(Policy::Window { window_ms: window_ms.cast_signed(), tie: Tie::Keep })
            }
            Self::Refetch => Order::judged(Policy::Refetch),
            Self::Fields => Order { merge: Merge::Fields, ..Order::judged(Policy::Newest { tie: Tie::Keep }) },
            Self::Given { rule } => rule.clone(),
        })
    }
}

impl From<TieChoice> for Tie {
    fn from(choice: TieChoice) -> Self {
        match choice {
            TieChoice::Keep => Self::Keep,
            TieChoice::Apply => Self::Apply,
        }
    }
}

fn wait(hold_for_ms: u64, on_gap: GapChoice) -> Wait {
    let on_gap = match on_gap {
        GapChoice::Release => OnGap::Release,
        GapChoice::Expire => OnGap::Expire,
        GapChoice::Refetch => OnGap::Refetch,
    };
    Wait { hold_for_ms: hold_for_ms.cast_signed(), on_gap }
}

/// Each step leads to the next one only.
fn chain(steps: &[String]) -> Result<Graph, GraphError> {
    let following = steps.windows(2).map(|pair| (pair[0].clone(), vec![pair[1].clone()])).collect();
    Graph::edges(&following, &steps.iter().take(1).cloned().collect::<Vec<_>>())
}
