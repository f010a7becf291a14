//! Versions: exact typed values that order a resource's events, as order-preserving bytes beside a
//! readable text. The bytes compare like the values, so memory, `bytea` and `BLOB` agree.
//!
//! Encoding, part after part, each self-delimiting, so that tuples compare part by part:
//!
//! | part | bytes |
//! | --- | --- |
//! | integer | `0x10`, then `0x80 + n` and n packed decimal bytes; negative: `0x7f - n` and their complement |
//! | instant | `0x20`, seconds since 1970 as 8 bytes with the sign bit flipped, nanoseconds as 4 bytes |
//! | rank | `0x30`, the rank as 4 bytes |

use std::cmp::Ordering;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// The most decimal digits an integer part may have.
pub const INTEGER_DIGITS_MAX: usize = 100;
/// The most parts a version may have.
pub const VERSION_PARTS_MAX: usize = 4;

const TAG_INTEGER: u8 = 0x10;
const TAG_INSTANT: u8 = 0x20;
const TAG_RANK: u8 = 0x30;

/// Why a text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not an optional sign and decimal digits.
    #[error("{0:?} is not a whole number")]
    NotAnInteger(String),
    /// More than [`INTEGER_DIGITS_MAX`] digits.
    #[error("the number has more than {INTEGER_DIGITS_MAX} digits")]
    TooManyDigits,
    /// Not a time in the stated form.
    #[error("{text:?} is not a time as {expected}")]
    NotAnInstant {
        /// What was found, cut to a readable length.
        text: String,
        /// The form that was expected.
        expected: &'static str,
    },
    /// No part, or more than [`VERSION_PARTS_MAX`].
    #[error("a version has 1 to {VERSION_PARTS_MAX} parts")]
    PartCount,
}

/// How finely an instant is compared; finer digits are cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Whole seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds: all nine digits.
    #[default]
    Nanos,
}

impl Precision {
    const fn step_ns(self) -> i32 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

/// The unit of a time given as a number since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochUnit {
    /// Seconds, with up to nine decimal places.
    Seconds,
    /// Milliseconds, with up to six decimal places.
    Millis,
    /// Microseconds, with up to three decimal places.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl EpochUnit {
    const fn decimals(self) -> usize {
        match self {
            Self::Seconds => 9,
            Self::Millis => 6,
            Self::Micros => 3,
            Self::Nanos => 0,
        }
    }
}

/// One typed part of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A whole number of any size: its sign and its digits without leading zeros.
    Integer {
        /// Below zero.
        negative: bool,
        /// Decimal digits; `"0"` for zero.
        digits: String,
    },
    /// A point in time, already cut to its precision.
    Instant(Timestamp),
    /// A place in a declared order of event types.
    Rank(u32),
}

impl Part {
    /// A whole number, given as JSON number or text: optional sign, digits, leading zeros allowed.
    pub fn integer(text: &str) -> Result<Self, VersionError> {
        let (negative, digits) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            all => (false, all),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(VersionError::NotAnInteger(excerpt(text)));
        }
        let start = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len() - 1);
        let digits = &digits[start..];
        if digits.len() > INTEGER_DIGITS_MAX {
            return Err(VersionError::TooManyDigits);
        }
        let digits = String::from_utf8_lossy(digits).into_owned();
        Ok(Self::Integer { negative: negative && digits != "0", digits })
    }

    /// A time as RFC 3339 text with any zone; also without a zone (taken as UTC), with a blank in place
    /// of the `T`, and with `UTC` in place of `Z`, as some senders write it.
    pub fn rfc3339(text: &str, precision: Precision) -> Result<Self, VersionError> {
        let bad = || VersionError::NotAnInstant { text: excerpt(text), expected: "RFC 3339" };
        let plain = text.trim();
        let plain = plain.strip_suffix(" UTC").unwrap_or(plain);
        let time = match plain.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => {
                let civil: jiff::civil::DateTime = plain.parse().map_err(|_| bad())?;
                if !plain.contains(':') {
                    return Err(bad());
                }
                jiff::tz::TimeZone::UTC.to_timestamp(civil).map_err(|_| bad())?
            }
        };
        Ok(Self::Instant(cut(time, precision)))
    }

    /// A time as a number since 1970, decimals allowed, given as JSON number or text.
    pub fn epoch(text: &str, unit: EpochUnit, precision: Precision) -> Result<Self, VersionError> {
        let bad = || VersionError::NotAnInstant { text: excerpt(text), expected: "a number since 1970" };
        let (negative, number) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 20 || !digits_only(whole) || !digits_only(fraction) {
            return Err(bad());
        }
        if number.ends_with('.') {
            return Err(bad());
        }
        let decimals = unit.decimals();
        let kept = &fraction[..fraction.len().min(decimals)];
        let scaled: i128 = format!("{whole}{kept:0<decimals$}").parse().map_err(|_| bad())?;
        let nanos = if negative { -scaled } else { scaled };
        let time = Timestamp::from_nanosecond(nanos).map_err(|_| bad())?;
        Ok(Self::Instant(cut(time, precision)))
    }

    fn encode(&self, out: &mut Encoded) {
        match self {
            Self::Integer { negative, digits } => {
                let packed = packed_decimal(digits);
                out.push(TAG_INTEGER);
                // at most 50 packed bytes, so the length always fits beside the sign
                let length = u8::try_from(packed.len()).unwrap_or(u8::MAX / 2);
                if *negative {
                    out.push(0x7f - length);
                    out.extend(packed.into_iter().map(|byte| !byte));
                } else {
                    out.push(0x80 + length);
                    out.extend(packed);
                }
            }
            Self::Instant(time) => {
                let (seconds, nanos) = floor_seconds(*time);
                out.push(TAG_INSTANT);
                out.extend_from_slice(&(seconds as u64 ^ (1 << 63)).to_be_bytes());
                out.extend_from_slice(&nanos.to_be_bytes());
            }
            Self::Rank(rank) => {
                out.push(TAG_RANK);
                out.extend_from_slice(&rank.to_be_bytes());
            }
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { negative, digits } => write!(f, "{}{digits}", if *negative { "-" } else { "" }),
            Self::Instant(time) => write!(f, "{time}"),
            Self::Rank(rank) => write!(f, "rank {rank}"),
        }
    }
}

