//! Signatures described as data: places, layout, template, time and keys, for one request or for each item of it.

use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use super::super::parts;
use super::super::pattern::Patterns;
use super::super::spec::{Format, Scheme};
use super::super::{Reason, Request};
use super::canonical;
use super::header::{Coding, Found, Layout};
use super::key::Made;
use super::keys::Wanted;
use super::place::{Needs, Place, Texts, View, is_form};
use super::template::{Parts, Template};
use super::time::Window;
use super::{Keys, certificate};

/// The most bytes of a signed id.
const ID_BYTES_MAX: usize = 255;
/// The most items that are checked one by one.
const ITEMS_MAX: usize = 1_000;

pub(super) struct Signature {
    pub(super) scheme: Scheme,
    pub(super) format: Format,
    pub(super) coding: Coding,
    pub(super) signed: Signed,
    pub(super) window: Option<Window>,
    /// Sets of places; the first whose signature is there counts. Never empty.
    pub(super) sets: Vec<Set>,
    /// Headers whose signatures count as well.
    pub(super) also: Vec<Place>,
    /// What the sender may call us by; the first is as configured.
    pub(super) origins: Vec<String>,
    pub(super) needs: Needs,
    /// The array whose items are checked.
    pub(super) each: Option<usize>,
    pub(super) requires: Vec<(Place, Patterns)>,
    pub(super) body_hash: Option<Place>,
    pub(super) methods: Option<Methods>,
    pub(super) certificate: Option<(Place, certificate::Rule)>,
    /// Whether some template reads the address.
    pub(super) reads_url: bool,
}

/// Where signature, time and id stand.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) signature: Place,
    pub(super) time: Option<TimeFrom>,
    pub(super) id: Option<Place>,
}

#[derive(Clone, Debug)]
pub(super) enum TimeFrom {
    Place(Place),
    Pair(String),
    /// The first of a list.
    First,
}

/// What is signed.
pub(super) enum Signed {
    Any(Vec<Template>),
    ByField(Place, Vec<(String, Template)>),
}

/// The algorithms a sender may choose from: each has its key in `Key::made` at the same place.
pub(super) enum Methods {
    Prefix(Vec<(String, Coding)>),
    Field(Place, Vec<(String, Coding)>),
}

impl Signed {
    pub(super) fn all(&self) -> impl Iterator<Item = &Template> {
        let (any, by_field): (&[Template], &[(String, Template)]) = match self {
            Self::Any(any) => (any, &[]),
            Self::ByField(_, by_field) => (&[], by_field),
        };
        any.iter().chain(by_field.iter().map(|(_, template)| template))
    }

    pub(super) fn of(&self, view: View<'_>) -> Result<&[Template], Reason> {
        match self {
            Self::Any(any) => Ok(any),
            Self::ByField(place, by_field) => {
                let text = place.text(view)?.ok_or(Reason::MalformedBody)?;
                let found = by_field.iter().find(|(name, _)| name.as_bytes() == &*text);
                found.map(|(_, template)| std::slice::from_ref(template)).ok_or(Reason::UnsupportedVersion)
            }
        }
    }
}

/// The texts of a request, or of an item, that are compared.
pub(super) struct Presented<'p> {
    set: &'p Set,
    id: Cow<'p, [u8]>,
    time: Cow<'p, [u8]>,
    pub(super) method: usize,
}

impl Presented<'_> {
    /// The text of the time, wherever it stands.
    pub(super) fn timestamp<'f>(&'f self, found: &'f Found<'_>) -> Result<&'f [u8], Reason> {
        match &self.set.time {
            Some(TimeFrom::Pair(_) | TimeFrom::First) => match found.time {
                None | Some("") => Err(Reason::MissingTimestamp),
                Some(time) => Ok(time.as_bytes()),
            },
            _ => Ok(&*self.time),
        }
    }
}

