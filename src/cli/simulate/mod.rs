//! `simulate`: the engine itself through a stream that is repeated, delayed, swapped and lost, and a verdict.
//!
//! Owns scenarios, recorded streams, reports and pictures; worlds, faults and the checker belong to the
//! simulator in the engine's crate. Promises the same output for the same seed and dials, but for the times that
//! `--seeds` tells. Touches no configured store and no network. What is wrong with arguments, a scenario or
//! recorded events is told before anything runs.

pub(super) mod args;
mod failure;
mod many;
mod plot;
mod promises;
mod recorded;
mod report;
mod scenario;
mod sqlite;

use std::io::{self, Write as _};
use std::path::Path;

use tidegate_actors::sim::{
    Backend, MemoryBackend, Plan, Run, RunOptions, Scenario, compare, generate, generate_from, run as play,
};

use super::{Exit, Failure, output};
use crate::config::Problem;
use args::{SimulateArgs, StoreChoice};
use failure::{Smallest, repeat};
use report::Told;

/// The most bytes of a run that is played again.
const PLAY_BYTES_MAX: u64 = 256 << 20;

/// Simulates, away from any runtime: every run makes its own.
pub(super) fn run(args: &SimulateArgs, settings: Option<&Path>) -> Result<Exit, Failure> {
    std::thread::scope(|scope| {
        let done = scope.spawn(|| simulate(args, settings)).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn simulate(args: &SimulateArgs, settings: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(name) = &args.print {
        let text = scenario::shipped(name).map_err(|problem| refused(&[problem]))?;
        io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Exit::Good);
    }
    let scenario = scenario::read(args).map_err(|problems| refused(&problems))?;
    let backend: Box<dyn Backend> = match args.store {
        StoreChoice::Memory => Box::new(MemoryBackend),
        StoreChoice::Sqlite => Box::new(sqlite::SqliteBackend::default()),
    };
    if let Some(seeds) = &args.seeds {
        return many::run(args, &scenario, seeds, &*backend, settings);
    }
    let plan = plan(args, &scenario, settings)?;
    one(args, &scenario, &plan, &*backend, settings)
}

/// What will happen: drawn, read from recorded events, or written by an earlier run.
fn plan(args: &SimulateArgs, scenario: &Scenario, settings: Option<&Path>) -> Result<Plan, Failure> {
    if let Some(file) = &args.play {
        let text = read_file(file, PLAY_BYTES_MAX).map_err(|why| refused(&[bad_file("--play", file, &why)]))?;
        return serde_json::from_str(&text)
            .map_err(|error| refused(&[bad_file("--play", file, &format!("is no run that --out wrote: {error}"))]));
    }
    let (Some(file), Some(source)) = (&args.from, &args.source) else { return Ok(generate(scenario, args.seed)) };
    let stream = recorded::read(file, source, settings, scenario).map_err(|problems| refused(&problems))?;
    for note in &stream.notes {
        // Nothing can be done about a standard error that is closed.
        let _ = writeln!(io::stderr().lock(), "note: {note}");
    }
    Ok(generate_from(scenario, args.seed, &stream.events))
}

fn one(
    args: &SimulateArgs,
    scenario: &Scenario,
    plan: &Plan,
    backend: &dyn Backend,
    settings: Option<&Path>,
) -> Result<Exit, Failure> {
    let run = play(plan, backend, &RunOptions { trace: args.trace, timelines: true });
    draw(args, scenario, plan, &run)?;
    let compared = if args.compare.is_empty() { Vec::new() } else { compare(plan, &args.compare, backend) };
    let smallest =
        if run.violations.is_empty() { None } else { Some(Smallest::of(plan, &run.violations, backend, args.store)) };
    if let (Some(smallest), Some(file)) = (&smallest, &args.out) {
        let text = serde_json::to_vec_pretty(&smallest.plan).map_err(io::Error::other)?;
        write_file("--out", file, &text)?;
    }
    let told = Told {
        plan,
        run: &run,
        about: if args.play.is_some() { "" } else { &scenario.about },
        store: store_word(args.store),
        compared: &compared,
        smallest: smallest.as_ref(),
        repeat: &repeat(args, plan.seed, settings),
    };
    let mut out = io::stdout().lock();
    told.print(&mut out, args.json)?;
    if let (Some(_), Some(file), false) = (&smallest, &args.out, args.json) {
        writeln!(out, "the smallest alone: tidegate simulate --play {}", file.display())?;
    }
    Ok(if told.passed() { Exit::Good } else { Exit::No })
}

fn draw(args: &SimulateArgs, scenario: &Scenario, plan: &Plan, run: &Run) -> Result<(), Failure> {
    let picture = |most| plot::picture(plan, run, &scenario.about, &args.shown, most);
    if let Some(file) = &args.plot {
        write_file("--plot", file, plot::draw(&picture(plot::DRAWN_MAX)).as_bytes())?;
    }
    if let Some(file) = &args.html {
        let page = plot::page(&picture(plot::PAGE_MAX)).map_err(io::Error::other)?;
        write_file("--html", file, page.as_bytes())?;
    }
    Ok(())
}

const fn store_word(store: StoreChoice) -> &'static str {
    match store {
        StoreChoice::Memory => "memory",
        StoreChoice::Sqlite => "sqlite",
    }
}

/// Everything that is wrong with what was handed in, one a line.
fn refused(problems: &[Problem]) -> Failure {
    output::problems_of("what was asked for has", problems);
    Failure::Settings
}

fn bad_file(key: &str, file: &Path, why: &str) -> Problem {
    Problem::new(format!("{key} {}", file.display()), why)
}

fn read_file(file: &Path, most: u64) -> Result<String, String> {
    use std::io::Read as _;
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    opened.take(most + 1).read_to_string(&mut text).map_err(|error| format!("cannot be read: {error}"))?;
    if text.len() as u64 > most {
        return Err(format!("is longer than {} MiB", most >> 20));
    }
    Ok(text)
}

fn write_file(key: &str, file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| refused(&[bad_file(key, file, &format!("cannot be written: {error}"))]))
}
