//! What is stated about each preset: `tests/data/presets/NAME.toml`, a sender's requests and what must come of
//! them. Shared by test binaries; knows nothing of how a request is carried.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::BTreeMap;
use std::path::Path;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::SecretString;
use serde::Deserialize;
use tidegate::source::{
    KeyPort, KeyQuestion, Refusal, Request, ResolvedSecret, SignError, Signing, Source, SourceSpec, Verified, presets,
};

const ENTRIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/presets");
const PAYLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/payloads");
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/source/presets/samples");
const SECRET: &str = "a-secret-of-more-than-16-bytes";
const STANDARD_SECRET: &str = "whsec_c2l4dGVlbi1ieXRlLWtleQ==";

/// A preset, and what must come of its sender's requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    #[serde(skip)]
    pub(crate) name: String,
    /// The sender's secret.
    secret: Option<String>,
    /// One of the same form that is not the sender's, where it cannot be made by changing a letter.
    other_secret: Option<String>,
    /// The secret is what its key's owner answers when it is asked.
    #[serde(default)]
    pub(crate) fetched: bool,
    /// It sends signals without an id: another attempt is another event, and keys are stated as `unique`.
    #[serde(default)]
    pub(crate) signals: bool,
    /// What its user must state, as TOML.
    #[serde(default)]
    pub(crate) own: String,
    /// How many seconds old a request may be; left out: no time is signed.
    pub(crate) window: Option<i64>,
    /// What the signature covers.
    #[serde(default)]
    pub(crate) covers: Covers,
    /// Schemes of `tests/data/signatures.json` that are this preset's.
    #[serde(default)]
    pub(crate) vectors: Vec<String>,
    /// Handshakes of `tests/data/signatures.json` that are this preset's.
    #[serde(default)]
    pub(crate) handshakes: Vec<String>,
    #[serde(rename = "sample")]
    pub(crate) samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Covers {
    /// Every byte of the body.
    #[default]
    Body,
    /// Some of its fields: what `tamper` changes is one of them.
    Part,
    /// Nothing: a token or a password.
    Nothing,
}

/// One request of the sender.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// The body; left out: the request is the one that the preset itself comes with.
    #[serde(default)]
    pub(crate) file: String,
    /// Where the payload comes from, and its licence.
    pub(crate) source: String,
    #[serde(default = "json")]
    content_type: String,
    #[serde(default)]
    query: String,
    /// What the sender sends beside the signature.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// What another attempt changes in the body.
    retry: Option<(String, String)>,
    /// Changes of signed fields.
    #[serde(default)]
    tamper: Vec<(String, String)>,
    #[serde(rename = "event")]
    pub(crate) events: Vec<Expected>,
}

/// One event of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) key: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) resource: Option<(String, String)>,
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) deletes: bool,
    pub(crate) ignored: Option<String>,
    /// Further resources: type, id and version.
    #[serde(default)]
    pub(crate) also: Vec<(String, String, String)>,
}

fn json() -> String {
    "application/json".to_owned()
}

/// A request with what it borrows.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) now_ms: i64,
}

impl Sent {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &Method::POST,
            target: &self.target,
            path_tenant: None,
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
        }
    }
}

impl Entry {
    /// Every entry there is, by name.
    pub(crate) fn all() -> Vec<Self> {
        let files = std::fs::read_dir(ENTRIES).expect("the entries");
        let mut entries: Vec<Self> = files.map(|file| Self::read(&file.expect("an entry").path())).collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        entries
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let entry: Self = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let mut entry = Self { name, ..entry };
        for sample in entry.samples.iter_mut().filter(|sample| sample.file.is_empty()) {
            let own = presets::about(&entry.name).and_then(|about| about.sample.clone());
            let own = own.unwrap_or_else(|| panic!("{}: the preset has no sample: name a file", entry.name));
            (sample.file, sample.content_type) = (own.file, own.content_type);
            (sample.query, sample.headers) = (own.query, own.headers);
        }
        entry
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self::read(Path::new(&format!("{ENTRIES}/{name}.toml")))
    }