impl Signature {
    pub(super) fn verify(&self, request: &Request<'_>, tenant: Option<&str>, keys: &Keys) -> Result<usize, Reason> {
        let facts = self.needs.read(request)?;
        let Some(slot) = self.each else {
            return self.check(request, facts.view(&[]), tenant, keys);
        };
        let raw = facts.body.get(slot).copied().flatten().ok_or(Reason::MalformedBody)?;
        let items = parts::items(raw, ITEMS_MAX).map_err(|_| Reason::MalformedBody)?;
        let mut signer = Err(Reason::MalformedBody);
        for item in items {
            let item = self.needs.item.read(item).map_err(|_| Reason::MalformedBody)?;
            // one failing item fails the request: the others may be a stranger's too
            signer = Ok(self.check(request, facts.view(&item), tenant, keys)?);
        }
        signer
    }

    pub(super) fn signature_headers(&self) -> Vec<&HeaderName> {
        let places = self.sets.iter().map(|set| &set.signature).chain(&self.also);
        places.flat_map(Place::headers).collect()
    }

    pub(super) fn signs_header(&self, name: &HeaderName) -> bool {
        let place = Place::Header(name.clone());
        let is_id = self.sets.iter().any(|set| set.id.as_ref() == Some(&place));
        let is_signed_id = is_id && self.signed.all().all(|template| template.has(&super::template::Piece::Id));
        is_signed_id || self.signed.all().all(|template| template.headers().any(|signed| signed == name))
    }

    /// The key that this request needs and that is not configured.
    pub(super) fn wanted_key(&self, request: &Request<'_>) -> Option<Wanted> {
        let (place, rule) = self.certificate.as_ref()?;
        let facts = self.needs.read(request).ok()?;
        rule.wanted(&place.text(facts.view(&[])).ok()??).ok()
    }

    pub(super) fn set_in(&self, view: View<'_>) -> &Set {
        let [only] = self.sets.as_slice() else {
            return self.sets.iter().find(|set| set.signature.is_there(view)).unwrap_or(&self.sets[0]);
        };
        only
    }

    fn check(&self, request: &Request<'_>, view: View<'_>, tenant: Option<&str>, keys: &Keys) -> Result<usize, Reason> {
        let set = self.set_in(view);
        let mut texts = Texts::new();
        set.signature.texts(view, &mut texts)?;
        for place in &self.also {
            place.texts(view, &mut texts)?;
        }
        let presented = self.presented(set, view, &texts)?;
        let layout = self.layout(set, presented.method, request, tenant, keys);
        let groups = layout.read(&texts)?;
        let mut refused = Reason::MissingTimestamp;
        for found in &groups {
            match self.judge(request, view, tenant, keys, (&presented, found)) {
                Ok(signer) => return Ok(signer),
                Err(reason) if weight(reason) >= weight(refused) => refused = reason,
                Err(_) => {}
            }
        }
        Err(refused)
    }

