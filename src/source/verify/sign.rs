//! Signing as the sender would: for `send`, for tests and for benches.

use actix_web::http::header::{HeaderName, HeaderValue};
use ed25519_dalek::Signer as _;

use super::super::Request;
use super::super::spec::{Encoding, Format, TimeUnit};
use super::header::{ED25519_VERSION, encode};
use super::key::{Key, Made};
use super::template::Parts;
use super::{TimeFrom, Verifier};

/// Why nothing was signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Every secret of this tenant has ended, or only a public key is known.
    #[error("no live secret that can sign: a `whpk_` key only checks, its `whsk_` partner signs")]
    NoSecret,
    /// A header that is signed is not among those given.
    #[error("the scheme signs a header that was not given")]
    MissingHeader,
    /// The id or another text cannot be a header's value.
    #[error("{0:?} cannot be the value of a header")]
    NotAHeader(String),
    /// The time is too far from ours to be written.
    #[error("the time cannot be written")]
    NotATime,
}

impl Verifier {
    /// The headers that sign `request` at `request.now_ms` under the name `id`.
    pub(in super::super) fn sign(
        &self,
        request: &Request<'_>,
        tenant: Option<&str>,
        id: &str,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SignError> {
        let can_sign = |key: &Key| !matches!(key.made, Made::Ed25519 { private: None, .. });
        let key = self.live(tenant, request.now_ms).map(|(_, key)| key).find(|key| can_sign(key));
        let key = key.ok_or(SignError::NoSecret)?;
        let names = &self.names[0];
        let mut headers = Vec::new();
        let mut add = |name: &HeaderName, text: &str| {
            let value = HeaderValue::from_str(text).map_err(|_| SignError::NotAHeader(text.to_owned()))?;
            headers.push((name.clone(), value));
            Ok(())
        };
        let timestamp = self.timestamp(request.now_ms)?;
        if let Some(name) = &names.id {
            add(name, id)?;
        }
        if let Some(TimeFrom::Header(name)) = &names.time {
            add(name, &timestamp)?;
        }
        let mut with_time = request.headers.clone();
        if let Some(TimeFrom::Header(name)) = &names.time
            && let Ok(value) = HeaderValue::from_str(&timestamp)
        {
            with_time.insert(name.clone(), value);
        }
        let parts = Parts {
            timestamp: timestamp.as_bytes(),
            id: id.as_bytes(),
            headers: &with_time,
            ..Parts::of(request, &self.origin)
        };
        let signature = self.signature(key, parts)?;
        add(&names.signature, &self.written(&signature, key, names.time.as_ref(), &timestamp))?;
        Ok(headers)
    }

    fn timestamp(&self, now_ms: i64) -> Result<String, SignError> {
        match self.window.map(|window| window.unit) {
            Some(TimeUnit::Iso) => {
                jiff::Timestamp::from_millisecond(now_ms).map(|time| time.to_string()).map_err(|_| SignError::NotATime)
            }
            Some(TimeUnit::Ms) => Ok(now_ms.to_string()),
            _ => Ok(now_ms.div_euclid(1000).to_string()),
        }
    }

    fn signature(&self, key: &Key, parts: Parts<'_>) -> Result<Vec<u8>, SignError> {
        let missing = |_| SignError::MissingHeader;
        if let Some(tag) = key.made.tag(|sink| self.signed.feed(parts, sink)).map_err(missing)? {
            return Ok(tag.to_vec());
        }
        match &key.made {
            Made::Ed25519 { private: Some(private), .. } => {
                Ok(private.sign(&self.message(parts).map_err(missing)?).to_bytes().to_vec())
            }
            _ => Err(SignError::NoSecret),
        }
    }

    fn written(&self, signature: &[u8], key: &Key, time: Option<&TimeFrom>, timestamp: &str) -> String {
        let encoding = if key.made.is_ed25519() { Encoding::Base64 } else { self.encoding };
        let text = encode(signature, encoding);
        match &self.format {
            Format::Bare => text,
            Format::Prefix(prefix) => format!("{prefix}{text}"),
            Format::Versions(_) if key.made.is_ed25519() => format!("{ED25519_VERSION},{text}"),
            Format::Versions(versions) => {
                let version = versions.iter().find(|version| *version != ED25519_VERSION);
                format!("{},{text}", version.map_or("v1", String::as_str))
            }
            Format::Pairs(pairs) => {
                let name = pairs.names.first().map_or("v1", String::as_str);
                match time {
                    Some(TimeFrom::Pair(time)) => format!("{time}={timestamp}{}{name}={text}", pairs.separator),
                    _ => format!("{name}={text}"),
                }
            }
        }
    }
}