    /// The text of the preset.
    pub(crate) fn preset(&self) -> String {
        let file = format!("{}/src/source/presets/{}.toml", env!("CARGO_MANIFEST_DIR"), self.name);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// What it says for people.
    pub(crate) fn comments(&self) -> String {
        let text = self.preset();
        let comments: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        comments.join("\n")
    }

    /// Everything its user states but the secret.
    pub(crate) fn settings(&self) -> String {
        self.settings_as(&self.name)
    }

    /// The same for a source of another name.
    pub(crate) fn settings_as(&self, name: &str) -> String {
        format!("name = '{name}'\npreset = '{}'\nallow_weak_secret = true\n{}\n", self.name, self.own)
    }

    /// The source of this preset under the sender's secret.
    pub(crate) fn source(&self) -> Source {
        self.source_under(&self.secret())
    }

    /// The same under another one.
    pub(crate) fn source_under(&self, secret: &str) -> Source {
        let spec: SourceSpec =
            toml::from_str(&self.settings()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let value = SecretString::from(secret);
        let secret = ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value, until_ms: None };
        let secrets: &[ResolvedSecret] = if self.fetched { &[] } else { &[secret] };
        Source::compile(&spec, secrets).unwrap_or_else(|problems| panic!("{}: {problems:?}", self.name))
    }

    pub(crate) fn secret(&self) -> String {
        let standard = self.vectors.iter().any(|scheme| matches!(scheme.as_str(), "standard-webhooks-v1" | "svix-v1"));
        self.secret.clone().unwrap_or_else(|| if standard { STANDARD_SECRET } else { SECRET }.to_owned())
    }

    /// A secret of the same form that is not the sender's.
    pub(crate) fn other_secret(&self) -> String {
        if let Some(other) = &self.other_secret {
            return other.clone();
        }
        let mine = self.secret();
        let at = mine.len() / 2;
        let other = if mine.as_bytes()[at] == b'0' { "1" } else { "0" };
        format!("{}{other}{}", &mine[..at], &mine[at + 1..])
    }

    /// The verdict on a request, after its key was fetched where one is missing.
    pub(crate) fn verify(&self, source: &Source, sent: &Sent) -> Result<Verified, Refusal> {
        self.verify_asking(source, sent, self.secret())
    }

    /// The same where the key's owner answers with this one.
    pub(crate) fn verify_asking(&self, source: &Source, sent: &Sent, key: String) -> Result<Verified, Refusal> {
        match source.verify(&sent.request()) {
            Err(refusal) if refusal.wants_key() => {
                ready(source.fetch_key(&sent.request(), &OneKey(key.into())));
                source.verify(&sent.request())
            }
            verdict => verdict,
        }
    }
}

impl Sample {
    pub(crate) fn body(&self) -> Vec<u8> {
        let read = |folder| std::fs::read(format!("{folder}/{}", self.file));
        read(PAYLOADS).or_else(|_| read(SAMPLES)).unwrap_or_else(|error| panic!("{}: {error}", self.file))
    }

    /// The body of another attempt.
    pub(crate) fn body_again(&self) -> Vec<u8> {
        self.retry.as_ref().map_or_else(|| self.body(), |change| self.changed(&self.body(), change))
    }

    /// A signed body with a signed field changed, and what was changed.
    pub(crate) fn tampered(&self, body: &[u8]) -> impl Iterator<Item = (&str, Vec<u8>)> {
        self.tamper.iter().map(|change| (change.0.as_str(), self.changed(body, change)))
    }

    fn changed(&self, body: &[u8], (from, to): &(String, String)) -> Vec<u8> {
        let text = String::from_utf8(body.to_vec()).expect("a text");
        assert!(text.contains(from), "nothing to change in {}", self.file);
        text.replace(from, to).into_bytes()
    }

    /// The request with this body, as its sender would sign it at a time.
    pub(crate) fn sent(&self, source: &Source, target: &str, body: Vec<u8>, now_ms: i64) -> Sent {
        let mut headers = HeaderMap::new();
        let content_type = ("content-type", &self.content_type);
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in std::iter::once(content_type).chain(own) {
            let name: HeaderName = name.parse().expect("a header name");
            headers.append(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let mut sent = Sent { target: format!("{target}{query}"), headers, body: body.into(), now_ms };
        let id = self.headers.iter().find(|(name, _)| is_id(name)).map_or(&self.file, |(_, value)| value);
        match source.signed(&Signing { request: sent.request(), id, kind: "" }) {
            // the signature is in the payload, as its sender made it
            Ok(signed) if signed.body != sent.body && source.verify(&sent.request()).is_ok() => {}
            // what the sample states stands
            Ok(signed) => {
                for (name, value) in signed.headers {
                    if !self.headers.contains_key(name.as_str()) {
                        sent.headers.insert(name, value);
                    }
                }
                (sent.body, sent.target) = (signed.body, signed.target);
            }
            Err(SignError::NotMade | SignError::NoSecret | SignError::SendersKey) => {}
            Err(error) => panic!("{}: {error}", self.file),
        }
        sent
    }

    /// Whether all of the query is the signature's.
    pub(crate) fn states_no_query(&self) -> bool {
        self.query.is_empty()
    }

    /// The headers of the signature.
    pub(crate) fn signature_headers(&self, sent: &Sent) -> Vec<HeaderName> {
        let other = |name: &str| name == "content-type" || is_id(name) || self.headers.contains_key(name);
        sent.headers.keys().filter(|name| !other(name.as_str())).cloned().collect()
    }
}

/// Whether a header holds an event's id, which some senders sign.
fn is_id(name: &str) -> bool {
    let of_others = ["correlation", "project", "document", "account"].iter().any(|other| name.contains(other));
    !of_others && ["-id", "-uuid", "-key"].iter().any(|end| name.ends_with(end))
}

/// Knows one key, wherever it is asked for.
struct OneKey(Bytes);

#[async_trait::async_trait]
impl KeyPort for OneKey {
    async fn ask(&self, _: &str, _: &KeyQuestion) -> Result<Bytes, String> {
        Ok(self.0.clone())
    }
}

/// What a future gives that waits for nothing.
fn ready<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("it waits"),
    }
}
