//! What a run is reported as: a text that a person reads from top to bottom, and JSON that says the same.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::sim::{Arrival, Comparison, Misfortune, Plan, Run, RunCounts, TraceLine, Violation};

use super::super::output::{self, cell};
use super::failure::Smallest;
use super::promises::{self, Standing};

/// Findings of a kind that are printed; JSON has all.
const SHOWN_MAX: usize = 10;

/// One seed's run, with all that was asked about it.
pub(super) struct Told<'a> {
    pub(super) plan: &'a Plan,
    pub(super) run: &'a Run,
    pub(super) about: &'a str,
    pub(super) store: &'static str,
    pub(super) compared: &'a [Comparison],
    pub(super) smallest: Option<&'a Smallest>,
    pub(super) repeat: &'a str,
}

#[derive(Serialize)]
struct RunJson<'a> {
    verdict: &'static str,
    scenario: &'a str,
    seed: u64,
    store: &'a str,
    /// Of 64 bits, so as text.
    trace_hash: String,
    counts: &'a RunCounts,
    waits: Waits,
    promises: Vec<Standing>,
    violations: &'a [Violation],
    reached: &'a tidegate_actors::sim::Reached,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compare: &'a [Comparison],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    trace: &'a [TraceLine],
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest: Option<&'a Smallest>,
    repeat: &'a str,
}

/// What became of events that waited.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Waits {
    pub(super) held: u64,
    pub(super) by_verdict: BTreeMap<String, u64>,
    pub(super) longest_ms: u64,
}

impl Waits {
    fn of(run: &Run) -> Self {
        let mut waits = Self { held: run.counts.held, longest_ms: run.counts.worst_hold_ms, ..Self::default() };
        for arrival in run.resources.iter().flat_map(|line| &line.arrivals).filter(|arrival| waited(arrival)) {
            let verdict = arrival.verdict.as_deref().unwrap_or_default();
            let verdict = verdict.split(' ').next().unwrap_or_default();
            *waits.by_verdict.entry(verdict.to_owned()).or_default() += 1;
        }
        waits
    }
}

/// It was held: it was answered so, or its verdict came later than its answer.
pub(super) fn waited(arrival: &Arrival) -> bool {
    let was_held = [&arrival.answer, &arrival.verdict].into_iter().any(|word| word.as_deref() == Some("held"));
    let later = arrival.settled_at_ms.zip(arrival.answered_at_ms).is_some_and(|(settled, answered)| settled > answered);
    arrival.verdict.is_some() && (was_held || later)
}

