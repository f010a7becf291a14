//! JSON in one canonical form, so that two texts of the same value are the same bytes: members sorted by name, no
//! blanks, text escaped in one way, numbers as the sender wrote them.
//!
//! Promises: numbers never pass through a float, so `1.0` and `1.00` differ; a member that stands twice is a
//! fault, since readers differ on which one counts; depth is bounded. What cannot be text (a lone surrogate)
//! stays as it is written.

/// The most levels of objects and arrays.
const DEPTH_MAX: usize = 64;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CanonicalFault {
    /// More levels than are read.
    TooDeep,
    /// A member stands twice in one object.
    Duplicate(String),
    /// No JSON.
    NotJson,
}

/// Members to leave out, as a tree of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Without {
    whole: bool,
    below: Vec<(String, Without)>,
}

impl Without {
    /// Leaves out nothing.
    pub(super) const fn none() -> Self {
        Self { whole: false, below: Vec::new() }
    }

    /// Leaves out the member at a JSON pointer.
    pub(super) fn add(&mut self, pointer: &str) {
        let mut at = self;
        for token in pointer.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            let place = at.below.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                at.below.push((name, Self::default()));
                at.below.len() - 1
            });
            at = &mut at.below[place].1;
        }
        at.whole = true;
    }

    fn below(&self, name: &str) -> Option<&Self> {
        self.below.iter().find(|(known, _)| known == name).map(|(_, below)| below)
    }
}

/// The canonical form of a JSON text without some members.
pub(super) fn canonical(text: &str, without: &Without) -> Result<Vec<u8>, CanonicalFault> {
    let mut reader = Reader { text, at: 0 };
    let mut out = Vec::with_capacity(text.len());
    reader.value(&mut out, Some(without), 0)?;
    reader.blanks();
    if reader.at == text.len() { Ok(out) } else { Err(CanonicalFault::NotJson) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    }

    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), CanonicalFault> {
        if self.peek() != Some(byte) {
            return Err(CanonicalFault::NotJson);
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, out: &mut Vec<u8>, without: Option<&Without>, depth: usize) -> Result<(), CanonicalFault> {
        if depth > DEPTH_MAX {
            return Err(CanonicalFault::TooDeep);
        }
        match self.peek() {
            Some(b'{') => self.object(out, without, depth),
            Some(b'[') => self.array(out, depth),
            Some(b'"') => {
                let raw = self.quoted()?;
                out.extend_from_slice(&plain(raw));
                Ok(())
            }
            _ => {
                let from = self.at;
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b'"' | b':');
                let rest = &self.text.as_bytes()[from..];
                self.at += rest.iter().take_while(|byte| !ends(byte)).count();
                let word = &self.text[from..self.at];
                if serde_json::from_str::<&serde_json::value::RawValue>(word).is_err() {
                    return Err(CanonicalFault::NotJson);
                }
                out.extend_from_slice(word.as_bytes());
                Ok(())
            }
        }
    }

    /// A text with its quotes, as it stands.
    fn quoted(&mut self) -> Result<&'a str, CanonicalFault> {
        let from = self.at;
        self.expect(b'"')?;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(CanonicalFault::NotJson),
            }
        }
        self.at += 1;
        self.text.get(from..self.at).ok_or(CanonicalFault::NotJson)
    }

    fn object(&mut self, out: &mut Vec<u8>, without: Option<&Without>, depth: usize) -> Result<(), CanonicalFault> {
        self.expect(b'{')?;
        let mut members: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        while members.is_empty() || self.goes_on(b'}')? {
            if members.is_empty() && self.peek() == Some(b'}') {
                self.at += 1;
                break;
            }
            self.blanks();
            let raw = self.quoted()?;
            let name = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
            self.expect(b':')?;
            let below = without.and_then(|without| without.below(&name));
            let mut value = Vec::new();
            self.value(&mut value, below, depth + 1)?;
            members.push((plain(raw), (!below.is_some_and(|below| below.whole)).then_some(value)));
        }
        members.sort();
        if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(CanonicalFault::Duplicate(String::from_utf8_lossy(&pair[0].0).into_owned()));
        }
        out.push(b'{');
        for (name, value) in members.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            if !out.ends_with(b"{") {
                out.push(b',');
            }
            out.extend_from_slice(name);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Ok(())
    }

    fn array(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<(), CanonicalFault> {
        self.expect(b'[')?;
        out.push(b'[');
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            self.value(out, None, depth + 1)?;
            while self.goes_on(b']')? {
                out.push(b',');
                self.value(out, None, depth + 1)?;
            }
        }
        out.push(b']');
        Ok(())
    }

    /// Whether a comma comes, or the end.
    fn goes_on(&mut self, end: u8) -> Result<bool, CanonicalFault> {
        let byte = self.peek().filter(|&byte| byte == b',' || byte == end).ok_or(CanonicalFault::NotJson)?;
        self.at += 1;
        Ok(byte == b',')
    }
}

