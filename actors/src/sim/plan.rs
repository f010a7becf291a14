//! A plan: everything that will happen in a run, drawn before it starts. What senders do about answers
//! follows from the plan and the answers; nothing else is decided later.
//!
//! Owns the data that a seed becomes, that a failing run is shrunk in, and that can be written to a file and
//! played again. Promises that a plan is complete: the same plan on the same engine is the same run.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::policy::PolicyChoice;
use super::scenario::Sender;

/// Everything that will happen in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The scenario it was drawn from.
    pub scenario: String,
    /// The seed it was drawn from.
    pub seed: u64,
    /// The policies that events refer to.
    pub policies: Vec<PolicyChoice>,
    /// The resources that events refer to.
    pub resources: Vec<PlannedResource>,
    /// The events, in the order they happened.
    pub events: Vec<PlannedEvent>,
    /// The requests that carry them.
    pub messages: Vec<Message>,
    /// What breaks.
    pub faults: Vec<Fault>,
    /// The gate under test.
    pub gate: Gate,
    /// How senders behave.
    pub sender: Sender,
    /// From when nothing breaks any more, in milliseconds since the start.
    pub heal_at_ms: u64,
    /// How long everything may take to settle from then on.
    pub heal_within_ms: u64,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedResource {
    /// The source it belongs to.
    pub source: String,
    /// The tenant inside the source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Its type.
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// An event as it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedEvent {
    /// When it happened, in milliseconds since the start.
    pub at_ms: u64,
    /// Its source.
    pub source: String,
    /// Its tenant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Its idempotency key, for people.
    pub key: String,
    /// The hash of its key, in hex, where the text alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_hash: Option<String>,
    /// Its second identity, which other events may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_key: Option<String>,
    /// The sender's event type.
    pub kind: String,
    /// The resources it changes; the first one's decision is its verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<PlannedGuard>,
    /// How its first resource is ordered: an index into [`Plan::policies`].
    pub policy: u32,
    /// The step of a state machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its place in the true order of its first resource, from 1; 0 without one.
    pub truth: u64,
    /// It deletes its resource.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deletes: bool,
    /// Nobody asked for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignored: bool,
    /// The store refuses it, whatever is tried.
    #[serde(default, skip_serializing_if = "is_false")]
    pub poison: bool,
    /// It is authentic and of no use: it goes to quarantine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unusable: bool,
    /// Its raw bytes.
    #[serde(with = "body")]
    pub body: Bytes,
    /// The digest of its body, in hex, where not every byte counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A resource that an event changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedGuard {
    /// An index into [`Plan::resources`].
    pub resource: u32,
    /// The event's version for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<PlannedVersion>,
}

/// A version, as text and as the bytes that compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedVersion {
    /// The bytes, in hex; they order versions.
    pub bytes: String,
    /// For people.
    pub text: String,
}

/// A request that a sender wants answered with 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What it carries: indices into [`Plan::events`].
    pub events: Vec<u32>,
    /// Who sends it.
    pub sender: u32,
    /// When it is ready to be sent, in milliseconds since the start.
    pub at_ms: u64,
    /// It is never sent: the sender lost it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// What becomes of each try in turn; further ones arrive as the last one does, and are answered.
    pub hops: Vec<Hop>,
    /// Sent again although nobody asked: so long after it was ready, and what becomes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Resend>,
}

/// A request that is sent again although nobody asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resend {
    /// When, in milliseconds since the start.
    pub at_ms: u64,
    /// What becomes of it.
    pub hop: Hop,
}

/// One way there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// The node it reaches.
    #[serde(default)]
    pub node: u32,
    /// The way there, in milliseconds.
    pub there_ms: u64,
    /// The way back.
    pub back_ms: u64,
    /// What becomes of it.
    #[serde(default)]
    pub fate: Fate,
}

/// What becomes of a request on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It arrives, and so does its answer.
    #[default]
    Arrives,
    /// It never arrives.
    Lost,
    /// It arrives, and its answer does not.
    Cut,
}

/// The gate under test: bounds and pace, as drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// By how much each node's clock is off, in milliseconds; there are as many nodes.
    pub nodes: Vec<i64>,
    /// Shards of each node.
    pub shards: u32,
    /// The bound of mailboxes, queues and tables; the engine's own defaults where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tight: Option<u32>,
    /// The key cache is asked about every event; otherwise while it pays.
    #[serde(default)]
    pub lookups: bool,
    /// How long the gate lets a request wait for its answer, in milliseconds.
    pub answer_within_ms: u64,
    /// How long a commit takes, in milliseconds: from, to.
    pub commit_ms: (u64, u64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Bodies are written as text where they are text.
mod body {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Body {
        Text(String),
        Hex { hex: String },
    }

    pub(super) fn serialize<S: Serializer>(body: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        let body = match std::str::from_utf8(body) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Hex { hex: hex::encode(body) },
        };
        body.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        Ok(match Body::deserialize(from)? {
            Body::Text(text) => Bytes::from(text),
            Body::Hex { hex } => Bytes::from(hex::decode(hex).map_err(D::Error::custom)?),
        })
    }
}
