//! Verification: whether a request was signed with one of the source's live secrets, over its raw bytes.
//!
//! Promises: signatures are compared in constant time as decoded bytes; every live key is tried and every
//! listed signature compared; the work is bounded; a request refused early costs about what a wrong
//! signature costs. Judges the time last, so that "only the time is off" is a fact about an authentic request.

mod compile;
mod header;
mod key;
mod sign;
mod template;
mod time;

use std::hint::black_box;
use std::sync::LazyLock;

use actix_web::http::header::{HeaderMap, HeaderName};
use ed25519_dalek::Signature;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

use super::spec::{Encoding, Format, Scheme};
use super::{Reason, Request};
use header::{Found, Layout};
use key::{Key, Made};
use template::{Parts, Template};
use time::Window;

pub use sign::SignError;
pub(super) use template::{one, trimmed};

/// The most secrets of one tenant.
pub(super) const SECRETS_MAX: usize = 4;
/// The most bytes of a signed id.
const ID_BYTES_MAX: usize = 255;

/// A compiled scheme with its keys.
pub(super) struct Verifier {
    scheme: Scheme,
    format: Format,
    encoding: Encoding,
    signed: Template,
    window: Option<Window>,
    /// Sets of header names; the first whose signature header is there counts. Never empty.
    names: Vec<Names>,
    origin: String,
    keys: Vec<Key>,
}

/// Which headers hold signature, time and id.
#[derive(Clone, Debug)]
struct Names {
    signature: HeaderName,
    time: Option<TimeFrom>,
    id: Option<HeaderName>,
}

#[derive(Clone, Debug)]
enum TimeFrom {
    Header(HeaderName),
    Pair(String),
}

/// The signed texts of a request that stand in headers.
struct Signed<'a> {
    found: Found<'a>,
    timestamp: &'a [u8],
    id: &'a [u8],
}

impl Verifier {
    /// Whether the request holds up for this tenant; gives the index of the secret that signed it.
    pub(super) fn verify(&self, request: &Request<'_>, tenant: Option<&str>) -> Result<usize, Reason> {
        match self.signed_texts(request, tenant) {
            Ok((signed, time_ms)) => self.judge(request, tenant, &signed, time_ms),
            Err(reason) => {
                // a malformed request costs what a wrong one costs, so time tells nothing
                dummy_work(request.body);
                Err(reason)
            }
        }
    }

