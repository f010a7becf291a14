//! Many seeds: progress while they run, a summary, and the failed ones in a file.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tidegate_actors::sim::{Backend, FailedSeed, Many, Progress, Reached, Scenario, generate, many};
use tokio::time::Instant;

use super::super::output::{self, cell};
use super::super::{Exit, Failure};
use super::args::SimulateArgs;
use super::failure::{Smallest, repeat};
use super::report::{cell_long, grouped, hash, some};

/// Where failed seeds are written unless `--out` says another place.
const FAILED_FILE: &str = "failed-seeds.txt";
/// How often a run without a terminal says how far it is.
const SAY_EVERY: Duration = Duration::from_secs(2);
/// Failed seeds that are printed; the file has all.
const SHOWN_MAX: usize = 10;

#[derive(Serialize)]
struct ManyJson<'a> {
    verdict: &'static str,
    scenario: &'a str,
    store: &'static str,
    seeds: u64,
    from: u64,
    to: u64,
    events: u64,
    requests: u64,
    faults: u64,
    seconds: f64,
    seeds_per_second: f64,
    trace_hash: String,
    failed: &'a [FailedSeed],
    failed_file: Option<String>,
    /// The smallest run that still fails, of the first seed that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest: Option<&'a Smallest>,
    never_reached: &'a [String],
    reached: &'a Reached,
}

/// Runs every seed of a range and says what came of it.
pub(super) fn run(
    args: &SimulateArgs,
    scenario: &Scenario,
    seeds: &RangeInclusive<u64>,
    backend: &dyn Backend,
    settings: Option<&Path>,
) -> Result<Exit, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    let teller = Teller::new(args.json, seeds);
    let done = many(scenario, seeds.clone(), threads, backend, &|progress| teller.tell(progress));
    teller.end();
    let took = started.elapsed();
    let file = match done.failed.as_slice() {
        [] => None,
        failed => Some(write(args, scenario, failed, settings)?),
    };
    let first = done.failed.first();
    let smallest = first.map(|one| Smallest::of(&generate(scenario, one.seed), &one.violations, backend, args.store));
    let mut out = io::stdout().lock();
    let told = Told { args, scenario, seeds, done: &done, seconds: took.as_secs_f64() };
    if args.json {
        told.json(&mut out, file.as_deref(), smallest.as_ref())?;
    } else {
        told.text(&mut out)?;
        if let (Some(first), Some(smallest), Some(file)) = (first, &smallest, &file) {
            writeln!(out, "\nthe first of them, seed {}:", first.seed)?;
            smallest.print(&mut out)?;
            writeln!(out, "\nall failed seeds are in {}", file.display())?;
            writeln!(out, "repeat the first: {}", repeat(args, first.seed, settings))?;
        }
    }
    Ok(if done.passed() { Exit::Good } else { Exit::No })
}

/// A bar on a terminal, a line now and then elsewhere.
struct Teller {
    bar: ProgressBar,
    quiet: bool,
    said: Mutex<Instant>,
}

impl Teller {
    fn new(json: bool, seeds: &RangeInclusive<u64>) -> Self {
        let hidden = json || !io::stderr().is_terminal();
        let bar = if hidden {
            ProgressBar::hidden()
        } else {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {msg}, {eta} to go");
            let length = seeds.end().saturating_sub(*seeds.start()).saturating_add(1);
            ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        };
        Self { bar, quiet: json, said: Mutex::new(Instant::now()) }
    }

    fn tell(&self, progress: Progress) {
        let failed = if progress.failed == 0 { String::new() } else { format!(", {} failed", progress.failed) };
        let rate = format!("{:.0} a second{failed}", progress.rate);
        if !self.bar.is_hidden() {
            self.bar.set_message(rate);
            self.bar.set_position(progress.done);
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.quiet && said.elapsed() >= SAY_EVERY {
            *said = Instant::now();
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(io::stderr().lock(), "{} of {} seeds, {rate}", progress.done, progress.of);
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn write(
    args: &SimulateArgs,
    scenario: &Scenario,
    failed: &[FailedSeed],
    settings: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let file = args.out.clone().unwrap_or_else(|| PathBuf::from(FAILED_FILE));
    let mut text = format!(
        "# Seeds of {} that failed: seed, the promises it broke, and the command that repeats it.\n",
        cell(&scenario.name)
    );
    for one in failed {
        let mut broken: Vec<&str> = one.violations.iter().map(|violation| violation.invariant.as_str()).collect();
        broken.sort_unstable();
        broken.dedup();
        text.push_str(&format!("{}\t{}\t{}\n", one.seed, broken.join(" "), repeat(args, one.seed, settings)));
    }
    super::write_file("--out", &file, text.as_bytes())?;
    Ok(file)
}

/// What came of many seeds, and of what they were.
struct Told<'a> {
    args: &'a SimulateArgs,
    scenario: &'a Scenario,
    seeds: &'a RangeInclusive<u64>,
    done: &'a Many,
    seconds: f64,
}

impl Told<'_> {
    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { args, scenario, seeds, done, seconds } = self;
        let verdict = if done.passed() { "PASS" } else { "FAIL" };
        let (from, to) = (seeds.start(), seeds.end());
        writeln!(
            out,
            "{verdict}  {} of {} ({from}..{to}), store {}: {} failed",
            some(done.seeds, "seed"),
            cell(&scenario.name),
            super::store_word(args.store),
            done.failed.len()
        )?;
        writeln!(
            out,
            "      {}, {}, {} in {seconds:.1} s: {:.0} seeds a second",
            some(done.events, "event"),
            some(done.deliveries, "request"),
            some(done.faults, "fault"),
            done.seeds as f64 / seconds.max(0.001)
        )?;
        writeln!(out, "      trace {}, the same for the same seeds\n", hash(done.trace_hash))?;
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, count) in &done.reached.0 {
            let (group, rest) = name.split_once(' ').unwrap_or(("also", name));
            groups.entry(group).or_default().push(format!("{rest} {}", grouped(*count)));
        }
        let reached: Vec<(&str, String)> = groups.into_iter().map(|(group, all)| (group, all.join(", "))).collect();
        output::fields(out, &reached)?;
        if !done.never_reached.is_empty() {
            writeln!(out, "\nnever reached, so the whole means nothing: {}", done.never_reached.join(", "))?;
        }
        for one in done.failed.iter().take(SHOWN_MAX) {
            let first = one.violations.first();
            let what = first.map_or_else(String::new, |one| format!("{}: {}", one.invariant, cell_long(&one.what)));
            writeln!(
                out,
                "{}seed {} failed: {what}",
                if one.seed == done.failed[0].seed { "\n" } else { "" },
                one.seed
            )?;
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write, file: Option<&Path>, smallest: Option<&Smallest>) -> io::Result<()> {
        let Self { args, scenario, seeds, done, seconds } = self;
        output::json(
            out,
            &ManyJson {
                verdict: if done.passed() { "pass" } else { "fail" },
                scenario: &scenario.name,
                store: super::store_word(args.store),
                seeds: done.seeds,
                from: *seeds.start(),
                to: *seeds.end(),
                events: done.events,
                requests: done.deliveries,
                faults: done.faults,
                seconds: *seconds,
                seeds_per_second: done.seeds as f64 / seconds.max(0.001),
                trace_hash: hash(done.trace_hash),
                failed: &done.failed,
                failed_file: file.map(|file| file.display().to_string()),
                smallest,
                never_reached: &done.never_reached,
                reached: &done.reached,
            },
        )
    }
}
