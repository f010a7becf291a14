//! A request as bytes on the wire, before anything has made sense of it; and chance that a seed repeats.

use std::fmt::Write as _;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use tidegate::source::Request;

/// What a sender, or a stranger, puts on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) now_ms: i64,
}

/// The same as a server hands it on.
pub(crate) struct Parsed {
    method: Method,
    target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    now_ms: i64,
}

impl Wire {
    pub(crate) fn of(method: &Method, target: &str, headers: &HeaderMap, body: &[u8], now_ms: i64) -> Self {
        let mut headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        // the map tells them in an order of its own, other in every process
        headers.sort();
        Self { method: method.to_string(), target: target.to_owned(), headers, body: body.to_vec(), now_ms }
    }

    /// `None` where no HTTP server would hand it on.
    pub(crate) fn parsed(&self) -> Option<Parsed> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(Parsed {
            method: self.method.parse().ok()?,
            target: self.target.clone(),
            headers,
            body: self.body.clone().into(),
            now_ms: self.now_ms,
        })
    }

    /// The values of a header, blanks around them left out.
    pub(crate) fn values(&self, name: &str) -> Vec<&[u8]> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| blanks_off(value)).collect()
    }

    /// The header's value, where it has exactly one.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        let values = self.values(name);
        if let [one] = values.as_slice() { Some(one) } else { None }
    }

    /// The same under another content type.
    pub(crate) fn with_content_type(&self, kind: &str) -> Self {
        let mut wire = self.clone();
        wire.headers.retain(|(name, _)| name != "content-type");
        wire.headers.push(("content-type".to_owned(), kind.into()));
        wire
    }

    /// As text that can be put into a file, bytes that are no text as `\xNN`.
    pub(crate) fn as_http(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\n", self.method, self.target.escape_debug());
        for (name, value) in &self.headers {
            let _ = writeln!(text, "{}: {}", name.escape_debug(), value.escape_ascii());
        }
        let _ = write!(text, "\n{}", String::from_utf8_lossy(&self.body));
        if std::str::from_utf8(&self.body).is_err() {
            let _ = write!(text, "\n(as bytes: {})", self.body.escape_ascii());
        }
        text
    }
}

/// A value without the blanks around it.
pub(crate) fn blanks_off(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let mut value = value;
    while let Some((_, rest)) = value.split_first().filter(|(first, _)| is_blank(first)) {
        value = rest;
    }
    while let Some((_, rest)) = value.split_last().filter(|(last, _)| is_blank(last)) {
        value = rest;
    }
    value
}

impl Parsed {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.target,
            path_tenant: None,
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
        }
    }
}

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Chance(u64);

impl Chance {
    /// The chance of one case of a run.
    pub(crate) fn of(seed: u64, case: u64) -> Self {
        let mut chance = Self(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
        chance.next();
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }

    pub(crate) fn one<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        let at = self.below(all.len());
        all.get(at)
    }

    /// Whether something happens that happens `per_cent` times in a hundred.
    pub(crate) fn happens(&mut self, per_cent: usize) -> bool {
        self.below(100) < per_cent
    }
}
