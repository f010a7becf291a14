//! References: where in a request a text stands. `a | b` takes the first that is there.
//!
//! | reference | text |
//! | --- | --- |
//! | `body:/pointer` | JSON pointer into the body, or into the form field `form_json` |
//! | `item:/pointer` | JSON pointer into the current item of `batch` or of `also.each` |
//! | `outer:/pointer` | where a batch has two levels: JSON pointer into the outer item |
//! | `form:field` | a field of a form |
//! | `form:field:/pointer` | JSON pointer into a form field |
//! | `query:name` | a parameter of the query |
//! | `header:name` | a header |
//! | `config:name` | a value of the source's own `config` |
//! | `literal:text` | the text itself |
//! | `has:body:/pointer` | the pointer's last name, where that place is there; `has:item:` alike |
//! | `index` | the item's place in its batch, from 0 |
//! | `raw:sha256` | hexadecimal SHA-256 of the body; in a batch, of the item |
//! | `digest` | the same of the canonical JSON without `digest_without`; `digest:body:/pointer` of one value |
//! | `unique` | a text that no other event has; only for a `key` |
//! | `type` | the event type; `type:stem` up to its last `.` or `/` |
//!
//! In a pointer `/~json/` steps into a text that holds JSON, `/~base64/~json/` into one that is base64 of it.

use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;
use tidegate_actors::rules::event::EventId;

use super::canonical::{CanonicalFault, Without, canonical};
use super::form::Fields;
use super::json::{ValueFault, Wanted, scalar};
use super::step::{self, Picks};
use super::verify::{one, trimmed};
use super::wants::{Hidden, NOTHING, Wants};
use super::watch::{Held, Tried, Watch};

/// The most alternatives of one reference.
const ALTERNATIVES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Body(usize),
    Item(usize),
    Outer(usize),
    /// A text that the body holds, and the place in it.
    BodyDeep(usize, usize),
    ItemDeep(usize, usize),
    Field(usize),
    FieldJson(usize, usize),
    Query(usize),
    Header(HeaderName),
    Literal(String),
    Config(Hidden),
    /// The name, where the place is there.
    Has(Box<Place>, String),
    Index,
    /// The event's own id.
    Own,
    RawSha256,
    /// Of the whole event, or of one value.
    Digest(Option<Box<Place>>),
    Kind,
    Stem,
}

/// A compiled reference.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// As written, for messages.
    pub(super) text: String,
    places: Vec<Place>,
}

/// What references are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) raw: &'a [u8],
    pub(super) body: &'a [Option<&'a str>],
    pub(super) deep: &'a [Picks<'a>],
    pub(super) fields: &'a Fields,
    pub(super) query: &'a Fields,
    pub(super) field_json: &'a [Picks<'a>],
    pub(super) item: &'a [Option<&'a str>],
    pub(super) item_deep: &'a [Picks<'a>],
    pub(super) outer: &'a [Option<&'a str>],
    pub(super) index: Option<usize>,
    /// The JSON text of the event, where it has one.
    pub(super) text: Option<&'a str>,
    /// What its digest leaves out.
    pub(super) without: &'a Without,
    pub(super) kind: &'a str,
    /// The id that the event is given.
    pub(super) own: Option<EventId>,
    /// Who looks on; nobody, while requests come in.
    pub(super) watch: Option<&'a Watch>,
}

static NO_FIELDS: Fields = SmallVec::new_const();

impl<'a> Found<'a> {
    /// Headers and raw bytes, and nothing read out of them.
    pub(super) fn empty(headers: &'a HeaderMap, raw: &'a [u8]) -> Self {
        Self {
            headers,
            raw,
            body: &[],
            deep: &[],
            fields: &NO_FIELDS,
            query: &NO_FIELDS,
            field_json: &[],
            item: &[],
            item_deep: &[],
            outer: &[],
            index: None,
            text: None,
            without: &NOTHING,
            kind: "",
            own: None,
            watch: None,
        }
    }
}

