//! What verification finds in a request, step by step, for people.
//!
//! Goes through the same places, layout, template and keys as [`Verifier::verify`] and judges nothing: the verdict
//! is `verify`'s own. Promises that nothing in it is a secret or a signature that would have held: no text of a token
//! or a password is shown, and where the secret is part of what is hashed, neither that part nor the hash.

use sha2::{Digest as _, Sha256};

use super::super::spec::{Encoding, Format, Scheme};
use super::super::watch::Held;
use super::super::{Reason, Request, parts};
use super::header::{Coding, Found};
use super::key::Made;
use super::place::{Place, Texts, View};
use super::signature::{Set, Signature, TimeFrom};
use super::template::Parts;
use super::{Keys, Plan, Verifier, message};

/// The most items that are looked at one by one.
const ITEMS_MAX: usize = 3;
/// The most bytes of signed bytes that are shown, and how many of them are the last ones.
const EXCERPT_BYTES: usize = 200;
const TAIL_BYTES: usize = 60;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Seen {
    /// From here on: the item of this number.
    Item(usize),
    /// What stands at a place.
    Place {
        /// What it is to the scheme: `signature`, `time`, `id`, `required`.
        what: &'static str,
        /// The place as the rules write it.
        place: String,
        /// What stands there.
        held: Held,
    },
    /// What the text of the signature should look like.
    Expected(String),
    /// How many signatures have that form.
    Signatures(usize),
    /// The time of the signature.
    Time {
        /// As it stands there.
        text: String,
        /// Milliseconds since 1970.
        time_ms: Result<i128, Reason>,
        /// How far it may lie off.
        window_ms: Option<i64>,
    },
    /// The bytes that are signed.
    Signed(Bytes),
    /// A secret, by its place among those that were handed in, and whether it made a signature.
    Compared {
        /// Its place.
        secret: usize,
        /// What came of it.
        outcome: Compared,
    },
    /// A key that is fetched.
    Key {
        /// Its address or id.
        named: String,
        /// Whether it is at hand.
        state: Result<(), Reason>,
    },
    /// Here it ends.
    Refused(Reason),
}

/// Signed bytes, as far as they may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Bytes {
    /// How many.
    pub length: usize,
    /// Their SHA-256 in hexadecimal; `None` where that would be the signature.
    pub sha256: Option<String>,
    /// The first and the last of them, escaped.
    pub excerpt: String,
}

/// What came of comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Compared {
    /// It made one of the signatures.
    Same,
    /// It made none.
    Other,
    /// Its time is over.
    Ended,
    /// It is another tenant's.
    OtherTenant,
}

impl Verifier {
    /// Everything that verification looks at in this request.
    pub(in super::super) fn trace(&self, request: &Request<'_>, tenant: Option<&str>) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut tracer = Tracer { request, tenant, keys: &self.keys, seen: &mut seen };
        let went = match &self.plan {
            Plan::Signature(plan) => tracer.signature(plan),
            Plan::Jwt(plan) => {
                let header = Place::Header(plan.header.clone());
                let needs = super::place::Needs::default();
                needs.read(request).map(|facts| {
                    tracer.place("signature", plan.header.to_string(), &header, facts.view(&[]), false);
                    tracer.fetched(plan.wanted_key(request).map(Ok));
                })
            }
            Plan::Message(plan) => tracer.message(plan),
        };
        if let Err(reason) = went {
            seen.push(Seen::Refused(reason));
        }
        seen
    }
}

struct Tracer<'t> {
    request: &'t Request<'t>,
    tenant: Option<&'t str>,
    keys: &'t Keys,
    seen: &'t mut Vec<Seen>,
}

