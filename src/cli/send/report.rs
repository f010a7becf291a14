//! The count of answers, as a table or as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::super::Exit;
use super::super::output;
use super::deliver::{End, Outcome};

/// The most kinds of answers that are told apart.
const KINDS_MAX: usize = 64;
/// The longest latency that is told apart, in microseconds.
const LATENCY_US_MAX: u64 = 120_000_000;

/// What was sent where.
pub(super) struct Run<'a> {
    pub(super) source: &'a str,
    pub(super) url: &'a str,
    pub(super) seed: Option<u64>,
}

/// Counts of one run.
pub(super) struct Report {
    planned: u64,
    done: u64,
    answers: BTreeMap<(u16, String), u64>,
    refused: u64,
    ties: u64,
    conflicts: u64,
    retries: u64,
    unreachable: u64,
    reason: Option<String>,
    latency_us: Option<Histogram<u64>>,
    took: Duration,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    source: &'a str,
    url: &'a str,
    seed: Option<u64>,
    planned: u64,
    sent: u64,
    answers: BTreeMap<&'a str, u64>,
    statuses: BTreeMap<u16, u64>,
    refused: u64,
    ties: u64,
    conflicts: u64,
    retries: u64,
    unreachable: u64,
    seconds: f64,
    per_second: f64,
    latency_ms: BTreeMap<&'static str, f64>,
}

impl Report {
    pub(super) fn new(planned: u64) -> Self {
        Self {
            planned,
            done: 0,
            answers: BTreeMap::new(),
            refused: 0,
            ties: 0,
            conflicts: 0,
            retries: 0,
            unreachable: 0,
            reason: None,
            latency_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).ok(),
            took: Duration::ZERO,
        }
    }

    pub(super) fn count(&mut self, outcome: Outcome) {
        self.done += 1;
        self.retries += u64::from(outcome.retries);
        match outcome.end {
            End::Unreachable(reason) => {
                self.unreachable += 1;
                self.reason.get_or_insert(reason);
            }
            End::Answered { status, word, tie, conflict } => {
                self.refused += u64::from(!(200..300).contains(&status));
                self.ties += u64::from(tie);
                self.conflicts += u64::from(conflict);
                let full = self.answers.len() >= KINDS_MAX;
                let kind = if full { (status, "other".to_owned()) } else { (status, word) };
                *self.answers.entry(kind).or_default() += 1;
                let us = u64::try_from(outcome.took.as_micros()).unwrap_or(LATENCY_US_MAX);
                if let Some(latency) = &mut self.latency_us {
                    latency.saturating_record(us.max(1));
                }
            }
        }
    }

    pub(super) fn took(&mut self, took: Duration) {
        self.took = took;
    }

    pub(super) const fn done(&self) -> u64 {
        self.done
    }

    /// Nothing was ever answered, and one delivery was given up.
    pub(super) fn nobody_there(&self) -> bool {
        self.unreachable > 0 && self.answers.is_empty()
    }

    pub(super) const fn exit(&self) -> Exit {
        if self.unreachable > 0 {
            Exit::Unreachable
        } else if self.refused > 0 || self.done < self.planned {
            Exit::No
        } else {
            Exit::Good
        }
    }

    pub(super) fn print(&self, out: &mut impl Write, json: bool, run: &Run<'_>) -> io::Result<()> {
        if let Some(reason) = &self.reason {
            let url = run.url;
            output::error(&format!(
                "{url} did not answer: {reason}; is it running (`tidegate serve`), and is this its address (`--url`)?"
            ));
        }
        if json { self.print_json(out, run) } else { self.print_table(out, run) }
    }

    fn print_json(&self, out: &mut impl Write, run: &Run<'_>) -> io::Result<()> {
        let (mut answers, mut statuses) = (BTreeMap::new(), BTreeMap::new());
        for ((status, word), count) in &self.answers {
            *answers.entry(word.as_str()).or_default() += count;
            *statuses.entry(*status).or_default() += count;
        }
        let report = ReportJson {
            source: run.source,
            url: run.url,
            seed: run.seed,
            planned: self.planned,
            sent: self.done,
            answers,
            statuses,
            refused: self.refused,
            ties: self.ties,
            conflicts: self.conflicts,
            retries: self.retries,
            unreachable: self.unreachable,
            seconds: self.took.as_secs_f64(),
            per_second: self.per_second(),
            latency_ms: self.latencies().into_iter().collect(),
        };
        output::json(out, &report)
    }

    fn print_table(&self, out: &mut impl Write, run: &Run<'_>) -> io::Result<()> {
        if self.answers.is_empty() {
            return Ok(());
        }
        let answered: u64 = self.answers.values().sum();
        #[allow(clippy::cast_precision_loss, reason = "a share for people")]
        let share = |count: u64| format!("{:.1}%", 100.0 * count as f64 / answered as f64);
        let row = |((status, word), count): (&(u16, String), &u64)| {
            [word.clone(), status.to_string(), count.to_string(), share(*count)]
        };
        let rows: Vec<[String; 4]> = self.answers.iter().map(row).collect();
        output::table(out, ["ANSWER", "STATUS", "EVENTS", "SHARE"], &rows)?;
        let (seconds, rate) = (self.took.as_secs_f64(), self.per_second());
        let latency: Vec<String> =
            self.latencies().into_iter().map(|(name, ms)| format!("{name} {ms:.2} ms")).collect();
        writeln!(out)?;
        writeln!(out, "latency  {}", latency.join("  "))?;
        writeln!(
            out,
            "sent     {} of {} in {seconds:.2} s, {rate:.0} a second, to {}",
            self.done, self.planned, run.url
        )?;
        let notes = [("ties", self.ties), ("conflicts", self.conflicts), ("retries", self.retries)];
        let notes: Vec<String> =
            notes.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
        if !notes.is_empty() {
            writeln!(out, "noted    {}", notes.join(", "))?;
        }
        if self.answers.keys().any(|(status, _)| *status == 401) {
            writeln!(
                out,
                "hint     401: the server does not know this source, or has another secret for it; give both"
            )?;
            writeln!(out, "         the same settings, and look into the server's log for the reason")?;
        }
        if let Some(seed) = run.seed {
            writeln!(out, "seed     {seed} (--seed {seed} makes the same events again)")?;
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    fn per_second(&self) -> f64 {
        self.done as f64 / self.took.as_secs_f64().max(1e-9)
    }

    #[allow(clippy::cast_precision_loss, reason = "microseconds below two minutes")]
    fn latencies(&self) -> Vec<(&'static str, f64)> {
        let Some(latency) = &self.latency_us else { return Vec::new() };
        let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1_000.0;
        vec![("p50", at(0.5)), ("p90", at(0.9)), ("p99", at(0.99)), ("max", latency.max() as f64 / 1_000.0)]
    }
}