type Encoded = SmallVec<[u8; 24]>;

/// What orders a resource's events: a tuple of typed parts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version {
    bytes: Encoded,
    text: String,
}

impl Version {
    /// A version of these parts, the most weighty first.
    pub fn new(parts: &[Part]) -> Result<Self, VersionError> {
        if parts.is_empty() || parts.len() > VERSION_PARTS_MAX {
            return Err(VersionError::PartCount);
        }
        let mut bytes = Encoded::new();
        for part in parts {
            part.encode(&mut bytes);
        }
        let text = match parts {
            [only] => only.to_string(),
            several => several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        Ok(Self { bytes, text })
    }

    /// A version of one whole number.
    pub fn integer(text: &str) -> Result<Self, VersionError> {
        Self::new(&[Part::integer(text)?])
    }

    /// A version read back from a store.
    #[must_use]
    pub fn stored(bytes: &[u8], text: String) -> Self {
        Self { bytes: Encoded::from_slice(bytes), text }
    }

    /// Order-preserving bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its number, if it is one whole number of at most 38 digits: what has a next one.
    #[must_use]
    pub fn number(&self) -> Option<i128> {
        let single = self.bytes.first() == Some(&TAG_INTEGER);
        if single { self.text.parse().ok() } else { None }
    }
}

/// Written as its bytes in hex and its text.
impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (hex::encode(&self.bytes), &self.text).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (bytes, text) = <(String, String)>::deserialize(deserializer)?;
        let bytes = hex::decode(bytes).map_err(serde::de::Error::custom)?;
        Ok(Self::stored(&bytes, text))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", self.text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Two decimal digits a byte; an odd count gets a leading zero, which keeps the order within a length.
fn packed_decimal(digits: &str) -> SmallVec<[u8; 16]> {
    let value = |digit: u8| digit - b'0';
    let digits = digits.as_bytes();
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    let first = odd.iter().map(|&digit| value(digit));
    first.chain(pairs.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1]))).collect()
}

/// Seconds rounded towards the past and the nanoseconds after them, so that times before 1970 order too.
fn floor_seconds(time: Timestamp) -> (i64, u32) {
    let nanos = time.as_nanosecond();
    let seconds = nanos.div_euclid(1_000_000_000);
    let rest = nanos.rem_euclid(1_000_000_000);
    (i64::try_from(seconds).unwrap_or(i64::MAX), u32::try_from(rest).unwrap_or(0))
}

