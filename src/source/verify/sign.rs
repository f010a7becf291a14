//! Signing as the sender would: for `send`, for tests and for benches.

use sha2::{Digest as _, Sha256};

use super::super::Request;
use super::super::parts;
use super::super::spec::{Encoding, Format, Scheme, TimeUnit};
use super::draft::Draft;
use super::header::{Coding, ED25519_VERSION, encode};
use super::key::Made;
use super::place::{Place, is_form};
use super::signature::{Methods, Set, Signature, TimeFrom, message};
use super::template::Parts;
use super::{Plan, Verifier};

/// Why nothing was signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Every secret of this tenant has ended, or only a public key is known.
    #[error(
        "no live secret that can sign: a public key only checks, its private partner signs \
         (`send --sign-with FILE` takes it as PEM)"
    )]
    NoSecret,
    /// The key is asked of the sender, which keeps the private one.
    #[error(
        "the server asks the sender for the key that checks, and only the sender has the one that signs: \
         let the sender send a test event, or send a recorded request"
    )]
    SendersKey,
    /// A header that is signed is not among those given.
    #[error("the scheme signs a header that was not given")]
    MissingHeader,
    /// The id or another text cannot be a header's value.
    #[error("{0:?} cannot be the value of a header")]
    NotAHeader(String),
    /// The time is too far from ours to be written.
    #[error("the time cannot be written")]
    NotATime,
    /// The scheme has signatures that are not made here.
    #[error("signatures of this scheme are checked and not made: send a recorded request")]
    NotMade,
    /// The signature stands in a JSON body, and this body has no place for it.
    #[error("the signature stands in the body, which has no place for it")]
    NotJson,
}

impl Verifier {
    /// The request as its sender would send it at `request.now_ms` under the name `id`: signed, with time and id.
    pub(in super::super) fn sign(
        &self,
        request: &Request<'_>,
        tenant: Option<&str>,
        id: &str,
    ) -> Result<Draft, SignError> {
        let method = match &self.plan {
            Plan::Signature(plan) => plan.first_method(),
            Plan::Jwt(_) | Plan::Message(_) => 0,
        };
        let mut live = self.keys.live(tenant, request.now_ms).filter_map(|(_, key)| key.made.get(method));
        let can_sign = |made: &&Made| match made {
            Made::Public(key) => key.can_sign(),
            Made::Jwks(_) => false,
            _ => true,
        };
        let none = if self.keys.fetched.is_some() { SignError::SendersKey } else { SignError::NoSecret };
        let made = live.find(can_sign).ok_or(none)?;
        match &self.plan {
            Plan::Signature(plan) => plan.sign(request, made, id),
            Plan::Jwt(plan) => plan.sign(request, made),
            Plan::Message(plan) => plan.sign(request, made),
        }
    }
}

/// The signature over a whole message.
pub(super) fn signature(made: &Made, message: &[u8]) -> Result<Vec<u8>, SignError> {
    let tag = made.tag(|sink| {
        sink(message);
        Ok::<_, SignError>(())
    })?;
    match tag {
        Some(tag) => Ok(tag.to_vec()),
        None => made.public().and_then(|key| key.sign(message)).ok_or(SignError::NoSecret),
    }
}

impl Signature {
    /// The method that is the source's own scheme.
    fn first_method(&self) -> usize {
        let (Some(Methods::Prefix(methods)) | Some(Methods::Field(_, methods))) = &self.methods else { return 0 };
        methods.iter().position(|(_, coding)| *coding == self.coding).unwrap_or(0)
    }

    fn sign(&self, request: &Request<'_>, made: &Made, id: &str) -> Result<Draft, SignError> {
        let mut draft = Draft::of(request);
        let form = is_form(request.headers);
        let fits = |set: &&Set| matches!(set.signature, Place::Form(_)) == form;
        let set = self.sets.iter().find(fits).unwrap_or(&self.sets[0]);
        let timestamp = self.timestamp(request.now_ms)?;
        if let Some(place) = self.body_hash.as_ref().filter(|_| !form) {
            let hash = hex::encode(Sha256::digest(request.body));
            draft.put(&self.needs, place, None, &hash)?;
        }
        let array = self.each.and_then(|slot| self.needs.pointers[0].get(slot));
        let items = array.map_or(Ok(1), |array| draft.items(array))?;
        for index in 0..items {
            let item = array.map(|array| (array.as_str(), index));
            if let Some(place) = &set.id {
                draft.put(&self.needs, place, item, id)?;
            }
            if let Some(TimeFrom::Place(place)) = &set.time {
                draft.put(&self.needs, place, item, &timestamp)?;
            }
            let text = self.signed_text(&draft, request, made, set, (&timestamp, id, item))?;
            draft.put(&self.needs, &set.signature, item, &text)?;
        }
        Ok(draft)
    }

    fn signed_text(
        &self,
        draft: &Draft,
        request: &Request<'_>,
        made: &Made,
        set: &Set,
        (timestamp, id, item): (&str, &str, Option<(&str, usize)>),
    ) -> Result<String, SignError> {
        let full = Request { headers: &draft.headers, body: &draft.body, target: &draft.target, ..*request };
        let facts = self.needs.read(&full).map_err(|_| SignError::MissingHeader)?;
        let array = self.each.and_then(|slot| facts.body.get(slot).copied().flatten());
        let values = match (array, item) {
            (Some(array), Some((_, index))) => {
                let items = parts::items(array, usize::MAX).map_err(|_| SignError::NotJson)?;
                let item = items.get(index).copied().ok_or(SignError::NotJson)?;
                self.needs.item.read(item).map_err(|_| SignError::NotJson)?
            }
            _ => self.needs.item.absent(),
        };
        let pair = self.time_pair(set, timestamp);
        let parts = Parts {
            request: &full,
            view: facts.view(&values),
            timestamp: timestamp.as_bytes(),
            id: id.as_bytes(),
            pairs: (&pair, self.separator()),
            origin: self.origins.first().map_or("", String::as_str),
            secret: made.secret(),
            signature_field: self.signature_field(set),
        };
        self.text(made, &parts, set, timestamp)
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
