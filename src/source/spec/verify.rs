//! How a signature is checked, as written down.

use serde::{Deserialize, Serialize};

use super::{Span, Texts};

/// How a signature is checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerifySpec {
    /// The scheme. A `verify` table without one keeps the preset's and changes the fields it states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The header that holds the signature; of several names the first that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Texts>,
    /// How the header is laid out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How the signature's bytes are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// What is signed: text with `{body}`, `{timestamp}`, `{id}`, `{header:name}`, `{method}`, `{url}`, `{target}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// Where the time stands: `header:name`, or `pair:t` inside the signature header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Texts>,
    /// The time's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// How far the time may lie in the past or in the future; the edge counts as inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// The header whose text is `{id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Texts>,
    /// How a secret's text becomes a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretForm>,
    /// What every secret of this sender begins with, such as `whsec_`: catches a wrong paste.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_prefix: Option<String>,
    /// Scheme and host the sender calls, such as `https://hooks.example.com`: the first part of `{url}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A verification scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (ed25519) over id, time and body.
    StandardWebhooks,
    /// HMAC-SHA1, only for senders that have nothing else.
    HmacSha1,
    /// HMAC-SHA256.
    HmacSha256,
    /// HMAC-SHA512.
    HmacSha512,
}

/// How a signature header is laid out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The signature and nothing else.
    Bare,
    /// A fixed text before the signature, such as `sha256=`.
    Prefix(String),
    /// Pairs such as `t=…,v1=…`.
    Pairs(Pairs),
    /// Entries such as `v1,…`, parted by blanks; others are skipped.
    Versions(Vec<String>),
}

/// A list of `name=value` pairs; names may repeat, unknown ones are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    /// What parts the pairs; `,` when left out.
    #[serde(default = "comma")]
    pub separator: char,
    /// Names of the pairs that hold signatures.
    pub names: Vec<String>,
}

const fn comma() -> char {
    ','
}

/// How a signature's bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Hexadecimal, in either case.
    Hex,
    /// Base64, standard alphabet, padded.
    Base64,
    /// Base64, URL-safe alphabet, unpadded.
    Base64url,
}

/// The unit of a signature's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// Seconds since 1970.
    S,
    /// Milliseconds since 1970.
    Ms,
    /// RFC 3339 text.
    Iso,
}

/// How a secret's text becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretForm {
    /// The characters as they stand.
    Utf8,
    /// Base64 after an optional `whsec_`; `whpk_` and `whsk_` for ed25519.
    WhsecBase64,
    /// Base64.
    Base64,
    /// Hexadecimal.
    Hex,
}
