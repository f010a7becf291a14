//! Handshakes: what senders ask before they send, answered from data and never kept.
//!
//! Owns matching, guarding and answering. Promises: what a sender gave goes into an answer only if it looks like
//! a token and is bounded, since a keyed answer would else sign whatever a stranger likes, with the key that
//! signs events; a secret is compared in constant time and never said; an address is handed out to be fetched
//! only on a host that the settings name. Knows nothing of files and connections: a learned secret and an address
//! are part of the answer, for the caller to deal with. What does not fit is refused with a stable word.

mod host;
mod template;

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use async_trait::async_trait;
use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::reference::{Fault, Found, Reference};
use super::spec::Letters;
use super::wants::{Hidden, TextRule, Wants};
use super::{Request, Source};
use template::Given;

pub(super) use host::Hosts;
pub(super) use template::Template;

/// The longest body that is looked at before its signature.
pub(super) const UNSIGNED_BYTES_MAX: usize = 8 * 1024;

/// Fetches an address once, within bounds of its own. The error is for the log.
#[async_trait(?Send)]
pub trait Confirm: Send + Sync {
    /// GETs it; only a 2xx is good.
    async fn get(&self, url: &str) -> Result<(), String>;
}

/// What a sender gets.
#[derive(Clone, Debug)]
pub enum Greeting {
    /// The answer it asked for.
    Answer(Box<Greeted>),
    /// Nothing it asked for.
    Refused {
        /// The handshake.
        name: Arc<str>,
        /// 400 where it is malformed, 403 or 404 where something does not hold.
        status: u16,
        /// A stable word for it.
        why: &'static str,
    },
}

/// The answer to a handshake, and what is to be done before it is given.
#[derive(Clone, Debug)]
pub struct Greeted {
    /// The handshake.
    pub name: Arc<str>,
    /// The status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Content type and body.
    pub body: Option<(&'static str, Bytes)>,
    /// A secret to be written down.
    pub learn: Option<SecretString>,
    /// An address to be fetched.
    pub get: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A text is missing, or looks like something else than it should.
    Malformed,
    /// The source has no live secret to answer with.
    NoSecret,
    /// Something required does not hold.
    Required,
    /// The address is not one of the provider's.
    Address,
}

impl Refused {
    const fn word(self) -> &'static str {
        match self {
            Self::Malformed => "handshake-malformed",
            Self::NoSecret => "handshake-without-secret",
            Self::Required => "handshake-refused",
            Self::Address => "handshake-address",
        }
    }
}

/// The handshakes that are answered without a signature, and what they read.
#[derive(Debug, Default)]
pub(super) struct Unsigned {
    pub(super) wants: Wants,
    pub(super) text: TextRule,
    pub(super) all: Vec<Handshake>,
}

/// A compiled handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) name: Arc<str>,
    pub(super) methods: Vec<Method>,
    pub(super) when: Vec<Condition>,
    pub(super) require: Vec<Condition>,
    pub(super) refuse: u16,
    pub(super) guard: Guard,
    pub(super) status: u16,
    pub(super) body: Option<Shape>,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) learn: Option<Reference>,
    pub(super) get: Option<(Reference, Hosts)>,
}

/// Something that holds of a request, or does not.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) from: Reference,
    pub(super) is: Is,
}

/// What a text must be.
#[derive(Debug)]
pub(super) enum Is {
    There,
    Absent,
    OneOf(Vec<Hidden>),
}

/// What a text of the sender's may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) letters: Letters,
    pub(super) min: usize,
    pub(super) max: usize,
}

/// A body as written down.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Text(Template),
    Json(Json),
}

/// JSON whose texts are templates.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Text(Template),
    Fixed(Value),
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
}

/// A secret as its text, for answers that need it.
pub(super) struct Key {
    pub(super) tenant: Option<Arc<str>>,
    pub(super) until_ms: Option<i64>,
    pub(super) text: SecretString,
}

impl Guard {
    /// The usual bounds of a kind of text.
    pub(super) const fn of(letters: Letters) -> Self {
        let (min, max) = match letters {
            Letters::Token => (1, 256),
            Letters::LowerHex => (20, 32),
            Letters::Text => (1, 1024),
        };
        Self { letters, min, max }
    }

    /// Whether a text looks like that.
    pub(super) fn fits(self, text: &str) -> bool {
        let fits = |byte: u8| match self.letters {
            Letters::Token => byte.is_ascii_alphanumeric() || b"-_.~=+/".contains(&byte),
            Letters::LowerHex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Letters::Text => (b' '..=b'~').contains(&byte) && byte != b'<' && byte != b'>',
        };
        (self.min..=self.max).contains(&text.len()) && text.bytes().all(fits)
    }
}

impl Condition {
    fn holds(&self, found: &Found<'_>) -> bool {
        match (&self.is, self.from.text(found)) {
            // an object is there, and no text
            (Is::Absent, text) => matches!(text, Ok(None) | Err(Fault::Blank)),
            (Is::There, text) => matches!(text, Ok(Some(_))),
            (Is::OneOf(_), Ok(None) | Err(_)) => false,
            (Is::OneOf(texts), Ok(Some(text))) => {
                let same = |known: &Hidden| bool::from(known.0.as_bytes().ct_eq(text.as_bytes()));
                texts.iter().fold(false, |any, known| same(known) | any)
            }
        }
    }
}

impl Json {
    fn make(&self, given: &Given<'_>) -> Result<Value, Refused> {
        match self {
            Self::Text(template) => template.make(given)?.map(Value::from).ok_or(Refused::Malformed),
            Self::Fixed(value) => Ok(value.clone()),
            Self::Object(members) => {
                members.iter().map(|(name, value)| Ok((name.clone(), value.make(given)?))).collect()
            }
            Self::Array(items) => items.iter().map(|item| item.make(given)).collect(),
        }
    }