/// What is wrong with a referenced text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Blank,
    NotScalar,
    NotText,
    Duplicate,
    /// No canonical form.
    NoDigest(CanonicalFault),
}

impl Wants {
    /// Compiles a reference and notes what it wants.
    pub(super) fn reference(&mut self, text: &str) -> Result<Reference, String> {
        let places: Vec<Place> = text.split(" | ").map(|part| self.place(part.trim())).collect::<Result<_, _>>()?;
        if places.len() > ALTERNATIVES_MAX {
            return Err(format!("has more than {ALTERNATIVES_MAX} alternatives in {text:?}"));
        }
        Ok(Reference { text: text.to_owned(), places })
    }

    fn place(&mut self, text: &str) -> Result<Place, String> {
        let unknown = || {
            format!(
                "has {text:?}, which is no reference: use body:/pointer, item:/pointer, header:name, query:name, \
                 form:field, config:name, literal:text, raw:sha256, digest, unique or type"
            )
        };
        match text.split_once(':') {
            None if text == "type" => Ok(Place::Kind),
            None if text == "index" => Ok(Place::Index),
            None if text == "unique" => Ok(Place::Own),
            None if text == "digest" => {
                self.whole = true;
                Ok(Place::Digest(None))
            }
            Some(("type", "stem")) => Ok(Place::Stem),
            Some(("body", pointer)) => match step::split(pointer)? {
                None => self.body.add(pointer).map(Place::Body),
                Some(split) => {
                    let slot = self.body.add(split.outer)?;
                    self.body_deep.add(slot, &split).map(|(text, slot)| Place::BodyDeep(text, slot))
                }
            },
            Some(("item", pointer)) => match step::split(pointer)? {
                None => self.item.add(pointer).map(Place::Item),
                Some(split) => {
                    let slot = self.item.add(split.outer)?;
                    self.item_deep.add(slot, &split).map(|(text, slot)| Place::ItemDeep(text, slot))
                }
            },
            Some(("outer", pointer)) => match step::split(pointer)? {
                None => self.outer.add(pointer).map(Place::Outer),
                Some(_) => Err(format!("steps into a text in {pointer:?}, which only body: and item: can")),
            },
            Some(("raw", "sha256")) => Ok(Place::RawSha256),
            Some(("literal", text)) if !text.trim().is_empty() => Ok(Place::Literal(text.to_owned())),
            Some(("header", name)) => name.parse().map(Place::Header).map_err(|_| unknown()),
            Some(("query", name)) if !name.is_empty() => Ok(Place::Query(self.query(name))),
            Some(("form", field)) if !field.is_empty() => self.form_place(field),
            Some(("config", name)) => self.config_place(name),
            Some(("digest", of)) if is_json(of) => Ok(Place::Digest(Some(Box::new(self.place(of)?)))),
            Some(("has", of)) if is_json(of) => {
                let name = of.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~");
                if name.trim().is_empty() || !of.contains('/') {
                    return Err(unknown());
                }
                Ok(Place::Has(Box::new(self.place(of)?), name))
            }
            _ => Err(unknown()),
        }
    }

    fn config_place(&self, name: &str) -> Result<Place, String> {
        let first = self.config.get(name).and_then(|values| values.first());
        let missing = || format!("refers to `config.{name}`, which is missing: add it to the source's `config`");
        first.cloned().map(Place::Config).ok_or_else(missing)
    }

    fn form_place(&mut self, text: &str) -> Result<Place, String> {
        let Some((name, pointer)) = text.split_once(":/") else { return Ok(Place::Field(self.field(text))) };
        let field = self.field(name);
        let known = self.field_json.iter().position(|(of, _)| *of == field);
        let place = known.unwrap_or_else(|| {
            self.field_json.push((field, Wanted::default()));
            self.field_json.len() - 1
        });
        Ok(Place::FieldJson(place, self.field_json[place].1.add(&format!("/{pointer}"))?))
    }
}

