//! Durations (`"10s"`), sizes (`"4MiB"`) and rates (`"1KiB/s"`) as people write them.
//!
//! Exact whole numbers only: a value that does not fit its unit is refused, never rounded.

use std::fmt;
use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// What a duration looks like, for problem texts.
pub(crate) const DURATION_FORM: &str = "a duration such as \"500ms\", \"10s\", \"5m\", \"2h\" or \"35d\"";
/// What a size looks like, for problem texts.
pub(crate) const SIZE_FORM: &str = "a size such as \"512B\", \"64KiB\" or \"4MiB\"";
/// What a rate looks like, for problem texts.
pub(crate) const RATE_FORM: &str = "a rate such as \"512B/s\" or \"64KiB/s\"";

/// Reads `"10s"`, also in several parts such as `"1m30s"`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        total_ms = total_ms.checked_add(scaled(number, unit, &DURATION_UNITS)?)?;
        rest = tail;
    }
    Some(Duration::from_millis(total_ms))
}

/// Reads `"4MiB"`.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    scaled(number, unit.trim_start(), &SIZE_UNITS)
}

/// Reads `"1KiB/s"`: bytes a second.
pub(crate) fn rate(text: &str) -> Option<u64> {
    size(text.trim().strip_suffix("/s")?.trim_end())
}

fn scaled(number: &str, unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

/// Shows a duration in the largest unit that divides it.
pub(crate) struct ShowDuration(pub(crate) Duration);

impl fmt::Display for ShowDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        show(f, ms, &DURATION_UNITS)
    }
}

/// Shows a size in the largest unit that divides it.
pub(crate) struct ShowSize(pub(crate) u64);

impl fmt::Display for ShowSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = SIZE_UNITS.map(|(name, scale)| if name.ends_with("iB") { (name, scale) } else { ("B", 1) });
        show(f, self.0, &binary)
    }
}

fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = |(_, scale): &&(&str, u64)| value >= *scale && value.is_multiple_of(*scale);
    match units.iter().find(fits) {
        Some((name, scale)) => write!(f, "{}{name}", value / scale),
        None => write!(f, "{value}{}", units[units.len() - 1].0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_written_and_show_in_their_largest_unit() {
        for (text, ms, shown) in
            [("10s", 10_000, "10s"), ("1500ms", 1_500, "1500ms"), ("1m30s", 90_000, "90s"), ("24h", 86_400_000, "1d")]
        {
            let read = duration(text).expect("a duration");
            assert_eq!(read, Duration::from_millis(ms));
            assert_eq!(ShowDuration(read).to_string(), shown);
        }
        assert_eq!(ShowDuration(Duration::ZERO).to_string(), "0ms");
    }

    #[test]
    fn sizes_read_as_written_and_show_in_their_largest_unit() {
        for (text, bytes, shown) in [("4MiB", 4 << 20, "4MiB"), ("4 KiB", 4096, "4KiB"), ("1kB", 1000, "1000B")] {
            assert_eq!(size(text), Some(bytes));
            assert_eq!(ShowSize(bytes).to_string(), shown);
        }
        assert_eq!(rate("1KiB/s"), Some(1024));
    }

    #[test]
    fn what_is_no_unit_or_does_not_fit_is_refused() {
        for text in ["", "10", "s", "-1s", "1.5s", "10 parsecs", "99999999999999999999d", "999999999999999999d"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for text in ["", "10", "MiB", "-1B", "1.5MiB", "4mb", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(rate("1KiB"), None);
    }
}
