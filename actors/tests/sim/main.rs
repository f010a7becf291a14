//! The simulator from outside: the same seed is the same run, many seeds pass, and what is wrong is found.

mod scenarios;

use tidegate_actors::sim::{MemoryBackend, Plan, PolicyChoice, RunOptions, Span, compare, generate, many, run};

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

#[test]
fn threads_change_nothing() {
    let scenario = scenarios::mixed();
    let hash = |threads| many(&scenario, 1..=40, threads, &MemoryBackend, &|_| {}).trace_hash;
    assert_eq!(hash(1), hash(3));
}

#[test]
fn a_plan_that_was_written_is_the_same_run_when_it_is_read() {
    let plan = generate(&scenarios::mixed(), 11);
    let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(plan, read);
    let hash = |plan| run(plan, &MemoryBackend, &RunOptions::default()).trace_hash;
    assert_eq!(hash(&plan), hash(&read));
}

/// What each policy makes of one stream, against the truth.
#[test]
fn policies_are_compared_by_what_they_lose() {
    let mut scenario = scenarios::newest();
    scenario.faults.count = Span::new(0, 0);
    scenario.network.slow = 0.5;
    scenario.world.poison = 0.0;
    let names = ["newest", "arrival", "sequence"];
    let policies: Vec<PolicyChoice> = names.into_iter().filter_map(PolicyChoice::from_name).collect();
    let compared = compare(&generate(&scenario, 3), &policies, &MemoryBackend);
    let [newest, arrival, sequence] = compared.as_slice() else { panic!("three comparisons") };
    assert!(compared.iter().all(|one| one.violations.is_empty()), "{compared:?}");
    assert!(!newest.lost.is_empty() && newest.wrong.is_empty(), "the newest passes over what is late: {newest:?}");
    assert_eq!(newest.wrong_states, 0);
    assert!(arrival.lost.is_empty() && !arrival.wrong.is_empty(), "arrival applies old over new: {arrival:?}");
    assert!(arrival.wrong_states > 0);
    assert!(sequence.lost.is_empty() && sequence.wrong.is_empty(), "nothing is missing: {sequence:?}");
    assert!(sequence.worst_delay_ms >= newest.worst_delay_ms);
}
