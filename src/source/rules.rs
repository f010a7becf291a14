//! Compiled rules: what key, type, resource and version of a source's events are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use actix_web::http::header::HeaderName;
use jiff::tz::Offset;
use tidegate_actors::rules::order::Order;
use tidegate_actors::rules::version::{EpochUnit, Part, Precision, Version, VersionError};

use super::canonical::{CanonicalFault, Without};
use super::handshake::{Handshake, Unsigned};
use super::pattern::Patterns;
use super::reference::{Fault, Found, Reference};
use super::refetch::RefetchRule;
use super::spec::VersionForm;
use super::times;
use super::wants::{TextRule, Wants};

/// The most bytes of an event type, and of a resource's type or id.
pub(super) const TEXT_BYTES_MAX: usize = 255;

/// Why an authentic event is not usable: a stable code, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) code: &'static str,
    pub(super) reason: String,
}

/// Everything a source reads out of a request.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) wants: Wants,
    pub(super) text: TextRule,
    pub(super) batch: Option<BatchRule>,
    pub(super) key: Vec<Reference>,
    pub(super) kind: Vec<Reference>,
    pub(super) tenant: TenantRule,
    pub(super) tenants: HashMap<String, Arc<str>>,
    pub(super) general: StateRule,
    pub(super) narrow: Vec<(Patterns, StateRule)>,
    pub(super) also: Vec<AlsoRule>,
    pub(super) types: Option<Patterns>,
    pub(super) pings: Patterns,
    pub(super) refetch: Option<RefetchRule>,
    /// Slots of the volatile members: in the body, or of a batch in each item.
    pub(super) volatile: Vec<usize>,
    /// The same as a tree, for canonical digests.
    pub(super) without: Without,
    /// Answered once the signature holds.
    pub(super) signed_handshakes: Vec<Handshake>,
    /// Answered without one.
    pub(super) unsigned: Unsigned,
    pub(super) kept: Vec<HeaderName>,
}

/// Where the events of one request stand.
#[derive(Clone, Debug)]
pub(super) struct BatchRule {
    pub(super) split: Split,
    /// The most items.
    pub(super) items_max: usize,
}

/// What parts a request into events.
#[derive(Clone, Debug)]
pub(super) enum Split {
    /// The array at the first of these slots of the body that is there.
    Array(Vec<usize>),
    /// The arrays at the first of some slots that is there, of each item of an array of the body.
    Nested { outer: usize, inner: Vec<usize> },
    /// Lines.
    Lines,
}

#[derive(Debug)]
pub(super) enum TenantRule {
    None,
    Path,
    /// A header or a query parameter that nobody signs: read before the signature, to know whose it must be.
    Unsigned(Reference),
    Signed(Reference),
}

/// What state an event changes, and how it is ordered.
#[derive(Clone, Debug)]
pub(super) struct StateRule {
    pub(super) resource: Option<ResourceRule>,
    pub(super) version: Vec<VersionPart>,
    /// An event that should have a version and has none is unusable.
    pub(super) version_needed: bool,
    pub(super) order: Arc<Order>,
    /// Where the step of a state machine stands.
    pub(super) step: Option<StepRule>,
    /// Where the state object stands, where states are put together from members.
    pub(super) state: Option<Reference>,
    /// Parts of the second key; none where there is none.
    pub(super) effect_key: Vec<Reference>,
    pub(super) delete: Option<DeleteRule>,
}

