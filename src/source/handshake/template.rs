//! Templates of answers: text with `{expression}`, where an expression is a reference, `url`, a function of
//! expressions, or several joined by `+`.
//!
//! Promises: `secret` is only ever a key, and never part of what is said or signed; every text that a sender
//! gave has passed the guard before it is used, so an answer cannot carry or sign someone else's message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::{Guard, Refused};
use crate::source::reference::{Found, Reference};
use crate::source::wants::Wants;

/// The most expressions of one template, and the deepest.
const EXPRESSIONS_MAX: usize = 32;
const DEPTH_MAX: usize = 8;

/// A compiled template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template(Vec<Expr>);

#[derive(Clone, Debug)]
enum Expr {
    Text(String),
    Reference(Reference),
    Secret,
    Url,
    Hex(Box<Expr>),
    Base64(Box<Expr>),
    Sha1(Box<Expr>),
    Sha256(Box<Expr>),
    HmacSha1(Box<Expr>, Box<Expr>),
    HmacSha256(Box<Expr>, Box<Expr>),
    Joined(Vec<Expr>),
}

/// What expressions are made of.
pub(super) struct Given<'a> {
    pub(super) found: &'a Found<'a>,
    pub(super) guard: Guard,
    /// The secret's text.
    pub(super) secret: Option<&'a str>,
    /// Scheme, host and path as the sender calls them.
    pub(super) url: &'a str,
}

impl Template {
    /// Reads a template; the error is to be read after the setting's key.
    pub(crate) fn parse(text: &str, wants: &mut Wants) -> Result<Self, String> {
        let mut all = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, tail) = after.split_once('}').ok_or_else(|| format!("has a `{{` without `}}` in {text:?}"))?;
            if !before.is_empty() {
                all.push(Expr::Text(before.to_owned()));
            }
            let mut parser = Parser { rest: inside, wants, left: EXPRESSIONS_MAX };
            let expr = parser.joined(DEPTH_MAX)?;
            if !parser.rest.trim().is_empty() {
                return Err(format!("has {:?} behind an expression in {text:?}", parser.rest));
            }
            expr.check(false)?;
            if expr.is_bytes() {
                return Err(format!("has bytes where text belongs in {text:?}: wrap them in hex(…) or base64(…)"));
            }
            all.push(expr);
            rest = tail;
        }
        if !rest.is_empty() {
            all.push(Expr::Text(rest.to_owned()));
        }
        Ok(Self(all))
    }

    /// Whether it signs.
    pub(crate) fn is_keyed(&self) -> bool {
        self.0.iter().any(|expr| expr.any(&|expr| matches!(expr, Expr::HmacSha1(..) | Expr::HmacSha256(..))))
    }

    /// Whether it needs the source's secret.
    pub(crate) fn needs_secret(&self) -> bool {
        self.0.iter().any(|expr| expr.any(&|expr| matches!(expr, Expr::Secret)))
    }

    /// Whether it needs the source's own address.
    pub(crate) fn needs_url(&self) -> bool {
        self.0.iter().any(|expr| expr.any(&|expr| matches!(expr, Expr::Url)))
    }

    /// The text; `None` where a reference is not there.
    pub(super) fn make(&self, given: &Given<'_>) -> Result<Option<String>, Refused> {
        let mut made = Vec::new();
        for expr in &self.0 {
            let Some(part) = expr.make(given)? else { return Ok(None) };
            made.extend_from_slice(&part);
        }
        Ok(String::from_utf8(made).ok())
    }
}

