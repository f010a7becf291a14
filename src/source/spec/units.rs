//! Lengths of time and sizes as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// A length of time as people write it: `5m`, `300s`, `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a length of time such as \"5m\" or \"300s\"");
        let span: jiff::SignedDuration = text.parse().map_err(|_| bad())?;
        Duration::try_from(span).map(Self).map_err(|_| bad())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms % 1000 == 0 => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

/// A number of bytes as people write it: `256KiB`, `25MiB`, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub usize);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 1024), ("MiB", 1024 * 1024), ("B", 1), ("", 1)];
        let found = units.iter().find_map(|&(unit, factor)| {
            let number: usize = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            number.checked_mul(factor)
        });
        found.map(Self).ok_or_else(|| format!("{text:?} is not a size such as \"256KiB\" or \"25MiB\""))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes % (1024 * 1024) == 0 => write!(f, "{}MiB", bytes / (1024 * 1024)),
            bytes if bytes > 0 && bytes % 1024 == 0 => write!(f, "{}KiB", bytes / 1024),
            bytes => write!(f, "{bytes}B"),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(bytes) => usize::try_from(bytes).map(Self).map_err(de::Error::custom),
            NumberOrText::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