/// The step that an event takes: the longest pattern of the graph that matches its text.
#[derive(Clone, Debug)]
pub(super) struct StepRule {
    pub(super) from: Reference,
    pub(super) patterns: Patterns,
    pub(super) names: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct ResourceRule {
    pub(super) kind: Vec<Reference>,
    pub(super) id: Vec<Reference>,
}

#[derive(Clone, Debug)]
pub(super) struct VersionPart {
    pub(super) from: Reference,
    pub(super) form: VersionForm,
    pub(super) precision: Precision,
    /// Of times that state none.
    pub(super) zone: Option<Offset>,
    pub(super) ranks: Patterns,
}

#[derive(Clone, Debug)]
pub(super) struct DeleteRule {
    pub(super) types: Patterns,
    pub(super) field: Option<(Reference, String)>,
}

#[derive(Clone, Debug)]
pub(super) struct AlsoRule {
    /// Slot of the array whose items are resources; `None`: one resource.
    pub(super) each: Option<usize>,
    pub(super) resource: ResourceRule,
    pub(super) version: Option<Vec<VersionPart>>,
}

impl Flaw {
    pub(super) fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

impl Rules {
    pub(super) fn state(&self, kind: &str) -> &StateRule {
        self.narrow.iter().find(|(types, _)| types.matches(kind)).map_or(&self.general, |(_, rule)| rule)
    }
}

/// Codes of what can be wrong with one thing that is read.
pub(super) struct Codes {
    pub(super) what: &'static str,
    pub(super) blank: &'static str,
    pub(super) not_scalar: &'static str,
    pub(super) not_text: &'static str,
    pub(super) duplicate: &'static str,
    pub(super) too_long: &'static str,
}

macro_rules! codes {
    ($what:literal) => {
        codes!($what, $what)
    };
    ($what:literal, $code:literal) => {
        Codes {
            what: $what,
            blank: concat!($code, "-blank"),
            not_scalar: concat!($code, "-not-scalar"),
            not_text: concat!($code, "-not-text"),
            duplicate: concat!($code, "-duplicate"),
            too_long: concat!($code, "-too-long"),
        }
    };
}

pub(super) const KEY: Codes = codes!("key");
pub(super) const TYPE: Codes = codes!("type");
pub(super) const TENANT: Codes = codes!("tenant");
pub(super) const RESOURCE: Codes = codes!("resource");
pub(super) const VERSION: Codes = codes!("version");
pub(super) const STEP: Codes = codes!("step");
pub(super) const EFFECT_KEY: Codes = codes!("effect_key", "effect-key");
pub(super) const DELETE: Codes = codes!("delete");

impl Codes {
    /// The referenced text, or the flaw by this thing's codes.
    pub(super) fn text<'a>(&self, reference: &'a Reference, found: &Found<'a>) -> Result<Option<Cow<'a, str>>, Flaw> {
        if let Some(watch) = found.watch {
            watch.saw(self.what, reference, found);
        }
        let from = &reference.text;
        reference.text(found).map_err(|fault| {
            let (code, is) = match fault {
                Fault::Blank => (self.blank, "is blank"),
                Fault::NotScalar => (self.not_scalar, "is an object or an array and not a text or a number"),
                Fault::NotText => (self.not_text, "is not valid text"),
                Fault::Duplicate => (self.duplicate, "came twice"),
                Fault::NoDigest(CanonicalFault::TooDeep) => ("digest-too-deep", "has too many levels for a digest"),
                Fault::NoDigest(CanonicalFault::Duplicate(_)) => {
                    ("body-duplicate-key", "has a member that stands twice in one object")
                }
                Fault::NoDigest(CanonicalFault::NotJson) => ("body-not-json", "is not JSON"),
            };
            let what = self.what;
            Flaw::new(code, format!("the {what} at `{from}` {is}: correct `{what}` of the source, or ask the sender"))
        })
    }

    /// The texts of all references joined; `None` when one of them is not there.
    pub(super) fn joined<'a>(&self, references: &'a [Reference], found: &Found<'a>) -> Result<Option<String>, Flaw> {
        let mut joined = String::new();
        for (index, reference) in references.iter().enumerate() {
            let Some(text) = self.text(reference, found)? else { return Ok(None) };
            if index > 0 {
                joined.push('/');
            }
            joined.push_str(&text);
        }
        self.check(&joined)?;
        Ok(Some(joined))
    }

