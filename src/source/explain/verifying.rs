//! The steps of verification in words.

use super::super::verify::{Compared, Seen};
use super::super::watch::Held;
use super::super::{Reason, Refusal, Request};
use super::{Case, Mark, Step};

/// Says what verification looks at, and its verdict.
pub(super) fn steps(case: &Case<'_>, request: &Request<'_>, refusal: Option<Refusal>, steps: &mut Vec<Step>) {
    let tenant = match case.source.claimed_tenant(request) {
        Ok(tenant) => tenant,
        Err(reason) => {
            steps.push(Step::new("tenant", Mark::Bad, unknown_tenant(case)));
            steps.push(verdict(reason));
            return;
        }
    };
    if let Some(tenant) = &tenant {
        steps.push(Step::new("tenant", Mark::Good, format!("{tenant:?}")));
    }
    for seen in case.source.verifier.trace(request, tenant.as_deref()) {
        steps.extend(step(case, &seen, request.now_ms));
    }
    match refusal {
        None => steps.push(Step::new("verdict", Mark::Good, "authentic")),
        Some(refusal) => steps.push(verdict(refusal.reason)),
    }
}

fn unknown_tenant(case: &Case<'_>) -> String {
    let known: Vec<&str> = case.source.rules.tenants.keys().map(String::as_str).take(8).collect();
    match case.configured.spec.tenant.as_deref() {
        None => "the path names one, and this source has no tenants: send to its name alone".to_owned(),
        Some(place) => format!("none that is known stands at `{place}`; known are {}", known.join(", ")),
    }
}

fn step(case: &Case<'_>, seen: &Seen, now_ms: i64) -> Option<Step> {
    Some(match seen {
        Seen::Item(number) => Step::new("item", Mark::Note, format!("number {number}, counted from 0")),
        Seen::Place { what, place, held } => held_at(what, place, held),
        Seen::Expected(form) => Step::new("expected", Mark::Note, form.clone()),
        Seen::Signatures(count) => {
            Step::new("format", if *count > 0 { Mark::Good } else { Mark::Bad }, format!("{count} to compare"))
        }
        Seen::Time { text, time_ms, window_ms } => time(text, *time_ms, *window_ms, now_ms),
        Seen::Signed(bytes) => {
            let mut details = vec![bytes.excerpt.clone()];
            details.extend(bytes.sha256.as_ref().map(|sha256| format!("SHA-256 {sha256}")));
            Step::new("signed bytes", Mark::Note, format!("{} bytes", bytes.length)).with(details)
        }
        Seen::Compared { secret, outcome } => {
            let named = case.configured.secrets.get(*secret).map_or_else(String::new, |secret| secret.key.clone());
            let (mark, says) = match outcome {
                Compared::Same => (Mark::Good, "made this signature"),
                Compared::Other => (Mark::Note, "makes another signature"),
                Compared::Ended => (Mark::Note, "its time is over: not compared"),
                Compared::OtherTenant => return None,
            };
            Step::new("secret", mark, format!("`{named}` {says}"))
        }
        Seen::Key { named, state } => match state {
            Ok(()) => Step::new("key", Mark::Good, format!("{named} is at hand")),
            Err(Reason::KeyMissing) => Step::new("key", Mark::Note, format!("{named} has to be fetched first")),
            Err(reason) => Step::new("key", Mark::Bad, format!("{named}: {}", meaning(*reason))),
        },
        // told by the verdict
        Seen::Refused(_) => return None,
    })
}

fn held_at(what: &str, place: &str, held: &Held) -> Step {
    let (mark, says) = match held {
        Held::Text(text) => (Mark::Good, text.clone()),
        Held::Hidden => (Mark::Good, "is there (not shown)".to_owned()),
        Held::Nothing => (Mark::Bad, "is not there".to_owned()),
        Held::Blank => (Mark::Bad, "is blank".to_owned()),
        Held::Unfit(what) => (Mark::Bad, format!("is {what}")),
    };
    Step::new(what, mark, format!("{place}: {says}"))
}

fn time(text: &str, time_ms: Result<i128, Reason>, window_ms: Option<i64>, now_ms: i64) -> Step {
    let Ok(time_ms) = time_ms else {
        return Step::new("age", Mark::Bad, format!("{text:?} is no time in the scheme's unit"));
    };
    let age_ms = i128::from(now_ms) - time_ms;
    let shown = i64::try_from(time_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let shown = shown.map_or_else(|| format!("{text:?} in this unit"), |time| time.to_string());
    let side = if age_ms < 0 { "ahead" } else { "ago" };
    let far = span(age_ms.unsigned_abs());
    let Some(window_ms) = window_ms else {
        return Step::new("age", Mark::Note, format!("{shown}, {far} {side}; any time passes"));
    };
    let mark = if age_ms.unsigned_abs() > i128::from(window_ms).unsigned_abs() { Mark::Bad } else { Mark::Good };
    Step::new(
        "age",
        mark,
        format!("{shown}, {far} {side}; the window is {}", span(i128::from(window_ms).unsigned_abs())),
    )
}

/// A length of time with its two largest units.
pub(super) fn span(ms: u128) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = ms;
    let mut shown = Vec::new();
    for (unit, length) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 && shown.len() < 2 {
            shown.push(format!("{count} {unit}"));
        }
    }
    if shown.is_empty() { "0 ms".to_owned() } else { shown.join(" ") }
}

fn verdict(reason: Reason) -> Step {
    Step::new("verdict", Mark::Bad, format!("{}: {}", reason.label(), meaning(reason)))
}

/// What a reason means, in words.
pub(super) const fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::UnknownSource => "no source of this name",
        Reason::UnknownTenant => "no tenant of this name, or a tenant where none belongs",
        Reason::DuplicateHeader => "something the signature depends on came twice",
        Reason::MissingSignature => "there is no signature where this source looks for one",
        Reason::MissingId => "the id that is signed is missing",
        Reason::MissingTimestamp => "the time that is signed is missing",
        Reason::MissingHeader => "a header that is signed is missing",
        Reason::MalformedSignature => "the signature is not laid out, or not as long, as this source expects",
        Reason::UnsupportedVersion => "there are signatures, but none of the kind this source accepts",
        Reason::MalformedId => "the id cannot be part of what is signed",
        Reason::MalformedTimestamp => "the time is not one in the scheme's unit",
        Reason::MalformedBody => "a part of the body that the scheme reads is missing or malformed",
        Reason::InsufficientCoverage => "the signature covers less than this source asks for",
        Reason::UntrustedKeyUrl => "the key's address is not one that this sender's keys come from",
        Reason::UnknownKey => "the key's owner knows no such key",
        Reason::KeyMissing => "the key has to be fetched before this can be judged",
        Reason::WrongSignature => "no secret of this source made the signature over these bytes",
        Reason::BodyHashMismatch => "the signature holds, for the hash of another body",
        Reason::OutsideWindowPast => "the signature holds, and its time is too long ago",
        Reason::OutsideWindowFuture => "the signature holds, and its time lies too far ahead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_its_two_largest_units() {
        assert_eq!(span(0), "0 ms");
        assert_eq!(span(61_000), "1 min 1 s");
        assert_eq!(span(3 * 86_400_000 + 5), "3 d 5 ms");
    }
}
