//! Times as senders write them, beyond RFC 3339.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// A stated zone: `UTC`, or an offset such as `+02:00`.
pub(super) fn zone(text: &str) -> Option<Offset> {
    if text == "UTC" {
        return Some(Offset::UTC);
    }
    let bytes = text.as_bytes();
    if bytes.len() != 6 || !matches!(bytes[0], b'+' | b'-') || bytes[3] != b':' {
        return None;
    }
    let seconds = |text: &str| Some(parse(text)?.as_second());
    let seconds = seconds("2000-01-01T00:00:00Z")? - seconds(&format!("2000-01-01T00:00:00{text}"))?;
    Offset::from_seconds(i32::try_from(seconds).ok()?).ok()
}

/// A time with a zone in any of the common forms; without one only where a zone is stated.
pub(super) fn time(text: &str, zone: Option<Offset>) -> Option<Timestamp> {
    let text = text.trim();
    let in_utc = text.strip_suffix("UTC").or_else(|| text.strip_suffix("GMT")).map(str::trim_end);
    if let Some(civil) = in_utc {
        return at(civil, Offset::UTC);
    }
    if let Some(time) = parse(text) {
        return Some(time);
    }
    // a blank before the offset
    if let Some((civil, offset)) = text.rsplit_once(' ').filter(|(_, offset)| offset.starts_with(['+', '-'])) {
        return parse(&format!("{civil}{offset}"));
    }
    at(text, zone?)
}

/// `Tue, 15 Nov 1994 08:12:31 GMT`, and RFC 2822 with any offset.
pub(super) fn mail_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

fn at(civil: &str, offset: Offset) -> Option<Timestamp> {
    // a date alone is no instant
    let civil: DateTime = civil.parse().ok().filter(|_| civil.contains(':'))?;
    offset.to_timestamp(civil).ok()
}

fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instant_is_read_from_every_form_senders_use() {
        let expected: Timestamp = "2024-05-06T07:08:09.123456Z".parse().expect("a time");
        for text in [
            "2024-05-06T07:08:09.123456Z",
            "2024-05-06T07:08:09.123456+00:00",
            "2024-05-06T07:08:09.123456+0000",
            "2024-05-06 07:08:09.123456 UTC",
            "2024-05-06 07:08:09.123456UTC",
            "2024-05-06 09:08:09.123456 +0200",
            "2024-05-06 09:08:09.123456 +02:00",
            "2024-05-06T09:08:09.123456000+02:00",
            " 2024-05-06T02:08:09.123456-0500 ",
        ] {
            assert_eq!(time(text, None), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_a_time_only_where_its_zone_is_stated() {
        let text = "2024-05-06T07:08:09";
        assert_eq!(time(text, None), None);
        assert_eq!(time(text, zone("UTC")), "2024-05-06T07:08:09Z".parse().ok());
        assert_eq!(time("2024-05-06 07:08:09", zone("+02:00")), "2024-05-06T05:08:09Z".parse().ok());
        assert_eq!(time("2024-05-06T07:08:09Z", zone("+02:00")), "2024-05-06T07:08:09Z".parse().ok());
        for text in ["", "2024-05-06", "07:08:09", "yesterday", "1700000000", "2024-13-06T07:08:09", "UTC", "+02:00"] {
            assert_eq!(time(text, zone("UTC")), None, "{text}");
        }
        for text in ["", "CET", "Europe/Berlin", "+2:00", "+0200", "02:00", "+aa:bb"] {
            assert_eq!(zone(text), None, "{text}");
        }
    }

    #[test]
    fn dates_of_http_and_mail_are_read() {
        let expected = "1994-11-15T08:12:31Z".parse().ok();
        assert_eq!(mail_date("Tue, 15 Nov 1994 08:12:31 GMT"), expected);
        assert_eq!(mail_date("Tue, 15 Nov 1994 10:12:31 +0200"), expected);
        assert_eq!(mail_date("15 Nov 1994 03:12:31 -0500"), expected);
        assert_eq!(mail_date("1994-11-15T08:12:31Z"), None);
    }
}
