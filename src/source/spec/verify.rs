//! How a signature is checked, as written down.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HeaderSpec, Span, Texts};

/// How a signature is checked. A *place* is `header:name`, `body:/pointer`, `item:/pointer`, `form:name` or `query:name`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerifySpec {
    /// The scheme. A `verify` table without one keeps the preset's and changes the fields it states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The header that holds the signature; of several names the first that is there. `x-signature-*` stands for
    /// `x-signature-1` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Texts>,
    /// Further headers whose signatures count as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub also_header: Option<Texts>,
    /// In place of `header`: places of the signature; of several the first that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Texts>,
    /// How the signature's text is laid out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How the signature's bytes are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// What is signed: text with pieces such as `{body}`, `{timestamp}`, `{id}`, `{header:name}`, `{method}`, `{url}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<SignedSpec>,
    /// Where the time stands: a place, `pair:t` or `first` inside the signature's text, `claim:iat` of a JWT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Texts>,
    /// The time's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<TimeUnit>,
    /// How far the time may lie in the past or in the future; the edge counts as inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Which sides the window has; both when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<Sides>,
    /// The header, or the place, whose text is `{id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Texts>,
    /// How a secret's text becomes a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretForm>,
    /// What every secret of this sender begins with, such as `whsec_`: catches a wrong paste.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_prefix: Option<String>,
    /// What is left out before a secret is decoded, where it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// Scheme and host the sender calls, such as `https://hooks.example.com`, with the path in front of `/in` where
    /// a proxy adds one: the first part of `{url}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// `{url}` may be signed with its port, without it, or with the scheme's own port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_port: Option<bool>,
    /// `body:/pointer/*` of an array: every item is checked, and `item:` places are read in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// Texts that must be as stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Vec<RequireSpec>>,
    /// The place of the body's SHA-256 in hexadecimal, where the sender signs that in place of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<String>,
    /// The sender signs only a part of the event, and its documents say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// Several algorithms, where the sender names the one it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<MethodsSpec>,
    /// The certificate of the key is fetched from an address in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateSpec>,
    /// `jwt-es256`: where keys are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysSpec>,
    /// `http-signature`: the algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Scheme>,
    /// `http-signature`: the components that must be covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<String>>,
}

/// A verification scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Standard Webhooks: `v1` (HMAC-SHA256) and `v1a` (ed25519) over id, time and body.
    StandardWebhooks,
    /// HMAC-SHA1, only for senders that have nothing else.
    HmacSha1,
    /// HMAC-SHA256.
    HmacSha256,
    /// HMAC-SHA384.
    HmacSha384,
    /// HMAC-SHA512.
    HmacSha512,
    /// SHA-1 over a text that holds the secret.
    DigestSha1,
    /// SHA-256 over a text that holds the secret.
    DigestSha256,
    /// ed25519.
    Ed25519,
    /// ECDSA on P-256 with SHA-256, signatures as DER.
    EcdsaP256Sha256,
    /// ECDSA on P-256 with SHA-256, signatures as two numbers of 32 bytes.
    EcdsaP256Sha256Raw,
    /// RSA PKCS#1 with SHA-1, only for senders that have nothing else.
    RsaPkcs1Sha1,
    /// RSA PKCS#1 with SHA-256.
    RsaPkcs1Sha256,
    /// RSA-PSS with SHA-512.
    RsaPssSha512,
    /// The secret itself.
    Token,
    /// HTTP basic authentication; the secret is `user:password`.
    Basic,
    /// A JWT signed by ES256.
    JwtEs256,
    /// HTTP message signatures (RFC 9421) with Content-Digest (RFC 9530).
    HttpSignature,
    /// Contentful's canonical request.
    Contentful,
}