    /// The headers that hold signatures: never kept.
    pub(super) fn signature_headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.names.iter().map(|names| &names.signature)
    }

    /// Whether the scheme signs this header's text.
    pub(super) fn signs_header(&self, name: &HeaderName) -> bool {
        let by_id = self.names.iter().any(|names| names.id.as_ref() == Some(name));
        by_id || self.signed.headers().any(|signed| signed == name)
    }

    fn signed_texts<'a>(
        &self,
        request: &Request<'a>,
        tenant: Option<&str>,
    ) -> Result<(Signed<'a>, Option<i128>), Reason> {
        let headers = request.headers;
        let names = self.names_in(headers);
        let signature = one(headers, &names.signature)?;
        let id = names.id.as_ref().map(|name| one(headers, name)).transpose()?.flatten();
        let time = match &names.time {
            Some(TimeFrom::Header(name)) => one(headers, name)?,
            _ => None,
        };
        let id = match (&names.id, id.map(trimmed)) {
            (None, _) => b"".as_slice(),
            (Some(_), None | Some(b"")) => return Err(Reason::MissingId),
            (Some(_), Some(id)) => self.check_id(id)?,
        };
        let signature = signature.map(trimmed).ok_or(Reason::MissingSignature)?;
        if let (Some(TimeFrom::Header(_)), None | Some(b"")) = (&names.time, time.map(trimmed)) {
            return Err(Reason::MissingTimestamp);
        }
        let found = self.layout(names, request, tenant).read(signature)?;
        let timestamp = match &names.time {
            None => b"".as_slice(),
            Some(TimeFrom::Header(_)) => time.map(trimmed).unwrap_or_default(),
            Some(TimeFrom::Pair(_)) => match found.time {
                None | Some("") => return Err(Reason::MissingTimestamp),
                Some(time) => time.as_bytes(),
            },
        };
        let time_ms = self.window.map(|window| window.read(timestamp)).transpose()?;
        Ok((Signed { found, timestamp, id }, time_ms))
    }

    fn names_in(&self, headers: &HeaderMap) -> &Names {
        let present = self.names.iter().find(|names| headers.contains_key(&names.signature));
        present.unwrap_or(&self.names[0])
    }

    fn check_id<'a>(&self, id: &'a [u8]) -> Result<&'a [u8], Reason> {
        // the dot parts id, time and body: an id with a dot could move bytes from one into the other
        let splits = self.scheme == Scheme::StandardWebhooks && id.contains(&b'.');
        if splits || id.len() > ID_BYTES_MAX { Err(Reason::MalformedId) } else { Ok(id) }
    }

    fn layout<'s>(&'s self, names: &'s Names, request: &Request<'_>, tenant: Option<&str>) -> Layout<'s> {
        let live = || self.live(tenant, request.now_ms);
        Layout {
            format: &self.format,
            encoding: self.encoding,
            mac_bytes: live().any(|(_, key)| !key.made.is_ed25519()).then_some(mac_bytes(self.scheme)),
            ed25519: live().any(|(_, key)| key.made.is_ed25519()),
            time_pair: match &names.time {
                Some(TimeFrom::Pair(name)) => Some(name),
                _ => None,
            },
        }
    }

    fn live(&self, tenant: Option<&str>, now_ms: i64) -> impl Iterator<Item = (usize, &Key)> {
        self.keys.iter().enumerate().filter(move |(_, key)| key.is_live(tenant, now_ms))
    }

    fn judge(
        &self,
        request: &Request<'_>,
        tenant: Option<&str>,
        signed: &Signed<'_>,
        time_ms: Option<i128>,
    ) -> Result<usize, Reason> {
        let parts = Parts { timestamp: signed.timestamp, id: signed.id, ..Parts::of(request, &self.origin) };
        let mut signer = None;
        for (index, key) in self.live(tenant, request.now_ms) {
            if self.signed_by(key, &signed.found, parts)? {
                signer = signer.or(Some(index));
            }
        }
        let signer = signer.ok_or(Reason::WrongSignature)?;
        if let (Some(window), Some(time_ms)) = (self.window, time_ms) {
            window.check(time_ms, request.now_ms)?;
        }
        Ok(signer)
    }

    fn signed_by(&self, key: &Key, found: &Found<'_>, parts: Parts<'_>) -> Result<bool, Reason> {
        if let Some(tag) = key.made.tag(|sink| self.signed.feed(parts, sink))? {
            let same = found.macs.iter().fold(Choice::from(0), |same, mac| same | mac.ct_eq(&tag));
            return Ok(same.into());
        }
        let Made::Ed25519 { public, .. } = &key.made else { return Ok(false) };
        if found.signatures.is_empty() {
            return Ok(false);
        }
        let message = self.message(parts)?;
        let holds = |signature: &key::Tag| {
            Signature::from_slice(signature).is_ok_and(|signature| public.verify_strict(&message, &signature).is_ok())
        };
        Ok(found.signatures.iter().any(holds))
    }

    fn message(&self, parts: Parts<'_>) -> Result<Vec<u8>, Reason> {
        let mut message = Vec::with_capacity(parts.body.len() + 128);
        self.signed.feed(parts, |bytes| message.extend_from_slice(bytes))?;
        Ok(message)
    }
}

const fn mac_bytes(scheme: Scheme) -> usize {
    match scheme {
        Scheme::HmacSha1 => 20,
        Scheme::HmacSha256 | Scheme::StandardWebhooks => 32,
        Scheme::HmacSha512 => 64,
    }
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
