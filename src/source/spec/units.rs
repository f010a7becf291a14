//! Lengths of time and sizes as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// A length of time as people write it: `5m`, `300s`, `1h 30m`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a length of time such as \"5m\" or \"300s\"");
        let (days, rest) = match text.split_once('d') {
            Some((days, rest)) if days.bytes().all(|byte| byte.is_ascii_digit()) => {
                (days.parse::<u32>().map_err(|_| bad())?, rest.trim_start())
            }
            _ => (0, text),
        };
        let days = Duration::from_secs(u64::from(days) * 86_400);
        if rest.is_empty() && !days.is_zero() {
            return Ok(Self(days));
        }
        let span: jiff::SignedDuration = rest.parse().map_err(|_| bad())?;
        let span = Duration::try_from(span).map_err(|_| bad())?;
        span.checked_add(days).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms > 0 && ms % 86_400_000 == 0 => write!(f, "{}d", ms / 86_400_000),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_days_too() {
        let read = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        for (text, ms) in [("7d", 604_800_000), ("1d 12h", 129_600_000), ("1h 30m", 5_400_000), ("250ms", 250)] {
            assert_eq!(read(text), Ok(ms), "{text}");
        }
        for text in ["", "d", "7", "0x7d", "-1d", "-5s", "1d x", "99999999999d"] {
            assert!(read(text).is_err(), "{text}");
        }
        for text in ["7d", "90s", "250ms"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()).as_deref(), Ok(text));
        }
    }
}