fn cut(time: Timestamp, precision: Precision) -> Timestamp {
    let step = i128::from(precision.step_ns());
    let nanos = time.as_nanosecond();
    Timestamp::from_nanosecond(nanos - nanos.rem_euclid(step)).unwrap_or(time)
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn integer(text: &str) -> Version {
        Version::integer(text).expect("a number")
    }

    fn time(text: &str, precision: Precision) -> Version {
        Version::new(&[Part::rfc3339(text, precision).expect("a time")]).expect("a version")
    }

    #[test]
    fn a_number_is_one_whole_number() {
        assert_eq!(integer("-7").number(), Some(-7));
        assert_eq!(integer("007").number(), Some(7));
        assert_eq!(integer(&"9".repeat(39)).number(), None);
        assert_eq!(time("2026-03-01T00:00:00Z", Precision::Nanos).number(), None);
        let tuple = Version::new(&[Part::Rank(1), Part::integer("7").expect("a number")]).expect("a version");
        assert_eq!(tuple.number(), None);
    }

    #[test]
    fn a_version_is_read_back_as_it_was_written() {
        let version = integer("12345678901234567890");
        let text = serde_json::to_string(&version).expect("JSON");
        assert_eq!(serde_json::from_str::<Version>(&text).expect("a version"), version);
    }

    #[test]
    fn numbers_compare_as_numbers_not_as_text() {
        assert!(integer("9120") < integer("10044"));
        assert!(integer("9999") < integer("010045"));
        assert_eq!(integer("007"), integer("7"));
        assert_eq!(integer("-0"), integer("0"));
    }

    #[test]
    fn numbers_beyond_64_bits_keep_all_digits() {
        let big = integer("18446744073709551617");
        assert_eq!(big.text(), "18446744073709551617");
        assert!(integer("18446744073709551616") < big);
        assert!(integer("-18446744073709551617") < integer("-18446744073709551616"));
    }

    #[test]
    fn what_is_not_a_whole_number_is_refused() {
        for text in ["", "-", "+", "1.0", "1e2", "0x10", " 1", "1_000", "١"] {
            assert!(Version::integer(text).is_err(), "{text:?}");
        }
        assert_eq!(Version::integer(&"9".repeat(101)), Err(VersionError::TooManyDigits));
    }

    #[test]
    fn times_compare_as_instants_whatever_their_zone() {
        let precision = Precision::Micros;
        assert!(time("2026-03-01T12:20:53+01:00", precision) < time("2026-03-01T11:54:32.601Z", precision));
        assert_eq!(time("2026-03-01T11:54:32.601Z", precision), time("2026-03-01T11:54:32.601+00:00", precision));
        assert!(time("2026-03-01T06:54:33-05:00", precision) > time("2026-03-01T11:54:32.9999Z", precision));
        assert_eq!(time("2026-03-01 11:54:32 UTC", precision), time("2026-03-01T11:54:32", precision));
    }

    #[test]
    fn a_stated_precision_cuts_finer_digits() {
        assert_eq!(
            time("2026-03-01T11:54:32.6019Z", Precision::Millis),
            time("2026-03-01T11:54:32.601Z", Precision::Millis)
        );
        assert!(
            time("2026-03-01T11:54:32.000000001Z", Precision::Nanos) > time("2026-03-01T11:54:32Z", Precision::Nanos)
        );
        assert!(time("1969-12-31T23:59:59.5Z", Precision::Seconds) < time("1970-01-01T00:00:00Z", Precision::Seconds));
    }

    #[test]
    fn epoch_numbers_and_texts_with_decimals_are_exact() {
        let of = |text: &str, unit| Part::epoch(text, unit, Precision::Nanos).map(|part| part.to_string());
        assert_eq!(of("1355517523.000005", EpochUnit::Seconds).as_deref(), Ok("2012-12-14T20:38:43.000005Z"));
        assert_eq!(of("1654012591835", EpochUnit::Millis).as_deref(), Ok("2022-05-31T15:56:31.835Z"));
        assert_eq!(of("-1", EpochUnit::Seconds).as_deref(), Ok("1969-12-31T23:59:59Z"));
        for text in ["", ".", "1.", "1e3", "+1", "99999999999999999999", "1 "] {
            assert!(of(text, EpochUnit::Seconds).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_later_part_decides_only_between_equal_earlier_ones() {
        let of = |number: &str, rank| {
            Version::new(&[Part::integer(number).expect("a number"), Part::Rank(rank)]).expect("a version")
        };
        assert!(of("5", 9) < of("10", 1));
        assert!(of("5", 1) < of("5", 2));
        assert_eq!(of("5", 1).text(), "5, rank 1");
    }

    proptest! {
        #[test]
        fn encoded_integers_order_like_the_numbers(left in any::<i128>(), right in any::<i128>()) {
            let order = integer(&left.to_string()).cmp(&integer(&right.to_string()));
            prop_assert_eq!(order, left.cmp(&right));
        }

        #[test]
        fn encoded_instants_order_like_the_times(left in -1i128 << 60..1i128 << 60, right in -1i128 << 60..1i128 << 60) {
            let of = |nanos: i128| {
                let part = Part::epoch(&nanos.to_string(), EpochUnit::Nanos, Precision::Nanos).expect("a time");
                Version::new(&[part]).expect("a version")
            };
            prop_assert_eq!(of(left).cmp(&of(right)), left.cmp(&right));
        }

        #[test]
        fn any_text_is_a_version_or_an_error_and_never_a_panic(text in ".{0,40}") {
            let _ = Part::integer(&text);
            let _ = Part::rfc3339(&text, Precision::Nanos);
            let _ = Part::epoch(&text, EpochUnit::Micros, Precision::Millis);
        }
    }
}
