//! XML as the JSON that references are read from: elements are members, text is text.
//!
//! | XML | JSON |
//! | --- | --- |
//! | `<a>text</a>` | `"a":"text"` |
//! | `<a/>`, `<a nil="true"/>` | `"a":""`, `"a":null` |
//! | `<a><b>1</b></a>` | `"a":{"b":"1"}` |
//! | `<a id="7">x</a>` | `"a":{"@id":"7","#text":"x"}`; `type`, `nil` and `xmlns` say nothing and are left out |
//! | `<a/><a/>` | the member `a` twice: a fault where it is needed, and else no matter |
//!
//! Promises: no document type, no entities beyond the five and numbers, nothing fetched; depth and the number of
//! elements are bounded, and so is the JSON, by a small multiple of the XML.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// The most levels of elements.
const DEPTH_MAX: usize = 32;
/// The most elements.
const ELEMENTS_MAX: usize = 10_000;

/// Why a text is no XML that is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmlFault {
    /// Not well formed.
    #[error("{0}")]
    Malformed(String),
    /// It has a document type, which may define entities.
    #[error("it has a document type, which is not read")]
    Doctype,
    /// More levels or elements than are read.
    #[error("it has more than {DEPTH_MAX} levels or {ELEMENTS_MAX} elements")]
    TooLarge,
}

/// An element that is still open.
struct Open {
    /// Its members, written as JSON with a comma before each.
    members: String,
    text: String,
    nil: bool,
}

/// The JSON of an XML text.
pub(super) fn to_json(xml: &str) -> Result<String, XmlFault> {
    let malformed = |error: &dyn std::fmt::Display| XmlFault::Malformed(error.to_string());
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Open { members: String::new(), text: String::new(), nil: false }];
    let mut elements = 0;
    loop {
        match reader.read_event().map_err(|error| malformed(&error))? {
            Event::Start(start) => {
                open.push(opened(&start, &mut elements, open.len())?);
            }
            Event::Empty(start) => {
                let element = opened(&start, &mut elements, open.len())?;
                close(&mut open, start.local_name().as_ref(), &element);
            }
            Event::End(end) => {
                let element = open.pop().ok_or_else(|| malformed(&"an end without a beginning"))?;
                close(&mut open, end.local_name().as_ref(), &element);
            }
            Event::Text(text) => push(&mut open, &text.xml10_content()),
            Event::CData(text) => push(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let number = reference.resolve_char_ref().map_err(|error| malformed(&error))?;
                let known = match (number, &*reference) {
                    (Some(letter), _) => letter,
                    (None, "lt") => '<',
                    (None, "gt") => '>',
                    (None, "amp") => '&',
                    (None, "apos") => '\'',
                    (None, "quot") => '"',
                    _ => return Err(malformed(&"an entity that is not one of the five")),
                };
                push(&mut open, known.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => return Err(XmlFault::Doctype),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    match open.as_slice() {
        [root] if elements > 0 && root.text.trim().is_empty() => {
            Ok(format!("{{{}}}", root.members.trim_start_matches(',')))
        }
        _ => Err(malformed(&"it has no element, one that is not closed, or text outside")),
    }
}

fn opened(start: &BytesStart<'_>, elements: &mut usize, depth: usize) -> Result<Open, XmlFault> {
    *elements += 1;
    if depth > DEPTH_MAX || *elements > ELEMENTS_MAX {
        return Err(XmlFault::TooLarge);
    }
    let mut element = Open { members: String::new(), text: String::new(), nil: false };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| XmlFault::Malformed(error.to_string()))?;
        let key = attribute.key.as_ref();
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| XmlFault::Malformed(error.to_string()))?;
        match key {
            "nil" | "xsi:nil" => element.nil = value == "true",
            "type" | "xmlns" => {}
            _ if key.starts_with("xmlns:") => {}
            _ => member(&mut element.members, &format!("@{key}"), &quoted(&value)),
        }
    }
    Ok(element)
}

fn close(open: &mut [Open], name: &str, element: &Open) {
    let text = element.text.trim();
    let value = match (element.members.is_empty(), text.is_empty()) {
        (true, true) if element.nil => "null".to_owned(),
        (true, _) => quoted(text),
        (false, true) => format!("{{{}}}", &element.members[1..]),
        (false, false) => format!("{{{},\"#text\":{}}}", &element.members[1..], quoted(text)),
    };
    if let Some(parent) = open.last_mut() {
        member(&mut parent.members, name, &value);
    }
}

fn push(open: &mut [Open], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn member(members: &mut String, name: &str, value: &str) {
    members.push(',');
    members.push_str(&quoted(name));
    members.push(':');
    members.push_str(value);
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_are_members_and_text_is_text() {
        let xml = "<?xml version=\"1.0\"?>\n<notification xmlns=\"urn:x\">\n <timestamp type=\"datetime\">2016-01-01T00:00:00Z</timestamp>\n <kind>a &amp; b &#xe9;</kind>\n <subject><s:subscription id=\"7\">\n <id>x</id><note/><until nil=\"true\"/></s:subscription></subject><!-- c --><t a=\"1\"><![CDATA[<x>]]></t>\n</notification>\n";
        let expected = serde_json::json!({ "notification": {
            "timestamp": "2016-01-01T00:00:00Z",
            "kind": "a & b é",
            "subject": { "subscription": { "@id": "7", "id": "x", "note": "", "until": null } },
            "t": { "@a": "1", "#text": "<x>" },
        }});
        let json = to_json(xml).expect("XML");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), expected);
    }

    #[test]
    fn nothing_is_defined_fetched_or_unbounded() {
        let laughs = "<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>";
        assert_eq!(to_json(laughs), Err(XmlFault::Doctype));
        assert_eq!(to_json("<!DOCTYPE l SYSTEM \"file:///etc/passwd\"><l/>"), Err(XmlFault::Doctype));
        assert!(matches!(to_json("<l>&b;</l>"), Err(XmlFault::Malformed(_))));
        let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
        assert_eq!(to_json(&deep), Err(XmlFault::TooLarge));
        assert_eq!(to_json(&format!("<l>{}</l>", "<a/>".repeat(10_000))), Err(XmlFault::TooLarge));
    }

    #[test]
    fn what_is_no_xml_is_a_fault() {
        for text in ["", "x", "<a>", "<a></b>", "</a>", "<a/>x", "{}", "<a b=1/>", "<a><b></a></b>"] {
            assert!(matches!(to_json(text), Err(XmlFault::Malformed(_))), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_json_or_a_fault_and_never_a_panic(text in "[a-c<>/&;#x1\"= !\\[\\]?é-]{0,60}") {
            if let Ok(json) = to_json(&text) {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok(), "{}", json);
            }
        }
    }
}
