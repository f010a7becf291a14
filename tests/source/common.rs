//! Sources and requests for tests.

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::SecretString;
use tidegate::source::{Problem, Reading, Refusal, Request, ResolvedSecret, Signing, Source, SourceSpec, Verified};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use uuid::Uuid;

pub(crate) const NOW_MS: i64 = 1_772_452_800_000;
pub(crate) const SECRET: &str = "a-secret-of-more-than-16-bytes";
pub(crate) const STANDARD_SECRET: &str = "whsec_c2l4dGVlbi1ieXRlLWtleQ==";

pub(crate) fn secret(value: &str) -> ResolvedSecret {
    ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value: SecretString::from(value), until_ms: None }
}

pub(crate) fn spec(text: &str) -> SourceSpec {
    toml::from_str(&format!("name = 'test'\n{text}")).expect("a source in TOML")
}

pub(crate) fn try_source(text: &str, secrets: &[ResolvedSecret]) -> Result<Source, Vec<Problem>> {
    Source::compile(&spec(text), secrets)
}

pub(crate) fn source(text: &str) -> Source {
    try_source(text, &[secret(SECRET)]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

pub(crate) fn preset(name: &str) -> Source {
    let text = if matches!(name, "standard-webhooks" | "svix") { STANDARD_SECRET } else { SECRET };
    try_source(&format!("preset = '{name}'"), &[secret(text)]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A source without a sender's own ideas: bare HMAC over the body, and the rules given.
pub(crate) fn plain(rules: &str) -> Source {
    source(&format!("verify = {{ scheme = 'hmac-sha256', header = 'x-signature' }}\n{rules}"))
}

pub(crate) fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().expect("a header name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
    }
    headers
}

/// A request as received.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) now_ms: i64,
    pub(crate) path_tenant: Option<String>,
}

impl Sent {
    pub(crate) fn new(pairs: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        Self { headers: headers(pairs), body: body.into(), now_ms: NOW_MS, path_tenant: None }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &Method::POST,
            target: "/in/test",
            path_tenant: self.path_tenant.as_deref(),
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
        }
    }

    /// The same with the headers its sender would add.
    pub(crate) fn signed(mut self, source: &Source, id: &str, kind: &str) -> Self {
        self.headers = source.sign(&Signing { request: self.request(), id, kind }).expect("signed headers");
        self
    }

    pub(crate) fn verify(&self, source: &Source) -> Result<Verified, Refusal> {
        source.verify(&self.request())
    }

    pub(crate) fn read(&self, source: &Source) -> Reading {
        let verified = self.verify(source).expect("a signed request");
        source.read(&self.request(), &verified, &|| EventId(Uuid::nil()))
    }

    pub(crate) fn event(&self, source: &Source) -> Event {
        match self.read(source) {
            Reading::Event(event) => event,
            other => panic!("not an event: {other:?}"),
        }
    }

    pub(crate) fn unusable(&self, source: &Source) -> Unusable {
        match self.read(source) {
            Reading::Unusable(unusable) => unusable,
            other => panic!("not unusable: {other:?}"),
        }
    }
}

/// A body, signed, through a source.
pub(crate) fn sent(source: &Source, body: &str) -> Sent {
    Sent::new(&[], body.to_owned()).signed(source, "id-1", "thing.updated")
}