impl Tracer<'_> {
    fn signature(&mut self, plan: &Signature) -> Result<(), Reason> {
        let facts = plan.needs.read(self.request)?;
        let Some(slot) = plan.each else { return self.part(plan, facts.view(&[])) };
        let raw = facts.body.get(slot).copied().flatten().ok_or(Reason::MalformedBody)?;
        let items = parts::items(raw, usize::MAX).map_err(|_| Reason::MalformedBody)?;
        for (number, item) in items.into_iter().enumerate().take(ITEMS_MAX) {
            self.seen.push(Seen::Item(number));
            let item = plan.needs.item.read(item).map_err(|_| Reason::MalformedBody)?;
            self.part(plan, facts.view(&item))?;
        }
        Ok(())
    }

    /// The request, or one item of it.
    fn part(&mut self, plan: &Signature, view: View<'_>) -> Result<(), Reason> {
        let set = plan.set_in(view);
        self.places(plan, set, view);
        let mut texts = Texts::new();
        set.signature.texts(view, &mut texts)?;
        for place in &plan.also {
            place.texts(view, &mut texts)?;
        }
        let presented = plan.presented(set, view, &texts)?;
        let layout = plan.layout(set, presented.method, self.request, self.tenant, self.keys);
        let form = layout.coding.map_or_else(|| "ed25519 as base64".to_owned(), form);
        self.seen.push(Seen::Expected(format!("{}: {form}", self::layout(&plan.format))));
        let groups = layout.read(&texts)?;
        for found in &groups {
            let count = found.tags.len() + found.ed25519.len();
            self.seen.push(Seen::Signatures(count));
            let timestamp = presented.timestamp(found)?;
            if let Some(window) = plan.window {
                let text = String::from_utf8_lossy(timestamp).into_owned();
                self.seen.push(Seen::Time { text, time_ms: window.read(timestamp), window_ms: window.window_ms });
            }
            let parts = plan.parts(self.request, view, &presented, found, timestamp);
            self.compare(plan, &parts, presented.method.max(found.method), found)?;
        }
        Ok(())
    }

    fn places(&mut self, plan: &Signature, set: &Set, view: View<'_>) {
        let hidden = matches!(plan.scheme, Scheme::Token | Scheme::Basic);
        for place in std::iter::once(&set.signature).chain(&plan.also) {
            self.place("signature", plan.needs.shown(place), place, view, hidden);
        }
        if let Some(TimeFrom::Place(place)) = &set.time {
            self.place("time", plan.needs.shown(place), place, view, false);
        }
        if let Some(place) = &set.id {
            self.place("id", plan.needs.shown(place), place, view, false);
        }
        for (place, _) in &plan.requires {
            self.place("required", plan.needs.shown(place), place, view, false);
        }
    }

    fn place(&mut self, what: &'static str, shown: String, place: &Place, view: View<'_>, hidden: bool) {
        let held = match place.text(view) {
            Ok(Some(_)) if hidden => Held::Hidden,
            Ok(Some(text)) => Held::text(&String::from_utf8_lossy(&text)),
            Ok(None) if place.is_there(view) => Held::Blank,
            Ok(None) => Held::Nothing,
            Err(Reason::DuplicateHeader) => Held::Unfit("there twice"),
            Err(_) => Held::Unfit("no text"),
        };
        self.seen.push(Seen::Place { what, place: shown, held });
    }

    fn compare(&mut self, plan: &Signature, parts: &Parts<'_>, method: usize, found: &Found<'_>) -> Result<(), Reason> {
        let templates = plan.signed.of(parts.view)?;
        let credential = matches!(plan.scheme, Scheme::Token | Scheme::Basic);
        let hashes_secret = matches!(plan.scheme, Scheme::DigestSha1 | Scheme::DigestSha256);
        let all = || templates.iter().flat_map(|template| plan.origins.iter().map(move |origin| (template, origin)));
        for (template, origin) in all().filter(|_| !credential).take(if plan.reads_url { 4 } else { templates.len() }) {
            let shown = Parts { origin, secret: b"{secret}", ..*parts };
            let bytes = super::signature::message(template, &shown)?;
            self.seen.push(Seen::Signed(Bytes::of(&bytes, hashes_secret)));
        }
        if let Some((place, rule)) = &plan.certificate {
            let url = place.text(parts.view)?.ok_or(Reason::UntrustedKeyUrl)?;
            self.fetched(Some(rule.wanted(&url)));
        }
        for (secret, key) in self.keys.own.iter().enumerate() {
            let mut outcome = Compared::Other;
            if key.tenant.as_deref().is_some_and(|own| Some(own) != self.tenant) {
                outcome = Compared::OtherTenant;
            } else if !key.is_live(self.tenant, self.request.now_ms) {
                outcome = Compared::Ended;
            } else if let Some(made) = key.made.get(method) {
                for (template, origin) in all() {
                    let parts = Parts { origin, secret: made.secret(), ..*parts };
                    if bool::from(plan.matches(made, template, found, &parts)?) {
                        outcome = Compared::Same;
                    }
                }
            }
            self.seen.push(Seen::Compared { secret, outcome });
        }
        Ok(())
    }

    fn fetched(&mut self, wanted: Option<Result<super::keys::Wanted, Reason>>) {
        let (Some(wanted), Some(fetched)) = (wanted, &self.keys.fetched) else { return };
        let (named, state) = match wanted {
            Ok(wanted) => (wanted.0.clone(), fetched.get(&wanted, self.request.now_ms).map(|_| ())),
            Err(reason) => (String::new(), Err(reason)),
        };
        self.seen.push(Seen::Key { named, state });
    }

    fn message(&mut self, plan: &message::Message) -> Result<(), Reason> {
        let facts = super::place::Needs::default().read(self.request)?;
        for name in &message::HEADERS {
            let place = Place::Header(name.clone());
            self.place("signature", name.to_string(), &place, facts.view(&[]), false);
        }
        for base in plan.bases(self.request)? {
            self.seen.push(Seen::Signed(Bytes::of(&base.bytes, false)));
            for (secret, key) in self.keys.own.iter().enumerate() {
                let same = key.is_live(self.tenant, self.request.now_ms)
                    && key.made.iter().any(|made| holds(made, &base.bytes, &base.signature));
                let outcome = if same { Compared::Same } else { Compared::Other };
                self.seen.push(Seen::Compared { secret, outcome });
            }
        }
        Ok(())
    }
}