impl Told<'_> {
    pub(super) fn passed(&self) -> bool {
        self.run.violations.is_empty()
    }

    pub(super) fn print(&self, out: &mut impl Write, json: bool) -> io::Result<()> {
        if json { self.print_json(out) } else { self.print_text(out) }
    }

    fn print_json(&self, out: &mut impl Write) -> io::Result<()> {
        let run = self.run;
        output::json(
            out,
            &RunJson {
                verdict: if self.passed() { "pass" } else { "fail" },
                scenario: &run.scenario,
                seed: run.seed,
                store: self.store,
                trace_hash: hash(run.trace_hash),
                counts: &run.counts,
                waits: Waits::of(run),
                promises: promises::standings(&run.violations),
                violations: &run.violations,
                reached: &run.reached,
                compare: self.compared,
                trace: &run.trace,
                smallest: self.smallest,
                repeat: self.repeat,
            },
        )
    }

    fn print_text(&self, out: &mut impl Write) -> io::Result<()> {
        let run = self.run;
        for line in &run.trace {
            writeln!(out, "{line}")?;
        }
        if !run.trace.is_empty() {
            writeln!(out)?;
        }
        let verdict = if self.passed() { "PASS" } else { "FAIL" };
        writeln!(out, "{verdict}  {}, seed {}, store {}", cell(&run.scenario), run.seed, self.store)?;
        if !self.about.is_empty() {
            writeln!(out, "      {}", cell_long(self.about))?;
        }
        writeln!(out)?;
        verdicts(out, &run.counts)?;
        writeln!(out)?;
        output::fields(out, &self.facts())?;
        writeln!(out)?;
        promises::print(out, &run.violations)?;
        if !self.compared.is_empty() {
            compared(out, self.compared)?;
        }
        if !self.passed() {
            findings(out, self.plan, &run.violations)?;
            if let Some(smallest) = self.smallest {
                smallest.print(out)?;
            }
            writeln!(out, "\nrepeat it: {}", self.repeat)?;
        }
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (plan, counts) = (self.plan, &self.run.counts);
        let reached = |name: &str| self.run.reached.count(name);
        let mut facts = vec![
            (
                "sent",
                format!(
                    "{} of {}, in {} that reached the gate",
                    some(counts.events, "event"),
                    some(plan.resources.len() as u64, "resource"),
                    some(counts.deliveries, "request")
                ),
            ),
            (
                "gate",
                format!(
                    "{} of {} each, {}, {}",
                    some(plan.gate.nodes.len() as u64, "node"),
                    some(plan.gate.shards.into(), "shard"),
                    some(counts.commits, "commit"),
                    plan.gate.tight.map_or_else(|| "roomy".to_owned(), |bound| format!("queues of {bound}"))
                ),
            ),
            ("worst delay to apply", seconds(counts.worst_delay_ms)),
        ];
        let waits = Waits::of(self.run);
        if waits.held > 0 {
            let ends: Vec<String> =
                waits.by_verdict.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
            let ends = if ends.is_empty() { String::new() } else { format!(": in the end {}", ends.join(", ")) };
            facts.push((
                "waited",
                format!("{}, at most {}{ends}", some(waits.held, "event"), seconds(waits.longest_ms)),
            ));
        }
        facts.push(("faults", self.faults()));
        if counts.lives > 1 {
            facts.push(("lives of the gate", counts.lives.to_string()));
        }
        let refused = with_prefix(self.run, "refused ");
        if !refused.is_empty() {
            facts.push(("refused, tried again", refused));
        }
        if reached("request lost") + reached("answer cut") > 0 {
            facts.push((
                "lost on the way",
                format!("{}, {}", some(reached("request lost"), "request"), some(reached("answer cut"), "answer")),
            ));
        }
        facts.push(("driven time", seconds(counts.ended_at_ms)));
        facts.push(("trace", format!("{}, the same for the same seed", hash(self.run.trace_hash))));
        facts
    }

    fn faults(&self) -> String {
        let did = with_prefix(self.run, "fault ");
        let did = if did.is_empty() { String::new() } else { format!(", of which did something: {did}") };
        format!("{} planned{did}", self.run.counts.faults)
    }
}

