//! What a source looks like in a settings file: `[[source]]` in `config.toml` and `presets/*.toml` share
//! this shape. A preset's fields are defaults; the fields a source states itself win.
//!
//! Owns the words of the file, and nothing of what they mean: references, templates and patterns are kept
//! as text here and judged in `compile`, which can name the key of every fault. Unknown keys fail.

mod handshake;
mod order;
mod secret;
mod units;
mod verify;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use handshake::{BoundedSpec, GetSpec, GuardSpec, HandshakeAnswerSpec, HandshakeSpec, Letters, SetupSpec};
pub use order::{
    EpochSpec, HeaderSpec, MergeSpec, OnGapSpec, OnGoneSpec, OrderSpec, PolicySpec, RefetchSpec, StartSpec, TieSpec,
};
pub use secret::{ConfigSpec, SecretSpec, SecretUntil, TenantOwn, TenantSpec};
pub use units::{ByteSize, Span};
pub use verify::{
    AskSpec, CertificateSpec, Encoding, Entries, Format, KeysSpec, List, MethodsSpec, Pairs, RequireSpec, Scheme,
    SecretForm, Sides, SignedByField, SignedSpec, TimeUnit, VerifySpec,
};

/// One sender's entrance, as written down.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceSpec {
    /// Name in the path `/in/{name}` and in every key: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Named defaults: `standard-webhooks`, `svix`, `stripe`, `github`, `shopify` or `slack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Secrets shared by all tenants; any live one may have signed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretSpec>,
    /// Takes secrets too short to resist guessing: for demos and tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_weak_secret: Option<bool>,
    /// How the sender proves who it is. There is no way to leave this out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifySpec>,
    /// Values of this source's own that its rules name as `config:name`; secrets as `env:NAME` or `file:/path`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, ConfigSpec>,
    /// In a preset: what each value of `config` is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_help: Option<BTreeMap<String, String>>,
    /// The source has no secret yet and learns it in a handshake: to be taken out once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupSpec>,
    /// What the sender asks before it sends; the first that matches is answered, and nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Vec<HandshakeSpec>>,
    /// Where the events of one request stand: `body:/pointer` of an array, `body:/entry/*/changes` for arrays in
    /// the items of an array, or `lines`; of alternatives with ` | ` the first that is there. Each event is read by
    /// `item:` references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// The most items of one batch; 1,000 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_items: Option<u32>,
    /// Parts of the idempotency key; each a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Texts>,
    /// The event type: references joined by `.`, absent ones left out.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Texts>,
    /// Where the tenant stands: a reference, or `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Tenants to take; empty takes any the signed body names. Where nobody signs the tenant's name (in the path, a
    /// header or the query) each has secrets of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantSpec>,
    /// A file of tenants with their secrets, which only its owner may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets_file: Option<String>,
    /// Whose state events change; left out, events pass unguarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceSpec>,
    /// What orders the events of a resource, the most weighty part first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Vec<VersionSpec>>,
    /// What becomes of an event that should have a version and has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_missing_version: Option<OnMissingVersion>,
    /// The order policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderSpec>,
    /// What applying an event does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSpec>,
    /// Where the state object stands, with `merge = "fields"`; the whole body when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How a counter that starts again is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_on: Option<EpochSpec>,
    /// Parts of a second key, for senders that repeat one happening under new ids; each a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_key: Option<Texts>,
    /// Where a resource's current state is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refetch: Option<RefetchSpec>,
    /// Patterns of the event types to take; others are recorded as ignored. Left out: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Patterns of the event types that are a sender's test messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<Vec<String>>,
    /// Which events delete their resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteSpec>,
    /// Further resources of one event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also: Option<Vec<AlsoSpec>>,
    /// Rules for some event types; the first whose `types` match replaces the fields it states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrow: Option<Vec<NarrowSpec>>,
    /// The form field that holds the JSON when the body is form-encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_json: Option<String>,
    /// What the text that `body:` refers to is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<DecodeSpec>,
    /// JSON pointers of fields that honest retries change: left out when two bodies under one key are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_without: Option<Vec<String>>,
    /// Headers to keep beside the body, besides those the rules name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_headers: Option<Vec<String>>,
    /// What an authentic but unusable event is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unusable: Option<OnUnusable>,
    /// The longest body taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body: Option<ByteSize>,
    /// Content encodings to take beside none, and which bytes the sender signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<CodingSpec>,
    /// Content types to take; left out or empty: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_types: Option<Vec<String>>,
    /// Status and body of a 2xx, where the sender wants its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerSpec>,
    /// The most events a second; left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
}

