//! What is senseless or unsafe in a `verify` table, each with its key and what to do.

use super::super::super::spec::{Encoding, Scheme, Sides, SignedSpec, TimeUnit};
use super::super::place::Place;
use super::super::public::algorithm_of;
use super::super::signature::{Set, Signed};
use super::super::template::Piece;
use super::super::time::Window;
use super::Compiler;

/// The widest window; a request outside it is a replay, not a delay.
const WINDOW_MAX_MS: i64 = 24 * 60 * 60 * 1000;

impl Compiler<'_> {
    /// Keys that mean nothing with this scheme.
    pub(super) fn misplaced(&mut self) {
        let verify = self.verify;
        let (scheme, mut wrong) = (self.scheme, Vec::new());
        let mut only = |key: &'static str, stated: bool, fits: bool, what: &'static str| {
            if stated && !fits {
                wrong.push((key, what));
            }
        };
        let is_static = matches!(scheme, Scheme::Token | Scheme::Basic);
        let is_message = scheme == Scheme::HttpSignature;
        let is_jwt = scheme == Scheme::JwtEs256;
        let plain = !is_static && !is_message && !is_jwt && scheme != Scheme::Contentful;
        only("verify.algorithm", verify.algorithm.is_some(), is_message, "belongs to `http-signature`: leave it out");
        only("verify.components", verify.components.is_some(), is_message, "belongs to `http-signature`: leave it out");
        only("verify.keys", verify.keys.is_some(), is_jwt, "belongs to `jwt-es256`: leave it out");
        only("verify.signed", verify.signed.is_some(), plain, "means nothing with this scheme: leave it out");
        only("verify.methods", verify.methods.is_some(), plain, "means nothing with this scheme: leave it out");
        let placed = !is_message && !is_jwt;
        only("verify.from", verify.from.is_some(), placed, "means nothing with this scheme: leave it out");
        only("verify.each", verify.each.is_some(), placed, "means nothing with this scheme: leave it out");
        only(
            "verify.encoding",
            verify.encoding.is_some(),
            !is_static && placed,
            "means nothing with this scheme: leave it out",
        );
        only(
            "verify.window",
            verify.window.is_some(),
            !is_static,
            "means nothing with a static credential: leave it out",
        );
        only(
            "verify.timestamp",
            verify.timestamp.is_some(),
            !is_static,
            "means nothing with a static credential: leave it out",
        );
        let public = algorithm_of(scheme).is_some();
        only(
            "verify.certificate",
            verify.certificate.is_some(),
            public && !is_jwt,
            "belongs to schemes with public keys: leave it out",
        );
        only(
            "verify.sides",
            verify.sides.is_some(),
            verify.window.is_some(),
            "means nothing without `verify.window`: leave it out",
        );
        only(
            "verify.unit",
            verify.unit.is_some(),
            verify.window.is_some(),
            "means nothing without `verify.window`: leave it out",
        );
        for (key, what) in wrong {
            self.problem(key, what);
        }
        self.check_binding();
    }

    /// A fetched certificate is a platform's, which signs for all of its customers.
    fn check_binding(&mut self) {
        let verify = self.verify;
        let mut texts: Vec<&str> = Vec::new();
        match &verify.signed {
            Some(SignedSpec::Any(any)) => texts.extend(any.all().iter().map(String::as_str)),
            Some(SignedSpec::ByField(by_field)) => texts.extend(by_field.when.values().map(String::as_str)),
            None => {}
        }
        texts.extend(verify.require.iter().flatten().flat_map(|require| require.is.all()).map(String::as_str));
        if let Some(super::Format::Entries(entries)) = &verify.format {
            texts.extend(entries.layout.iter().map(String::as_str));
        }
        let binds = texts.iter().any(|text| text.contains("{config:"));
        if verify.certificate.is_some() && !binds && verify.require.as_ref().is_none_or(Vec::is_empty) {
            self.problem(
                "verify.require",
                "is missing: the certificate is the platform's, so any of its customers could sign; state which of them is meant",
            );
        }
    }

    pub(super) fn window(&mut self, signed: &Signed, sets: &[Set]) -> Option<Window> {
        if sets.first().is_none_or(|set| set.time.is_none()) {
            if self.verify.window.is_some() && !matches!(self.scheme, Scheme::Token | Scheme::Basic) {
                self.problem("verify.window", "needs a time: state `verify.timestamp`");
            }
            return None;
        }
        if !sets.iter().all(|set| Self::signs_time(signed, set)) {
            self.problem(
                "verify.signed",
                "leaves out the time, so anyone could refresh an old request: add `{timestamp}` as the sender signs it",
            );
        }
        self.stated_window()
    }

    pub(super) fn stated_window(&mut self) -> Option<Window> {
        let Some(window) = self.verify.window else {
            self.problem("verify.window", "is missing although the time is signed: state it, most senders mean 5m");
            return None;
        };
        let window_ms = i64::try_from(window.0.as_millis()).unwrap_or(i64::MAX);
        if window_ms == 0 || window_ms > WINDOW_MAX_MS {
            self.problem("verify.window", "must be more than nothing and at most 24h: most senders mean 5m");
        }
        let unit = self.verify.unit.unwrap_or(TimeUnit::S);
        Some(Window { unit, window_ms: Some(window_ms), past_only: self.verify.sides == Some(Sides::Past) })
    }

    pub(super) fn check_pieces(&mut self, signed: &Signed, sets: &[Set], body_hash: bool) {
        let any = |piece: &Piece| signed.all().any(|template| template.has(piece));
        if any(&Piece::Timestamp) && sets.iter().any(|set| set.time.is_none()) {
            self.problem("verify.timestamp", "is missing although `{timestamp}` is signed: say where it stands");
        }
        if any(&Piece::Id) && sets.iter().any(|set| set.id.is_none()) {
            self.problem("verify.id", "is missing although `{id}` is signed: name its header");
        }
        if self.verify.id.is_some() && !any(&Piece::Id) {
            self.problem("verify.id", "is stated, but `verify.signed` has no `{id}`: leave it out, or sign it");
        }
        let hashes = matches!(self.scheme, Scheme::DigestSha1 | Scheme::DigestSha256);
        if hashes && !signed.all().all(|template| template.has(&Piece::Secret)) {
            self.problem(
                "verify.signed",
                "leaves out `{secret}`, so anyone could make the hash: add it where the sender puts it",
            );
        }
        if !hashes && any(&Piece::Secret) {
            self.problem(
                "verify.signed",
                "has `{secret}`, which belongs to digest-sha1 and digest-sha256: leave it out",
            );
        }
        self.check_coverage(signed, body_hash);
        self.check_numbered(sets);
    }

    fn check_coverage(&mut self, signed: &Signed, body_hash: bool) {
        if matches!(self.scheme, Scheme::Token | Scheme::Basic) {
            if self.verify.partial == Some(true) {
                self.problem("verify.partial", "means nothing with a static credential: leave it out");
            }
            return;
        }
        let covered = body_hash || signed.all().all(super::Template::covers_body);
        match (covered, self.verify.partial.unwrap_or(false)) {
            (false, false) => self.problem(
                "verify.signed",
                "leaves out `{body}`, so anyone could change the event: add it, or state `partial = true` where the sender signs no more",
            ),
            (true, true) => self.problem("verify.partial", "is set although the whole body is signed: leave it out"),
            _ => {}
        }
    }

    fn check_numbered(&mut self, sets: &[Set]) {
        let numbered = sets.iter().any(|set| matches!(set.signature, Place::Numbered(_)));
        if numbered && algorithm_of(self.scheme).is_some() {
            self.problem("verify.header", "has numbered headers, which need a scheme with secrets: name one header");
        }
        if algorithm_of(self.scheme).is_some() && self.verify.encoding == Some(Encoding::Base64Hex) {
            self.problem(
                "verify.encoding",
                "is the hexadecimal text as base64, which public keys do not write: use base64",
            );
        }
    }

    /// `body:/pointer/*` or `body:/pointer/*/more`: the array's place; what is more belongs to each item.
    pub(super) fn each(&mut self, text: &str) -> Option<usize> {
        let parts: Option<(&str, &str)> = text.strip_prefix("body:").and_then(|pointer| pointer.split_once("/*"));
        let found = parts.filter(|(_, rest)| (rest.is_empty() || rest.starts_with('/')) && !rest.contains('*'));
        let Some((array, rest)) = found else {
            self.problem(
                "verify.each",
                format!("is {text:?}: write `body:/pointer/*`, with one `*` for the items of an array"),
            );
            return None;
        };
        rest.clone_into(&mut self.needs.item_base);
        let slot = self.needs.body_slot(array).map_err(|message| super::Problem::new("verify.each", message));
        self.kept(slot)
    }

    pub(super) fn check_each(&mut self, each: Option<usize>, signed: &Signed, sets: &[Set]) {
        if each.is_none() {
            if !self.needs.item.is_empty() && self.verify.each.is_none() {
                self.problem(
                    "verify.each",
                    "is missing although an `item:` is read: name the array, as in `body:/items/*`",
                );
            }
            return;
        }
        if !sets.iter().all(|set| matches!(set.signature, Place::Item(_))) {
            self.problem(
                "verify.from",
                "reads nothing of the item, so one signature would stand for all: use `item:/pointer`",
            );
        }
        if self.scheme != Scheme::Token && !signed.all().all(super::Template::reads_item) {
            self.problem(
                "verify.signed",
                "reads nothing of the item, so one signature would stand for all: add its `{item:/pointer}`",
            );
        }
    }

    /// Scheme, host and path prefix of our own address.
    pub(super) fn origin(&mut self, needed: bool, why: &str) -> String {
        let Some(origin) = &self.verify.origin else {
            if needed {
                self.problem(
                    "verify.origin",
                    format!(
                        "is missing although {why}: state scheme and host as the sender calls them, such as https://hooks.example.com"
                    ),
                );
            }
            return String::new();
        };
        let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let fits = |rest: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/%[]".contains(&byte);
            !rest.is_empty() && !rest.starts_with(['/', ':']) && !rest.ends_with('/') && rest.bytes().all(plain)
        };
        if !rest.is_some_and(fits) {
            self.problem(
                "verify.origin",
                format!(
                    "is {origin:?}: state scheme and host, such as https://hooks.example.com, without a `/` at the end"
                ),
            );
        }
        origin.clone()
    }
}
