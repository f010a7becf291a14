//! Where a text stands in a request, and the texts a scheme needs, read once and no further than it needs them.

use std::borrow::Cow;

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::super::form::{self, Fields, FormFault};
use super::super::json::{Values, Wanted, scalar};
use super::super::{Reason, Request};

/// The most numbered headers.
pub(super) const NUMBERED_MAX: usize = 100;
/// The most fields of a form or a query.
const FIELDS_MAX: usize = 32;

/// A place that can hold one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Header(HeaderName),
    /// `name-1`, `name-2` and so on: places of signatures only.
    Numbered(Vec<HeaderName>),
    Body(usize),
    Item(usize),
    Form(usize),
    Query(usize),
}

/// What a scheme reads of a request besides its headers.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    pub(super) body: Wanted,
    pub(super) item: Wanted,
    /// Where the item's own object stands below an element of the array.
    pub(super) item_base: String,
    pub(super) forms: Vec<String>,
    pub(super) queries: Vec<String>,
    /// The pointers behind `body` and `item`, by their slots: for signing.
    pub(super) pointers: [Vec<String>; 2],
}

/// The texts a scheme needs of one request.
pub(super) struct Facts<'a> {
    headers: &'a HeaderMap,
    pub(super) body: Values<'a>,
    form: Fields,
    query: Fields,
}

/// The texts with those of the current item.
#[derive(Clone, Copy)]
pub(super) struct View<'f> {
    headers: &'f HeaderMap,
    body: &'f [Option<&'f str>],
    form: &'f Fields,
    query: &'f Fields,
    item: &'f [Option<&'f str>],
}

impl Facts<'_> {
    pub(super) fn view<'f>(&'f self, item: &'f [Option<&'f str>]) -> View<'f> {
        View { headers: self.headers, body: &self.body, form: &self.form, query: &self.query, item }
    }
}

impl Needs {
    /// Compiles a place and notes what it needs; the text says what is wrong with it.
    pub(super) fn place(&mut self, text: &str) -> Result<Place, String> {
        let unknown = || {
            format!(
                "has {text:?}, which is no place: use header:name, body:/pointer, item:/pointer, form:name or query:name"
            )
        };
        match text.split_once(':') {
            Some(("header", name)) => header_place(name).ok_or_else(unknown),
            Some(("body", pointer)) => self.body_slot(pointer).map(Place::Body),
            Some(("item", pointer)) => {
                let pointer = format!("{}{pointer}", self.item_base);
                let slot = self.item.add(&pointer)?;
                note(&mut self.pointers[1], slot, pointer);
                Ok(Place::Item(slot))
            }
            Some(("form", name)) if !name.is_empty() => field(&mut self.forms, name).map(Place::Form),
            Some(("query", name)) if !name.is_empty() => field(&mut self.queries, name).map(Place::Query),
            _ => Err(unknown()),
        }
    }

    /// A place as the rules write it.
    pub(super) fn shown(&self, place: &Place) -> String {
        let of = |texts: &[String], slot: usize| texts.get(slot).cloned().unwrap_or_default();
        match place {
            Place::Header(name) => format!("header:{name}"),
            Place::Numbered(names) => {
                let first = names.first().map_or("", HeaderName::as_str);
                format!("header:{}*", first.trim_end_matches('1'))
            }
            Place::Body(slot) => format!("body:{}", of(&self.pointers[0], *slot)),
            Place::Item(slot) => format!("item:{}", of(&self.pointers[1], *slot)),
            Place::Form(slot) => format!("form:{}", of(&self.forms, *slot)),
            Place::Query(slot) => format!("query:{}", of(&self.queries, *slot)),
        }
    }

    pub(super) fn body_slot(&mut self, pointer: &str) -> Result<usize, String> {
        let slot = self.body.add(pointer)?;
        note(&mut self.pointers[0], slot, pointer.to_owned());
        Ok(slot)
    }

    pub(super) fn read<'a>(&self, request: &Request<'a>) -> Result<Facts<'a>, Reason> {
        let (json, fields) = match (self.body.is_empty(), self.forms.is_empty()) {
            (false, false) => {
                let form = is_form(request.headers);
                (!form, form)
            }
            (nothing, no_fields) => (!nothing, !no_fields),
        };
        let body = if json { read_json(&self.body, request.body)? } else { self.body.absent() };
        let form = if fields {
            form::read(request.body, &self.forms).map_err(|fault| form_reason(&fault))?
        } else {
            Fields::from_elem(None, self.forms.len())
        };
        let query = if self.queries.is_empty() {
            Fields::new()
        } else {
            form::read(query_of(request.target).as_bytes(), &self.queries).map_err(|fault| form_reason(&fault))?
        };
        Ok(Facts { headers: request.headers, body, form, query })
    }
}

fn note(pointers: &mut Vec<String>, slot: usize, pointer: String) {
    if slot == pointers.len() {
        pointers.push(pointer);
    }
}

