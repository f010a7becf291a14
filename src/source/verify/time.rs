//! The time in a signature: read strictly, compared without overflow.

use super::super::Reason;
use super::super::spec::TimeUnit;

/// The unit of a signature's time and how far it may lie off, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) unit: TimeUnit,
    /// `None` reads the time, since it is signed, and lets any pass.
    pub(super) window_ms: Option<i64>,
    /// A time in the future passes.
    pub(super) past_only: bool,
}

impl Window {
    /// The time as milliseconds since 1970; wide enough for any 64-bit number of seconds.
    pub(super) fn read(self, text: &[u8]) -> Result<i128, Reason> {
        let text = std::str::from_utf8(text).map_err(|_| Reason::MalformedTimestamp)?;
        match self.unit {
            TimeUnit::S => Ok(i128::from(number(text)?) * 1000),
            TimeUnit::Ms => Ok(i128::from(number(text)?)),
            TimeUnit::Us => Ok(i128::from(number(text)? / 1000)),
            TimeUnit::Iso => {
                let time: jiff::Timestamp = text.parse().map_err(|_| Reason::MalformedTimestamp)?;
                Ok(i128::from(time.as_millisecond()))
            }
        }
    }

    /// Whether the time is near enough; the edge counts as inside.
    pub(super) fn check(self, time_ms: i128, now_ms: i64) -> Result<(), Reason> {
        let Some(window_ms) = self.window_ms.map(i128::from) else { return Ok(()) };
        let age_ms = i128::from(now_ms) - time_ms;
        if age_ms > window_ms {
            return Err(Reason::OutsideWindowPast);
        }
        if age_ms < -window_ms && !self.past_only {
            return Err(Reason::OutsideWindowFuture);
        }
        Ok(())
    }
}

/// Decimal digits and nothing else: a sign or a blank is not what a sender writes, and no event is older than 1970.
fn number(text: &str) -> Result<i64, Reason> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Reason::MalformedTimestamp);
    }
    text.parse().map_err(|_| Reason::MalformedTimestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { unit: TimeUnit::S, window_ms: Some(300_000), past_only: false };

    fn judge(text: &str, now_ms: i64) -> Result<(), Reason> {
        WINDOW.read(text.as_bytes()).and_then(|time_ms| WINDOW.check(time_ms, now_ms))
    }

    #[test]
    fn the_window_has_two_sides_and_its_edges_are_inside() {
        let now_ms = 1_772_452_800_000;
        for inside in ["1772452500", "1772452800", "1772453100"] {
            assert_eq!(judge(inside, now_ms), Ok(()), "{inside}");
        }
        assert_eq!(judge("1772452499", now_ms), Err(Reason::OutsideWindowPast));
        assert_eq!(judge("1772453101", now_ms), Err(Reason::OutsideWindowFuture));
    }

    #[test]
    fn a_window_may_have_one_side() {
        let window = Window { past_only: true, ..WINDOW };
        assert_eq!(window.check(1_000_000, 0), Ok(()));
        assert_eq!(window.check(0, 300_001), Err(Reason::OutsideWindowPast));
    }

    #[test]
    fn extreme_times_are_refused_and_never_overflow() {
        for now_ms in [i64::MIN, 0, i64::MAX] {
            for text in ["-9223372036854775808", "9223372036854775807"] {
                assert!(judge(text, now_ms).is_err(), "{text} at {now_ms}");
            }
        }
        for text in ["", "+5", " 5", "5 ", "1e9", "0x5", "5.0", "-", "-5", "111111111111111111111", "٥"] {
            assert_eq!(judge(text, 0), Err(Reason::MalformedTimestamp), "{text:?}");
        }
    }
}
