//! The policies of order as data: what a source says about the order of its events. What a policy means is
//! in [`super::judge`]. A rule is written beside each held event, so any node settles it under the rule it
//! came with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::graph::Graph;

/// How events of a resource are ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Policy {
    /// What is newer than the stored version applies, what is older is stale.
    Newest {
        /// What becomes of an event whose version equals the stored one.
        tie: Tie,
    },
    /// Every event applies, in the order it came. The stored version still never goes back (I5).
    Arrival,
    /// Contiguous whole numbers: the next one applies, what is above it waits for the gap to close.
    Sequence {
        /// The number expected of a resource that was never seen.
        start: i64,
        /// How long an event waits, and what then.
        wait: Wait,
    },
    /// A state machine: an edge of the graph applies, what is not reachable yet waits.
    Transition {
        /// Steps and edges.
        #[serde(with = "shared")]
        graph: Arc<Graph>,
        /// What becomes of an event of the current step with no newer version.
        tie: Tie,
        /// How long an event waits, and what then.
        wait: Wait,
    },
    /// Times without gaps to see: every event waits this long, then applies in version order.
    Window {
        /// How long, in milliseconds.
        window_ms: i64,
        /// What becomes of an event whose version equals the stored one.
        tie: Tie,
    },
    /// The event only says "something changed": the state is fetched from the provider.
    Refetch,
}

/// What becomes of an event whose version equals the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// It applies: the default for times, whose ties are two happenings.
    Apply,
    /// The stored state stays: the default for integers, whose ties are repeats.
    Keep,
}

/// How long an event waits for what comes before it, and what then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Milliseconds by the store's clock, from its arrival.
    pub hold_for_ms: i64,
    /// What becomes of it when that time is over.
    pub on_gap: OnGap,
}

/// What becomes of a held event whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnGap {
    /// The gap is given up: it applies, with everything held below it.
    Release,
    /// It expires, with a record; the state stays as it is.
    Expire,
    /// The provider is asked for the current state.
    Refetch,
}

/// What an applied event does to the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// It becomes the state.
    #[default]
    Replace,
    /// Each top-level member of it is a field with a version of its own.
    Fields,
}

/// When a whole number that falls means a counter that started again, and not a late event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochOn {
    /// Falling by more than this is a reset: the event is parked.
    pub falls_by: u64,
    /// A reset after the resource was idle for so many milliseconds starts a new epoch by itself.
    pub after_idle_ms: Option<i64>,
}

/// The whole rule of order that an event comes with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The policy.
    pub policy: Policy,
    /// What applying does.
    #[serde(default)]
    pub merge: Merge,
    /// How counter resets are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_on: Option<EpochOn>,
    /// Some rule of the source may hold events back, merge fields, start epochs or claim a second key: then
    /// every batch with its events is loaded and judged, and no statement decides by the version alone.
    #[serde(default)]
    pub judged: bool,
}

impl Order {
    /// The version guard and nothing else.
    #[must_use]
    pub const fn plain(policy: Policy) -> Self {
        Self { policy, merge: Merge::Replace, epoch_on: None, judged: false }
    }

    /// A rule of a source that has something to judge.
    #[must_use]
    pub const fn judged(policy: Policy) -> Self {
        Self { policy, merge: Merge::Replace, epoch_on: None, judged: true }
    }

    /// Whether the version guard alone decides.
    #[must_use]
    pub fn needs_judging(&self) -> bool {
        self.judged
            || self.merge == Merge::Fields
            || self.epoch_on.is_some()
            || !matches!(self.policy, Policy::Newest { .. } | Policy::Arrival)
    }

    /// What a tie does to a resource that comes along with an event.
    #[must_use]
    pub const fn tie(&self) -> Tie {
        match self.policy {
            Policy::Newest { tie } | Policy::Transition { tie, .. } | Policy::Window { tie, .. } => tie,
            Policy::Arrival => Tie::Apply,
            Policy::Sequence { .. } | Policy::Refetch => Tie::Keep,
        }
    }

    /// How a gap is waited for, where there are gaps.
    #[must_use]
    pub const fn wait(&self) -> Option<Wait> {
        match self.policy {
            Policy::Sequence { wait, .. } | Policy::Transition { wait, .. } => Some(wait),
            _ => None,
        }
    }
}

/// A graph is shared in memory and written whole.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Graph;

    pub(super) fn serialize<S: Serializer>(graph: &Arc<Graph>, serializer: S) -> Result<S::Ok, S::Error> {
        graph.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Graph>, D::Error> {
        Graph::deserialize(deserializer).map(Arc::new)
    }
}