fn field(known: &mut Vec<String>, name: &str) -> Result<usize, String> {
    if let Some(place) = known.iter().position(|field| field == name) {
        return Ok(place);
    }
    if known.len() == FIELDS_MAX {
        return Err(format!("makes more than {FIELDS_MAX} fields of one form: leave some out"));
    }
    known.push(name.to_owned());
    Ok(known.len() - 1)
}

/// A header, or with `-*` at its end the numbered ones.
pub(super) fn header_place(name: &str) -> Option<Place> {
    let Some(stem) = name.strip_suffix("-*") else { return name.parse().ok().map(Place::Header) };
    let numbered = (1..=NUMBERED_MAX).map(|number| format!("{stem}-{number}").parse().ok());
    numbered.collect::<Option<Vec<_>>>().map(Place::Numbered)
}

fn read_json<'a>(wanted: &Wanted, body: &'a [u8]) -> Result<Values<'a>, Reason> {
    let text = std::str::from_utf8(body).map_err(|_| Reason::MalformedBody)?;
    wanted.read(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|_| Reason::MalformedBody)
}

fn form_reason(fault: &FormFault) -> Reason {
    match fault {
        FormFault::Duplicate(_) => Reason::DuplicateHeader,
        FormFault::NotText(_) => Reason::MalformedBody,
    }
}

/// Whether the body is a form; a request without a content type is not.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"application/x-www-form-urlencoded";
    let value = headers.get(CONTENT_TYPE).map(trimmed).unwrap_or_default();
    value.len() >= FORM.len() && value[..FORM.len()].eq_ignore_ascii_case(FORM)
}

pub(super) fn query_of(target: &str) -> &str {
    target.split_once('?').map_or("", |(_, query)| query)
}

impl Place {
    /// The text; `None` where there is none or a blank one.
    pub(super) fn text<'f>(&self, view: View<'f>) -> Result<Option<Cow<'f, [u8]>>, Reason> {
        let text = match self {
            Self::Header(name) => one(view.headers, name)?.map(|value| Cow::Borrowed(trimmed(value))),
            Self::Numbered(names) => return Self::first(names, view),
            Self::Body(slot) => json_text(view.body.get(*slot))?,
            Self::Item(slot) => json_text(view.item.get(*slot))?,
            Self::Form(slot) => field_text(view.form, *slot),
            Self::Query(slot) => field_text(view.query, *slot),
        };
        Ok(text.filter(|text| !text.is_empty()))
    }

    fn first<'f>(names: &[HeaderName], view: View<'f>) -> Result<Option<Cow<'f, [u8]>>, Reason> {
        for name in names {
            if let Some(value) = one(view.headers, name)? {
                return Ok(Some(Cow::Borrowed(trimmed(value))));
            }
        }
        Ok(None)
    }

    /// All texts of a signature's place.
    pub(super) fn texts<'f>(&self, view: View<'f>, all: &mut Texts<'f>) -> Result<(), Reason> {
        let Self::Numbered(names) = self else {
            all.extend(self.text(view)?);
            return Ok(());
        };
        for name in names {
            if let Some(value) = one(view.headers, name)? {
                all.push(Cow::Borrowed(trimmed(value)));
            }
        }
        Ok(())
    }

    /// Whether something stands there, be it fit or not.
    pub(super) fn is_there(&self, view: View<'_>) -> bool {
        match self {
            Self::Header(name) => view.headers.contains_key(name),
            Self::Numbered(names) => names.iter().any(|name| view.headers.contains_key(name)),
            _ => !matches!(self.text(view), Ok(None)),
        }
    }

    /// The header that is this place.
    pub(super) fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Header(name) => std::slice::from_ref(name),
            Self::Numbered(names) => names,
            _ => &[],
        }
    }
}

/// The texts that hold signatures.
pub(super) type Texts<'f> = SmallVec<[Cow<'f, [u8]>; 1]>;

fn field_text(fields: &Fields, slot: usize) -> Option<Cow<'_, [u8]>> {
    fields.get(slot).and_then(Option::as_deref).map(|text| Cow::Borrowed(text.as_bytes()))
}

fn json_text<'f>(raw: Option<&Option<&'f str>>) -> Result<Option<Cow<'f, [u8]>>, Reason> {
    let Some(raw) = raw.copied().flatten() else { return Ok(None) };
    let text = scalar(raw).map_err(|_| Reason::MalformedBody)?;
    Ok(text.map(|text| match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }))
}

/// The header's only value: two values may be read differently by a proxy and by us.
pub(in super::super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Reason> {
    let mut values = headers.get_all(name);
    let first = values.next();
    if values.next().is_some() {
        return Err(Reason::DuplicateHeader);
    }
    Ok(first)
}

/// A header's value without the blanks around it, which belong to the transport.
pub(in super::super) fn trimmed(value: &HeaderValue) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let bytes = value.as_bytes();
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}