    /// Missing and required texts, before anything is parsed.
    pub(super) fn presented<'p>(
        &'p self,
        set: &'p Set,
        view: View<'p>,
        texts: &Texts<'_>,
    ) -> Result<Presented<'p>, Reason> {
        let id = set.id.as_ref().map(|place| place.text(view)).transpose()?;
        let time = match &set.time {
            Some(TimeFrom::Place(place)) => Some(place.text(view)?),
            _ => None,
        };
        let unsigned = texts.iter().all(|text| text.is_empty());
        let id = match id {
            None => Cow::Borrowed(b"".as_slice()),
            // where all stands in one object, what is missing is the signature
            Some(None) if unsigned && !matches!(set.id, Some(Place::Header(_))) => {
                return Err(Reason::MissingSignature);
            }
            Some(None) => return Err(Reason::MissingId),
            Some(Some(id)) => id,
        };
        if self.splits(&id) || id.len() > ID_BYTES_MAX {
            return Err(Reason::MalformedId);
        }
        if unsigned {
            return Err(Reason::MissingSignature);
        }
        let time = match time {
            None => Cow::Borrowed(b"".as_slice()),
            Some(time) => time.ok_or(Reason::MissingTimestamp)?,
        };
        for (place, patterns) in &self.requires {
            let text = place.text(view)?.ok_or(Reason::UnsupportedVersion)?;
            let text = std::str::from_utf8(&text).map_err(|_| Reason::UnsupportedVersion)?;
            if !patterns.matches(text) {
                return Err(Reason::UnsupportedVersion);
            }
        }
        Ok(Presented { set, id, time, method: self.method(view)? })
    }

    /// The dot parts id, time and body: an id with a dot could move bytes from one into the other.
    fn splits(&self, id: &[u8]) -> bool {
        self.scheme == Scheme::StandardWebhooks && id.contains(&b'.')
    }

    fn method(&self, view: View<'_>) -> Result<usize, Reason> {
        let Some(Methods::Field(place, methods)) = &self.methods else { return Ok(0) };
        let text = place.text(view)?.ok_or(Reason::UnsupportedVersion)?;
        methods.iter().position(|(name, _)| name.as_bytes() == &*text).ok_or(Reason::UnsupportedVersion)
    }

    pub(super) fn layout<'s>(
        &'s self,
        set: &'s Set,
        method: usize,
        request: &Request<'_>,
        tenant: Option<&str>,
        keys: &Keys,
    ) -> Layout<'s> {
        let coding = match &self.methods {
            Some(Methods::Field(_, methods)) => methods.get(method).map(|(_, coding)| *coding),
            _ => Some(self.coding),
        };
        let (mut macs, mut ed25519) = (true, false);
        if self.scheme == Scheme::StandardWebhooks {
            let is_public = |made: &Made| made.public().is_some();
            let live = || keys.live(tenant, request.now_ms).flat_map(|(_, key)| &key.made);
            (macs, ed25519) = (live().any(|made| !is_public(made)), live().any(is_public));
        }
        Layout {
            format: &self.format,
            coding: coding.filter(|_| macs),
            ed25519,
            time_pair: match &set.time {
                Some(TimeFrom::Pair(name)) => Some(name),
                _ => None,
            },
            methods: match &self.methods {
                Some(Methods::Prefix(methods)) => methods,
                _ => &[],
            },
        }
    }

    fn judge(
        &self,
        request: &Request<'_>,
        view: View<'_>,
        tenant: Option<&str>,
        keys: &Keys,
        (presented, found): (&Presented<'_>, &Found<'_>),
    ) -> Result<usize, Reason> {
        let timestamp = presented.timestamp(found)?;
        let time_ms = self.window.map(|window| window.read(timestamp)).transpose()?;
        let method = presented.method.max(found.method);
        let parts = self.parts(request, view, presented, found, timestamp);
        let signer = self.signer(parts, tenant, keys, (method, found))?;
        self.check_body_hash(request, view)?;
        if let (Some(window), Some(time_ms)) = (self.window, time_ms) {
            window.check(time_ms, request.now_ms)?;
        }
        Ok(signer)
    }

    /// What the pieces of a template stand for.
    pub(super) fn parts<'p>(
        &'p self,
        request: &'p Request<'p>,
        view: View<'p>,
        presented: &'p Presented<'_>,
        found: &'p Found<'_>,
        timestamp: &'p [u8],
    ) -> Parts<'p> {
        let separator = match &self.format {
            Format::Pairs(pairs) => pairs.separator,
            _ => ',',
        };
        Parts {
            request,
            view,
            timestamp,
            id: &presented.id,
            pairs: (found.text, separator),
            origin: "",
            secret: b"",
            signature_field: self.signature_field(presented.set),
        }
    }

    pub(super) fn signature_field(&self, set: &Set) -> Option<&str> {
        match &set.signature {
            Place::Form(slot) => self.needs.forms.get(*slot).map(String::as_str),
            _ => None,
        }
    }

    /// The place of the first key that made a signature; all are tried, so that time does not tell which it was.
    fn signer(
        &self,
        parts: Parts<'_>,
        tenant: Option<&str>,
        keys: &Keys,
        (method, found): (usize, &Found<'_>),
    ) -> Result<usize, Reason> {
        let templates = self.signed.of(parts.view)?;
        let mut signer = None;
        if let Some((place, rule)) = &self.certificate {
            let url = place.text(parts.view)?.ok_or(Reason::UntrustedKeyUrl)?;
            let wanted = rule.wanted(&url)?;
            let fetched = keys.fetched.as_ref().ok_or(Reason::KeyMissing)?;
            let made = fetched.get(&wanted, parts.request.now_ms)?;
            if self.signed_by(made.get(method).ok_or(Reason::UnsupportedVersion)?, templates, found, parts)? {
                signer = Some(0);
            }
        }
        for (index, key) in keys.live(tenant, parts.request.now_ms) {
            let Some(made) = key.made.get(method) else { continue };
            if self.signed_by(made, templates, found, parts)? {
                signer = signer.or(Some(index));
            }
        }
        signer.ok_or(Reason::WrongSignature)
    }

    fn signed_by(
        &self,
        made: &Made,
        templates: &[Template],
        found: &Found<'_>,
        parts: Parts<'_>,
    ) -> Result<bool, Reason> {
        let mut holds = Choice::from(0);
        let origins: &[String] = if self.reads_url { &self.origins } else { self.origins.get(..1).unwrap_or_default() };
        for template in templates {
            for origin in origins {
                let parts = Parts { origin, secret: made.secret(), ..parts };
                holds |= self.matches(made, template, found, &parts)?;
            }
        }
        Ok(holds.into())
    }

    pub(super) fn matches(
        &self,
        made: &Made,
        template: &Template,
        found: &Found<'_>,
        parts: &Parts<'_>,
    ) -> Result<Choice, Reason> {
        if let Some(tag) = made.tag(|sink| template.feed(parts, sink))? {
            return Ok(found.tags.iter().fold(Choice::from(0), |same, mac| same | mac.ct_eq(&tag)));
        }
        let Some(public) = made.public() else { return Ok(Choice::from(0)) };
        let signatures =
            if self.scheme == Scheme::StandardWebhooks { found.ed25519.as_slice() } else { found.tags.as_slice() };
        if signatures.is_empty() {
            return Ok(Choice::from(0));
        }
        let message = message(template, parts)?;
        Ok(Choice::from(u8::from(signatures.iter().any(|signature| public.holds(&message, signature)))))
    }

    /// Where the sender signs a hash in place of the body, or fields of a form and the body is none.
    fn check_body_hash(&self, request: &Request<'_>, view: View<'_>) -> Result<(), Reason> {
        let signs_form = || self.signed.all().any(|template| template.has(&super::template::Piece::FormSorted));
        let stated = self.body_hash.as_ref().map(|place| place.text(view)).transpose()?.flatten();
        match stated {
            Some(text) => same_hash(&text, request.body),
            None if self.body_hash.is_some() && !signs_form() => Err(Reason::BodyHashMismatch),
            None if signs_form() && !is_covered(request.headers, request.body) => Err(Reason::InsufficientCoverage),
            None => Ok(()),
        }
    }
}

