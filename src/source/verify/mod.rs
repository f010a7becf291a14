//! Verification: whether a request was signed with one of the source's live secrets, over its raw bytes.
//!
//! Promises: signatures are compared in constant time as decoded bytes; every live key is tried and every
//! listed signature compared; the work is bounded; a request refused early costs about what a wrong
//! signature costs. Judges the time last, so that "only the time is off" is a fact about an authentic request.
//! Reads no more of an unverified body than the scheme needs. Fetches nothing: a key that has to be fetched is
//! asked for by [`KeyQuestion`], and the request is judged again when it is there.

mod canonical;
mod certificate;
mod compile;
mod der;
mod draft;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzed;
mod header;
mod jwt;
mod key;
mod keys;
mod message;
mod place;
mod public;
mod sign;
mod signature;
mod template;
mod time;
mod trace;

use std::hint::black_box;
use std::sync::LazyLock;

use actix_web::http::header::HeaderName;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{Reason, Request};
use key::Key;

pub use draft::Draft;
pub use keys::{KeyPort, KeyQuestion, NoKeys};
pub(super) use place::{one, trimmed};
pub use sign::SignError;
pub use trace::layout;
pub(super) use trace::{Compared, Seen};

/// The most secrets of one tenant.
pub(super) const SECRETS_MAX: usize = 4;

/// A compiled scheme with its keys.
pub(super) struct Verifier {
    plan: Plan,
    keys: Keys,
}

/// How a request is judged.
enum Plan {
    Signature(Box<signature::Signature>),
    Jwt(Box<jwt::Jwt>),
    Message(Box<message::Message>),
}

/// The keys that are configured, and those that are fetched.
struct Keys {
    own: Vec<Key>,
    fetched: Option<keys::Fetched>,
}

impl Keys {
    fn live(&self, tenant: Option<&str>, now_ms: i64) -> impl Iterator<Item = (usize, &Key)> {
        self.own.iter().enumerate().filter(move |(_, key)| key.is_live(tenant, now_ms))
    }
}

impl Verifier {
    /// Whether the request holds up for this tenant; gives the index of the secret that signed it.
    pub(super) fn verify(&self, request: &Request<'_>, tenant: Option<&str>) -> Result<usize, Reason> {
        let judged = match &self.plan {
            Plan::Signature(plan) => plan.verify(request, tenant, &self.keys),
            Plan::Jwt(plan) => plan.verify(request, tenant, &self.keys),
            Plan::Message(plan) => plan.verify(request, tenant, &self.keys),
        };
        judged.inspect_err(|reason| {
            if !was_compared(*reason) {
                // a malformed request costs what a wrong one costs, so time tells nothing
                dummy_work(request.body);
            }
        })
    }

    /// The key that has to be fetched before the request can be judged; `None` where none is missing.
    pub(super) fn question(&self, request: &Request<'_>) -> Option<KeyQuestion> {
        let fetched = self.keys.fetched.as_ref()?;
        let wanted = match &self.plan {
            Plan::Signature(plan) => plan.wanted_key(request),
            Plan::Jwt(plan) => plan.wanted_key(request),
            Plan::Message(_) => None,
        };
        fetched.question(&wanted?, request.now_ms)
    }

    /// Takes in what the key's owner answered; `false` where that is no key.
    pub(super) fn learn(&self, question: &KeyQuestion, answer: Result<&[u8], ()>, now_ms: i64) -> bool {
        self.keys.fetched.as_ref().is_some_and(|fetched| fetched.learn(question, answer, now_ms))
    }

    /// The headers that hold signatures: never kept.
    pub(super) fn signature_headers(&self) -> impl Iterator<Item = &HeaderName> {
        match &self.plan {
            Plan::Signature(plan) => plan.signature_headers(),
            Plan::Jwt(plan) => vec![&plan.header],
            Plan::Message(_) => message::HEADERS.iter().collect(),
        }
        .into_iter()
    }

    /// Whether the scheme signs this header's text.
    pub(super) fn signs_header(&self, name: &HeaderName) -> bool {
        match &self.plan {
            Plan::Signature(plan) => plan.signs_header(name),
            Plan::Jwt(_) => false,
            Plan::Message(plan) => plan.needs_header(name),
        }
    }
}

/// Whether a signature was compared before this reason was found.
const fn was_compared(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::WrongSignature | Reason::BodyHashMismatch | Reason::OutsideWindowPast | Reason::OutsideWindowFuture
    )
}

/// What checking a signature costs, for requests that have none to check.
pub(super) fn dummy_work(body: &[u8]) {
    static KEY: LazyLock<Option<Hmac<Sha256>>> = LazyLock::new(|| Hmac::new_from_slice(b"nobody's secret").ok());
    if let Some(mut mac) = KEY.clone() {
        mac.update(b"nobody.0.");
        mac.update(body);
        let _ = black_box(mac.verify_slice(black_box(&[0; 32])));
    }
}
