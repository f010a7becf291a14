//! References: where in a request a text stands. `a | b` takes the first that is there.
//!
//! | reference | text |
//! | --- | --- |
//! | `body:/pointer` | JSON pointer into the body, or into the form field `form_json` |
//! | `item:/pointer` | JSON pointer into the current item of `batch` or of `also.each` |
//! | `form:field` | a field of a form |
//! | `form:field:/pointer` | JSON pointer into a form field |
//! | `header:name` | a header |
//! | `literal:text` | the text itself |
//! | `raw:sha256` | hexadecimal SHA-256 of the body; in a batch, of the item |
//! | `type` | the event type; `type:stem` up to its last `.` or `/` |

use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use super::form::Fields;
use super::json::{ValueFault, Wanted, scalar};
use super::verify::{one, trimmed};

/// The most alternatives of one reference.
const ALTERNATIVES_MAX: usize = 8;

/// Everything a source's references want from a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) body: Wanted,
    pub(super) item: Wanted,
    /// Form fields by name.
    pub(super) fields: Vec<String>,
    /// JSON inside form fields: index into `fields`, and what is wanted there.
    pub(super) field_json: Vec<(usize, Wanted)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Body(usize),
    Item(usize),
    Field(usize),
    FieldJson(usize, usize),
    Header(HeaderName),
    Literal(String),
    RawSha256,
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
    pub(super) fields: &'a Fields,
    pub(super) field_json: &'a [Vec<Option<&'a str>>],
    pub(super) item: &'a [Option<&'a str>],
    pub(super) kind: &'a str,
}

/// What is wrong with a referenced text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Blank,
    NotScalar,
    NotText,
    Duplicate,
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
                "has {text:?}, which is no reference: use body:/pointer, item:/pointer, header:name, form:field, \
                 literal:text, raw:sha256 or type"
            )
        };
        match text.split_once(':') {
            None if text == "type" => Ok(Place::Kind),
            Some(("type", "stem")) => Ok(Place::Stem),
            Some(("body", pointer)) => self.body.add(pointer).map(Place::Body),
            Some(("item", pointer)) => self.item.add(pointer).map(Place::Item),
            Some(("raw", "sha256")) => Ok(Place::RawSha256),
            Some(("literal", text)) if !text.trim().is_empty() => Ok(Place::Literal(text.to_owned())),
            Some(("header", name)) => name.parse().map(Place::Header).map_err(|_| unknown()),
            Some(("form", field)) if !field.is_empty() => self.form_place(field),
            _ => Err(unknown()),
        }
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

    /// The place of a form field among the wanted ones.
    pub(super) fn field(&mut self, name: &str) -> usize {
        self.fields.iter().position(|field| field == name).unwrap_or_else(|| {
            self.fields.push(name.to_owned());
            self.fields.len() - 1
        })
    }
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

    /// The headers it reads.
    pub(super) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.places.iter().filter_map(|place| match place {
            Place::Header(name) => Some(name),
            _ => None,
        })
    }

    /// Whether it is the same text for every event.
    pub(super) fn is_constant(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Literal(_)))
    }

    /// Whether it reads the current item.
    pub(super) fn reads_item(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Item(_)))
    }

    /// The JSON text of the first alternative that is there; `null` is there.
    pub(super) fn json<'a>(&self, found: &Found<'a>) -> Option<&'a str> {
        self.places.iter().find_map(|place| match place {
            Place::Body(slot) => found.body.get(*slot).copied().flatten(),
            Place::Item(slot) => found.item.get(*slot).copied().flatten(),
            Place::FieldJson(place, slot) => found.field_json.get(*place)?.get(*slot).copied().flatten(),
            _ => None,
        })
    }

    /// Whether all of its alternatives are places in JSON.
    pub(super) fn is_json(&self) -> bool {
        self.places.iter().all(|place| matches!(place, Place::Body(_) | Place::Item(_) | Place::FieldJson(..)))
    }

    /// Whether it can differ between the items of one batch.
    pub(super) fn tells_items_apart(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Item(_) | Place::RawSha256))
    }

    /// Whether it reads the event type, which is not known while the type itself is read.
    pub(super) fn reads_kind(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Kind | Place::Stem))
    }
}

impl Place {
    fn text<'a>(&'a self, found: &Found<'a>) -> Result<Option<Cow<'a, str>>, Fault> {
        match self {
            Self::Body(slot) => json_text(found.body.get(*slot)),
            Self::Item(slot) => json_text(found.item.get(*slot)),
            Self::FieldJson(place, slot) => json_text(found.field_json.get(*place).and_then(|json| json.get(*slot))),
            Self::Field(place) => Ok(found.fields.get(*place).and_then(Option::as_deref).map(Cow::Borrowed)),
            Self::Header(name) => {
                let Some(value) = one(found.headers, name).map_err(|_| Fault::Duplicate)? else { return Ok(None) };
                std::str::from_utf8(trimmed(value)).map(|text| Some(Cow::Borrowed(text))).map_err(|_| Fault::NotText)
            }
            Self::Literal(text) => Ok(Some(Cow::Borrowed(text))),
            Self::RawSha256 => Ok(Some(Cow::Owned(hex::encode(Sha256::digest(found.raw))))),
            Self::Kind => Ok(present(found.kind)),
            Self::Stem => {
                let end = found.kind.rfind(['.', '/']).unwrap_or(found.kind.len());
                Ok(present(&found.kind[..end]))
            }
        }
    }
}

fn present(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

fn json_text<'a>(raw: Option<&Option<&'a str>>) -> Result<Option<Cow<'a, str>>, Fault> {
    let Some(raw) = raw.copied().flatten() else { return Ok(None) };
    scalar(raw).map_err(|fault| match fault {
        ValueFault::NotScalar => Fault::NotScalar,
        ValueFault::NotText => Fault::NotText,
    })
}