/// Whether a form's fields are all there is to sign.
fn is_covered(headers: &HeaderMap, body: &[u8]) -> bool {
    body.is_empty() || is_form(headers) || canonical::has_fields(headers)
}

/// Whether a text is the body's SHA-256 in hexadecimal.
pub(super) fn same_hash(text: &[u8], body: &[u8]) -> Result<(), Reason> {
    let mut stated = [0; 32];
    hex::decode_to_slice(text, &mut stated).map_err(|_| Reason::BodyHashMismatch)?;
    let same: bool = stated.ct_eq(&*Sha256::digest(body)).into();
    if same { Ok(()) } else { Err(Reason::BodyHashMismatch) }
}

/// What is signed, in one piece: public keys cannot take it in parts.
pub(super) fn message(template: &Template, parts: &Parts<'_>) -> Result<Vec<u8>, Reason> {
    let mut message = Vec::with_capacity(parts.request.body.len() + 128);
    template.feed(parts, &mut |bytes| message.extend_from_slice(bytes))?;
    Ok(message)
}

/// Of several groups that fail the one that came furthest says why.
const fn weight(reason: Reason) -> u8 {
    match reason {
        Reason::MissingTimestamp => 0,
        Reason::MalformedTimestamp => 1,
        Reason::BodyHashMismatch => 3,
        Reason::OutsideWindowPast | Reason::OutsideWindowFuture => 4,
        _ => 2,
    }
}
