//! One pass over a JSON text that picks out the wanted pointers and builds nothing else.
//!
//! Promises: picked values are slices of the text, so numbers keep every digit; what is not wanted may hold
//! any escape, also `\u0000` and lone surrogates; a wanted key that comes twice is a fault, since readers
//! differ on which one counts. Needs memory for the picked slices only, and depth of the wanted pointers only.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// The most pointers one source may want.
const SLOTS_MAX: usize = 128;
/// The most children of one place that may be wanted: one bit each.
const CHILDREN_MAX: usize = 64;

/// The raw text of each wanted pointer; `None` where the text has no such place.
pub(super) type Values<'a> = SmallVec<[Option<&'a str>; 16]>;

/// The wanted pointers as a tree.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    nodes: Vec<Node>,
    slots: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<Child>,
    slot: Option<usize>,
}

#[derive(Clone, Debug)]
struct Child {
    name: String,
    index: Option<usize>,
    node: usize,
}

/// Why a text gives no values.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonFault {
    /// Not one JSON value and blanks.
    NotJson(String),
    /// A wanted key stands twice in one object.
    Duplicate(String),
}

/// A picked value that is no text, number or truth value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ValueFault {
    /// An object or an array.
    NotScalar,
    /// Text with an escape that is no character.
    NotText,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], slots: 0 }
    }
}

impl Wanted {
    /// Adds a JSON pointer; gives the place of its value in [`Values`].
    pub(super) fn add(&mut self, pointer: &str) -> Result<usize, String> {
        let mut at = 0;
        if !pointer.is_empty() {
            let Some(path) = pointer.strip_prefix('/') else {
                return Err(format!("has the JSON pointer {pointer:?}, which must begin with `/`"));
            };
            for token in path.split('/') {
                at = self.child(at, &token.replace("~1", "/").replace("~0", "~"))?;
            }
        }
        if let Some(slot) = self.nodes[at].slot {
            return Ok(slot);
        }
        if self.slots == SLOTS_MAX {
            return Err(format!("makes more than {SLOTS_MAX} JSON pointers in one source: leave some out"));
        }
        let slot = self.slots;
        self.nodes[at].slot = Some(slot);
        self.slots += 1;
        Ok(slot)
    }

    fn child(&mut self, at: usize, name: &str) -> Result<usize, String> {
        if let Some(child) = self.nodes[at].children.iter().find(|child| child.name == name) {
            return Ok(child.node);
        }
        if self.nodes[at].children.len() == CHILDREN_MAX {
            return Err(format!("makes more than {CHILDREN_MAX} JSON pointers into one object: leave some out"));
        }
        let node = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[at].children.push(Child { name: name.to_owned(), index: name.parse().ok(), node });
        Ok(node)
    }

    /// Nothing is wanted.
    pub(super) const fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// No value at all, for a request without such a text.
    pub(super) fn absent<'a>(&self) -> Values<'a> {
        SmallVec::from_elem(None, self.slots)
    }

    /// Picks the wanted values out of a text that must be JSON from end to end.
    pub(super) fn read<'a>(&self, text: &'a str) -> Result<Values<'a>, JsonFault> {
        let mut values = self.absent();
        let mut duplicate = None;
        let mut json = serde_json::Deserializer::from_str(text);
        let picked = Pick { wanted: self, node: 0, inside: false, values: &mut values, duplicate: &mut duplicate };
        let read = picked.deserialize(&mut json).and_then(|()| json.end());
        match (duplicate, read) {
            (Some(name), _) => Err(JsonFault::Duplicate(name)),
            (None, Err(error)) => Err(JsonFault::NotJson(error.to_string())),
            (None, Ok(())) => Ok(values),
        }
    }
}

struct Pick<'t, 'v, 'a> {
    wanted: &'t Wanted,
    node: usize,
    /// The node's own text is already picked: only its children are wanted.
    inside: bool,
    values: &'v mut Values<'a>,
    duplicate: &'v mut Option<String>,
}

impl<'a> DeserializeSeed<'a> for Pick<'_, '_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        let node = &self.wanted.nodes[self.node];
        let Some(slot) = node.slot.filter(|_| !self.inside) else {
            return if node.children.is_empty() {
                IgnoredAny::deserialize(deserializer).map(drop)
            } else {
                deserializer.deserialize_any(self)
            };
        };
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        self.values[slot] = Some(raw);
        if node.children.is_empty() {
            return Ok(());
        }
        let inside = Pick { inside: true, ..self };
        inside.deserialize(&mut serde_json::Deserializer::from_str(raw)).map_err(serde::de::Error::custom)
    }
}

impl<'a> Visitor<'a> for Pick<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { wanted, node, values, duplicate, .. } = self;
        let children = &wanted.nodes[node].children;
        let mut seen = 0_u64;
        while let Some(found) = map.next_key_seed(Find { children })? {
            let Some(place) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let child = &children[place];
            if seen & (1 << place) != 0 {
                *duplicate = Some(child.name.clone());
                return Err(serde::de::Error::custom("a key that is needed stands twice"));
            }
            seen |= 1 << place;
            map.next_value_seed(Pick { wanted, node: child.node, inside: false, values, duplicate })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { wanted, node, values, duplicate, .. } = self;
        let children = &wanted.nodes[node].children;
        for index in 0.. {
            let more = match children.iter().find(|child| child.index == Some(index)) {
                Some(child) => {
                    seq.next_element_seed(Pick { wanted, node: child.node, inside: false, values, duplicate })?
                }
                None => seq.next_element::<IgnoredAny>()?.map(drop),
            };
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    // a scalar where an object was expected has none of the wanted places
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Finds a key among the wanted children without keeping its text.
struct Find<'t> {
    children: &'t [Child],
}

impl<'a> DeserializeSeed<'a> for Find<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Find<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.children.iter().position(|child| child.name == key))
    }
}

