//! What can be typed behind `simulate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate_actors::sim::{PolicyChoice, Span};

const AFTER: &str = "\
A seed says everything that happens: the same seed and the same dials are the same run, line by
line, on every machine. Time is driven, not waited for: a minute of a run passes in milliseconds.

Examples:
  tidegate simulate                                    the scenario `gentle`, seed 1
  tidegate simulate reorder-storm --seed 7 --plot run.svg
  tidegate simulate lossy-sequence --compare newest,sequence,arrival
  tidegate simulate retry-storm --seeds 1..20000       many seeds, on all cores
  tidegate simulate flaky-store --store sqlite --faults 20 --events 500
  tidegate simulate gentle --set sender.timeout_ms=500 --set network.delay_ms=1..900
  tidegate simulate --print reorder-storm > mine.toml  a scenario to start your own from
  tidegate simulate mine.toml --html run.html

Events of your own, shuffled, repeated, delayed and lost by the same models. Each line of the file
is a body, or {\"headers\": {…}, \"body\": …}, or a row that `events --export` wrote. Signatures are
not checked, and no secret is needed:
  tidegate events --source stripe --export > events.jsonl
  tidegate simulate reorder-storm --from events.jsonl --source stripe --compare newest,arrival

Exit codes:
  0  everything held
  1  something did not hold, or the run reached too little to mean anything
  2  arguments, scenario or recorded events are wrong; nothing was run";

/// `simulate`
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct SimulateArgs {
    /// A scenario that comes with the program (gentle, retry-storm, reorder-storm, flaky-store, lossy-sequence), or
    /// a file of your own that ends in .toml
    #[arg(default_value = "gentle")]
    pub scenario: String,
    /// What everything is drawn from
    #[arg(long, default_value_t = 1, conflicts_with = "seeds")]
    pub seed: u64,
    /// Run every seed of a range, on all cores
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    pub seeds: Option<RangeInclusive<u64>>,
    /// What the engine writes to: its store in memory, or SQLite in a temporary file
    #[arg(long, value_enum, default_value_t = StoreChoice::Memory)]
    pub store: StoreChoice,
    /// Send these recorded events in place of drawn ones: a file of JSON lines
    #[arg(long, value_name = "FILE.jsonl", requires = "source", conflicts_with = "seeds")]
    pub from: Option<PathBuf>,
    /// The source whose rules read the recorded events, by its name in the settings
    #[arg(long, value_name = "NAME", requires = "from")]
    pub source: Option<String>,
    /// Play a run that `--out` wrote
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["from", "seeds", "seed"])]
    pub play: Option<PathBuf>,
    /// What each of these policies does with the same stream: newest, arrival, sequence, transition, window, …
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', value_parser = policy, conflicts_with = "seeds")]
    pub compare: Vec<PolicyChoice>,
    /// Draw the run: arrival against version for each resource
    #[arg(long, value_name = "FILE.svg", conflicts_with = "seeds")]
    pub plot: Option<PathBuf>,
    /// The same as a page to move about in, which needs no network
    #[arg(long, value_name = "FILE.html", conflicts_with = "seeds")]
    pub html: Option<PathBuf>,
    /// Draw this resource, by its type/id or its id; may be repeated [default: where most happened]
    #[arg(long = "resource", value_name = "NAME")]
    pub shown: Vec<String>,
    /// Print every line of what happened
    #[arg(long, conflicts_with = "seeds")]
    pub trace: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where what failed is written: the smallest run of one seed, or the list of many [default for many:
    /// failed-seeds.txt]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print a scenario that comes with the program, every line explained, and do nothing else
    #[arg(long, value_name = "SCENARIO", exclusive = true)]
    pub print: Option<String>,
    /// Dials that are turned from where the scenario has them.
    #[command(flatten)]
    pub dials: Dials,
}

/// Dials over the scenario. All are in the scenario file too.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Dials over the scenario")]
pub struct Dials {
    /// Events in all (world.events)
    #[arg(long, value_name = "N|A..B", value_parser = span)]
    pub events: Option<Span>,
    /// Resources they happen to (world.resources)
    #[arg(long, value_name = "N|A..B", value_parser = span)]
    pub resources: Option<Span>,
    /// Share of requests that are sent again although they were answered (sender.duplicates)
    #[arg(long, value_name = "SHARE", value_parser = super::super::args::share)]
    pub duplicate: Option<f64>,
    /// Share of requests that get lost on the way, and are tried again (network.loss)
    #[arg(long, value_name = "SHARE", value_parser = super::super::args::share)]
    pub loss: Option<f64>,
    /// Share of events that are never sent at all (world.never)
    #[arg(long, value_name = "SHARE", value_parser = super::super::args::share)]
    pub never: Option<f64>,
    /// The way to the gate, in milliseconds (network.delay_ms)
    #[arg(long, value_name = "MS|A..B", value_parser = span)]
    pub delay: Option<Span>,
    /// Every second request comes late by up to so many milliseconds, so that others overtake it (network.slow,
    /// network.slow_ms)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=2_592_000_000))]
    pub reorder: Option<u64>,
    /// The policy of all resources, or several to be given out among them (order.policies); recorded events have
    /// that of their source
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', value_parser = policy, conflicts_with = "from")]
    pub policy: Vec<PolicyChoice>,
    /// Faults in a run (faults.count)
    #[arg(long, value_name = "N|A..B", value_parser = span)]
    pub faults: Option<Span>,
    /// Nodes on one store (gate.nodes)
    #[arg(long, value_name = "N|A..B", value_parser = span)]
    pub nodes: Option<Span>,
    /// Any other dial, by its key in the scenario file; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// A store under the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreChoice {
    /// The engine's own store in memory.
    Memory,
    /// The real one, in a temporary file.
    Sqlite,
}

/// `5` or `5..9`, both ends included.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let span = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to.strip_prefix('=').unwrap_or(to))),
        None => number(text).map(|one| (one, one)),
    };
    match span {
        Some((min, max)) if min <= max => Ok(Span::new(min, max)),
        Some((min, max)) => Err(format!("it must rise: {max}..{min}?")),
        None => Err("it must be a whole number such as 5, or a span such as 5..9".to_owned()),
    }
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let seeds = span(text)?;
    Ok(seeds.min..=seeds.max)
}

fn policy(text: &str) -> Result<PolicyChoice, String> {
    PolicyChoice::from_name(text.trim())
        .ok_or_else(|| "it must be newest, arrival, sequence, transition, window, refetch or fields".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_one_number_or_two_that_rise() {
        assert_eq!(span("7"), Ok(Span::new(7, 7)));
        assert_eq!(span("1..20000"), Ok(Span::new(1, 20_000)));
        assert_eq!(span("3..=9"), Ok(Span::new(3, 9)));
        assert_eq!(span("9..3"), Err("it must rise: 3..9?".to_owned()));
        for wrong in ["", "x", "1..", "-3", "1.5"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