fn holds(made: &Made, base: &[u8], signature: &[u8]) -> bool {
    message::holds(made, base, signature).unwrap_or(false)
}

impl Bytes {
    fn of(bytes: &[u8], hashes_secret: bool) -> Self {
        let excerpt = if bytes.len() <= EXCERPT_BYTES {
            escaped(bytes)
        } else {
            let (head, tail) = (&bytes[..EXCERPT_BYTES - TAIL_BYTES], &bytes[bytes.len() - TAIL_BYTES..]);
            format!("{} … {}", escaped(head), escaped(tail))
        };
        let sha256 = (!hashes_secret).then(|| hex::encode(Sha256::digest(bytes)));
        Self { length: bytes.len(), sha256, excerpt }
    }
}

/// Bytes so that each can be told: quotes stay, all else beyond printable ASCII is an escape.
fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// What one signature looks like.
fn form(coding: Coding) -> String {
    let (encoding, bytes, at_most) = match coding {
        Coding::Exact(encoding, bytes) => (encoding, bytes, ""),
        Coding::UpTo(encoding, bytes) => (encoding, bytes, "at most "),
        Coding::Text => return "the token itself".to_owned(),
        Coding::Basic => return "`Basic` and base64 of user:password".to_owned(),
    };
    let (letters, name) = match encoding {
        Encoding::Hex => (bytes * 2, "hexadecimal"),
        Encoding::HexLower => (bytes * 2, "hexadecimal in lower case"),
        Encoding::Base64 => (bytes.div_ceil(3) * 4, "base64"),
        Encoding::Base64url => ((bytes * 4).div_ceil(3), "base64 of the URL alphabet without padding"),
        Encoding::Base64Hex => ((bytes * 2).div_ceil(3) * 4, "base64 of hexadecimal"),
    };
    format!("{at_most}{letters} characters of {name} ({at_most}{bytes} bytes)")
}

/// How the signature's text is laid out, for people.
#[must_use]
pub fn layout(format: &Format) -> String {
    match format {
        Format::Bare => "the signature alone".to_owned(),
        Format::Prefix(prefix) => format!("`{prefix}` and the signature"),
        Format::Versions(versions) => {
            let all: Vec<String> = versions.iter().map(|version| format!("`{version},…`")).collect();
            format!("{}, several parted by blanks", all.join(" or "))
        }
        Format::Pairs(pairs) => {
            let all: Vec<String> = pairs.names.iter().map(|name| format!("`{name}=…`")).collect();
            let groups = if pairs.groups.is_some() { ", in groups with a time each" } else { "" };
            format!("pairs parted by `{}`: {}{groups}", pairs.separator, all.join(" or "))
        }
        Format::List(list) => format!("the time, then signatures, parted by `{}`", list.separator),
        Format::Entries(entries) => {
            let parts = entries.layout.join(&entries.parts.to_string());
            format!("entries `{parts}`, parted by `{}`", entries.separator)
        }
    }
}
