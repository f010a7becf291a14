//! Handshakes as written down: what a sender asks before it sends, and what it wants to hear.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Texts;

/// A request that is answered and not kept.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HandshakeSpec {
    /// What it is called in logs and documentation.
    pub name: String,
    /// `GET`, `HEAD`, `OPTIONS` or `POST`, one or several; `POST` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Texts>,
    /// What makes a request this handshake: references with their texts; `*`: any, empty: not there.
    pub when: BTreeMap<String, Texts>,
    /// Whether it is answered only where the source's signature holds; for a `POST` it is when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// What must hold besides; else it is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub require: BTreeMap<String, Texts>,
    /// The status of that refusal: 403, or 404.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse: Option<u16>,
    /// What a text of the sender's may look like that goes into the answer; `token` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardSpec>,
    /// What is answered.
    #[serde(default)]
    pub answer: HandshakeAnswerSpec,
    /// The text that is a new secret: written to `setup.secret_to` while the source is being set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<String>,
    /// An address that is fetched before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get: Option<GetSpec>,
}

/// What a text may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum GuardSpec {
    /// Letters, with the usual bounds.
    Letters(Letters),
    /// Letters and bounds.
    Bounded(BoundedSpec),
}

/// Letters and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BoundedSpec {
    /// The letters.
    pub chars: Letters,
    /// The fewest.
    pub min: usize,
    /// The most.
    pub max: usize,
}

/// The letters of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Letters {
    /// Letters, digits and `-_.~=+/`: nothing that could be a body.
    #[default]
    Token,
    /// Digits and `a` to `f`.
    LowerHex,
    /// Printable ASCII without `<` and `>`; never signed.
    Text,
}

/// The answer to a handshake.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandshakeAnswerSpec {
    /// The status; 200 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A template: `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// An object whose texts are templates: `application/json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Map<String, Value>>,
    /// Headers, each a template; left out where a reference is not there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// An address that a sender asks to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GetSpec {
    /// The reference of the address.
    pub url: String,
    /// The hosts it may have; a label may be `*`.
    pub hosts: Vec<String>,
}

/// How a source that has no secret yet learns it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetupSpec {
    /// The file that a secret is written to; one that is there is never replaced.
    pub secret_to: String,
}