fn is_json(text: &str) -> bool {
    text.starts_with("body:") || text.starts_with("item:")
}

impl Reference {
    /// The first alternative that is there; `Ok(None)` when none is.
    pub(super) fn text<'a>(&'a self, found: &Found<'a>) -> Result<Option<Cow<'a, str>>, Fault> {
        let mut blank = false;
        for place in &self.places {
            match place.text(found)? {
                Some(text) if text.trim().is_empty() => blank = true,
                Some(text) => return Ok(Some(text)),
                None => {}
            }
        }
        if blank { Err(Fault::Blank) } else { Ok(None) }
    }

    /// What each alternative holds, up to the first that is there.
    pub(super) fn tried(&self, found: &Found<'_>) -> Vec<Tried> {
        let mut tried = Vec::new();
        for (place, reference) in self.places.iter().zip(self.text.split(" | ")) {
            let held = match place.text(found) {
                Ok(Some(_)) if matches!(place, Place::Config(_)) => Held::Hidden,
                Ok(Some(text)) => Held::text(&text),
                Ok(None) => Held::Nothing,
                Err(Fault::Blank) => Held::Blank,
                Err(Fault::NotScalar) => Held::Unfit("an object or an array"),
                Err(Fault::NotText) => Held::Unfit("no valid text"),
                Err(Fault::Duplicate) => Held::Unfit("there twice"),
                Err(Fault::NoDigest(_)) => Held::Unfit("without a canonical form"),
            };
            let last = !matches!(held, Held::Nothing | Held::Blank);
            tried.push(Tried { reference: reference.trim().to_owned(), held });
            if last {
                break;
            }
        }
        tried
    }

    /// The headers it reads.
    pub(super) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.places.iter().filter_map(|place| match place {
            Place::Header(name) => Some(name),
            _ => None,
        })
    }

    /// Whether it reads something that only the address holds.
    pub(super) fn reads_query(&self) -> bool {
        self.any(|place| matches!(place, Place::Query(_)))
    }

    /// Whether all of it stands in headers and query.
    pub(super) fn is_of_head(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Query(_) | Place::Header(_)))
    }

    /// Whether it is the same text for every event.
    pub(super) fn is_constant(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Literal(_) | Place::Config(_)))
    }

    /// Whether it is the same text for every event, and not one that the source's user states.
    pub(super) fn is_literal(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Literal(_)))
    }

    /// Whether it reads what only the event itself has.
    pub(super) fn is_own(&self) -> bool {
        self.any(|place| matches!(place, Place::Own))
    }

    /// Whether it reads the current item.
    pub(super) fn reads_item(&self) -> bool {
        self.any(|place| matches!(place, Place::Item(_) | Place::ItemDeep(..) | Place::Outer(_) | Place::Index))
    }

    /// The JSON text of the first alternative that is there; `null` is there.
    pub(super) fn json<'a>(&self, found: &Found<'a>) -> Option<&'a str> {
        self.places.iter().find_map(|place| place.json(found))
    }

    /// Whether all of its alternatives are places in JSON.
    pub(super) fn is_json(&self) -> bool {
        let in_json = |place: &Place| {
            use Place::{Body, BodyDeep, FieldJson, Item, ItemDeep, Outer};
            matches!(place, Body(_) | Item(_) | Outer(_) | FieldJson(..) | BodyDeep(..) | ItemDeep(..))
        };
        self.places.iter().all(in_json)
    }

    /// Whether it can differ between the items of one batch.
    pub(super) fn tells_items_apart(&self) -> bool {
        use Place::{Digest, Item, ItemDeep, Own, RawSha256};
        self.any(|place| matches!(place, Item(_) | ItemDeep(..) | RawSha256 | Digest(None) | Own))
    }

    /// Whether it reads the event type, which is not known while the type itself is read.
    pub(super) fn reads_kind(&self) -> bool {
        self.any(|place| matches!(place, Place::Kind | Place::Stem))
    }

    fn any(&self, is: impl Fn(&Place) -> bool) -> bool {
        self.places.iter().any(|place| match place {
            Place::Has(of, _) | Place::Digest(Some(of)) => is(of),
            place => is(place),
        })
    }
}

