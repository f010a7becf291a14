//! The time of a signature: an old capture, a clock that is off, a unit that is another.

use super::super::super::spec::{TimeUnit, VerifySpec};
use super::super::super::verify::Seen;
use super::super::Case;
use super::super::verifying::span;
use super::{Finder, Mistake, word};

const HOUR_MS: i128 = 3_600_000;
/// Time zones lie a quarter of an hour apart, up to this many.
const QUARTERS_MAX: i128 = 14 * 4;
/// What is older was captured earlier, and no clock is so far off.
const CAPTURED_MS: i128 = 36 * HOUR_MS;

/// The signature holds, and only its time does not.
pub(super) fn outside(case: &Case<'_>) -> Vec<Mistake> {
    let request = case.sent.request();
    let tenant = case.source.claimed_tenant(&request).ok().flatten();
    let seen = case.source.verifier.trace(&request, tenant.as_deref());
    let read = seen.iter().find_map(|seen| match seen {
        Seen::Time { time_ms: Ok(time_ms), window_ms: Some(window_ms), text } => Some((*time_ms, *window_ms, text)),
        _ => None,
    });
    let Some((time_ms, window_ms, text)) = read else { return vec![captured("as its time says", None)] };
    let age_ms = i128::from(case.sent.now_ms) - time_ms;
    if let Some(mistake) = other_unit(case, text, window_ms) {
        return vec![mistake];
    }
    let quarter = HOUR_MS / 4;
    let quarters = (age_ms + age_ms.signum() * quarter / 2) / quarter;
    let rest = (age_ms - quarters * quarter).abs();
    if quarters != 0 && quarters.abs() <= QUARTERS_MAX && rest <= i128::from(window_ms).min(quarter / 3) {
        let far = span((quarters * quarter).unsigned_abs());
        let side = if age_ms > 0 { "behind" } else { "ahead of" };
        let zone = Mistake::guess(
            "clock-zone",
            format!(
                "the time is {far} {side} this clock, nearly to the minute: one of the two takes local time for UTC"
            ),
            "set both clocks to UTC; if the request is simply that old, judge it at its own time with --at".to_owned(),
        );
        return vec![zone, captured(&span(age_ms.unsigned_abs()), at(time_ms))];
    }
    if age_ms < 0 {
        return vec![Mistake::guess(
            "clock",
            format!("the request is signed {} ahead of the time it is judged at", span(age_ms.unsigned_abs())),
            "set the clocks of both sides by NTP".to_owned(),
        )];
    }
    let mut mistakes = vec![captured(&span(age_ms.unsigned_abs()), at(time_ms))];
    if age_ms < CAPTURED_MS {
        mistakes.push(Mistake::guess(
            "clock",
            "if it has only just come, one of the clocks is off, or something between held it up",
            "set the clocks of both sides by NTP, or let the sender sign each attempt anew",
        ));
    }
    mistakes
}

fn captured(age: &str, at: Option<String>) -> Mistake {
    let at = at.unwrap_or_else(|| "TIME".to_owned());
    Mistake::guess(
        "capture-old",
        format!("the request is {age} old, and the signature itself holds"),
        format!("if it was captured then, judge it at that time: --at {at}"),
    )
}

fn at(time_ms: i128) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(time_ms).ok()?).ok()?;
    Some(time.to_string())
}

/// The number makes sense in another unit.
fn other_unit(case: &Case<'_>, text: &str, window_ms: i64) -> Option<Mistake> {
    let number: i128 = text.parse().ok()?;
    let verify = case.configured.spec.with_preset().ok()?.verify?;
    let own = verify.unit.unwrap_or(TimeUnit::S);
    let as_ms = |unit| match unit {
        TimeUnit::S => number.checked_mul(1000),
        TimeUnit::Ms => Some(number),
        TimeUnit::Us => Some(number / 1000),
        TimeUnit::Iso => None,
    };
    // an old capture may still be told by its unit: within a year is near, beside a thousand
    let near = i128::from(window_ms).max(366 * 24 * HOUR_MS);
    let fits = |unit| as_ms(unit).is_some_and(|ms| (i128::from(case.sent.now_ms) - ms).abs() <= near);
    if fits(own) {
        return None;
    }
    let unit = [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us].into_iter().find(|unit| fits(*unit))?;
    Some(unit_mistake(unit, own))
}

fn unit_mistake(unit: TimeUnit, own: TimeUnit) -> Mistake {
    let (unit, own) = (word(unit), word(own));
    Mistake::certain(
        "unit",
        format!("the time is in `{unit}`, and this source reads it as `{own}`"),
        format!("state `unit = \"{unit}\"` in the source's `verify`"),
    )
}

/// The time cannot be read in the unit that is stated.
pub(super) fn units(finder: &mut Finder<'_>) {
    if finder.verify.timestamp.is_none() {
        return;
    }
    let own = finder.verify.unit.unwrap_or(TimeUnit::S);
    for unit in [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Iso] {
        if unit == own {
            continue;
        }
        let change = finder.rules(|verify: &mut VerifySpec| verify.unit = Some(unit));
        finder.attempt(&change, || unit_mistake(unit, own));
    }
}
