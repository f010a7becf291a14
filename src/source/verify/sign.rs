//! Signing as the sender would: for `send`, for tests and for benches.

use actix_web::http::header::{HeaderName, HeaderValue};

use super::super::Request;
use super::super::spec::{Encoding, Format, Scheme, TimeUnit};
use super::header::{Coding, ED25519_VERSION, encode};
use super::key::Made;
use super::place::Place;
use super::signature::{Methods, Set, Signature, TimeFrom, message};
use super::template::Parts;
use super::{Plan, Verifier};

/// Why nothing was signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Every secret of this tenant has ended, or only a public key is known.
    #[error("no live secret that can sign: a public key only checks, its private partner signs")]
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
    /// The signature does not stand in a header.
    #[error("the signature of this scheme is part of the body or the address: it cannot be added to a request")]
    NotInHeaders,
}

impl Verifier {
    /// The headers that sign `request` at `request.now_ms` under the name `id`.
    pub(in super::super) fn sign(
        &self,
        request: &Request<'_>,
        tenant: Option<&str>,
        id: &str,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SignError> {
        let Plan::Signature(plan) = &self.plan else { return Err(SignError::NotInHeaders) };
        let method = plan.first_method();
        let live = self.keys.live(tenant, request.now_ms).filter_map(|(_, key)| key.made.get(method));
        let made = live.into_iter().find(|made| made.public().is_none_or(super::public::PublicKey::can_sign));
        plan.sign(request, made.ok_or(SignError::NoSecret)?, id)
    }
}

impl Signature {
    /// The method that is the source's own scheme.
    fn first_method(&self) -> usize {
        let (Some(Methods::Prefix(methods)) | Some(Methods::Field(_, methods))) = &self.methods else { return 0 };
        methods.iter().position(|(_, coding)| *coding == self.coding).unwrap_or(0)
    }

    fn sign(&self, request: &Request<'_>, made: &Made, id: &str) -> Result<Vec<(HeaderName, HeaderValue)>, SignError> {
        let set = &self.sets[0];
        let name = match &set.signature {
            Place::Header(name) => name,
            Place::Numbered(names) => names.first().ok_or(SignError::NotInHeaders)?,
            _ => return Err(SignError::NotInHeaders),
        };
        let mut headers = Vec::new();
        let mut add = |name: &HeaderName, text: &str| {
            let value = HeaderValue::from_str(text).map_err(|_| SignError::NotAHeader(text.to_owned()))?;
            headers.push((name.clone(), value));
            Ok(())
        };
        let timestamp = self.timestamp(request.now_ms)?;
        if let Some(Place::Header(name)) = &set.id {
            add(name, id)?;
        }
        if let Some(TimeFrom::Place(Place::Header(name))) = &set.time {
            add(name, &timestamp)?;
        }
        let mut with_time = request.headers.clone();
        if let Some(TimeFrom::Place(Place::Header(name))) = &set.time
            && let Ok(value) = HeaderValue::from_str(&timestamp)
        {
            with_time.insert(name.clone(), value);
        }
        let full = Request { headers: &with_time, ..*request };
        let facts = self.needs.read(&full).map_err(|_| SignError::MissingHeader)?;
        let pair = self.time_pair(set, &timestamp);
        let parts = Parts {
            request: &full,
            view: facts.view(&[]),
            headers: &with_time,
            timestamp: timestamp.as_bytes(),
            id: id.as_bytes(),
            pairs: (&pair, self.separator()),
            origin: self.origins.first().map_or("", String::as_str),
            secret: made.secret(),
            signature_field: None,
        };
        let text = self.text(made, &parts, set, &timestamp)?;
        add(name, &text)?;
        Ok(headers)
    }

    fn timestamp(&self, now_ms: i64) -> Result<String, SignError> {
        match self.window.map(|window| window.unit) {
            Some(TimeUnit::Iso) => {
                jiff::Timestamp::from_millisecond(now_ms).map(|time| time.to_string()).map_err(|_| SignError::NotATime)
            }
            Some(TimeUnit::Ms) => Ok(now_ms.to_string()),
            Some(TimeUnit::Us) => Ok(now_ms.saturating_mul(1000).to_string()),
            _ => Ok(now_ms.div_euclid(1000).to_string()),
        }
    }

    fn separator(&self) -> char {
        match &self.format {
            Format::Pairs(pairs) => pairs.separator,
            _ => ',',
        }
    }

    fn time_pair(&self, set: &Set, timestamp: &str) -> String {
        match &set.time {
            Some(TimeFrom::Pair(name)) => format!("{name}={timestamp}"),
            _ => String::new(),
        }
    }

    /// The signature as it stands in its place.
    fn text(&self, made: &Made, parts: &Parts<'_>, set: &Set, timestamp: &str) -> Result<String, SignError> {
        if let Made::Token { text, .. } = made {
            return self.credential(text);
        }
        let missing = |_| SignError::MissingHeader;
        let template = self.signed.all().next().ok_or(SignError::NoSecret)?;
        let signature = match made.tag(|sink| template.feed(parts, sink)).map_err(missing)? {
            Some(tag) => tag.to_vec(),
            None => {
                let public = made.public().ok_or(SignError::NoSecret)?;
                public.sign(&message(template, parts).map_err(missing)?).ok_or(SignError::NoSecret)?
            }
        };
        Ok(self.written(&signature, made, set, timestamp))
    }

    fn credential(&self, text: &secrecy::SecretSlice<u8>) -> Result<String, SignError> {
        use base64::Engine as _;
        use secrecy::ExposeSecret as _;
        let bytes = text.expose_secret();
        if self.scheme == Scheme::Basic {
            return Ok(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(bytes)));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| SignError::NoSecret)?;
        Ok(match &self.format {
            Format::Prefix(prefix) => format!("{prefix}{text}"),
            _ => text.to_owned(),
        })
    }

    fn written(&self, signature: &[u8], made: &Made, set: &Set, timestamp: &str) -> String {
        let beside = self.scheme == Scheme::StandardWebhooks && made.public().is_some();
        let encoding = match self.coding {
            _ if beside => Encoding::Base64,
            Coding::Exact(encoding, _) | Coding::UpTo(encoding, _) => encoding,
            Coding::Text | Coding::Basic => Encoding::Hex,
        };
        let text = encode(signature, encoding);
        if let Some(Methods::Prefix(methods)) = &self.methods {
            let prefix = methods.get(self.first_method()).map_or("", |(prefix, _)| prefix);
            return format!("{prefix}{text}");
        }
        match &self.format {
            Format::Bare => text,
            Format::Prefix(prefix) => format!("{prefix}{text}"),
            Format::Versions(_) if beside => format!("{ED25519_VERSION},{text}"),
            Format::Versions(versions) => {
                let version = versions.iter().find(|version| *version != ED25519_VERSION);
                format!("{},{text}", version.map_or("v1", String::as_str))
            }
            Format::Pairs(pairs) => {
                let name = pairs.names.first().map_or("v1", String::as_str);
                match self.time_pair(set, timestamp) {
                    time if time.is_empty() => format!("{name}={text}"),
                    time => format!("{time}{}{name}={text}", pairs.separator),
                }
            }
            Format::List(list) => format!("{timestamp}{}{text}", list.separator),
            Format::Entries(entries) => {
                let part = |part: &String| match part.as_str() {
                    "{signature}" => text.clone(),
                    "*" => "1".to_owned(),
                    fixed => fixed.to_owned(),
                };
                entries.layout.iter().map(part).collect::<Vec<_>>().join(&entries.parts.to_string())
            }
        }
    }
}