    fn any(&self, is: &dyn Fn(&Template) -> bool) -> bool {
        match self {
            Self::Text(template) => is(template),
            Self::Fixed(_) => false,
            Self::Object(members) => members.iter().any(|(_, value)| value.any(is)),
            Self::Array(items) => items.iter().any(|item| item.any(is)),
        }
    }
}

impl Handshake {
    /// Whether one of its templates is so.
    pub(super) fn any(&self, is: &dyn Fn(&Template) -> bool) -> bool {
        let body = match &self.body {
            Some(Shape::Text(template)) => is(template),
            Some(Shape::Json(json)) => json.any(is),
            None => false,
        };
        body || self.headers.iter().any(|(_, template)| is(template))
    }

    pub(super) fn matches(&self, method: &Method, found: &Found<'_>) -> bool {
        self.methods.contains(method) && self.when.iter().all(|condition| condition.holds(found))
    }

    fn answer(&self, given: &Given<'_>) -> Result<Greeted, Refused> {
        if !self.require.iter().all(|condition| condition.holds(given.found)) {
            return Err(Refused::Required);
        }
        let body = match &self.body {
            None => None,
            Some(Shape::Text(template)) => {
                let text = template.make(given)?.ok_or(Refused::Malformed)?;
                Some(("text/plain; charset=utf-8", Bytes::from(text)))
            }
            Some(Shape::Json(json)) => Some(("application/json", Bytes::from(json.make(given)?.to_string()))),
        };
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let Some(text) = template.make(given)? else { continue };
            headers.push((name.clone(), HeaderValue::from_str(&text).map_err(|_| Refused::Malformed)?));
        }
        let text = |reference: &Reference| {
            let text = reference.text(given.found).ok().flatten();
            text.map(std::borrow::Cow::into_owned).ok_or(Refused::Malformed)
        };
        let learn = self.learn.as_ref().map(text).transpose()?;
        if learn.as_ref().is_some_and(|secret| !given.guard.fits(secret)) {
            return Err(Refused::Malformed);
        }
        let get = match &self.get {
            Some((reference, hosts)) => Some(text(reference)?)
                .filter(|url| hosts.take(url))
                .map_or(Err(Refused::Address), |url| Ok(Some(url)))?,
            None => None,
        };
        let learn = learn.map(SecretString::from);
        Ok(Greeted { name: Arc::clone(&self.name), status: self.status, headers, body, learn, get })
    }
}

impl Source {
    /// Answers a handshake that needs no signature; `None` where the request is none. Only short bodies are
    /// looked at, and what cannot be read is no handshake.
    #[must_use]
    pub fn greet(&self, request: &Request<'_>) -> Option<Greeting> {
        let unsigned = &self.rules.unsigned;
        let mine = |handshake: &&Handshake| {
            handshake.methods.contains(request.method) && (handshake.learn.is_none() || self.setup.is_some())
        };
        if request.body.len() > UNSIGNED_BYTES_MAX || !unsigned.all.iter().any(|handshake| mine(&handshake)) {
            return None;
        }
        let wants = &unsigned.wants;
        let texts = if request.body.is_empty() {
            wants.query_only(request.target)
        } else {
            wants.texts(unsigned.text, request.headers, request.target, request.body)
        };
        let texts = texts.ok()?;
        let picked = wants.pick(&texts).ok()?;
        let deep = wants.body_deep.read(&picked.deep_texts).ok()?;
        let found = picked.found(&texts, &deep, request.headers, request.body);
        let handshake = unsigned.all.iter().filter(mine).find(|one| one.matches(request.method, &found))?;
        let tenant = request.path_tenant.and_then(|name| self.rules.tenants.get(name));
        Some(self.answer_handshake(handshake, &found, request, tenant.map(|name| &**name)))
    }

    /// Whether this source answers anything before a signature, by `POST`.
    #[must_use]
    pub fn greets_unsigned(&self) -> bool {
        self.rules.unsigned.all.iter().any(|handshake| handshake.methods.contains(&Method::POST))
    }

    /// Answers a handshake whose signature holds; `None` where the request is none.
    pub(super) fn greet_signed(
        &self,
        found: &Found<'_>,
        request: &Request<'_>,
        tenant: Option<&str>,
    ) -> Option<Greeting> {
        let handshake = self.rules.signed_handshakes.iter().find(|one| one.matches(request.method, found))?;
        Some(self.answer_handshake(handshake, found, request, tenant))
    }

    fn answer_handshake(
        &self,
        handshake: &Handshake,
        found: &Found<'_>,
        request: &Request<'_>,
        tenant: Option<&str>,
    ) -> Greeting {
        let live = |key: &&Key| {
            let ended = key.until_ms.is_some_and(|until_ms| request.now_ms >= until_ms);
            !ended && key.tenant.as_deref().is_none_or(|own| Some(own) == tenant)
        };
        let secret = self.handshake_keys.iter().find(live).map(|key| key.text.expose_secret());
        let path = request.target.split('?').next().unwrap_or_default();
        let url = format!("{}{path}", self.origin);
        match handshake.answer(&Given { found, guard: handshake.guard, secret, url: &url }) {
            Ok(greeted) => Greeting::Answer(Box::new(greeted)),
            Err(refused) => Greeting::Refused {
                name: Arc::clone(&handshake.name),
                status: if refused == Refused::Malformed { 400 } else { handshake.refuse },
                why: refused.word(),
            },
        }
    }

    /// Where a secret that a handshake brings is to be written, while the source is being set up.
    #[must_use]
    pub fn setup(&self) -> Option<&std::path::Path> {
        self.setup.as_deref()
    }
}
