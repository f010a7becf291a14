//! Keys that are fetched: remembered by their address or id, asked for through a port, within a budget.
//!
//! Promises: only what the source's rules name is asked for; a stranger's requests make few questions, whatever
//! they name; what is remembered is bounded. Fetches nothing itself. While a key cannot be had, requests that
//! need it are our own trouble (503) and no refusal; an owner that is away does not cost a key that is known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use smallvec::SmallVec;

use super::super::Reason;
use super::super::spec::{AskSpec, Scheme};
use super::certificate::Rule;
use super::key::{Made, read_jwks};
use super::public::PublicKey;

/// How long a key is remembered.
const KNOWN_MS: i64 = 24 * 60 * 60 * 1000;
/// How long a key that is known counts on while its owner is away.
const GRACE_MS: i64 = 10 * 60 * 1000;
/// How long nobody asks again for a key that its owner does not know.
const UNKNOWN_MS: i64 = 60 * 1000;
/// How long nobody asks again after a failure.
const FAILED_MS: i64 = 5 * 1000;
/// The most keys remembered.
const KEYS_MAX: usize = 64;
/// The most questions of one source within a minute.
const QUESTIONS_MAX: u32 = 20;
const MINUTE_MS: i64 = 60 * 1000;

/// Asks the owners of keys. An implementation keeps to https, follows no redirect, and bounds time and size.
#[async_trait]
pub trait KeyPort: Send + Sync {
    /// The answer's body; the text says why there is none.
    async fn ask(&self, source: &str, question: &KeyQuestion) -> Result<Bytes, String>;
}

/// Knows no keys: for sources whose keys are all configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKeys;

#[async_trait]
impl KeyPort for NoKeys {
    async fn ask(&self, _: &str, _: &KeyQuestion) -> Result<Bytes, String> {
        Err("no keys are fetched here".to_owned())
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyQuestion {
    /// The address, checked against the source's rules.
    pub url: String,
    /// A JSON text to POST; `None`: GET.
    pub body: Option<String>,
    id: String,
}

/// The key a request needs: a certificate's address, or a key's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted(pub(super) String);

/// The keys, ready for each method of the source.
pub(super) type MadeKeys = Arc<SmallVec<[Made; 1]>>;

/// Where keys come from.
pub(super) enum Origin {
    Certificate(Rule, Vec<Scheme>),
    Jwk { url: String, ask: AskSpec },
}

pub(super) struct Fetched {
    origin: Origin,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    keys: HashMap<String, (State, i64)>,
    minute_ms: i64,
    asked: u32,
}

enum State {
    Known(MadeKeys),
    Unknown,
    Failed,
}

impl Fetched {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, cache: Mutex::default() }
    }

    /// The key, if it is known.
    pub(super) fn get(&self, wanted: &Wanted, now_ms: i64) -> Result<MadeKeys, Reason> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        match cache.keys.get(&wanted.0) {
            Some((State::Known(made), until_ms)) if now_ms < *until_ms => Ok(Arc::clone(made)),
            Some((State::Unknown, until_ms)) if now_ms < *until_ms => Err(Reason::UnknownKey),
            _ => Err(Reason::KeyMissing),
        }
    }

    /// What to ask for it; `None` where it is known, or was asked for just now, or the budget is spent.
    pub(super) fn question(&self, wanted: &Wanted, now_ms: i64) -> Option<KeyQuestion> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.keys.get(&wanted.0).is_some_and(|(_, until_ms)| now_ms < *until_ms) {
            return None;
        }
        if now_ms.saturating_sub(cache.minute_ms) >= MINUTE_MS || now_ms < cache.minute_ms {
            (cache.minute_ms, cache.asked) = (now_ms, 0);
        }
        // a key that held is asked for again whatever strangers spend: there are few of them
        let held = matches!(cache.keys.get(&wanted.0), Some((State::Known(_), _)));
        if !held {
            if cache.asked == QUESTIONS_MAX {
                return None;
            }
            cache.asked += 1;
        }
        let id = wanted.0.clone();
        Some(match &self.origin {
            Origin::Certificate(..) => KeyQuestion { url: id.clone(), body: None, id },
            Origin::Jwk { url, ask: AskSpec::Jwks } => KeyQuestion { url: url.clone(), body: None, id },
            Origin::Jwk { url, ask: AskSpec::PostKeyId } => {
                let body = Some(serde_json::json!({ "key_id": id }).to_string());
                KeyQuestion { url: url.clone(), body, id }
            }
        })
    }

    /// Remembers an answer; `false` where it is no key.
    pub(super) fn learn(&self, question: &KeyQuestion, answer: Result<&[u8], ()>, now_ms: i64) -> bool {
        let made = answer.map(|bytes| self.made(question, bytes, now_ms));
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, until_ms) = match made {
            Ok(Some((made, until_ms))) => (State::Known(made), until_ms),
            Ok(None) => (State::Unknown, now_ms.saturating_add(UNKNOWN_MS)),
            Err(()) => match cache.keys.remove(&question.id) {
                Some((State::Known(made), until_ms)) if now_ms < until_ms.saturating_add(KNOWN_MS) => {
                    (State::Known(made), now_ms.saturating_add(GRACE_MS))
                }
                _ => (State::Failed, now_ms.saturating_add(FAILED_MS)),
            },
        };
        let known = matches!(state, State::Known(_));
        cache.make_room();
        cache.keys.insert(question.id.clone(), (state, until_ms));
        known
    }

    fn made(&self, question: &KeyQuestion, answer: &[u8], now_ms: i64) -> Option<(MadeKeys, i64)> {
        let latest = now_ms.saturating_add(KNOWN_MS);
        match &self.origin {
            Origin::Certificate(rule, schemes) => {
                let (made, ends_ms) = rule.read(answer, schemes, now_ms)?;
                Some((Arc::new(made), ends_ms.min(latest)))
            }
            Origin::Jwk { .. } => {
                let keys = read_jwks(std::str::from_utf8(answer).ok()?)?;
                let jwk = keys.iter().find(|jwk| jwk.kid.as_deref() == Some(question.id.as_str()))?;
                if jwk.expired_at.is_some_and(|at| at.saturating_mul(1000) <= now_ms) {
                    return None;
                }
                let made = Made::Public(PublicKey::jwk(jwk)?);
                Some((Arc::new(SmallVec::from_iter([made])), latest))
            }
        }
    }
}

