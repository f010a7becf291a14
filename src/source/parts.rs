//! The parts of a picked value: the items of an array, the members of an object, each as its raw text.
//!
//! Promises: parts are slices of the text; what has more parts than are taken is told without counting them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Why a picked value gives no items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemsFault {
    /// It is no array.
    NotAnArray,
    /// It has more items than are taken.
    TooMany,
}

/// The items of a picked array as raw texts, at most `max`: more are not even counted.
pub(super) fn items(raw: &str, max: usize) -> Result<Vec<&str>, ItemsFault> {
    if !raw.starts_with('[') {
        return Err(ItemsFault::NotAnArray);
    }
    let mut full = false;
    let read = serde_json::Deserializer::from_str(raw).deserialize_seq(Items { max, full: &mut full });
    read.map_err(|_| if full { ItemsFault::TooMany } else { ItemsFault::NotAnArray })
}

struct Items<'f> {
    max: usize,
    full: &'f mut bool,
}

impl<'a> Visitor<'a> for Items<'_> {
    type Value = Vec<&'a str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&RawValue>()? {
            if items.len() == self.max {
                *self.full = true;
                return Err(serde::de::Error::custom("too many items"));
            }
            items.push(item.get());
        }
        Ok(items)
    }
}

/// Why a picked value gives no members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MembersFault {
    /// It is no object.
    NotAnObject,
    /// It has more members than are taken.
    TooMany,
    /// A name stands twice.
    Duplicate(String),
    /// A name holds an escape that is no character.
    NotText,
}

/// The members of a picked object, at most `max`: their names, and their values as raw texts.
pub(super) fn members(raw: &str, max: usize) -> Result<Vec<(String, &str)>, MembersFault> {
    if !raw.starts_with('{') {
        return Err(MembersFault::NotAnObject);
    }
    let mut fault = MembersFault::NotText;
    let read = serde_json::Deserializer::from_str(raw).deserialize_map(Members { max, fault: &mut fault });
    read.map_err(|_| fault)
}

struct Members<'f> {
    max: usize,
    fault: &'f mut MembersFault,
}

impl<'a> Visitor<'a> for Members<'_> {
    type Value = Vec<(String, &'a str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: Vec<(String, &str)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<&RawValue>()?.get();
            if members.len() == self.max {
                *self.fault = MembersFault::TooMany;
                return Err(serde::de::Error::custom("too many members"));
            }
            if !seen.insert(name.clone()) {
                *self.fault = MembersFault::Duplicate(name);
                return Err(serde::de::Error::custom("a member stands twice"));
            }
            members.push((name, value));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn items_are_slices_of_the_text_up_to_a_bound() {
        let text = r#"[ {"a": 1.00} ,"x",[2] , null]"#;
        assert_eq!(items(text, 4), Ok(vec![r#"{"a": 1.00}"#, r#""x""#, "[2]", "null"]));
        assert_eq!(items(text, 3), Err(ItemsFault::TooMany));
        assert_eq!(items("[]", 0), Ok(vec![]));
        for text in ["{}", "7", "null", r#""[1]""#] {
            assert_eq!(items(text, 4), Err(ItemsFault::NotAnArray), "{text}");
        }
    }

    #[test]
    fn members_keep_their_exact_texts() {
        let text = r#"{ "a" : 1.00, "b\u00e9":{"x": [ ]}, "c": null }"#;
        let expected = vec![("a".to_owned(), "1.00"), ("bé".to_owned(), r#"{"x": [ ]}"#), ("c".to_owned(), "null")];
        assert_eq!(members(text, 3), Ok(expected));
        assert_eq!(members(text, 2), Err(MembersFault::TooMany));
        assert_eq!(members("[]", 2), Err(MembersFault::NotAnObject));
        assert_eq!(members(r#"{"a":1,"\u0061":2}"#, 9), Err(MembersFault::Duplicate("a".to_owned())));
        assert_eq!(members(r#"{"\ud800":1}"#, 9), Err(MembersFault::NotText));
    }

    proptest! {
        #[test]
        fn any_text_has_parts_or_none_and_never_a_panic(text in ".{0,80}") {
            let _ = items(&text, 3);
            let _ = members(&text, 3);
        }
    }
}
