//! A request that is being signed: texts are put where they stand.

use actix_web::http::header::{HeaderMap, HeaderValue};
use bytes::Bytes;
use serde_json::Value;

use super::super::Request;
use super::place::{Needs, Place};
use super::sign::SignError;

/// What is sent.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Path and query.
    pub target: String,
}

impl Draft {
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self { headers: request.headers.clone(), body: request.body.clone(), target: request.target.to_owned() }
    }

    /// How many items the array at this pointer has.
    pub(super) fn items(&self, array: &str) -> Result<usize, SignError> {
        let body: Value = serde_json::from_slice(&self.body).map_err(|_| SignError::NotJson)?;
        body.pointer(array).and_then(Value::as_array).map(Vec::len).ok_or(SignError::NotJson)
    }

    pub(super) fn put(
        &mut self,
        needs: &Needs,
        place: &Place,
        item: Option<(&str, usize)>,
        text: &str,
    ) -> Result<(), SignError> {
        match (place, item) {
            (Place::Header(_) | Place::Numbered(_), _) => {
                let name = place.headers().first().ok_or(SignError::MissingHeader)?;
                let value = HeaderValue::from_str(text).map_err(|_| SignError::NotAHeader(text.to_owned()))?;
                self.headers.insert(name.clone(), value);
            }
            (Place::Body(slot), _) => {
                let pointer = needs.pointers[0].get(*slot).ok_or(SignError::NotJson)?;
                self.put_json(pointer, text)?;
            }
            (Place::Item(slot), Some((array, index))) => {
                let pointer = needs.pointers[1].get(*slot).ok_or(SignError::NotJson)?;
                self.put_json(&format!("{array}/{index}{pointer}"), text)?;
            }
            (Place::Item(_), None) => return Err(SignError::NotJson),
            (Place::Form(slot), _) => {
                let name = needs.forms.get(*slot).map_or("", String::as_str);
                let body = with_field(&String::from_utf8_lossy(&self.body), name, text);
                self.body = Bytes::from(body);
            }
            (Place::Query(slot), _) => {
                let name = needs.queries.get(*slot).map_or("", String::as_str);
                let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
                self.target = format!("{path}?{}", with_field(query, name, text));
            }
        }
        Ok(())
    }

    fn put_json(&mut self, pointer: &str, text: &str) -> Result<(), SignError> {
        let mut body: Value = serde_json::from_slice(&self.body).map_err(|_| SignError::NotJson)?;
        let mut at = &mut body;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            at = match at {
                Value::Object(members) => members.entry(token).or_insert(Value::Null),
                Value::Array(items) => {
                    let index: usize = token.parse().map_err(|_| SignError::NotJson)?;
                    items.get_mut(index).ok_or(SignError::NotJson)?
                }
                _ => return Err(SignError::NotJson),
            };
        }
        // a number stays one
        let number = text.parse::<i64>().ok().filter(|_| at.is_number());
        *at = number.map_or_else(|| Value::from(text), Value::from);
        self.body = serde_json::to_vec(&body).map(Bytes::from).map_err(|_| SignError::NotJson)?;
        Ok(())
    }
}

/// The fields with one more, or with another value of it.
fn with_field(fields: &str, name: &str, text: &str) -> String {
    let escaped = |text: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(one).collect()
    };
    let own = format!("{}=", escaped(name));
    let mut all: Vec<String> =
        fields.split('&').filter(|field| !field.is_empty() && !field.starts_with(&own)).map(str::to_owned).collect();
    all.push(format!("{own}{}", escaped(text)));
    all.join("&")
}