impl Cache {
    /// Keys that hold stay before those that a stranger's addresses left behind.
    fn make_room(&mut self) {
        if self.keys.len() < KEYS_MAX {
            return;
        }
        let oldest =
            self.keys.iter().min_by_key(|(_, (state, until_ms))| (matches!(state, State::Known(_)), *until_ms));
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.keys.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwks() -> Fetched {
        Fetched::new(Origin::Jwk { url: "https://keys.example".to_owned(), ask: AskSpec::PostKeyId })
    }

    #[test]
    fn a_stranger_makes_few_questions() {
        let fetched = jwks();
        let asked = (0..1000).filter(|n| fetched.question(&Wanted(n.to_string()), 5).is_some()).count();
        assert_eq!(asked, 20);
        assert!(fetched.question(&Wanted("late".to_owned()), 5 + MINUTE_MS).is_some());
    }

    #[test]
    fn a_key_that_held_is_asked_for_again_whatever_strangers_spend() {
        let fetched = jwks();
        let wanted = Wanted("k1".to_owned());
        let jwk = r#"{"key":{"kid":"k1","kty":"EC","crv":"P-256","alg":"ES256",
            "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}}"#;
        let question = fetched.question(&wanted, 0).expect("a question");
        assert!(fetched.learn(&question, Ok(jwk.as_bytes()), 0));
        let strangers = (0..1000).filter(|n| fetched.question(&Wanted(format!("s{n}")), KNOWN_MS).is_some()).count();
        assert_eq!(strangers, 20);
        assert!(fetched.question(&wanted, KNOWN_MS).is_some());
    }

    #[test]
    fn what_its_owner_does_not_know_is_unknown_and_a_failure_is_ours() {
        let fetched = jwks();
        let wanted = Wanted("k1".to_owned());
        let question = fetched.question(&wanted, 0).expect("a question");
        assert_eq!(question.body.as_deref(), Some(r#"{"key_id":"k1"}"#));
        assert!(!fetched.learn(&question, Err(()), 0));
        assert_eq!(fetched.get(&wanted, 0).err(), Some(Reason::KeyMissing));
        assert!(fetched.question(&wanted, 0).is_none() && fetched.question(&wanted, FAILED_MS).is_some());
        assert!(!fetched.learn(&question, Ok(b"{\"keys\":[]}"), 0));
        assert_eq!(fetched.get(&wanted, 0).err(), Some(Reason::UnknownKey));
        assert_eq!(fetched.get(&wanted, UNKNOWN_MS).err(), Some(Reason::KeyMissing));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let fetched = jwks();
        for n in 0..1000 {
            let question = KeyQuestion { url: String::new(), body: None, id: n.to_string() };
            fetched.learn(&question, Err(()), n);
        }
        assert_eq!(fetched.cache.lock().expect("a cache").keys.len(), KEYS_MAX);
    }
}