    pub(super) fn check(&self, text: &str) -> Result<(), Flaw> {
        let what = self.what;
        if text.len() > TEXT_BYTES_MAX {
            return Err(Flaw::new(
                self.too_long,
                format!("the {what} has {} bytes, more than {TEXT_BYTES_MAX}: read a shorter field", text.len()),
            ));
        }
        if text.chars().any(char::is_control) {
            return Err(Flaw::new(self.not_text, format!("the {what} holds a control character: read another field")));
        }
        Ok(())
    }
}

impl DeleteRule {
    pub(super) fn applies(&self, found: &Found<'_>) -> Result<bool, Flaw> {
        if self.types.matches(found.kind) {
            return Ok(true);
        }
        let Some((from, equals)) = &self.field else { return Ok(false) };
        if let Some(watch) = found.watch {
            watch.saw(DELETE.what, from, found);
        }
        // a blank or an object is not the text that means "deleted"
        match from.text(found) {
            Ok(text) => Ok(text.is_some_and(|text| text == equals.as_str())),
            Err(Fault::Blank | Fault::NotScalar) => Ok(false),
            Err(Fault::NotText | Fault::Duplicate | Fault::NoDigest(_)) => DELETE.text(from, found).map(|_| false),
        }
    }
}

impl StepRule {
    pub(super) fn read(&self, found: &Found<'_>) -> Result<String, Flaw> {
        let from = &self.from.text;
        let Some(text) = STEP.text(&self.from, found)? else {
            let reason = format!("the step at `{from}` is missing: correct `order.step` of the source");
            return Err(Flaw::new("step-missing", reason));
        };
        let name = self.patterns.rank(&text).and_then(|place| self.names.get(usize::try_from(place).ok()?));
        name.cloned().ok_or_else(|| {
            let reason =
                format!("the text at `{from}` is no step of the state machine: add it to `order` of the source");
            Flaw::new("step-unknown", reason)
        })
    }
}

impl VersionPart {
    /// What it is compared as.
    pub(super) fn kind(&self) -> &'static str {
        match self.form {
            VersionForm::Integer => "integer",
            VersionForm::Rank => "rank",
            _ => "time",
        }
    }

    fn read(&self, text: &str) -> Result<Part, Flaw> {
        let malformed = |error: VersionError| {
            let from = &self.from.text;
            Flaw::new("version-malformed", format!("the version at `{from}`: {error}; correct `version` of the source"))
        };
        let epoch = |unit| Part::epoch(text, unit, self.precision);
        let rfc3339 = || Part::rfc3339(text, self.precision);
        let numeric = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match self.form {
            VersionForm::Integer => Part::integer(text),
            VersionForm::Rfc3339 => rfc3339(),
            VersionForm::EpochS => epoch(EpochUnit::Seconds),
            VersionForm::EpochMs => epoch(EpochUnit::Millis),
            VersionForm::EpochUs => epoch(EpochUnit::Micros),
            VersionForm::EpochNs => epoch(EpochUnit::Nanos),
            VersionForm::Rfc3339OrEpochS if numeric => epoch(EpochUnit::Seconds),
            VersionForm::Rfc3339OrEpochMs if numeric => epoch(EpochUnit::Millis),
            VersionForm::Rfc3339OrEpochS | VersionForm::Rfc3339OrEpochMs => rfc3339(),
            VersionForm::Time => return self.time(text, times::time(text, self.zone), "a time with a zone"),
            VersionForm::HttpDate => return self.time(text, times::mail_date(text), "a date of HTTP"),
            VersionForm::Rfc2822 => return self.time(text, times::mail_date(text), "RFC 2822"),
            VersionForm::Rank => {
                let rank = self.ranks.rank(text).ok_or_else(|| {
                    let from = &self.from.text;
                    let reason =
                        format!("the text at `{from}` has no place in `ranks`: add it, or end the list with \"*\"");
                    Flaw::new("version-unranked", reason)
                })?;
                return Ok(Part::Rank(rank));
            }
        }
        .map_err(malformed)
    }

    fn time(&self, text: &str, time: Option<jiff::Timestamp>, expected: &'static str) -> Result<Part, Flaw> {
        let from = &self.from.text;
        let text = text.chars().take(64).collect();
        let error = VersionError::NotAnInstant { text, expected };
        let malformed = |error: VersionError| {
            let reason = format!("the version at `{from}`: {error}; correct `version` of the source");
            Flaw::new("version-malformed", reason)
        };
        let time = time.ok_or_else(|| malformed(error))?;
        Part::rfc3339(&time.to_string(), self.precision).map_err(malformed)
    }
}

/// The version of these parts; `None` when one of them is not there.
pub(super) fn version(parts: &[VersionPart], found: &Found<'_>) -> Result<Option<Version>, Flaw> {
    if parts.is_empty() {
        return Ok(None);
    }
    let mut read = smallvec::SmallVec::<[Part; 4]>::new();
    for part in parts {
        let Some(text) = VERSION.text(&part.from, found)? else { return Ok(None) };
        read.push(part.read(&text)?);
    }
    Version::new(&read).map(Some).map_err(|error| Flaw::new("version-malformed", error.to_string()))
}