/// A text in the one way of escaping.
fn plain(raw: &str) -> Vec<u8> {
    let text = serde_json::from_str::<String>(raw).ok().and_then(|text| serde_json::to_vec(&text).ok());
    text.unwrap_or_else(|| raw.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn form(text: &str, pointers: &[&str]) -> String {
        let mut without = Without::default();
        pointers.iter().for_each(|pointer| without.add(pointer));
        String::from_utf8(canonical(text, &without).expect("JSON")).expect("text")
    }

    #[test]
    fn one_value_has_one_form_however_it_is_written() {
        let expected = r#"{"a":[1,{"x":null}],"b":"é/","c":1.00}"#;
        for text in [
            r#"{"a":[1,{"x":null}],"b":"é/","c":1.00}"#,
            " {\"c\" : 1.00,\n\"b\":\"\\u00e9\\/\" , \"\\u0061\":[ 1 , {\"x\" : null } ] } ",
        ] {
            assert_eq!(form(text, &[]), expected, "{text}");
        }
        assert_ne!(form(r#"{"c":1.0}"#, &[]), form(r#"{"c":1.00}"#, &[]), "numbers stay as sent");
        assert_eq!(form("{}", &[]), "{}");
        assert_eq!(form(r#"{"":[{},[]]}"#, &[]), r#"{"":[{},[]]}"#);
        assert_eq!(form(r#""\ud800""#, &[]), r#""\ud800""#, "what is no text stays as written");
    }

    #[test]
    fn members_are_left_out_wherever_they_stand() {
        let text = r#"{"b":{"try":1,"x":2},"n/m":7,"a":1}"#;
        assert_eq!(form(text, &["/b/try", "/n~1m", "/none/such"]), r#"{"a":1,"b":{"x":2}}"#);
        assert_eq!(form(text, &["/b"]), r#"{"a":1,"n/m":7}"#);
        assert_eq!(form(text, &["/b", "/a", "/n~1m"]), "{}");
    }

    #[test]
    fn what_is_ambiguous_too_deep_or_no_json_is_a_fault() {
        let fault = |text: &str| canonical(text, &Without::default()).expect_err("a fault");
        assert_eq!(fault(r#"{"a":1,"\u0061":2}"#), CanonicalFault::Duplicate("\"a\"".to_owned()));
        assert_eq!(fault(&format!("{}{}", "[".repeat(99), "]".repeat(99))), CanonicalFault::TooDeep);
        for text in ["", "{", "{\"a\":1}x", "{\"a\":1,}", "[1,]", "[1 2]", "{a:1}", "nul", "\"a", "{\"a\" 1}", "01"] {
            assert_eq!(fault(text), CanonicalFault::NotJson, "{text:?}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".{0,6}".prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{0,2}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_form_is_the_value_and_the_same_from_every_writing(json in any_json()) {
            let pretty = serde_json::to_string_pretty(&json).expect("JSON");
            let one = form(&pretty, &[]);
            prop_assert_eq!(&one, &form(&json.to_string(), &[]));
            prop_assert_eq!(serde_json::from_str::<Value>(&one).expect("JSON"), json);
        }

        #[test]
        fn any_text_has_a_form_or_none_and_never_a_panic(text in "[\\PC{}\\[\\],:\"\\\\é ]{0,60}") {
            let _ = canonical(&text, &Without::default());
        }
    }
}
