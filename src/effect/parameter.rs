//! What a statement may name, and how it is given to a database.

use serde::de::IgnoredAny;

/// A named parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The event's id.
    Id,
    /// The source it came in by.
    Source,
    /// The customer inside the source; `''` when unused.
    Tenant,
    /// Its idempotency key.
    Key,
    /// Its type.
    Type,
    /// The type of its resource; NULL without one.
    ResourceType,
    /// The id of its resource; NULL without one.
    Resource,
    /// Its version as text; NULL without one.
    Version,
    /// When it was received.
    ReceivedAt,
    /// The body as JSON; NULL where it is none.
    Body,
    /// The body's bytes as they came.
    Raw,
}

impl Parameter {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 11] = [
        ("id", Self::Id),
        ("source", Self::Source),
        ("tenant", Self::Tenant),
        ("key", Self::Key),
        ("type", Self::Type),
        ("resource_type", Self::ResourceType),
        ("resource", Self::Resource),
        ("version", Self::Version),
        ("received_at", Self::ReceivedAt),
        ("body", Self::Body),
        ("raw", Self::Raw),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, parameter)| parameter)
    }
}

/// A body as JSON that every database takes: what no text of theirs may hold becomes U+FFFD. `None` where it is no JSON.
#[must_use]
pub fn checked_json(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let text = std::str::from_utf8(body).ok()?;
    if !text.contains("\\u") {
        return Some(text.to_owned());
    }
    let mut checked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        checked.push_str(before);
        // the JSON is valid, so a backslash is followed by one letter, and `u` by four digits
        let length = if escape.as_bytes().get(1) == Some(&b'u') { 6 } else { 2 };
        let unit = |text: &str| text.get(2..6).and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let first = if length == 6 { unit(escape) } else { None };
        let second = escape.get(6..).filter(|next| next.starts_with("\\u")).and_then(unit);
        let taken = match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => {
                checked.push_str(&escape[..12]);
                12
            }
            (Some(0 | 0xd800..=0xdfff), _) => {
                checked.push_str("\\ufffd");
                6
            }
            _ => {
                checked.push_str(&escape[..length]);
                length
            }
        };
        rest = &escape[taken..];
    }
    checked.push_str(rest);
    Some(checked)
}

/// An instant for a database without a type for it: RFC 3339, UTC, milliseconds, so that texts sort like times.
#[must_use]
pub fn instant(at_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_only_what_no_database_takes() {
        for same in [r#"{"a":[1,2.5e3,"x"]}"#, r#""\u00e4\ud83d\ude00\\u0000\n""#, " null "] {
            assert_eq!(checked_json(same.as_bytes()).as_deref(), Some(same));
        }
        assert_eq!(checked_json(br#"{"a":"x\u0000y"}"#).as_deref(), Some(r#"{"a":"x\ufffdy"}"#));
        assert_eq!(checked_json(br#"["\ud800","\udc00\ud800"]"#).as_deref(), Some(r#"["\ufffd","\ufffd\ufffd"]"#));
        assert_eq!(checked_json(b"a=b"), None);
        assert_eq!(checked_json(b"{\"a\":\"\xff\"}"), None);
    }

    #[test]
    fn instants_sort_as_texts() {
        assert_eq!(instant(1_772_452_800_120), "2026-03-02T12:00:00.120Z");
        assert_eq!(instant(0), "1970-01-01T00:00:00.000Z");
    }
}
