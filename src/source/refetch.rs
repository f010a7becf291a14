//! What a provider is asked for the current state of a resource, and what its answer says.
//!
//! Owns the address of a resource and the way from an answer to an event: its body is the answer's exact
//! bytes, its version the answer's own. Promises: only path and query depend on the resource, each part
//! escaped as one; an answer that does not say its version is no answer. Knows nothing of connections.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use tidegate_actors::ports::FetchClaim;
use tidegate_actors::rules::event::{Event, EventId, Guard, Intent, Resource};
use tidegate_actors::rules::key::{BodyDigest, Key};
use tidegate_actors::rules::order::{Merge, Order, Policy, Tie};

use super::Source;
use super::read::members;
use super::reference::{Found, Reference};
use super::rules::{Flaw, VersionPart, version};
use super::wants::{Wants, body_text, json_flaw};

/// The type of an event that is a provider's answer.
pub const FETCHED: &str = "tidegate.fetched";

/// One piece of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Id,
    Kind,
    Tenant,
}

/// What is asked, and how the answer is read.
#[derive(Clone, Debug)]
pub(super) struct RefetchRule {
    pub(super) url: Vec<Piece>,
    pub(super) wants: Wants,
    pub(super) version: Vec<VersionPart>,
    /// Where the members stand, where states are put together from them.
    pub(super) state: Option<Reference>,
    pub(super) merge: Merge,
    pub(super) timeout: Duration,
    pub(super) answer_max: usize,
    pub(super) gone_deletes: bool,
}

/// The bounds of one question to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// How long it may take.
    pub timeout: Duration,
    /// The most bytes of the answer.
    pub answer_max: usize,
    /// An answer that there is no such resource means that it was deleted.
    pub gone_deletes: bool,
}

/// A provider's answer, with 2xx.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its raw body; empty where the resource is gone.
    pub body: &'a Bytes,
    /// There is no such resource (any more).
    pub gone: bool,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

impl Source {
    /// The bounds of a question; `None` where the source has nothing to ask.
    #[must_use]
    pub fn fetch_limits(&self) -> Option<FetchLimits> {
        let rule = self.rules.refetch.as_ref()?;
        let RefetchRule { timeout, answer_max, gone_deletes, .. } = *rule;
        Some(FetchLimits { timeout, answer_max, gone_deletes })
    }

    /// The address of a claim's resource. The error is for people.
    pub fn fetch_url(&self, claim: &FetchClaim) -> Result<String, String> {
        let rule = self.refetch_rule()?;
        let mut url = String::with_capacity(96);
        for piece in &rule.url {
            match piece {
                Piece::Text(text) => url.push_str(text),
                Piece::Id => escape(&mut url, &claim.id)?,
                Piece::Kind => escape(&mut url, &claim.kind)?,
                Piece::Tenant => escape(&mut url, &claim.tenant)?,
            }
        }
        Ok(url)
    }

    /// The event that a provider's answer is. The error is for people.
    pub fn fetched(&self, claim: &FetchClaim, answer: &Answered<'_>, id: EventId) -> Result<Event, String> {
        let rule = self.refetch_rule()?;
        self.read_answer(rule, claim, answer, id).map_err(|flaw| format!("the answer: {}", flaw.reason))
    }

    fn refetch_rule(&self) -> Result<&RefetchRule, String> {
        self.rules.refetch.as_ref().ok_or_else(|| format!("source {} has no `refetch` settings", self.name))
    }

    fn read_answer(
        &self,
        rule: &RefetchRule,
        claim: &FetchClaim,
        answer: &Answered<'_>,
        id: EventId,
    ) -> Result<Event, Flaw> {
        let text = if answer.gone { "" } else { body_text(answer.body)? };
        let values =
            if answer.gone { rule.wants.body.absent() } else { rule.wants.body.read(text).map_err(json_flaw)? };
        let texts = rule.wants.body_deep.texts(&values);
        let deep = rule.wants.body_deep.read(&texts).map_err(json_flaw)?;
        let text = Some(text);
        let found =
            Found { body: &values, deep: &deep, text, kind: FETCHED, ..Found::empty(answer.headers, answer.body) };
        let version = version(&rule.version, &found)?;
        if version.is_none() && !answer.gone {
            let from = rule.version.iter().map(|part| part.from.text.as_str()).collect::<Vec<_>>().join(", ");
            let reason = format!("the version at `{from}` is missing: correct `refetch.version` of the source");
            return Err(Flaw::new("version-missing", reason));
        }
        let patch = match &rule.state {
            Some(state) if !answer.gone => Some(members(state, &found)?),
            _ => None,
        };
        let resource = Resource::new(&claim.source, &claim.tenant, claim.kind.clone(), claim.id.clone());
        let name = format!("refetch:{}:{}", hex::encode(claim.resource.0), claim.epoch);
        let key = Key::new(&self.name, &claim.tenant, [name.as_str()])
            .map_err(|error| Flaw::new("key-too-long", error.to_string()))?;
        let policy = Policy::Newest { tie: Tie::Apply };
        Ok(Event {
            id,
            received_at_ms: answer.now_ms,
            source: self.name.clone(),
            tenant: Arc::from(claim.tenant.as_str()),
            key,
            digest: BodyDigest::of(answer.body),
            kind: FETCHED.to_owned(),
            guards: [Guard { resource, version }].into_iter().collect(),
            order: Arc::new(Order { policy, merge: rule.merge, epoch_on: None, judged: true }),
            step: None,
            patch,
            effect_key: None,
            fetched: Some(claim.epoch),
            deletes: answer.gone,
            intent: Intent::Apply,
            headers: self.kept(answer.headers),
            body: answer.body.clone(),
        })
    }
}

/// Adds one part of an address; all but unreserved characters are escaped, so that it stays one part.
fn escape(url: &mut String, text: &str) -> Result<(), String> {
    // a dot segment means another place, also when escaped
    if text.is_empty() || text.bytes().all(|byte| byte == b'.') {
        return Err(format!("the address cannot be made: {text:?} is no part of a path"));
    }
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(())
}
