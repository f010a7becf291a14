//! How the events of a resource are ordered, as written down.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ByteSize, Span, Texts, VersionSpec};

/// The order policy of a source, with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrderSpec {
    /// `newest` where there is a version, else `arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// `newest`, `transition`, `window`: what an equal version does; `apply` where the version holds a time,
    /// else `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tie: Option<TieSpec>,
    /// `sequence`: the number of a resource's first event; 1 when left out. `transition` with a `graph`: the
    /// steps a resource may begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartSpec>,
    /// `sequence`, `transition`: how long an event waits for what comes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_for: Option<Span>,
    /// `sequence`, `transition`: what becomes of it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_gap: Option<OnGapSpec>,
    /// `transition`: a reference to the step an event takes; the event type when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// `transition`: each step with the steps that may follow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<BTreeMap<String, Vec<String>>>,
    /// `transition`: the steps in order, in place of a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<String>>,
    /// `window`: how long each event is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
}

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySpec {
    /// What is newer than the stored version applies.
    Newest,
    /// Whole numbers without gaps; what is above a gap waits.
    Sequence,
    /// Steps of a declared state machine; what is not reachable yet waits.
    Transition,
    /// Held for a while, then taken in version order.
    Window,
    /// An event says that something changed; the state is asked of the provider.
    Refetch,
    /// Everything applies as it comes.
    Arrival,
}

impl PolicySpec {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Sequence => "sequence",
            Self::Transition => "transition",
            Self::Window => "window",
            Self::Refetch => "refetch",
            Self::Arrival => "arrival",
        }
    }
}

/// What becomes of an event whose version equals the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieSpec {
    /// It applies.
    Apply,
    /// The stored state stays.
    Keep,
}

/// Where a resource begins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum StartSpec {
    /// With this number.
    Number(i64),
    /// With one of these steps.
    Steps(Texts),
}

/// What becomes of an event whose wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnGapSpec {
    /// It applies, and the gap is given up.
    Release,
    /// It expires, with a record; the state stays.
    Expire,
    /// The provider is asked for the state.
    Refetch,
}

/// What applying an event does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeSpec {
    /// It becomes the state.
    #[default]
    Replace,
    /// Its members become the state's, each with a version of its own.
    Fields,
}

/// When a number that falls means that the sender's counter started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EpochSpec {
    /// Falling by more than this parks the event.
    pub falls_by: u64,
    /// After so long without an applied event it begins a new epoch by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<Span>,
}

/// Where a resource's current state is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RefetchSpec {
    /// The address, with `{id}`, `{type}` and `{tenant}` of the resource.
    pub url: String,
    /// Headers to send; secrets as `env:NAME` or `file:/path`, also behind a word: `Bearer env:NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderSpec>,
    /// The version in the answer; the source's `version` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Vec<VersionSpec>>,
    /// Where the state stands in the answer, with `merge = "fields"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How long one try may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The longest answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_answer: Option<ByteSize>,
    /// What 404 and 410 mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_gone: Option<OnGoneSpec>,
}

/// The value of a header as written; never shown, since it may hold a secret by mistake.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct HeaderSpec(pub String);

impl fmt::Debug for HeaderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderSpec(***)")
    }
}

/// What an answer without the resource means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnGoneSpec {
    /// A failure like any other: tried again, then given up with a record.
    #[default]
    Fail,
    /// The resource was deleted.
    Delete,
}
