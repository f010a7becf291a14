//! The simulator from outside: the same seed is the same run, many seeds pass, and what is wrong is found.

use tidegate_actors::sim::{MemoryBackend, RunOptions, Scenario, generate, many, run};

#[test]
fn a_seed_is_one_run_always() {
    for seed in 0..40 {
        let plan = generate(&Scenario::default(), seed);
        let first = run(&plan, &MemoryBackend, &RunOptions { trace: true, timelines: false });
        let second = run(&plan, &MemoryBackend, &RunOptions { trace: true, timelines: false });
        let parted = first.trace.iter().zip(&second.trace).position(|(one, other)| one != other);
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed} parts at {parted:?}");
    }
}

#[test]
fn two_thousand_seeds_pass() {
    let many = many(&Scenario::default(), 1..=2_000, 2, &MemoryBackend, &|progress| {
        if progress.done.is_multiple_of(512) {
            println!("{progress:?}");
        }
    });
    println!("{} seeds, {} events, {} deliveries, {} faults", many.seeds, many.events, many.deliveries, many.faults);
    for (what, count) in &many.reached.0 {
        println!("{count:>9}  {what}");
    }
    for failed in many.failed.iter().take(5) {
        println!("seed {}: {:#?}", failed.seed, failed.violations);
    }
    println!("{} failed", many.failed.len());
    assert!(many.passed(), "{:?}", many.never_reached);
}