impl Place {
    fn json<'a>(&self, found: &Found<'a>) -> Option<&'a str> {
        let at = |values: &'a [Option<&'a str>], slot: usize| values.get(slot).copied().flatten();
        match self {
            Self::Body(slot) => at(found.body, *slot),
            Self::Item(slot) => at(found.item, *slot),
            Self::Outer(slot) => at(found.outer, *slot),
            Self::BodyDeep(text, slot) => at(found.deep.get(*text)?, *slot),
            Self::ItemDeep(text, slot) => at(found.item_deep.get(*text)?, *slot),
            Self::FieldJson(place, slot) => at(found.field_json.get(*place)?, *slot),
            _ => None,
        }
    }

    fn text<'a>(&'a self, found: &Found<'a>) -> Result<Option<Cow<'a, str>>, Fault> {
        match self {
            Self::Body(_)
            | Self::Item(_)
            | Self::Outer(_)
            | Self::BodyDeep(..)
            | Self::ItemDeep(..)
            | Self::FieldJson(..) => self.json(found).map_or(Ok(None), json_text),
            Self::Field(place) => Ok(field(found.fields, *place)),
            Self::Query(place) => Ok(field(found.query, *place)),
            Self::Header(name) => {
                let Some(value) = one(found.headers, name).map_err(|_| Fault::Duplicate)? else { return Ok(None) };
                std::str::from_utf8(trimmed(value)).map(|text| Some(Cow::Borrowed(text))).map_err(|_| Fault::NotText)
            }
            Self::Literal(text) => Ok(Some(Cow::Borrowed(text))),
            Self::Config(text) => Ok(Some(Cow::Borrowed(&text.0))),
            Self::Has(of, name) => {
                Ok(of.json(found).filter(|value| *value != "null").map(|_| Cow::Borrowed(name.as_str())))
            }
            Self::Index => Ok(found.index.map(|index| Cow::Owned(index.to_string()))),
            Self::Own => Ok(found.own.map(|id| Cow::Owned(id.0.simple().to_string()))),
            Self::RawSha256 => Ok(Some(sha256(found.raw))),
            Self::Digest(None) => match found.text {
                Some(text) => digest(text, found.without).map(Some),
                None => Ok(Some(sha256(found.raw))),
            },
            Self::Digest(Some(of)) => of.json(found).map(|text| digest(text, &NOTHING)).transpose(),
            Self::Kind => Ok(present(found.kind)),
            Self::Stem => {
                let end = found.kind.rfind(['.', '/']).unwrap_or(found.kind.len());
                Ok(present(&found.kind[..end]))
            }
        }
    }
}

fn field<'a>(fields: &'a Fields, place: usize) -> Option<Cow<'a, str>> {
    fields.get(place).and_then(Option::as_deref).map(Cow::Borrowed)
}

fn sha256<'a>(bytes: &[u8]) -> Cow<'a, str> {
    Cow::Owned(hex::encode(Sha256::digest(bytes)))
}

fn digest<'a>(text: &str, without: &Without) -> Result<Cow<'a, str>, Fault> {
    canonical(text, without).map(|form| sha256(&form)).map_err(Fault::NoDigest)
}

fn present(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

fn json_text(raw: &str) -> Result<Option<Cow<'_, str>>, Fault> {
    scalar(raw).map_err(|fault| match fault {
        ValueFault::NotScalar => Fault::NotScalar,
        ValueFault::NotText => Fault::NotText,
    })
}
