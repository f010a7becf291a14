//! The promises a run is judged by, each with what became of it.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::sim::Violation;

use super::super::output;

/// Every promise, with what it says in a few words. Those about deliveries onward are not checked yet.
const PROMISES: [(&str, &str, bool); 19] = [
    ("I1", "2xx only after the commit", true),
    ("I2", "stored as it was sent, nothing else stored", true),
    ("I3", "a key takes effect at most once", true),
    ("I4", "key, state and row together or not at all", true),
    ("I5", "stored versions never go back", true),
    ("I6", "what is held is released or expires, with a record", true),
    ("I7", "repeats are answered 2xx, other bytes kept aside", true),
    ("I8", "the key cache changes speed only", true),
    ("I9", "claims of work raise the epoch", false),
    ("I10", "attempts are bounded and counted", false),
    ("I11", "due work is found by state and time", false),
    ("I12", "no transaction is open during a delivery", false),
    ("I13", "due times use the store's clock", true),
    ("I14", "one bad event blocks its own resource at most", true),
    ("I15", "overload is refused, what is accepted is not dropped", true),
    ("I16", "the counts add up", true),
    ("I17", "the same end in any order of arrival", true),
    ("liveness", "everything settles once nothing breaks", true),
    ("vacuous", "enough was reached to mean something", true),
];

/// What became of one promise.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    promise: &'static str,
    says: &'static str,
    result: &'static str,
    findings: usize,
}

/// What became of each.
pub(super) fn standings(violations: &[Violation]) -> Vec<Standing> {
    let found = |promise: &str| violations.iter().filter(|violation| violation.invariant == promise).count();
    let standing = |(promise, says, checked): &(&'static str, &'static str, bool)| {
        let findings = found(promise);
        let result = match (findings, checked) {
            (0, true) => "held",
            (0, false) => "not checked",
            _ => "broken",
        };
        Standing { promise, says, result, findings }
    };
    PROMISES.iter().map(standing).collect()
}

/// A line where all held; a table where something did not.
pub(super) fn print(out: &mut impl Write, violations: &[Violation]) -> io::Result<()> {
    let standings = standings(violations);
    if violations.is_empty() {
        let held: Vec<&str> = standings.iter().filter(|one| one.result == "held").map(|one| one.promise).collect();
        return writeln!(
            out,
            "held: {}\n      (I9 to I12 are about deliveries onward, which are not built yet)",
            held.join(" ").replace("vacuous", "reach")
        );
    }
    let rows: Vec<[String; 3]> = standings
        .iter()
        .map(|one| {
            let times = if one.findings > 1 { format!(" ({})", one.findings) } else { String::new() };
            [one.promise.to_owned(), format!("{}{times}", one.result), one.says.to_owned()]
        })
        .collect();
    output::table(out, ["PROMISE", "RESULT", "WHAT IT SAYS"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_is_named_with_what_became_of_it() {
        let violation =
            Violation { invariant: "I3".to_owned(), what: String::new(), at_ms: 0, event: None, resource: None };
        let standings = standings(&[violation.clone(), violation]);
        let of = |promise| standings.iter().find(|one| one.promise == promise).expect("known");
        assert_eq!((of("I3").result, of("I3").findings), ("broken", 2));
        assert_eq!((of("I1").result, of("I9").result), ("held", "not checked"));
    }
}
