//! Plays many seeds of the tests' scenarios across cores, says how fast, and shrinks what fails:
//! `cargo run --release -p tidegate-actors --features sim --example seeds -- mixed 1 2000 2` for seeds 1 to 2,000
//! on two threads, `-- mixed 148` for one.

use std::io::Write as _;

use tidegate_actors::sim::{MemoryBackend, RunOptions, Scenario, generate, many, run, shrink};

#[path = "../tests/sim/scenarios.rs"]
mod scenarios;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, otherwise| arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (first, last, threads) = (number(1, 1), number(2, 0), number(3, 2));
    // a single seed is played alone
    let last = last.max(first);
    let wanted = arguments.first().map_or("all", String::as_str);
    let scenarios = scenarios::scenarios().into_iter().chain([scenarios::everything(), Scenario::default()]);
    for scenario in scenarios.filter(|scenario| wanted == "all" || scenario.name == wanted) {
        play(&scenario, first, last, threads as usize)?;
    }
    Ok(())
}

fn play(scenario: &Scenario, first: u64, last: u64, threads: usize) -> std::io::Result<()> {
    let mut out = std::io::stderr();
    let many = many(scenario, first..=last, threads, &MemoryBackend, &|progress| {
        if progress.done == progress.of {
            let _ = writeln!(std::io::stderr(), "{}: {:.0} seeds a second", scenario.name, progress.rate);
        }
    });
    writeln!(out, "{} seeds, {} events, {} faults, hash {:x}", many.seeds, many.events, many.faults, many.trace_hash)?;
    writeln!(out, "{} failed; never reached: {:?}", many.failed.len(), many.never_reached)?;
    for failed in many.failed.iter().take(3) {
        writeln!(out, "seed {}: {:#?}", failed.seed, failed.violations.iter().take(2).collect::<Vec<_>>())?;
    }
    let Some(failed) = many.failed.first() else { return Ok(()) };
    let promise = &failed.violations[0].invariant;
    let options = RunOptions { trace: true, timelines: false };
    let fails = |plan: &_| {
        let found = run(plan, &MemoryBackend, &RunOptions::default()).violations;
        found.first().is_some_and(|violation| violation.invariant == *promise)
    };
    let shrunk = shrink(&generate(scenario, failed.seed), fails, 3_000);
    writeln!(out, "{:#?}\n{} runs", shrunk.plan, shrunk.runs)?;
    let run = run(&shrunk.plan, &MemoryBackend, &options);
    for line in &run.trace {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{:#?}", run.violations)
}
