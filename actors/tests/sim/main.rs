//! The simulator from outside: the same seed is the same run, many seeds pass, and what is wrong is found.

mod given;
mod scenarios;
mod tampered;

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

/// Seeds of each scenario; together at least 2,000.
const SEEDS: u64 = 400;

#[test]
fn two_thousand_seeds_pass() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let mut all = 0;
    for scenario in scenarios() {
        assert_eq!(scenario.faults(), Vec::<String>::new());
        let many = many(&scenario, 1..=seeds, 2, &MemoryBackend, &|_| {});
        let (events, faults) = (many.events, many.faults);
        println!("{}: {} seeds, {events} events, {faults} faults", scenario.name, many.seeds);
        if let Some(failed) = many.failed.first() {
            let again = format!(
                "cargo run -p tidegate-actors --features sim --example seeds -- {} {}",
                scenario.name, failed.seed
            );
            panic!("{} of {seeds} seeds failed; `{again}` shrinks the first: {failed:#?}", many.failed.len());
        }
        assert!(many.never_reached.is_empty(), "never reached: {:?}", many.never_reached);
        all += many.seeds;
    }
    println!("{all} seeds passed");
}

/// Seeds that failed once, each with a sentence; those of the scenarios of the command line are played there.
#[test]
fn seeds_that_failed_once_pass() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sim/seeds.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let scenarios = scenarios();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (what, sentence) = line.split_once(" # ").expect("seed, scenario, # and a sentence");
        let (seed, name) = what.split_once(' ').expect("a seed and a scenario");
        let Some(scenario) = scenarios.iter().find(|scenario| scenario.name == name) else {
            let shipped = format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
            assert!(std::path::Path::new(&shipped).exists(), "no scenario is called {name}: {line}");
            continue;
        };
        let plan = generate(scenario, seed.parse().expect("a number"));
        let run = run(&plan, &MemoryBackend, &RunOptions::default());
        assert_eq!(run.violations, [], "{line}: failed again, {sentence}");
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
    let [mut states_of_newest, mut states_of_arrival] = [0; 2];
    for seed in 1..=5 {
        let compared = compare(&generate(&scenario, seed), &policies, &MemoryBackend);
        let [newest, arrival, sequence] = compared.as_slice() else { panic!("three comparisons") };
        assert!(compared.iter().all(|one| one.violations.is_empty()), "{compared:?}");
        assert!(!newest.lost.is_empty() && newest.wrong.is_empty(), "the newest passes over what is late: {newest:?}");
        assert!(arrival.lost.is_empty() && !arrival.wrong.is_empty(), "arrival applies old over new: {arrival:?}");
        assert!(sequence.lost.is_empty() && sequence.wrong.is_empty(), "nothing is missing: {sequence:?}");
        assert!(sequence.worst_delay_ms >= newest.worst_delay_ms);
        states_of_newest += newest.wrong_states;
        states_of_arrival += arrival.wrong_states;
    }
    assert_eq!(states_of_newest, 0);
    assert!(states_of_arrival > 0);
}
