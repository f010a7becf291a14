//! What is judged, and what is said of it.

use serde::{Deserialize, Serialize};

use super::super::event::EventId;
use super::super::fields::Patch;
use super::super::order::{Order, Policy};
use super::super::version::Version;

/// What the rules need of a held event, as it is written beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// When it was received, milliseconds since 1970.
    pub received_at_ms: i64,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Its step in a state machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// It leaves a tombstone.
    #[serde(default)]
    pub deletes: bool,
    /// The members it sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// The rule it came with.
    pub order: Order,
}

impl Subject {
    /// Itself, borrowed.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            received_at_ms: self.received_at_ms,
            version: self.version.as_ref(),
            step: self.step.as_deref(),
            deletes: self.deletes,
            patch: self.patch.as_ref(),
            order: &self.order,
        }
    }

    /// What the store keeps of it.
    #[must_use]
    pub fn stored(&self) -> String {
        // plain data: there is nothing in it that could fail
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Read back from the store.
    pub fn from_stored(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("what is stored of a held event cannot be read: {error}"))
    }
}

/// What the rules need of an event.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// When it was received, milliseconds since 1970.
    pub received_at_ms: i64,
    /// Its version.
    pub version: Option<&'a Version>,
    /// Its step in a state machine.
    pub step: Option<&'a str>,
    /// It leaves a tombstone.
    pub deletes: bool,
    /// The members it sets.
    pub patch: Option<&'a Patch>,
    /// Its rule.
    pub order: &'a Order,
}

impl View<'_> {
    /// The same to keep.
    #[must_use]
    pub fn to_subject(&self) -> Subject {
        Subject {
            received_at_ms: self.received_at_ms,
            version: self.version.cloned(),
            step: self.step.map(str::to_owned),
            deletes: self.deletes,
            patch: self.patch.cloned(),
            order: self.order.clone(),
        }
    }
}

/// How an event waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// It is held already; else it just came.
    pub held: bool,
    /// Until when, by the store's clock; `None` waits for something other than time.
    pub until_ms: Option<i64>,
    /// The epoch it was parked in.
    pub parked_in: Option<i64>,
    /// The claimed fetch whose answer it waits for.
    pub fetch: Option<i64>,
}

/// An event of a resource, held or new.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its name.
    pub id: EventId,
    /// What the rules need of it.
    pub subject: View<'a>,
    /// The resource comes along with an event of another one: its own version guards it, and it never waits.
    pub along: bool,
    /// It is the answer of the fetch claimed under this epoch.
    pub fetched: Option<i64>,
    /// How it waits, if it does.
    pub waiting: Waiting,
}

impl<'a> Item<'a> {
    /// An event that just came.
    #[must_use]
    pub fn new(id: EventId, subject: View<'a>) -> Self {
        Self { id, subject, along: false, fetched: None, waiting: Waiting::default() }
    }

    /// In which order events are taken: by version, then by step, what has no version last.
    pub(super) fn rank(&self) -> (bool, Option<&'a Version>, u32) {
        let View { version, step, order, .. } = self.subject;
        let depth = match (&order.policy, step) {
            (Policy::Transition { graph, .. }, Some(step)) => graph.depth(step),
            _ => 0,
        };
        (version.is_none(), version, depth)
    }

    pub(super) const fn is_new(&self) -> bool {
        !self.waiting.held
    }

    /// It carries no state, only the news that there is another one.
    pub(super) const fn is_signal(&self) -> bool {
        matches!(self.subject.order.policy, Policy::Refetch) && self.fetched.is_none() && !self.along
    }
}

/// What an event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What comes before it.
    Gap,
    /// Its window.
    Window,
    /// The answer of the provider.
    Signal,
    /// A person, or the rule of epochs.
    Parked,
}

/// How an event waits from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What for.
    pub kind: Kind,
    /// Until when, by the store's clock.
    pub until_ms: Option<i64>,
    /// The epoch it is parked in.
    pub parked_in: Option<i64>,
    /// The claimed fetch whose answer it waits for.
    pub fetch: Option<i64>,
    /// The same for people.
    pub why: String,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It changed the state.
    Applied {
        /// Its version equalled the stored one.
        tie: bool,
        /// What was special about it.
        why: Option<String>,
    },
    /// It is older than the state.
    Stale {
        /// Its version equalled the stored one.
        tie: bool,
        /// Than what.
        why: String,
    },
    /// It waits.
    Held(Hold),
    /// It waited in vain, and nothing was changed.
    Expired {
        /// What for, and what ended it.
        why: String,
    },
}