/// The text of a picked scalar: a string's characters, a number's digits as sent; `None` for `null`.
pub(super) fn scalar(raw: &str) -> Result<Option<Cow<'_, str>>, ValueFault> {
    match raw.as_bytes().first() {
        Some(b'"') => {
            let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
            if !inner.contains('\\') {
                return Ok(Some(Cow::Borrowed(inner)));
            }
            serde_json::from_str(raw).map(|text| Some(Cow::Owned(text))).map_err(|_| ValueFault::NotText)
        }
        Some(b'{' | b'[') => Err(ValueFault::NotScalar),
        Some(b'n') | None => Ok(None),
        Some(_) => Ok(Some(Cow::Borrowed(raw))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const POINTERS: [&str; 8] = ["/a", "/a/b", "/a/b/c", "/a/0", "/a/1/b", "/d", "/d/e~1f", "/~0"];

    fn wanted(pointers: &[&str]) -> Wanted {
        let mut wanted = Wanted::default();
        for pointer in pointers {
            wanted.add(pointer).expect("a pointer");
        }
        wanted
    }

    fn picked<'a>(pointers: &[&str], text: &'a str) -> Vec<Option<&'a str>> {
        wanted(pointers).read(text).expect("JSON").to_vec()
    }

    #[test]
    fn numbers_keep_every_digit() {
        let text = r#"{"id": 820982911946154508, "big": 123456789012345678901234567890.10, "e": 1E2}"#;
        assert_eq!(
            picked(&["/id", "/big", "/e"], text),
            [Some("820982911946154508"), Some("123456789012345678901234567890.10"), Some("1E2")]
        );
    }

    #[test]
    fn a_pointer_and_places_below_it_are_both_picked() {
        let text = r#"{"a":{"b":[1,{"c":"x"}]},"a2":1}"#;
        assert_eq!(
            picked(&["/a", "/a/b/1/c", "/a/b/7", ""], text),
            [Some(r#"{"b":[1,{"c":"x"}]}"#), Some(r#""x""#), None, Some(text)]
        );
    }

    #[test]
    fn what_is_not_wanted_may_hold_any_escape() {
        let text = r#"{"diff":"a\u0000b \ud800","n":{"deep":[1e999]},"id":"x"}"#;
        assert_eq!(picked(&["/id"], text), [Some(r#""x""#)]);
    }

    #[test]
    fn a_wanted_key_that_comes_twice_is_a_fault() {
        let fault = |text| wanted(&["/a/b", "/id"]).read(text).expect_err("a fault");
        assert_eq!(fault(r#"{"id":1,"id":1}"#), JsonFault::Duplicate("id".to_owned()));
        assert_eq!(fault(r#"{"id":1,"\u0069d":2}"#), JsonFault::Duplicate("id".to_owned()));
        assert_eq!(fault(r#"{"a":{"b":1,"b":1}}"#), JsonFault::Duplicate("b".to_owned()));
        assert!(wanted(&["/id"]).read(r#"{"x":1,"x":2,"id":3}"#).is_ok());
    }

    #[test]
    fn what_is_not_json_from_end_to_end_is_a_fault() {
        for text in ["", "{", "{\"a\":1}x", "{\"a\":1}{}", "{'a':1}", "{\"a\":01}", "{\"a\":NaN}", "[1,]", "\u{7f}"] {
            assert!(matches!(wanted(&["/a"]).read(text), Err(JsonFault::NotJson(_))), "{text:?}");
        }
        let deep = format!("{{\"x\":{}{},\"a\":1}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(picked(&["/a"], &deep), [Some("1")]);
    }

    #[test]
    fn scalars_are_read_as_the_sender_wrote_them() {
        assert_eq!(scalar(r#""a\u00e9\/""#), Ok(Some(Cow::Borrowed("aé/"))));
        assert_eq!(scalar("1.00"), Ok(Some(Cow::Borrowed("1.00"))));
        assert_eq!(scalar("null"), Ok(None));
        assert_eq!(scalar("{}"), Err(ValueFault::NotScalar));
        assert_eq!(scalar(r#""\ud800""#), Err(ValueFault::NotText));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let key = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e/f"), Just("~"), Just("x")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn one_pass_picks_what_a_walk_through_the_whole_value_finds(json in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) };
            let text = text.expect("JSON");
            let values = picked(&POINTERS, &text);
            for (pointer, value) in POINTERS.iter().zip(values) {
                let value: Option<Value> = value.map(|raw| serde_json::from_str(raw).expect("JSON"));
                prop_assert_eq!(value.as_ref(), json.pointer(pointer), "{}", pointer);
            }
        }

        #[test]
        fn any_text_is_read_or_refused_and_never_a_panic(text in ".{0,80}") {
            let _ = wanted(&POINTERS).read(&text);
            let _ = scalar(&text);
        }
    }
}