impl SourceSpec {
    /// The names of its policies of order: its own first, then those of narrowed types that differ. Judges
    /// nothing; a preset is to be laid under it before.
    #[must_use]
    pub fn policies(&self) -> Vec<&'static str> {
        let newest = |version: &Option<Vec<VersionSpec>>| version.as_ref().is_some_and(|parts| !parts.is_empty());
        let name = |order: Option<&OrderSpec>, versioned: bool| match order.and_then(|order| order.policy) {
            Some(policy) => policy.name(),
            None if versioned => PolicySpec::Newest.name(),
            None => PolicySpec::Arrival.name(),
        };
        let mut names = vec![name(self.order.as_ref(), newest(&self.version))];
        for narrow in self.narrow.iter().flatten() {
            let versioned = if narrow.version.is_some() { newest(&narrow.version) } else { newest(&self.version) };
            let narrowed = name(narrow.order.as_ref().or(self.order.as_ref()), versioned);
            if !names.contains(&narrowed) {
                names.push(narrowed);
            }
        }
        names
    }
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Texts {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Texts {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// A resource: its type and its id.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSpec {
    /// References joined by `/`.
    #[serde(rename = "type")]
    pub kind: Texts,
    /// References joined by `/`.
    pub id: Texts,
}

/// One part of a version.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VersionSpec {
    /// A reference.
    pub from: String,
    /// What its text is.
    #[serde(rename = "as")]
    pub form: VersionForm,
    /// How finely times are compared; all nine digits when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<PrecisionSpec>,
    /// With `as = "time"`: the zone of times that state none, `UTC` or an offset such as `+02:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Patterns, the lowest rank first; the longest pattern that matches counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<String>,
}

/// What a version's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionForm {
    /// A whole number of any size, as number or text.
    Integer,
    /// A time as RFC 3339 text.
    Rfc3339,
    /// Seconds since 1970, decimals allowed.
    EpochS,
    /// Milliseconds since 1970.
    EpochMs,
    /// Microseconds since 1970.
    EpochUs,
    /// Nanoseconds since 1970.
    EpochNs,
    /// RFC 3339 text, or a number of seconds since 1970: some senders write both.
    Rfc3339OrEpochS,
    /// RFC 3339 text, or a number of milliseconds since 1970.
    Rfc3339OrEpochMs,
    /// RFC 3339 and its relatives: `+0000`, ` UTC`, a blank for the `T`; without a zone only where `zone` is stated.
    Time,
    /// A date as HTTP writes it.
    HttpDate,
    /// A date as mail writes it.
    Rfc2822,
    /// A place in the list `ranks`.
    Rank,
}

/// How finely times are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrecisionSpec {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

/// What becomes of an event that should have a version and has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMissingVersion {
    /// It applies, in the order it came.
    #[default]
    Arrival,
    /// It is unusable.
    Quarantine,
}

/// Which events delete their resource: any of the two rules is enough.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeleteSpec {
    /// Patterns of event types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// A reference whose text is compared with `equals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The text that means "deleted".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<String>,
}

/// Further resources of one event.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AlsoSpec {
    /// `body:/pointer` of an array; its items are read by `item:` references. Left out: one resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// The resource.
    pub resource: ResourceSpec,
    /// Its version; left out: the source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Vec<VersionSpec>>,
}

/// Rules for some event types.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NarrowSpec {
    /// Patterns of event types.
    pub types: Vec<String>,
    /// Replaces the source's resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceSpec>,
    /// Replaces the source's version; an empty list: these events have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Vec<VersionSpec>>,
    /// Replaces the source's order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderSpec>,
    /// Replaces the source's merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSpec>,
    /// Replaces the source's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Replaces the source's rule of epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_on: Option<EpochSpec>,
    /// Replaces the source's effect key; an empty list: these events have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_key: Option<Texts>,
    /// Replaces the source's delete rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteSpec>,
}

/// What an authentic but unusable event is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnusable {
    /// 422 with the reason.
    #[default]
    Refuse,
    /// 202: for senders that never retry, or that stop at a 4xx.
    Accept,
}

/// What a text is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecodeSpec {
    /// JSON.
    #[default]
    Json,
    /// XML: elements are members.
    Xml,
    /// Base64 of JSON.
    Base64Json,
    /// Base64 of XML.
    Base64Xml,
}

/// Content encodings by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodingSpec {
    /// `gzip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gzip: Option<SignedAs>,
    /// `deflate`, with the head and the check sum of zlib.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deflate: Option<SignedAs>,
}

impl CodingSpec {
    /// Whether the sender signs the unpacked bytes of a body in this encoding.
    #[must_use]
    pub fn signed_decoded(self, encoding: &str) -> bool {
        let signed = if encoding.trim().eq_ignore_ascii_case("gzip") { self.gzip } else { self.deflate };
        signed == Some(SignedAs::SignedDecoded)
    }
}

/// Which bytes a sender signs that packs its bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignedAs {
    /// Those that come: it packs first. They are what is kept.
    SignedEncoded,
    /// The unpacked ones: it signs first. They are what is kept.
    SignedDecoded,
}

/// The 2xx a sender wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerSpec {
    /// A 2xx status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A fixed body in place of the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its content type; `text/plain` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers to add; `config:name` for a value of the source's own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// A limit on the rate of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateSpec {
    /// Events a second over a long time.
    pub per_second: u32,
    /// Events at once; one second's worth when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}
