//! A request in the making: a sample taken apart, so that texts can be put where a source reads them.
//!
//! Knows how a body is written (JSON, XML, base64, a form, a form with one of them inside, items of a batch, lines)
//! and nothing of what is put there. A batch is sent with one item, so that one request is one event.

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde_json::{Value, json};

use super::nested::{self, text};
use super::place::Place;
use crate::source::presets::Sample;
use crate::source::spec::DecodeSpec;
use crate::source::{SourceSpec, json_of};

const FORM: &str = "application/x-www-form-urlencoded";

type Fields = Vec<(String, String)>;

pub(super) struct Made<'s> {
    pub(super) headers: HeaderMap,
    query: Fields,
    form: Option<Fields>,
    /// The body, where it is of no kind that is read.
    raw: Option<String>,
    /// What `body:` reads, if anything.
    json: Option<Value>,
    /// Of a source with batches: the one item, and the outer item around it.
    item: Option<Value>,
    outer: Option<Value>,
    /// Where the array of the batch stands, and the array in each of its items.
    array: Option<(&'s str, Option<&'s str>)>,
    spec: &'s SourceSpec,
}

impl<'s> Made<'s> {
    /// The sample taken apart; without one, a body that says who made it.
    pub(super) fn of(spec: &'s SourceSpec, sample: Option<&Sample>) -> Result<Self, String> {
        let content_type = sample.map_or_else(|| content_type(spec), |sample| sample.content_type.clone());
        let is_form = content_type.starts_with(FORM);
        let mut made = Self {
            headers: HeaderMap::new(),
            query: sample.map_or_else(Vec::new, |sample| fields(&sample.query)),
            form: None,
            raw: None,
            json: None,
            item: None,
            outer: None,
            array: None,
            spec,
        };
        made.header(CONTENT_TYPE.as_str(), &content_type)?;
        for (name, value) in sample.iter().flat_map(|sample| &sample.headers) {
            made.header(name, value)?;
        }
        let own = sample.map(|sample| String::from_utf8_lossy(sample.body()).into_owned());
        let mut held = own.clone();
        if is_form {
            let all = own.as_deref().map_or_else(Vec::new, fields);
            let inside = spec.form_json.as_deref();
            let inside = inside.map(|name| all.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone()));
            held = inside.clone().flatten();
            made.form = Some(all);
            if own.is_none() && inside.is_some() {
                made.json = Some(said());
            }
        } else if own.is_none() {
            made.json = Some(said());
        }
        if let Some(held) = held {
            made.json = made.read(&held);
            made.raw = Some(held).filter(|_| made.json.is_none() && !is_form);
        }
        made.take_item();
        Ok(made)
    }

    fn read(&self, text: &str) -> Option<Value> {
        let line = if self.spec.batch.as_deref() == Some("lines") { text.lines().next()? } else { text };
        serde_json::from_str(&json_of(line, self.spec.decode.unwrap_or_default())?).ok()
    }

    /// Takes the one item out of the first array that is there, or out of none.
    fn take_item(&mut self) {
        let Some(batch) = self.spec.batch.as_deref() else { return };
        if batch == "lines" {
            self.item = self.json.take().or_else(|| Some(said()));
            return;
        }
        let Some(json) = &self.json else { return };
        let first = |value: &Value, pointer: &str| nested::get(value, pointer)?.as_array()?.first().cloned();
        let split = |choice: &'s str| {
            let pointer = choice.trim().strip_prefix("body:")?;
            Some(pointer.split_once("/*").map_or((pointer, None), |(outer, inner)| (outer, Some(inner))))
        };
        let arrays: Vec<(&str, Option<&str>)> = batch.split(" | ").filter_map(split).collect();
        let there = arrays.iter().find(|(at, inner)| {
            first(json, at).is_some_and(|one| inner.is_none_or(|inner| first(&one, inner).is_some()))
        });
        let Some(&(at, inner)) = there.or(arrays.first()) else { return };
        let one = first(json, at).unwrap_or_else(said);
        match inner {
            None => self.item = Some(one),
            Some(inner) => {
                self.item = Some(first(&one, inner).unwrap_or_else(said));
                self.outer = Some(one);
            }
        }
        self.array = Some((at, inner));
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| format!("{value:?} is no header's value"))?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// What stands there.
    pub(super) fn value(&self, place: &Place) -> Option<Value> {
        let field = |name: &str| self.form.as_ref()?.iter().find(|(known, _)| known == name).map(|(_, text)| text);
        match place {
            Place::Header(name) => Some(json!(self.headers.get(name)?.to_str().ok()?)),
            Place::Query(name) => self.query.iter().find(|(known, _)| known == name).map(|(_, text)| json!(text)),
            Place::Field(name) => field(name).map(|text| json!(text)),
            Place::FieldJson(name, pointer) => nested::get(&serde_json::from_str(field(name)?).ok()?, pointer),
            Place::Body(pointer) => nested::get(self.json.as_ref()?, pointer),
            Place::Item(pointer) => nested::get(self.item.as_ref()?, pointer),
            Place::Outer(pointer) => nested::get(self.outer.as_ref()?, pointer),
        }
    }

    /// The text that a source reads there.
    pub(super) fn text(&self, place: &Place) -> Option<String> {
        text(&self.value(place)?)
    }

    /// Whether something can stand there.
    pub(super) fn has_room(&self, place: &Place) -> bool {
        match place {
            Place::Header(_) | Place::Query(_) => true,
            Place::Field(_) | Place::FieldJson(..) => self.form.is_some(),
            Place::Body(_) => self.json.is_some(),
            Place::Item(_) => self.item.is_some(),
            Place::Outer(_) => self.outer.is_some(),
        }
    }

    /// Puts a value there, if it can stand there.
    pub(super) fn put(&mut self, place: &Place, value: &Value) -> Result<(), String> {
        let text = text(value).unwrap_or_default();
        match place {
            Place::Header(name) => return self.header(name, &text),
            Place::Query(name) => set(&mut self.query, name, text),
            Place::Field(name) => {
                if let Some(form) = &mut self.form {
                    set(form, name, text);
                }
            }
            Place::FieldJson(name, pointer) => {
                if let Some(form) = &mut self.form {
                    let held = form.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
                    let mut held = held.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
                    nested::put(&mut held, pointer, value);
                    set(form, name, held.to_string());
                }
            }
            Place::Body(pointer) => self.json.iter_mut().for_each(|root| nested::put(root, pointer, value)),
            Place::Item(pointer) => self.item.iter_mut().for_each(|root| nested::put(root, pointer, value)),
            Place::Outer(pointer) => self.outer.iter_mut().for_each(|root| nested::put(root, pointer, value)),
        }
        Ok(())
    }

    /// Makes the body another one, in a place that nobody reads.
    pub(super) fn stamp(&mut self, text: &str) {
        let place = if self.item.is_some() { Place::Item } else { Place::Body };
        if let Some(raw) = &mut self.raw {
            let is_xml = raw.trim_start().starts_with('<');
            raw.push_str(&if is_xml { format!("<!-- {text} -->\n") } else { format!("{text}\n") });
        } else if self.json.is_some() || self.item.is_some() {
            let place = place("/sent".to_owned());
            // what has no members has nothing beside what is read
            if self.item.as_ref().is_none_or(Value::is_object) {
                // only a header's text can be refused
                let _ = self.put(&place, &json!(text));
            }
        } else if let Some(form) = &mut self.form {
            set(form, "sent", text.to_owned());
        }
    }

    /// The headers, the query and the body.
    pub(super) fn finish(mut self) -> (HeaderMap, String, Bytes) {
        if let Some(item) = self.item.take() {
            match self.array {
                None => self.json = Some(item),
                Some((at, inner)) => {
                    let mut one = item;
                    if let (Some(inner), Some(mut outer)) = (inner, self.outer.take()) {
                        nested::put(&mut outer, inner, &json!([one]));
                        one = outer;
                    }
                    self.json.iter_mut().for_each(|root| nested::put(root, at, &json!([one])));
                }
            }
        }
        let query = written(&self.query);
        let held = self.json.as_ref().map(|json| self.write(json));
        let body = match (self.form.take(), held) {
            (None, held) => self.raw.take().or(held).unwrap_or_default(),
            (Some(mut form), held) => {
                if let (Some(name), Some(held)) = (&self.spec.form_json, held) {
                    set(&mut form, name, held);
                }
                written(&form)
            }
        };
        (self.headers, query, body.into())
    }

    fn write(&self, json: &Value) -> String {
        use base64::Engine as _;
        let base64 = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
        match self.spec.decode.unwrap_or_default() {
            DecodeSpec::Json => json.to_string(),
            DecodeSpec::Xml => nested::xml(json),
            DecodeSpec::Base64Json => base64(json.to_string()),
            DecodeSpec::Base64Xml => base64(nested::xml(json)),
        }
    }
}

