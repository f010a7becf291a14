//! Many seeds across cores: each thread takes the next seed and plays it in runtimes of its own.
//!
//! Promises the same result for the same seeds, however many threads there are: what runs tell is put
//! together in the order of seeds. A scenario whose states were not reached means nothing, and fails.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::backend::Backend;
use super::generate::{fault_kinds, generate};
use super::outcome::{FailedSeed, Many, Progress, Run};
use super::run::{RunOptions, run};
use super::scenario::Scenario;

/// Fewer seeds than this may miss a state by chance.
const SEEDS_FOR_ALL: u64 = 200;
/// How often somebody hears of the progress, in seeds.
const TELL_EVERY: u64 = 16;

/// Plays every seed of a range.
pub fn many(
    scenario: &Scenario,
    seeds: RangeInclusive<u64>,
    threads: usize,
    backend: &dyn Backend,
    progress: &(dyn Fn(Progress) + Sync),
) -> Many {
    let of = seeds.end().saturating_sub(*seeds.start()).saturating_add(u64::from(!seeds.is_empty()));
    let next = AtomicU64::new(*seeds.start());
    let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let runs = Mutex::new(Gathered::new(*seeds.start()));
    let started = Instant::now();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            let run = run(&generate(scenario, seed), backend, &RunOptions::default());
            if !run.violations.is_empty() {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            runs.lock().unwrap_or_else(PoisonError::into_inner).add(seed, run);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(TELL_EVERY) || done == of {
                let rate = done as f64 / started.elapsed().as_secs_f64().max(0.001);
                progress(Progress { done, of, failed: failed.load(Ordering::Relaxed), rate });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let mut many = runs.into_inner().unwrap_or_else(PoisonError::into_inner).many;
    if many.seeds >= SEEDS_FOR_ALL {
        many.never_reached = never_reached(scenario, &many);
    }
    many
}

/// Runs, put together in the order of their seeds.
struct Gathered {
    many: Many,
    next: u64,
    early: BTreeMap<u64, Run>,
}

impl Gathered {
    fn new(first: u64) -> Self {
        Self { many: Many::default(), next: first, early: BTreeMap::new() }
    }

    fn add(&mut self, seed: u64, run: Run) {
        self.early.insert(seed, run);
        while let Some(run) = self.early.remove(&self.next) {
            self.next += 1;
            self.count(run);
        }
    }

    fn count(&mut self, run: Run) {
        let many = &mut self.many;
        many.seeds += 1;
        many.events += run.counts.events;
        many.deliveries += run.counts.deliveries;
        many.faults += run.counts.faults;
        many.reached.merge(&run.reached);
        many.trace_hash = (many.trace_hash ^ run.trace_hash).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        if !run.violations.is_empty() {
            many.failed.push(FailedSeed { seed: run.seed, violations: run.violations });
        }
    }
}

/// What the scenario asks for and no seed has shown.
fn never_reached(scenario: &Scenario, many: &Many) -> Vec<String> {
    let mut wanted: Vec<String> = Vec::new();
    if scenario.faults.count.max > 0 {
        wanted.extend(fault_kinds(scenario).into_iter().map(|kind| format!("fault {}", kind.word())));
    }
    wanted.push("verdict applied".to_owned());
    let asked = [
        (scenario.sender.duplicates > 0.0, "answered duplicate"),
        (scenario.world.conflicts > 0.0, "answered conflict"),
        (scenario.world.repeats > 0.0, "committed repeat"),
        (scenario.world.unusable > 0.0, "answered quarantined"),
        (scenario.world.ignored > 0.0, "verdict ignored"),
        (scenario.network.loss > 0.0, "request lost"),
        (scenario.network.cut > 0.0, "answer cut"),
        (scenario.gate.tight > 0.0, "refused overloaded"),
    ];
    wanted.extend(asked.into_iter().filter(|(asked, _)| *asked).map(|(_, what)| what.to_owned()));
    wanted.retain(|what| many.reached.count(what) == 0);
    wanted
}
