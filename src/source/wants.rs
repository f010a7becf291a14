//! Everything a source's references want from a request, and the way it is taken out: decoded texts first, then
//! the places in them. Builds nothing that no reference asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use actix_web::http::header::{CONTENT_TYPE, HeaderMap};

use super::canonical::Without;
use super::form::{self, Fields, FormFault};
use super::json::{JsonFault, Values, Wanted};
use super::reference::Found;
use super::rules::Flaw;
use super::step::{Deep, Picks};
use super::verify::trimmed;
use super::{decode, spec::DecodeSpec};

/// A text of the settings that is not to be shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Hidden(pub(super) Arc<str>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(***)")
    }
}

/// The values of a source's own `config` table.
pub(super) type ConfigValues = Arc<BTreeMap<String, Vec<Hidden>>>;

/// What is wanted of one kind of request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    pub(super) body: Wanted,
    pub(super) body_deep: Deep,
    pub(super) item: Wanted,
    pub(super) item_deep: Deep,
    /// Of the outer item, where a batch has two levels.
    pub(super) outer: Wanted,
    /// Form fields by name.
    pub(super) fields: Vec<String>,
    /// JSON inside form fields: index into `fields`, and what is wanted there.
    pub(super) field_json: Vec<(usize, Wanted)>,
    /// Query parameters by name.
    pub(super) query: Vec<String>,
    /// The whole JSON text is needed.
    pub(super) whole: bool,
    /// The values that `config:` refers to.
    pub(super) config: ConfigValues,
}

/// How the text that `body:` refers to is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextRule {
    /// The form field that holds it, where the body is a form.
    pub(super) form_json: Option<usize>,
    /// What it is written in.
    pub(super) decode: DecodeSpec,
}

/// The texts of one request.
pub(super) struct Texts<'a> {
    pub(super) fields: Fields,
    pub(super) query: Fields,
    /// The text that `body:` refers to: of the raw bytes, or decoded.
    pub(super) body: Option<Cow<'a, str>>,
}

/// The values picked out of [`Texts`].
pub(super) struct Picked<'t> {
    pub(super) body: Values<'t>,
    pub(super) field_json: Vec<Picks<'t>>,
    /// The texts that pointers of the body step into.
    pub(super) deep_texts: Vec<Option<String>>,
}

impl Wants {
    /// The place of a form field among the wanted ones.
    pub(super) fn field(&mut self, name: &str) -> usize {
        place(&mut self.fields, name)
    }

    /// The place of a query parameter among the wanted ones.
    pub(super) fn query(&mut self, name: &str) -> usize {
        place(&mut self.query, name)
    }

    /// Takes the wanted texts out of a request; `body` is what is inside its content encoding.
    pub(super) fn texts<'a>(
        &self,
        rule: TextRule,
        headers: &HeaderMap,
        target: &str,
        body: &'a [u8],
    ) -> Result<Texts<'a>, Flaw> {
        let as_form = is_form(headers);
        let wanted: &[String] = if as_form { &self.fields } else { &[] };
        let fields = form::read(body, wanted).map_err(form_flaw)?;
        let query = self.query_of(target)?;
        let is_wanted = self.whole || !self.body.is_empty();
        let text = match rule.form_json.filter(|_| as_form) {
            Some(field) if is_wanted => self.form_json(&fields, field)?.map(Cow::Owned),
            None if is_wanted => Some(Cow::Borrowed(body_text(body)?)),
            _ => None,
        };
        let text = text.map(|text| decode::text(text, rule.decode)).transpose()?;
        Ok(Texts { fields, query, body: text })
    }

    /// The form field that holds the JSON. Where nothing else of a form is wanted a form without it is no event: any
    /// body is one, and who changes the unsigned content type of a signed request must not make an empty event of it.
    fn form_json(&self, fields: &Fields, field: usize) -> Result<Option<String>, Flaw> {
        let text = fields.get(field).cloned().flatten();
        if text.is_none() && self.fields.len() == 1 {
            let name = &self.fields[field];
            let reason =
                format!("the body is sent as a form, and the form field {name:?} that holds the event is missing");
            return Err(Flaw::new("form-field-missing", reason));
        }
        Ok(text)
    }

    /// Takes out what a request without a body has.
    pub(super) fn query_only(&self, target: &str) -> Result<Texts<'static>, Flaw> {
        Ok(Texts { fields: Fields::new(), query: self.query_of(target)?, body: None })
    }

    /// The wanted query parameters.
    fn query_of(&self, target: &str) -> Result<Fields, Flaw> {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        form::read(query.as_bytes(), &self.query).map_err(|fault| match fault {
            FormFault::Duplicate(name) => {
                Flaw::new("query-duplicate", format!("the needed query parameter {name:?} came twice"))
            }
            FormFault::NotText(name) => {
                Flaw::new("query-not-text", format!("the query parameter {name:?} is not UTF-8"))
            }
        })
    }

    /// Picks the wanted places out of the texts.
    pub(super) fn pick<'t>(&self, texts: &'t Texts<'_>) -> Result<Picked<'t>, Flaw> {
        let body = match texts.body.as_deref() {
            Some(text) if !self.body.is_empty() => self.body.read(text).map_err(json_flaw)?,
            _ => self.body.absent(),
        };
        let mut field_json = Vec::with_capacity(self.field_json.len());
        for (field, wanted) in &self.field_json {
            let text = texts.fields.get(*field).and_then(Option::as_deref);
            let values = text.map_or_else(|| Ok(wanted.absent()), |text| wanted.read(text).map_err(json_flaw))?;
            field_json.push(values.into_vec());
        }
        let deep_texts = self.body_deep.texts(&body);
        Ok(Picked { body, field_json, deep_texts })
    }
}

impl<'t> Picked<'t> {
    /// What references look texts up in; `deep` are the values of `deep_texts`.
    pub(super) fn found<'f>(
        &'f self,
        texts: &'f Texts<'_>,
        deep: &'f [Picks<'f>],
        headers: &'f HeaderMap,
        raw: &'f [u8],
    ) -> Found<'f>
    where
        't: 'f,
    {
        Found {
            body: &self.body,
            deep,
            fields: &texts.fields,
            query: &texts.query,
            field_json: &self.field_json,
            text: texts.body.as_deref(),
            ..Found::empty(headers, raw)
        }
    }
}

fn place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// A tree of members that no text has.
pub(super) static NOTHING: Without = Without::none();

pub(super) fn body_text(body: &[u8]) -> Result<&str, Flaw> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        Flaw::new("body-not-text", format!("the body is not UTF-8 from byte {at} on: ask the sender for UTF-8"))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

pub(super) fn json_flaw(fault: JsonFault) -> Flaw {
    match fault {
        JsonFault::NotJson(error) => Flaw::new("body-not-json", format!("the body is not JSON: {error}")),
        JsonFault::Duplicate(name) => Flaw::new(
            "body-duplicate-key",
            format!("the needed key {name:?} stands twice in one object, and readers differ on which one counts"),
        ),
    }
}

fn form_flaw(fault: FormFault) -> Flaw {
    match fault {
        FormFault::Duplicate(name) => {
            Flaw::new("body-duplicate-key", format!("the needed form field {name:?} came twice"))
        }
        FormFault::NotText(name) => Flaw::new("body-not-text", format!("the form field {name:?} is not UTF-8")),
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"application/x-www-form-urlencoded";
    let value = headers.get(CONTENT_TYPE).map(trimmed).unwrap_or_default();
    value.len() >= FORM.len() && value[..FORM.len()].eq_ignore_ascii_case(FORM)
}