fn said() -> Value {
    json!({ "message": "generated by tidegate send" })
}

/// What a source takes that says nothing else: JSON, or a form where it reads only forms.
fn content_type(spec: &SourceSpec) -> String {
    let taken = spec.content_types.iter().flatten().next();
    let texts = [&spec.key, &spec.kind].into_iter().flatten().flat_map(|texts| texts.all());
    let mut texts = texts.map(String::as_str).chain(spec.version.iter().flatten().map(|part| part.from.as_str()));
    let reads_form = texts.any(|text| text.starts_with("form:"));
    match taken {
        Some(taken) => taken.clone(),
        None if reads_form => FORM.to_owned(),
        None => "application/json".to_owned(),
    }
}

fn set(fields: &mut Fields, name: &str, text: String) {
    match fields.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = text,
        None => fields.push((name.to_owned(), text)),
    }
}

/// The fields of a form or a query.
fn fields(text: &str) -> Fields {
    let mut all = Fields::new();
    if let Ok(mut url) = reqwest::Url::parse("http://localhost/") {
        url.set_query(Some(text.trim_end()));
        all.extend(url.query_pairs().into_owned());
    }
    all
}

fn written(fields: &Fields) -> String {
    let url = reqwest::Url::parse_with_params("http://localhost/", fields);
    url.ok().filter(|_| !fields.is_empty()).and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> SourceSpec {
        toml::from_str(text).expect("a source")
    }

    fn body(made: Made<'_>) -> String {
        String::from_utf8(made.finish().2.to_vec()).expect("a text")
    }

    #[test]
    fn a_batch_is_sent_with_one_item_at_either_level() {
        let spec = spec("batch = 'body:/entry/*/changes'");
        let mut made = Made::of(&spec, None).expect("a body");
        made.put(&Place::Item("/id".to_owned()), &json!("i")).expect("put");
        made.put(&Place::Outer("/id".to_owned()), &json!("o")).expect("put");
        let body: Value = serde_json::from_str(&body(made)).expect("JSON");
        assert_eq!(body["entry"][0]["id"], "o");
        assert_eq!(body["entry"][0]["changes"][0]["id"], "i");
    }

    #[test]
    fn a_form_s_field_is_written_as_it_was_read() {
        let spec =
            spec("form_json = 'payload'\ndecode = 'base64-xml'\ncontent_types = ['application/x-www-form-urlencoded']");
        let mut made = Made::of(&spec, None).expect("a body");
        made.put(&Place::Body("/n/id".to_owned()), &json!("a&b")).expect("put");
        let body = body(made);
        let held = fields(&body).into_iter().find(|(name, _)| name == "payload").expect("the field").1;
        let read = json_of(&held, DecodeSpec::Base64Xml).expect("XML");
        assert!(read.contains(r#""n":{"id":"a&b"}"#), "{read}");
    }
}
