//! Values at JSON pointers, also through texts that hold JSON or base64: what is passed is made where it is missing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The most steps of a pointer that a body is built for.
const STEPS_MAX: usize = 32;

enum Step {
    Name(String),
    Json,
    Base64,
}

fn steps(pointer: &str) -> Vec<Step> {
    let step = |token: &str| match token {
        "~json" => Step::Json,
        "~base64" => Step::Base64,
        name => Step::Name(name.replace("~1", "/").replace("~0", "~")),
    };
    pointer.split('/').skip(1).take(STEPS_MAX).map(step).collect()
}

/// What stands there.
pub(super) fn get(root: &Value, pointer: &str) -> Option<Value> {
    let mut at = root.clone();
    for step in steps(pointer) {
        at = match step {
            Step::Name(name) => match at {
                Value::Object(mut members) => members.remove(&name)?,
                Value::Array(mut items) => {
                    let index = name.parse().ok().filter(|index| *index < items.len())?;
                    items.swap_remove(index)
                }
                _ => return None,
            },
            Step::Json => serde_json::from_str(at.as_str()?).ok()?,
            Step::Base64 => Value::String(from_base64(at.as_str()?)?),
        };
    }
    Some(at)
}

/// Puts a value there. A number stays a number and a text a text where that can be.
pub(super) fn put(root: &mut Value, pointer: &str, value: &Value) {
    put_at(root, &steps(pointer), value);
}

fn put_at(at: &mut Value, steps: &[Step], value: &Value) {
    let Some((step, rest)) = steps.split_first() else {
        *at = fitted(at, value);
        return;
    };
    match step {
        Step::Json => {
            let mut inner = at.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
            put_at(&mut inner, rest, value);
            *at = Value::String(inner.to_string());
        }
        Step::Base64 => {
            let mut inner = at.as_str().and_then(from_base64).map_or(Value::Null, Value::String);
            put_at(&mut inner, rest, value);
            *at = Value::String(STANDARD.encode(inner.as_str().unwrap_or_default()));
        }
        Step::Name(name) => {
            if let Value::Array(items) = at
                && let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get_mut(index))
            {
                return put_at(item, rest, value);
            }
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            if let Value::Object(members) = at {
                put_at(members.entry(name.clone()).or_insert(Value::Null), rest, value);
            }
        }
    }
}

fn fitted(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Number(_), Value::String(text)) => text.parse::<u64>().map_or_else(|_| new.clone(), Value::from),
        (Value::String(_), Value::Number(number)) => Value::String(number.to_string()),
        _ => new.clone(),
    }
}

fn from_base64(text: &str) -> Option<String> {
    let letters: String = text.split_ascii_whitespace().collect();
    String::from_utf8(STANDARD.decode(letters).ok()?).ok()
}

/// The text of a scalar; `None` for null, a blank text, and what has members.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The XML that reads as this JSON.
pub(super) fn xml(value: &Value) -> String {
    let mut out = String::new();
    if let Value::Object(members) = value {
        members.iter().for_each(|(name, value)| element(name, value, &mut out));
    }
    out
}

fn element(name: &str, value: &Value, out: &mut String) {
    if let Value::Array(items) = value {
        return items.iter().for_each(|item| element(name, item, out));
    }
    out.push('<');
    out.push_str(name);
    let mut inside = String::new();
    match value {
        Value::Null => out.push_str(" nil=\"true\""),
        Value::Object(members) => {
            for (member, value) in members {
                let escaped = || escaped(&text(value).unwrap_or_default());
                match member.strip_prefix('@') {
                    Some(attribute) => out.push_str(&format!(" {attribute}=\"{}\"", escaped())),
                    None if member == "#text" => inside.push_str(&escaped()),
                    None => element(member, value, &mut inside),
                }
            }
        }
        _ => inside.push_str(&escaped(&text(value).unwrap_or_default())),
    }
    out.push('>');
    out.push_str(&inside);
    out.push_str(&format!("</{name}>"));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::json_of;
    use crate::source::spec::DecodeSpec;

    #[test]
    fn a_pointer_makes_what_it_passes_and_keeps_what_a_value_was() {
        let mut body = json!({ "a": 1, "b": [{ "id": "x" }], "at": "5" });
        put(&mut body, "/data/x~1y/id", &json!("7"));
        put(&mut body, "/a", &json!("12"));
        put(&mut body, "/b/0/id", &json!("y"));
        put(&mut body, "/at", &json!(6));
        assert_eq!(body, json!({ "a": 12, "b": [{ "id": "y" }], "at": "6", "data": { "x/y": { "id": "7" } } }));
        assert_eq!(get(&body, "/b/0/id"), Some(json!("y")));
        assert_eq!(get(&body, "/b/1/id"), None);
    }

    #[test]
    fn texts_inside_are_opened_and_closed_again() {
        let mut body = json!({ "Message": "{\"detail\":{\"id\":\"a\"}}", "data": "eyJpZCI6ImEifQ==" });
        put(&mut body, "/Message/~json/detail/id", &json!("b"));
        put(&mut body, "/data/~base64/~json/id", &json!("b"));
        assert_eq!(body["Message"], "{\"detail\":{\"id\":\"b\"}}");
        assert_eq!(body["data"], "eyJpZCI6ImIifQ==");
        assert_eq!(get(&body, "/data/~base64/~json/id"), Some(json!("b")));
    }

    #[test]
    fn xml_is_read_as_what_it_was_written_from() {
        let value = json!({ "n": { "kind": "a & b", "sub": { "@id": "7", "#text": "x" }, "none": null, "e": "" } });
        let read = json_of(&xml(&value), DecodeSpec::Xml).expect("XML");
        assert_eq!(serde_json::from_str::<Value>(&read).expect("JSON"), value);
    }
}
