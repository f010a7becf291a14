//! The checker is tested: ten engines that are wrong on purpose are caught, and the right one is not.

#[path = "scenarios.rs"]
mod scenarios;

use tidegate_actors::sim::bad::{BadEngine, run_bad};
use tidegate_actors::sim::{MemoryBackend, Plan, RunOptions, generate, run, shrink};

/// Each must be caught within so many seeds.
const SEEDS_MAX: u64 = 1_000;

#[test]
fn ten_of_ten_bad_engines_are_caught() {
    let scenario = scenarios::everything();
    let mut caught = 0;
    for bad in BadEngine::ALL {
        let found = (1..=SEEDS_MAX).find_map(|seed| {
            let run = run_bad(bad, &generate(&scenario, seed), &MemoryBackend, &RunOptions::default());
            run.violations.into_iter().next().map(|violation| (seed, violation))
        });
        let Some((seed, violation)) = found else { panic!("{bad:?} was not caught within {SEEDS_MAX} seeds") };
        println!("{bad:?}: seed {seed}, {}: {}", violation.invariant, violation.what);
        let good = run(&generate(&scenario, seed), &MemoryBackend, &RunOptions::default());
        assert_eq!(good.violations, [], "the right engine, seed {seed}");
        caught += 1;
    }
    println!("{caught} of {} bad engines caught", BadEngine::ALL.len());
}

/// What a bad engine does wrong is shown in a few events.
#[test]
fn a_failing_stream_is_shrunk_to_what_it_takes() {
    let scenario = scenarios::everything();
    let least = [
        (BadEngine::AnswerBeforeCommit, 1, 0),
        (BadEngine::NoVersionGuard, 2, 0),
        (BadEngine::TiesByGreater, 2, 0),
        (BadEngine::HoldInMemory, 1, 0),
        (BadEngine::UnknownAnswered, 1, 1),
        // one event sent twice, or two under one key
        (BadEngine::NoUniqueKey, 2, 0),
        // one more, whose commit tells the engine which history it is in
        (BadEngine::MarkBeforeCommit, 2, 1),
    ];
    for (bad, events, faults) in least {
        let fails_as = |plan: &Plan| {
            let run = run_bad(bad, plan, &MemoryBackend, &RunOptions::default());
            run.violations.into_iter().next().map(|violation| violation.invariant)
        };
        let (seed, promise) = (1..=SEEDS_MAX)
            .find_map(|seed| fails_as(&generate(&scenario, seed)).map(|promise| (seed, promise)))
            .expect("it is caught");
        let shrunk = shrink(&generate(&scenario, seed), |plan| fails_as(plan).as_ref() == Some(&promise), 2_000);
        let (left, broken) = (shrunk.plan.events.len(), shrunk.plan.faults.len());
        println!("{bad:?}: {left} events and {broken} faults, found in {} runs", shrunk.runs);
        assert!(shrunk.complete, "{bad:?}: stopped by its bound");
        assert_eq!(fails_as(&shrunk.plan), Some(promise), "{bad:?}: what is left still fails, and in the same way");
        assert!(left <= events && broken <= faults, "{bad:?}: {left} events, {broken} faults: {:#?}", shrunk.plan);
    }
}
