//! An event as the engine carries it, and what became of it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use uuid::Uuid;

use super::fields::Patch;
use super::judge::{Item, View};
use super::key::{BodyDigest, Key, ResourceHash};
use super::order::Order;
use super::version::Version;

/// Names one received event for ever: time-ordered (UUID version 7), given at admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub Uuid);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identity of one database history. A cached fact of another incarnation is a miss (I8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Incarnation(pub Uuid);

/// The thing whose state events change: (source, tenant, type, id).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The resource's type, such as `subscription`; not blank.
    pub kind: String,
    /// The resource's id within its type, exactly as the sender wrote it; not blank.
    pub id: String,
    /// 16 bytes of SHA-256 over (source, tenant, kind, id): the row's key and the shard's choice.
    pub hash: ResourceHash,
}

impl Resource {
    /// A resource of a tenant inside a source.
    #[must_use]
    pub fn new(source: &str, tenant: &str, kind: String, id: String) -> Self {
        let hash = ResourceHash::of(source, tenant, &kind, &id);
        Self { kind, id, hash }
    }
}

/// One resource that an event changes, with the version that guards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// What is guarded.
    pub resource: Resource,
    /// The event's version; `None` where the event has none (`on_missing_version = "arrival"`).
    pub version: Option<Version>,
}

/// Whether an event is meant to change state at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Apply it to its resources, guarded by their stored versions.
    Apply,
    /// Keep and record it, change no state: a type or tenant nobody asked for, a ping.
    Ignore(Ignored),
}

/// Why an authentic event changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ignored {
    /// The source names the types it takes, and this is none of them.
    UnwantedType,
    /// The event's signed body names a tenant the source does not list.
    UnknownTenant,
    /// A sender's test message.
    Ping,
}

/// One thing that happened, as the sender sent it, with what was read out of it.
#[derive(Clone, Debug)]
pub struct Event {
    /// This event's name in the store and in answers.
    pub id: EventId,
    /// When it was received, milliseconds since 1970 by this node's clock.
    pub received_at_ms: i64,
    /// The source it came in by.
    pub source: Arc<str>,
    /// The customer inside the source; `""` when unused.
    pub tenant: Arc<str>,
    /// The event's stable identity.
    pub key: Key,
    /// Digest of the body without fields that honest retries may change.
    pub digest: BodyDigest,
    /// The sender's event type; `""` when the source states none.
    pub kind: String,
    /// The resources it changes: none (passes unguarded), one, or several. The first is the one whose
    /// decision is the event's verdict and whose actor orders it.
    pub guards: SmallVec<[Guard; 1]>,
    /// How its resources are ordered: its first by the policy, the others by their own versions.
    pub order: Arc<Order>,
    /// Its step in a state machine, under the policy `transition`.
    pub step: Option<String>,
    /// The members it sets, where states are put together from partial updates.
    pub patch: Option<Patch>,
    /// Its second identity, for senders that repeat one happening under new ids.
    pub effect_key: Option<Key>,
    /// It is what the provider answered to the fetch claimed under this epoch, and not sent by anybody.
    pub fetched: Option<i64>,
    /// Leaves a tombstone: the state goes, the version stays (I5).
    pub deletes: bool,
    /// Whether it may change state.
    pub intent: Intent,
    /// Headers worth keeping, as a JSON object of texts; secrets and signatures are not among them.
    pub headers: Bytes,
    /// The raw bytes, as verified (I2).
    pub body: Bytes,
}

impl Event {
    /// What this event weighs in a batch, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let patch = self.patch.as_ref().map_or(0, |patch| patch.0.len() * 32);
        self.body.len() + self.headers.len() + patch + 256
    }

    /// Whether the version guard alone says what becomes of it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.effect_key.is_none() && self.fetched.is_none() && !self.order.needs_judging()
    }

    /// What the rules need of it, for its first resource.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            received_at_ms: self.received_at_ms,
            version: self.guards.first().and_then(|guard| guard.version.as_ref()),
            step: self.step.as_deref(),
            deletes: self.deletes,
            patch: self.patch.as_ref(),
            order: &self.order,
        }
    }

    /// The same for one of its guards.
    #[must_use]
    pub fn item(&self, guard: usize) -> Item<'_> {
        let mut item = Item::new(self.id, self.view());
        item.fetched = self.fetched;
        if guard > 0 {
            item.along = true;
            item.fetched = None;
            item.subject.step = None;
            // what deletes an order does not delete the customer that comes along with it
            item.subject.deletes = false;
            item.subject.patch = None;
            item.subject.version = self.guards.get(guard).and_then(|guard| guard.version.as_ref());
        }
        item
    }
}

/// An authentic request that cannot be used: kept raw, findable, never silently gone.
#[derive(Clone, Debug)]
pub struct Unusable {
    /// Its name, as for an event.
    pub id: EventId,
    /// When it was received, milliseconds since 1970.
    pub received_at_ms: i64,
    /// The source whose secret it was signed with.
    pub source: Arc<str>,
    /// The tenant, as far as it is known.
    pub tenant: Arc<str>,
    /// Stable code of what is missing, such as `key-blank`.
    pub code: &'static str,
    /// The same for a person: what, where, and what to do.
    pub reason: String,
    /// Digest of the raw bytes: the same request again is counted, not kept twice.
    pub digest: BodyDigest,
    /// Headers worth keeping, as a JSON object of texts.
    pub headers: Bytes,
    /// The raw bytes.
    pub body: Bytes,
}

/// What became of an event, in the words senders and operators see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It changed its resource's state, or passed unguarded.
    Applied,
    /// Its key was already claimed.
    Duplicate,
    /// It is older than what its resource already holds.
    Stale,
    /// It waits for what comes before it.
    Held,
    /// It waited, and its time ran out.
    Expired,
    /// It was recorded and changes nothing.
    Ignored,
    /// Authentic, but unusable.
    Quarantined,
}

impl Verdict {
    /// Every verdict, for tables and metrics.
    pub const ALL: [Self; 7] =
        [Self::Applied, Self::Duplicate, Self::Stale, Self::Held, Self::Expired, Self::Ignored, Self::Quarantined];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Ignored => "ignored",
            Self::Quarantined => "quarantined",
        }
    }

    /// The verdict a word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a commit decided of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It changed its resource's state, or passed unguarded.
    Applied {
        /// Its version equalled the stored one.
        tie: bool,
    },
    /// It is older than what its resource holds.
    Stale {
        /// Its version equalled the stored one.
        tie: bool,
    },
    /// It waits for what comes before it: a row, released or expired later (I6).
    Held,
    /// It was recorded and changes nothing.
    Ignored,
    /// An effect of it failed: nothing of it is stored, its key is free, and its sender may come again.
    Failed,
    /// Its effect key was already claimed under another id: recorded, and changes nothing.
    Repeat {
        /// The event that claimed it.
        first: EventId,
    },
    /// Its key was already claimed.
    Duplicate {
        /// The event that claimed it.
        first: EventId,
        /// The two bodies differ: this one is kept aside and counted (I7).
        conflict: bool,
    },
}

/// What the sender is told: written only after the commit returned (I1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What became of the event.
    pub verdict: Verdict,
    /// The event's id; of a duplicate, the id of the first.
    pub id: EventId,
    /// Its version equalled the stored one, and the tie rule decided.
    pub tie: bool,
    /// A duplicate with other bytes: the first stands, this one is kept aside (I7).
    pub conflict: bool,
}
