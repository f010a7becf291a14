//! A compiled source: immutable, shared by all threads.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::handshake;
use super::reference::Found;
use super::rules::{Rules, TenantRule};
use super::spec::{CodingSpec, OnUnusable, RateSpec};
use super::verify::{SignError, Verifier, dummy_work};
use super::{Answer, Draft, KeyPort, Reason, Refusal, Request};

/// One sender's entrance, ready for requests.
pub struct Source {
    pub(super) name: Arc<str>,
    pub(super) preset: Option<String>,
    pub(super) verifier: Verifier,
    pub(super) rules: Rules,
    pub(super) on_unusable: OnUnusable,
    pub(super) max_body: usize,
    pub(super) coding: CodingSpec,
    pub(super) content_types: Vec<String>,
    pub(super) answer: Answer,
    pub(super) rate: Option<RateSpec>,
    /// Secrets as texts, where a handshake's answer needs them.
    pub(super) handshake_keys: Vec<handshake::Key>,
    /// Scheme and host as the sender calls them, where they are known.
    pub(super) origin: String,
    /// Where a secret that a handshake brings is written.
    pub(super) setup: Option<PathBuf>,
}

/// The proof that a request was signed by its source: [`Source::verify`] makes one, and so does reading what was
/// recorded earlier.
#[derive(Clone, Debug)]
pub struct Verified {
    pub(super) tenant: Option<Arc<str>>,
    pub(super) secret: usize,
}

impl Verified {
    /// Which of the source's secrets signed, in the order they were handed to `compile`.
    #[must_use]
    pub const fn secret(&self) -> usize {
        self.secret
    }
}

/// What to sign, as the sender of a source would.
#[derive(Clone, Copy, Debug)]
pub struct Signing<'a> {
    /// Method, target, body, time, and headers that the scheme signs or the sender adds.
    pub request: Request<'a>,
    /// The event's id: goes into the scheme's id header and into headers that are part of the key.
    pub id: &'a str,
    /// The event's type: goes into headers that are part of the type. `""` adds none.
    pub kind: &'a str,
}

impl Source {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The preset it was made from.
    #[must_use]
    pub fn preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// What an authentic but unusable event is answered.
    #[must_use]
    pub const fn on_unusable(&self) -> OnUnusable {
        self.on_unusable
    }

    /// The longest body it takes, in bytes.
    #[must_use]
    pub const fn max_body(&self) -> usize {
        self.max_body
    }

    /// The 2xx its sender wants.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Its limit of events a second.
    #[must_use]
    pub const fn rate(&self) -> Option<RateSpec> {
        self.rate
    }

    /// Whether a request of this content type is taken; parameters do not count.
    #[must_use]
    pub fn takes_content_type(&self, headers: &HeaderMap) -> bool {
        if self.content_types.is_empty() {
            return true;
        }
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim();
        self.content_types.iter().any(|taken| taken.eq_ignore_ascii_case(essence))
    }

    /// Whether the request was signed with a live secret, over its raw bytes and inside the time window.
    pub fn verify(&self, request: &Request<'_>) -> Result<Verified, Refusal> {
        let tenant = self.claimed_tenant(request).inspect_err(|_| dummy_work(request.body))?;
        let secret = self.verifier.verify(request, tenant.as_deref())?;
        Ok(Verified { tenant, secret })
    }

    /// Asks for the key that this request needs and that is not known yet, where there is one to ask for. Then
    /// `verify` may be asked again.
    pub async fn fetch_key(&self, request: &Request<'_>, port: &dyn KeyPort) {
        let Some(question) = self.verifier.question(request) else { return };
        let answer = port.ask(&self.name, &question).await;
        if let Err(why) = &answer {
            tracing::warn!(source = &*self.name, url = question.url, why, "a key could not be fetched");
        }
        let bytes = answer.as_deref().map_err(|_| ());
        if !self.verifier.learn(&question, bytes, request.now_ms) && bytes.is_ok() {
            tracing::warn!(source = &*self.name, url = question.url, "what was fetched is no key that counts");
        }
    }

    /// What a wrong signature costs, for a request to a source that does not exist (design, section 6).
    pub fn dummy_work(body: &[u8]) {
        dummy_work(body);
    }

    /// The tenant a request says it is of, where the signature has to show it.
    pub(super) fn claimed_tenant(&self, request: &Request<'_>) -> Result<Option<Arc<str>>, Reason> {
        let known = |name: &str| self.rules.tenants.get(name).cloned().map(Some).ok_or(Reason::UnknownTenant);
        match (&self.rules.tenant, request.path_tenant) {
            (TenantRule::None | TenantRule::Signed(_), None) => Ok(None),
            (TenantRule::Path, Some(name)) => known(name),
            (TenantRule::Unsigned(reference), None) => {
                let unknown = |_| Reason::UnknownTenant;
                let query = self.rules.wants.query_only(request.target).map_err(unknown)?.query;
                let found = Found { query: &query, ..Found::empty(request.headers, request.body) };
                let name = reference.text(&found).map_err(|_| Reason::UnknownTenant)?;
                known(&name.ok_or(Reason::UnknownTenant)?)
            }
            _ => Err(Reason::UnknownTenant),
        }
    }

    /// The headers this source's sender would send for a body: signature, time, id, and those that hold key
    /// and type. For senders whose signatures stand in the body see `signed`.
    pub fn sign(&self, signing: &Signing<'_>) -> Result<HeaderMap, SignError> {
        let draft = self.signed(signing)?;
        let as_given = draft.body == *signing.request.body && draft.target == signing.request.target;
        if as_given { Ok(draft.headers) } else { Err(SignError::NotMade) }
    }

    /// The request as this source's sender would send it: with signature, time and id where they stand, and the
    /// headers that hold key and type.
    pub fn signed(&self, signing: &Signing<'_>) -> Result<Draft, SignError> {
        let request = &signing.request;
        let mut headers = request.headers.clone();
        let mut set = |name: &HeaderName, text: &str| {
            let value = HeaderValue::from_str(text).map_err(|_| SignError::NotAHeader(text.to_owned()))?;
            headers.insert(name.clone(), value);
            Ok(())
        };
        for name in self.rules.key.iter().filter_map(|reference| reference.headers().next()) {
            set(name, signing.id)?;
        }
        if !signing.kind.is_empty() {
            // where the type has several parts, the header holds the one before the first dot
            let whole = self.rules.kind.len() == 1;
            let first = if whole { signing.kind } else { signing.kind.split('.').next().unwrap_or_default() };
            for name in self.rules.kind.iter().filter_map(|reference| reference.headers().next()) {
                set(name, first)?;
            }
        }
        let full = Request { headers: &headers, ..*request };
        let claimed = self.claimed_tenant(&full).ok().flatten();
        self.verifier.sign(&full, claimed.as_deref().or(request.path_tenant), signing.id)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // keys stay out of logs
        f.debug_struct("Source").field("name", &self.name).field("preset", &self.preset).finish_non_exhaustive()
    }
}
