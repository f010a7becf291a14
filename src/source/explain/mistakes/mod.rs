//! Which mistake it likely was: one thing is changed at a time, and `verify` is asked whether the signature holds then.
//!
//! Promises: a mistake that is called certain makes the signature hold; the number of tries, and the bytes written for
//! them, are bounded; no text holds a secret. A request that holds under a change is still refused.

mod address;
mod body;
mod clock;
mod forms;
mod guess;
mod headers;
mod neighbours;
mod scheme;
mod secret;

use super::super::spec::{Encoding, Scheme, SecretForm, SourceSpec, VerifySpec};
use super::super::{Reason, Request, ResolvedSecret, Source};
use super::{Case, End, Sent};

/// The most mistakes told, and the most tries to find them.
const FOUND_MAX: usize = 3;
const TRIES_MAX: usize = 20_000;

/// Something that was likely done wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// A stable word for it.
    pub code: &'static str,
    /// With this changed the signature holds; else it is a guess.
    pub certain: bool,
    /// What is wrong.
    pub says: String,
    /// What to do.
    pub fix: String,
}

/// What is done otherwise.
#[derive(Clone, Debug, Default)]
struct Change {
    spec: Option<SourceSpec>,
    secrets: Option<Vec<ResolvedSecret>>,
    sent: Option<Sent>,
}

/// Looks for mistakes.
struct Finder<'c> {
    case: &'c Case<'c>,
    /// The source's rules, those of its preset among them.
    whole: SourceSpec,
    verify: VerifySpec,
    found: Vec<Mistake>,
    tries: usize,
}

/// What was likely done wrong with a request that came to this end.
pub(super) fn likely(case: &Case<'_>, end: &End) -> Vec<Mistake> {
    let reason = match end {
        End::Refused(Reason::OutsideWindowPast | Reason::OutsideWindowFuture) => return clock::outside(case),
        End::Refused(reason) => Some(*reason),
        End::NotUnpacked => None,
        _ => return Vec::new(),
    };
    let Some(mut finder) = Finder::new(case) else { return Vec::new() };
    let ways: [fn(&mut Finder<'_>); 9] = [
        headers::values,
        headers::names,
        neighbours::own,
        secret::forms,
        body::ends,
        address::public,
        clock::units,
        scheme::single,
        neighbours::others,
    ];
    ways.iter().for_each(|way| way(&mut finder));
    let dear: [fn(&mut Finder<'_>); 4] = [secret::texts, body::written_anew, neighbours::presets, scheme::several];
    for way in dear {
        if finder.found.is_empty() {
            way(&mut finder);
        }
    }
    if finder.found.is_empty() {
        guess::guesses(&mut finder, reason);
    }
    finder.found
}

impl Mistake {
    fn certain(code: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code, certain: true, says: says.into(), fix: fix.into() }
    }

    fn guess(code: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { certain: false, ..Self::certain(code, says, fix) }
    }
}

impl<'c> Finder<'c> {
    fn new(case: &'c Case<'c>) -> Option<Self> {
        let whole = case.configured.spec.with_preset().ok()?;
        let verify = whole.verify.clone()?;
        // what a trial states stands alone
        let whole = SourceSpec { preset: None, allow_weak_secret: Some(true), ..whole };
        Some(Self { case, whole, verify, found: Vec::new(), tries: 0 })
    }

    fn sent(&self) -> &'c Sent {
        self.case.sent
    }

    fn scheme(&self) -> Scheme {
        self.verify.scheme.unwrap_or(Scheme::HmacSha256)
    }

    fn encoding(&self) -> Encoding {
        let usual = if self.scheme() == Scheme::StandardWebhooks { Encoding::Base64 } else { Encoding::Hex };
        self.verify.encoding.unwrap_or(usual)
    }

    fn form(&self) -> SecretForm {
        let usual = if self.scheme() == Scheme::StandardWebhooks { SecretForm::WhsecBase64 } else { SecretForm::Utf8 };
        self.verify.secret.unwrap_or(usual)
    }

    /// Whether both sides have the same secret, as bytes.
    fn has_mac(&self) -> bool {
        matches!(
            self.scheme(),
            Scheme::StandardWebhooks
                | Scheme::HmacSha1
                | Scheme::HmacSha256
                | Scheme::HmacSha384
                | Scheme::HmacSha512
                | Scheme::DigestSha1
                | Scheme::DigestSha256
                | Scheme::Contentful
        )
    }

    /// Other rules of verification.
    fn rules(&self, change: impl FnOnce(&mut VerifySpec)) -> Change {
        let mut verify = self.verify.clone();
        change(&mut verify);
        Change { spec: Some(SourceSpec { verify: Some(verify), ..self.whole.clone() }), ..Change::default() }
    }

    /// Another request.
    fn request(&self, change: impl FnOnce(&mut Sent)) -> Change {
        let mut sent = self.sent().clone();
        change(&mut sent);
        Change { sent: Some(sent), ..Change::default() }
    }

    /// Tells the mistake if the signature holds under the change.
    fn attempt(&mut self, change: &Change, mistake: impl FnOnce() -> Mistake) -> bool {
        let open = self.found.len() < FOUND_MAX && self.tries < TRIES_MAX;
        self.tries += 1;
        if !open || !self.holds(change) {
            return false;
        }
        let mistake = mistake();
        if !self.found.iter().any(|found| found.code == mistake.code) {
            self.found.push(mistake);
        }
        true
    }

    fn holds(&self, change: &Change) -> bool {
        let configured = self.case.configured;
        let compiled;
        let source = if change.spec.is_some() || change.secrets.is_some() {
            let spec = change.spec.as_ref().unwrap_or(&self.whole);
            let secrets = change.secrets.as_deref().unwrap_or(configured.secrets);
            let Ok(source) = Source::compile_with(spec, secrets, configured.config) else { return false };
            compiled = source;
            &compiled
        } else {
            self.case.source
        };
        holds(source, change.sent.as_ref().unwrap_or(self.sent()))
    }
}

/// Whether the signature holds, be its time as it may.
fn holds(source: &Source, sent: &Sent) -> bool {
    let Ok(body) = source.signed_bytes(&sent.headers, sent.body.clone()) else { return false };
    match source.verify(&Request { body: &body, ..sent.request() }) {
        Ok(_) => true,
        Err(refusal) => refusal.only_window(),
    }
}

/// A setting as the file writes it.
fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