/// Everything reached whose name begins so, the rest of the name with its count.
fn with_prefix(run: &Run, prefix: &str) -> String {
    let found = run.reached.0.iter().filter_map(|(name, count)| Some((name.strip_prefix(prefix)?, count)));
    found.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

fn verdicts(out: &mut impl Write, counts: &RunCounts) -> io::Result<()> {
    let total: u64 = counts.rows.values().sum();
    let rows: Vec<[String; 3]> = counts
        .rows
        .iter()
        .map(|(verdict, count)| {
            let share = *count as f64 * 100.0 / (total.max(1)) as f64;
            [verdict.clone(), count.to_string(), format!("{share:.1}%")]
        })
        .collect();
    output::table(out, ["VERDICT", "EVENTS", "SHARE"], &rows)
}

fn findings(out: &mut impl Write, plan: &Plan, violations: &[Violation]) -> io::Result<()> {
    writeln!(out, "\nwhat did not hold:")?;
    for violation in violations.iter().take(SHOWN_MAX) {
        let event = violation.event.and_then(|event| plan.events.get(event as usize));
        let event = event.map_or_else(String::new, |event| format!(" [event {}]", cell(&event.key)));
        let at = seconds(violation.at_ms);
        writeln!(out, "  {} at {at}{event}: {}", violation.invariant, cell_long(&violation.what))?;
    }
    say_more(out, violations.len())
}

fn say_more(out: &mut impl Write, all: usize) -> io::Result<()> {
    match all.saturating_sub(SHOWN_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more: --json has them all"),
    }
}

/// What each policy did with the same stream, and the events that fared badly under it.
fn compared(out: &mut impl Write, compared: &[Comparison]) -> io::Result<()> {
    writeln!(out, "\nthe same stream under each policy:")?;
    let rows: Vec<[String; 8]> = compared
        .iter()
        .map(|one| {
            let count = |verdict| one.rows.get(verdict).copied().unwrap_or(0).to_string();
            [
                one.policy.clone(),
                count("applied"),
                count("stale"),
                count("expired"),
                one.lost.len().to_string(),
                one.wrong.len().to_string(),
                one.wrong_states.to_string(),
                seconds(one.worst_delay_ms),
            ]
        })
        .collect();
    let header = ["POLICY", "APPLIED", "STALE", "EXPIRED", "LOST", "WRONG", "WRONG STATES", "WORST DELAY"];
    output::table(out, header, &rows)?;
    writeln!(
        out,
        "LOST: never took effect, since they were stale or expired; no harm where each event is the whole state.\n\
         WRONG: took effect over a newer one, or without the one before. WRONG STATES: resources that did not end \
         newest."
    )?;
    for one in compared {
        misfortunes(out, &format!("{}: lost", one.policy), &one.lost)?;
        misfortunes(out, &format!("{}: applied wrongly", one.policy), &one.wrong)?;
        for violation in one.violations.iter().take(SHOWN_MAX) {
            writeln!(out, "{}: {} did not hold: {}", one.policy, violation.invariant, cell_long(&violation.what))?;
        }
    }
    Ok(())
}

fn misfortunes(out: &mut impl Write, title: &str, all: &[Misfortune]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}, {}:", some(all.len() as u64, "event"))?;
    let rows: Vec<[String; 4]> = all
        .iter()
        .take(SHOWN_MAX)
        .map(|one| {
            let version = one.version.as_deref().unwrap_or_default();
            [cell(&one.key), cell(&one.resource), cell(version), cell_long(&one.what)]
        })
        .collect();
    output::table(out, ["  KEY", "RESOURCE", "VERSION", "WHAT"], &rows.map_first(|key| format!("  {key}")))?;
    say_more(out, all.len())
}

/// Small help for indented tables.
trait MapFirst {
    fn map_first(self, change: impl Fn(&str) -> String) -> Self;
}

impl<const N: usize> MapFirst for Vec<[String; N]> {
    fn map_first(mut self, change: impl Fn(&str) -> String) -> Self {
        for row in &mut self {
            if let Some(first) = row.first_mut() {
                *first = change(first);
            }
        }
        self
    }
}

/// A text that came from outside, not cut as short as a cell.
pub(super) fn cell_long(text: &str) -> String {
    crate::config::redact::printable(text, 300)
}

/// `1 event`, `7 events`.
pub(super) fn some(count: u64, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {what}{s}", grouped(count))
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds as people say them.
pub(super) fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// A hash as text.
pub(super) fn hash(hash: u64) -> String {
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_said_as_people_say_them() {
        assert_eq!([seconds(7), seconds(1_250), seconds(61_999)], ["7 ms", "1.2 s", "1 min 1 s"]);
        assert_eq!([grouped(7), grouped(1_234), grouped(20_000_000)], ["7", "1,234", "20,000,000"]);
        assert_eq!([some(1, "seed"), some(2, "seed")], ["1 seed", "2 seeds"]);
    }
}