impl Scheme {
    /// Whether what checks is the public partner of what signs.
    #[must_use]
    pub const fn has_public_keys(self) -> bool {
        matches!(
            self,
            Self::Ed25519
                | Self::EcdsaP256Sha256
                | Self::EcdsaP256Sha256Raw
                | Self::RsaPkcs1Sha1
                | Self::RsaPkcs1Sha256
                | Self::RsaPssSha512
                | Self::JwtEs256
        )
    }
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SignedSpec {
    /// One template, or several of which any may match.
    Any(Texts),
    /// The template by the text of a field.
    ByField(SignedByField),
}

/// A template for each text of a field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SignedByField {
    /// The place of the field.
    pub from: String,
    /// Templates by the field's text.
    pub when: BTreeMap<String, String>,
}

/// A text that must be as stated.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequireSpec {
    /// Its place.
    pub from: String,
    /// Patterns, one of which must match.
    pub is: Texts,
}

/// Which algorithm was used, out of a list that the source allows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MethodsSpec {
    /// `prefix` of the signature's text, or the place of the algorithm's name.
    pub from: String,
    /// Schemes by name.
    pub allow: BTreeMap<String, Scheme>,
}

/// Where the certificate of the key is fetched from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateSpec {
    /// The place of its address.
    pub from: String,
    /// Hosts it may be fetched from; `*` stands for one label.
    pub hosts: Vec<String>,
    /// How the address's path must end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// Whether it must be issued under a public root, by the certificates that come with it.
    #[serde(default)]
    pub chain: bool,
    /// The name it must be issued for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where keys are asked for by their id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeysSpec {
    /// The address.
    pub url: String,
    /// How to ask.
    pub ask: AskSpec,
    /// Headers of the question, such as credentials: `env:NAME` and `file:/path` are fetched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderSpec>,
}

/// How a key is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskSpec {
    /// POST `{"key_id": …}`; the answer holds `key`, a JWK.
    PostKeyId,
    /// GET; the answer is a JWK set.
    Jwks,
}

/// How a signature's text is laid out.
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
    /// The time first, then signatures.
    List(List),
    /// Entries of several parts.
    Entries(Entries),
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
    /// What parts groups of pairs, each with a time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<char>,
}

/// A list without names: the time first, then signatures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// What parts the list; `,` when left out.
    #[serde(default = "comma")]
    pub separator: char,
}

/// Entries of several parts; those whose fixed parts do not match are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entries {
    /// What parts the entries; `,` when left out.
    #[serde(default = "comma")]
    pub separator: char,
    /// What parts the parts of an entry.
    pub parts: char,
    /// One text for each part: `{signature}`, `*` for any, else the text it must be; `{config:name}` may be part of it.
    pub layout: Vec<String>,
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
    /// Hexadecimal, lower case only.
    HexLower,
    /// Base64, standard alphabet, padded.
    Base64,
    /// Base64, URL-safe alphabet, unpadded.
    Base64url,
    /// Base64 of the hexadecimal text.
    Base64Hex,
}

/// The unit of a signature's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// Seconds since 1970.
    S,
    /// Milliseconds since 1970.
    Ms,
    /// Microseconds since 1970.
    Us,
    /// RFC 3339 text.
    Iso,
}

/// The sides of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// Past and future.
    Both,
    /// Only the past: a time in the future passes.
    Past,
}

/// How a secret's text becomes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretForm {
    /// The characters as they stand.
    Utf8,
    /// Base64 after an optional `whsec_`; `whpk_` and `whsk_` for ed25519.
    WhsecBase64,
    /// Base64. Of an ed25519 key its 32 bytes, of a P-256 key its point.
    Base64,
    /// Hexadecimal, like `base64`.
    Hex,
    /// The SHA-1 of the characters.
    Sha1Utf8,
    /// A public key as base64 of its DER form (SubjectPublicKeyInfo).
    Spki,
    /// A PEM text: a public key, a certificate, or a private key (PKCS#8) that can also sign.
    Pem,
    /// A JWK set, or one JWK.
    Jwks,
}