impl Expr {
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Text(_) | Self::Reference(_) | Self::Secret | Self::Url => Vec::new(),
            Self::Hex(of) | Self::Base64(of) | Self::Sha1(of) | Self::Sha256(of) => vec![of],
            Self::HmacSha1(key, text) | Self::HmacSha256(key, text) => vec![key, text],
            Self::Joined(parts) => parts.iter().collect(),
        }
    }

    fn any(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        is(self) || self.parts().into_iter().any(|part| part.any(is))
    }

    fn is_bytes(&self) -> bool {
        match self {
            Self::Sha1(_) | Self::Sha256(_) | Self::HmacSha1(..) | Self::HmacSha256(..) => true,
            Self::Joined(parts) => parts.iter().any(Self::is_bytes),
            _ => false,
        }
    }

    /// The secret is a key and nothing else.
    fn check(&self, as_key: bool) -> Result<(), String> {
        match self {
            Self::Secret if !as_key => {
                Err("says `secret` where it is no key: it may only be the first part of hmac-…(secret, text)"
                    .to_owned())
            }
            Self::HmacSha1(key, text) | Self::HmacSha256(key, text) => {
                key.check(true)?;
                text.check(false)
            }
            Self::Sha1(of) | Self::Sha256(of) => of.check(as_key),
            _ => self.parts().into_iter().try_for_each(|part| part.check(false)),
        }
    }

    fn make(&self, given: &Given<'_>) -> Result<Option<Vec<u8>>, Refused> {
        let of = |expr: &Self, make: &dyn Fn(Vec<u8>) -> Vec<u8>| Ok(expr.make(given)?.map(make));
        match self {
            Self::Text(text) => Ok(Some(text.as_bytes().to_vec())),
            Self::Url => Ok(Some(given.url.as_bytes().to_vec())),
            Self::Secret => given.secret.map(|text| Some(text.as_bytes().to_vec())).ok_or(Refused::NoSecret),
            Self::Reference(reference) => {
                let Some(text) = reference.text(given.found).map_err(|_| Refused::Malformed)? else { return Ok(None) };
                if !reference.is_constant() && !given.guard.fits(&text) {
                    return Err(Refused::Malformed);
                }
                Ok(Some(text.as_bytes().to_vec()))
            }
            Self::Hex(expr) => of(expr, &|bytes| hex::encode(bytes).into_bytes()),
            Self::Base64(expr) => of(expr, &|bytes| STANDARD.encode(bytes).into_bytes()),
            Self::Sha1(expr) => of(expr, &|bytes| Sha1::digest(bytes).to_vec()),
            Self::Sha256(expr) => of(expr, &|bytes| Sha256::digest(bytes).to_vec()),
            Self::HmacSha1(key, text) => keyed(key, text, given, |key, text| {
                let mut mac = Hmac::<Sha1>::new_from_slice(key).ok()?;
                mac.update(text);
                Some(mac.finalize().into_bytes().to_vec())
            }),
            Self::HmacSha256(key, text) => keyed(key, text, given, |key, text| {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
                mac.update(text);
                Some(mac.finalize().into_bytes().to_vec())
            }),
            Self::Joined(parts) => {
                let mut joined = Vec::new();
                for part in parts {
                    let Some(part) = part.make(given)? else { return Ok(None) };
                    joined.extend_from_slice(&part);
                }
                Ok(Some(joined))
            }
        }
    }
}

fn keyed(
    key: &Expr,
    text: &Expr,
    given: &Given<'_>,
    mac: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Refused> {
    match (key.make(given)?, text.make(given)?) {
        (Some(key), Some(text)) => Ok(mac(&key, &text)),
        _ => Ok(None),
    }
}

struct Parser<'t, 'w> {
    rest: &'t str,
    wants: &'w mut Wants,
    left: usize,
}

impl<'t> Parser<'t, '_> {
    fn joined(&mut self, depth: usize) -> Result<Expr, String> {
        let mut parts = vec![self.term(depth)?];
        while self.eat('+') {
            parts.push(self.term(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Joined(parts) })
    }

    fn term(&mut self, depth: usize) -> Result<Expr, String> {
        if depth == 0 || self.left == 0 {
            return Err("is too long or too deep an expression: shorten it".to_owned());
        }
        self.left -= 1;
        let word = self.word();
        if word.is_empty() {
            return Err(format!("lacks an expression before {:?}", self.rest));
        }
        if !self.eat('(') {
            return match word {
                "secret" => Ok(Expr::Secret),
                "url" => Ok(Expr::Url),
                reference => self.wants.reference(reference).map(Expr::Reference),
            };
        }
        let first = Box::new(self.joined(depth - 1)?);
        let second = if self.eat(',') { Some(Box::new(self.joined(depth - 1)?)) } else { None };
        if !self.eat(')') {
            return Err(format!("lacks a `)` after {word}(…"));
        }
        match (word, second) {
            ("hex", None) => Ok(Expr::Hex(first)),
            ("base64", None) => Ok(Expr::Base64(first)),
            ("sha1", None) => Ok(Expr::Sha1(first)),
            ("sha256", None) => Ok(Expr::Sha256(first)),
            ("hmac-sha1", Some(text)) => Ok(Expr::HmacSha1(first, text)),
            ("hmac-sha256", Some(text)) => Ok(Expr::HmacSha256(first, text)),
            (other, _) => Err(format!(
                "has {other}(…), which is none of hex(x), base64(x), sha1(x), sha256(x), hmac-sha1(key, x) and \
                 hmac-sha256(key, x)"
            )),
        }
    }

    fn word(&mut self) -> &'t str {
        let trimmed = self.rest.trim_start();
        let end = trimmed.find([',', '(', ')', '+', ' ']).unwrap_or(trimmed.len());
        let (word, rest) = trimmed.split_at(end);
        self.rest = rest;
        word
    }

    fn eat(&mut self, letter: char) -> bool {
        match self.rest.trim_start().strip_prefix(letter) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}
