//! What may be said of events that wait: why each was applied when it was, called stale, or expired.

use super::{Finding, Taken};
use crate::ports::Outcome;
use crate::rules::event::Verdict;
use crate::rules::order::{OnGap, Wait};

/// What is the state at an instant: everything applied until then.
fn applied_until<'a>(taken: &'a [Taken<'a>], at_ms: u64) -> impl Iterator<Item = &'a Taken<'a>> {
    taken.iter().filter(move |one| one.verdict == Verdict::Applied && one.settled_ms <= at_ms)
}

/// A row without gaps: each event after the one before it, or after its wait. `strict` rows have no short cuts.
pub(super) fn in_row(wait: Wait, start: u64, strict: bool, taken: &[Taken<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    let wait_ms = wait.hold_for_ms.cast_unsigned();
    for one in taken {
        let Some(place) = one.place else { continue };
        let wrong = match one.verdict {
            Verdict::Applied => applied_wrongly(one, place, wait, start, strict, taken),
            Verdict::Stale => {
                let newer = applied_until(taken, one.settled_ms).any(|other| other.place >= Some(place));
                (!newer && place >= start).then(|| "I17: was called stale, and nothing newer was applied".to_owned())
            }
            Verdict::Expired if wait.on_gap == OnGap::Release => Some("I6: expired, and must be released".to_owned()),
            Verdict::Expired => {
                let early = one.settled_ms < one.taken_ms + wait_ms;
                let whole = (start..place).all(|before| {
                    applied_until(taken, one.settled_ms.saturating_sub(1)).any(|other| other.place == Some(before))
                });
                if early && wait.on_gap == OnGap::Expire {
                    Some(format!("I6: expired after {} of {wait_ms} ms", one.settled_ms - one.taken_ms))
                } else {
                    (strict && whole).then(|| "I6: expired, although nothing was missing before it".to_owned())
                }
            }
            Verdict::Held => Some("I6: is held for ever".to_owned()),
            _ => None,
        };
        found.extend(wrong.map(|what| finding(one, &what)));
    }
    found.extend(lost_at_the_end(wait, taken));
    found
}

/// Why an applied event should not have been, or not then.
fn applied_wrongly(
    one: &Taken<'_>,
    place: u64,
    wait: Wait,
    start: u64,
    strict: bool,
    taken: &[Taken<'_>],
) -> Option<String> {
    let before = |other: &&Taken<'_>| other.settled_ms < one.settled_ms;
    if applied_until(taken, one.settled_ms).filter(before).any(|other| other.place > Some(place)) {
        return Some("I5: was applied over a newer one".to_owned());
    }
    one.event?;
    let reaches = |other: &Taken<'_>| match other.place {
        Some(other) if strict => other + 1 == place,
        other => other < Some(place),
    };
    let foremost = applied_until(taken, one.settled_ms).filter(|other| other.id != one.id && reaches(other));
    let foremost = foremost.min_by_key(|other| other.settled_ms);
    if place == start || foremost.is_some() {
        // what closed the gap took along what waited behind it
        let opened_ms = foremost.map_or(0, |other| other.settled_ms).max(one.taken_ms);
        let late = strict && one.settled_ms > opened_ms;
        return late.then(|| format!("I6: waited on until {} ms, and could apply at {opened_ms}", one.settled_ms));
    }
    // over a gap: only together with one whose wait was over
    let over = |other: &Taken<'_>| {
        let waited = other.outcome == Outcome::Held && other.settled_ms == one.settled_ms;
        waited && other.place >= Some(place) && other.taken_ms + wait.hold_for_ms.cast_unsigned() <= one.settled_ms
    };
    let given_up = wait.on_gap == OnGap::Release && taken.iter().any(over);
    (!given_up).then(|| "I17: was applied over a gap that was not given up".to_owned())
}

/// What is released in the end leaves nothing newer behind.
fn lost_at_the_end(wait: Wait, taken: &[Taken<'_>]) -> Option<Finding> {
    if wait.on_gap != OnGap::Release {
        return None;
    }
    let newest = taken.iter().filter(|one| one.place.is_some()).max_by_key(|one| one.place)?;
    let applied = taken.iter().any(|one| one.place == newest.place && one.verdict == Verdict::Applied);
    (!applied).then(|| finding(newest, "I17: is the newest, and was never applied"))
}

/// A window: nothing applies before one is over, and then in version order.
pub(super) fn in_window(window_ms: u64, taken: &[Taken<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in taken.iter().filter(|one| one.version.is_some()) {
        let over = |other: &Taken<'_>| {
            let together = other.settled_ms == one.settled_ms && other.version >= one.version;
            together && other.taken_ms + window_ms <= one.settled_ms
        };
        let newer_before = taken.iter().any(|other| {
            other.verdict == Verdict::Applied && other.settled_ms < one.settled_ms && other.version > one.version
        });
        let newer =
            applied_until(taken, one.settled_ms).any(|other| other.id != one.id && other.version >= one.version);
        let wrong = match one.verdict {
            Verdict::Applied if newer_before => "I5: was applied over a newer one",
            Verdict::Applied if !taken.iter().any(over) => "I17: was applied before its window was over",
            Verdict::Stale if !newer => "I17: was called stale, and nothing newer was applied",
            Verdict::Held => "I6: is held for ever",
            Verdict::Expired => "I6: expired, and must be released",
            _ => continue,
        };
        found.push(finding(one, wrong));
    }
    let newest = taken.iter().filter_map(|one| one.version).max();
    if newest.is_some() && !taken.iter().any(|one| one.version == newest && one.verdict == Verdict::Applied) {
        found.push(("I17", None, "its newest event was never applied".to_owned()));
    }
    found
}

/// Signals: what was fetched after them is at least as new as they are.
pub(super) fn signals(taken: &[Taken<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in taken.iter().filter(|one| one.event.is_some()) {
        let answered = applied_until(taken, one.settled_ms)
            .filter(|other| other.event.is_none())
            .any(|other| other.version >= one.version);
        let wrong = match one.verdict {
            Verdict::Held => "I6: waits for ever for the provider",
            Verdict::Applied | Verdict::Stale if one.outcome != Outcome::Held => "I17: was settled without asking",
            Verdict::Applied | Verdict::Stale if !answered => "I17: was settled by a state older than itself",
            _ => continue,
        };
        found.push(finding(one, wrong));
    }
    found
}

/// A text that begins with the promise it breaks.
fn finding(one: &Taken<'_>, what: &str) -> Finding {
    let promises = ["I5", "I6", "I17"];
    let promise = promises.into_iter().find(|promise| what.starts_with(&format!("{promise}:"))).unwrap_or("I17");
    let what = what.split_once(": ").map_or(what, |(_, what)| what);
    (promise, one.event, format!("its event {:?} {what}", one.place))
}
