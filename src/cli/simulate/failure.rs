//! What helps with a run that failed: the smallest run that still fails, its story, and how to repeat it.
//!
//! Promises that the smallest run breaks one of the promises that the whole run broke, and that the command it
//! prints does the same run again.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use serde::Serialize;
use tidegate_actors::sim::{Backend, Plan, PolicyChoice, RunOptions, Span, TraceLine, Violation, run, shrink};

use super::super::output::cell;
use super::args::{Dials, SimulateArgs, StoreChoice};
use super::report::{cell_long, some};

/// Runs that shrinking may take, in memory and on SQLite, where one takes much longer.
const RUNS_MAX: u32 = 2_000;
const SQLITE_RUNS_MAX: u32 = 300;
/// Lines of the story that are printed at its beginning, and at its end.
const LINES_MAX: usize = 40;
/// Events of the smallest run that are listed.
const EVENTS_MAX: usize = 20;

/// The smallest run that still fails.
#[derive(Serialize)]
pub(super) struct Smallest {
    /// Runs it took to find it.
    pub(super) runs: u32,
    events: usize,
    requests: usize,
    faults: usize,
    violations: Vec<Violation>,
    trace: Vec<TraceLine>,
    pub(super) plan: Plan,
}

impl Smallest {
    /// Shrinks a run that failed.
    pub(super) fn of(plan: &Plan, failed: &[Violation], backend: &dyn Backend, store: StoreChoice) -> Self {
        if io::stderr().is_terminal() {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(io::stderr().lock(), "looking for the smallest run that still fails …");
        }
        let broke = |violations: &[Violation]| {
            violations.iter().any(|one| failed.iter().any(|first| first.invariant == one.invariant))
        };
        let fails = |plan: &Plan| broke(&run(plan, backend, &RunOptions::default()).violations);
        let runs_max = if store == StoreChoice::Sqlite { SQLITE_RUNS_MAX } else { RUNS_MAX };
        let shrunk = shrink(plan, fails, runs_max);
        let told = run(&shrunk.plan, backend, &RunOptions { trace: true, timelines: false });
        Self {
            runs: shrunk.runs,
            events: shrunk.plan.events.len(),
            requests: shrunk.plan.messages.len(),
            faults: shrunk.plan.faults.len(),
            violations: told.violations,
            trace: told.trace,
            plan: shrunk.plan,
        }
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let (events, requests, faults) = (self.events as u64, self.requests as u64, self.faults as u64);
        writeln!(
            out,
            "\nthe smallest run that still fails has {} in {} and {} (found in {}):",
            some(events, "event"),
            some(requests, "request"),
            some(faults, "fault"),
            some(self.runs.into(), "run")
        )?;
        for (index, event) in self.plan.events.iter().enumerate().take(EVENTS_MAX) {
            let guard = event.guards.first();
            let resource = guard.and_then(|guard| self.plan.resources.get(guard.resource as usize));
            let resource =
                resource.map_or_else(String::new, |one| format!(" of {}/{}", cell(&one.kind), cell(&one.id)));
            let version = guard.and_then(|guard| guard.version.as_ref());
            let version = version.map_or_else(String::new, |version| format!(", version {}", cell(&version.text)));
            writeln!(out, "  event {index}: {}{resource}{version}, at {} ms", cell(&event.key), event.at_ms)?;
        }
        for (index, fault) in self.plan.faults.iter().enumerate() {
            let node = fault.node.map_or_else(String::new, |node| format!(" of node {node}"));
            writeln!(
                out,
                "  fault {index}: {}{node}, at {} ms for {} ms",
                fault.what.word(),
                fault.at_ms,
                fault.for_ms
            )?;
        }
        writeln!(out, "what happens in it:")?;
        let skipped = self.trace.len().saturating_sub(2 * LINES_MAX);
        for (index, line) in self.trace.iter().enumerate() {
            if skipped > 0 && index == LINES_MAX {
                writeln!(out, "  … {} …", some(skipped as u64, "line"))?;
            }
            if skipped == 0 || index < LINES_MAX || index >= LINES_MAX + skipped {
                writeln!(out, "  {line}")?;
            }
        }
        for violation in &self.violations {
            writeln!(out, "  so {} does not hold: {}", violation.invariant, cell_long(&violation.what))?;
        }
        Ok(())
    }
}

/// The command that does a seed's run again.
pub(super) fn repeat(args: &SimulateArgs, seed: u64, settings: Option<&Path>) -> String {
    let mut command = "tidegate".to_owned();
    if let (Some(settings), Some(_)) = (settings, &args.source) {
        push(&mut command, "--config", &settings.to_string_lossy());
    }
    command.push_str(" simulate");
    if let Some(file) = &args.play {
        push(&mut command, "--play", &file.to_string_lossy());
    } else {
        push(&mut command, "", &args.scenario);
        push(&mut command, "--seed", &seed.to_string());
    }
    if args.store == StoreChoice::Sqlite {
        push(&mut command, "--store", "sqlite");
    }
    if let (Some(file), Some(source)) = (&args.from, &args.source) {
        push(&mut command, "--from", &file.to_string_lossy());
        push(&mut command, "--source", source);
    }
    dials(&mut command, &args.dials);
    command
}

fn dials(command: &mut String, dials: &Dials) {
    let span = |span: Span| {
        if span.min == span.max { span.min.to_string() } else { format!("{}..{}", span.min, span.max) }
    };
    let given = [
        ("--events", dials.events.map(span)),
        ("--resources", dials.resources.map(span)),
        ("--duplicate", dials.duplicate.map(|share| share.to_string())),
        ("--loss", dials.loss.map(|share| share.to_string())),
        ("--never", dials.never.map(|share| share.to_string())),
        ("--delay", dials.delay.map(span)),
        ("--reorder", dials.reorder.map(|most| most.to_string())),
        ("--faults", dials.faults.map(span)),
        ("--nodes", dials.nodes.map(span)),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            push(command, name, &value);
        }
    }
    if !dials.policy.is_empty() {
        let names: Vec<&str> = dials.policy.iter().map(PolicyChoice::name).collect();
        push(command, "--policy", &names.join(","));
    }
    for set in &dials.set {
        push(command, "--set", set);
    }
}

fn push(command: &mut String, name: &str, value: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,=:".contains(&byte);
    let space = if name.is_empty() { "" } else { " " };
    // Writing to a text cannot fail.
    let _ = if !value.is_empty() && value.bytes().all(plain) {
        write!(command, " {name}{space}{value}")
    } else {
        write!(command, " {name}{space}'{}'", value.replace('\'', "'\\''"))
    };
}
