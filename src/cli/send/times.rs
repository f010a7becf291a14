//! Versions as senders write them: numbers and times, in the form that stood there before.

use serde_json::{Value, json};

use super::plan::Item;
use crate::source::spec::{VersionForm, VersionSpec};

/// Seconds since 1970 that are read as a time, and not as any other number: 2008 to 2040.
const SECONDS: std::ops::Range<i64> = 1_200_000_000..2_210_000_000;

/// The version of an event, in place of what stood there; the first version of all has the number `first`.
pub(super) fn version(part: &VersionSpec, first: i64, item: &Item, old: Option<&Value>) -> Value {
    let was_number = old.is_some_and(Value::is_number);
    match part.form {
        VersionForm::Integer => json!(first - 1 + i64::from(item.version)),
        VersionForm::Rfc3339OrEpochS | VersionForm::EpochS if was_number || part.form == VersionForm::EpochS => {
            json!(item.at_s)
        }
        VersionForm::Rfc3339OrEpochMs if was_number => json!(item.at_s * 1_000),
        VersionForm::EpochMs => json!(item.at_s * 1_000),
        VersionForm::EpochUs => json!(item.at_s * 1_000_000),
        VersionForm::EpochNs => json!(item.at_s * 1_000_000_000),
        VersionForm::HttpDate | VersionForm::Rfc2822 => {
            let at = jiff::Timestamp::from_second(item.at_s).unwrap_or_default();
            let text = jiff::fmt::rfc2822::DateTimePrinter::new();
            let text = match part.form {
                VersionForm::HttpDate => text.timestamp_to_rfc9110_string(&at),
                _ => text.timestamp_to_string(&at),
            };
            json!(text.unwrap_or_default())
        }
        VersionForm::Time if part.zone.is_some() => {
            let with_blank = old.and_then(Value::as_str).is_some_and(|old| old.contains(' '));
            let text = item.at();
            let text = text.trim_end_matches('Z');
            json!(if with_blank { text.replace('T', " ") } else { text.to_owned() })
        }
        _ => json!(item.at()),
    }
}

/// The time of an event, in the form that stood there before.
pub(super) fn now(item: &Item, old: Option<&Value>) -> Value {
    match old.and_then(super::nested::text).and_then(|text| text.parse::<i64>().ok()) {
        Some(number) if SECONDS.contains(&number) => json!(item.at_s),
        Some(_) => json!(item.at_s * 1_000),
        None => json!(item.at()),
    }
}

/// Whether a text is a time.
pub(super) fn is_time(text: &str) -> bool {
    let whole =
        text.parse::<i64>().is_ok_and(|number| SECONDS.contains(&number) || SECONDS.contains(&(number / 1_000)));
    whole || text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(part: &str, old: &Value) -> Value {
        let part: VersionSpec = toml::from_str(&format!("from = 'body:/at'\n{part}")).expect("a part");
        version(&part, 1, &Item::plain(2), Some(old))
    }

    #[test]
    fn a_version_is_written_as_it_stood_there() {
        assert_eq!(said("as = 'integer'", &json!(7)), json!(2));
        assert_eq!(said("as = 'rfc3339-or-epoch-s'", &json!(7)), json!(1_767_225_602));
        assert_eq!(said("as = 'rfc3339-or-epoch-s'", &json!("x")), json!("2026-01-01T00:00:02Z"));
        assert_eq!(said("as = 'time'\nzone = 'UTC'", &json!("2020-01-01 10:00:00")), json!("2026-01-01 00:00:02"));
        assert_eq!(said("as = 'epoch-ms'", &json!(7)), json!(1_767_225_602_000_i64));
        assert_eq!(said("as = 'http-date'", &json!("")), json!("Thu, 01 Jan 2026 00:00:02 GMT"));
    }

    #[test]
    fn times_are_told_from_ids() {
        for text in ["2020-11-23T17:51:19.000000Z", "1767225600", "1626230691572"] {
            assert!(is_time(text), "{text}");
        }
        for text in ["evt_1", "62515", "820982911946154508", "SUCCESS"] {
            assert!(!is_time(text), "{text}");
        }
    }
}
