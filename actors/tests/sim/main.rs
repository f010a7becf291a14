//! The simulator from outside: the same seed is the same run, many seeds pass, and what is wrong is found.

mod scenarios;

use tidegate_actors::sim::{MemoryBackend, RunOptions, generate, many, run};

use crate::scenarios::scenarios;

#[test]
fn a_seed_is_one_run_always() {
    for scenario in scenarios() {
        for seed in 0..10 {
            let plan = generate(&scenario, seed);
            let first = run(&plan, &MemoryBackend, &RunOptions { trace: true, timelines: false });
            let second = run(&plan, &MemoryBackend, &RunOptions { trace: true, timelines: false });
            let parted = first.trace.iter().zip(&second.trace).find(|(one, other)| one != other);
            assert_eq!(first.trace_hash, second.trace_hash, "{} seed {seed} parts at {parted:?}", scenario.name);
        }
    }
}

#[test]
fn many_seeds_of_every_scenario_pass() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for scenario in scenarios() {
        assert_eq!(scenario.faults(), Vec::<String>::new());
        let many = many(&scenario, 1..=seeds, 2, &MemoryBackend, &|_| {});
        println!(
            "{}: {} seeds, {} events, {} deliveries, {} faults, {} failed",
            scenario.name,
            many.seeds,
            many.events,
            many.deliveries,
            many.faults,
            many.failed.len()
        );
        for (what, count) in &many.reached.0 {
            println!("{count:>9}  {what}");
        }
        for failed in many.failed.iter().take(3) {
            println!("seed {}: {:#?}", failed.seed, &failed.violations[..failed.violations.len().min(3)]);
        }
        assert!(many.passed(), "{:?}", many.never_reached);
    }
}
