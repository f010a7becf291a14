//! Scenario files and dials: what is taken, and that everything wrong is told at once.

use std::fs;

use super::{folder, passed, simulate, stderr, stdout};

#[test]
fn dials_over_the_scenario_are_turned() {
    let folder = folder();
    let told = passed(
        folder.path(),
        &[
            "gentle",
            "--events",
            "50",
            "--resources",
            "3",
            "--faults",
            "0",
            "--policy",
            "newest",
            "--set",
            "world.also=0",
        ],
    );
    assert_eq!(told["counts"]["faults"], 0);
    assert!(told["counts"]["events"].as_u64() >= Some(50) && told["counts"]["events"].as_u64() <= Some(60), "{told}");
}

#[test]
fn a_file_states_only_what_differs_and_is_named_after_itself() {
    let folder = folder();
    fs::write(folder.path().join("mine.toml"), "[world]\nevents = \"30..40\"\n[faults]\ncount = 2\n").expect("written");
    let told = passed(folder.path(), &["mine.toml"]);
    assert_eq!((&told["scenario"], &told["counts"]["faults"]), (&"mine".into(), &2.into()));
}

#[test]
fn everything_wrong_with_a_file_is_told_at_once() {
    let folder = folder();
    let text = "[world]\nevnts = 5\nevents = \"9..3\"\nalso = true\n[faults]\nonly = [\"kil\", \"kill\"]\n\
                [order]\npolicies = [\"newst\", { policy = \"window\", window = 5 }]\n";
    fs::write(folder.path().join("bad.toml"), text).expect("written");
    let output = simulate(folder.path(), &["bad.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    for part in [
        "6 problems",
        "`world.evnts` is no dial; did you mean `events`?",
        "`world.events` got \"9..3\": it must rise",
        "`world.also` must be a share, 0 to 1, got true",
        "`faults.only[0]` is no fault, got \"kil\"; did you mean kill?",
        "`order.policies[0]` \"newst\" is no policy",
        "`order.policies[1]` unknown field `window`",
    ] {
        assert!(told.contains(part), "{part}:\n{told}");
    }
}

#[test]
fn bounds_are_told_with_what_was_found() {
    let folder = folder();
    let output =
        simulate(folder.path(), &["gentle", "--nodes", "0", "--set", "network.loss=1.5", "--set", "gate.shards=99"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("`gate.nodes` must be a span within 1 and 8, got 0 to 0"), "{told}");
    assert!(told.contains("`network.loss` is a share and must be within 0 and 1, got 1.5"), "{told}");
    assert!(told.contains("`gate.shards` must be a span within 1 and 8, got 99 to 99"), "{told}");
}

#[test]
fn what_is_no_scenario_says_what_there_is() {
    let folder = folder();
    let told = stderr(&simulate(folder.path(), &["retry-strom"]));
    assert!(told.contains("retry-storm") && told.contains("did you mean retry-storm?"), "{told}");
    let told = stderr(&simulate(folder.path(), &["gone.toml"]));
    assert!(told.contains("`gone.toml` cannot be read"), "{told}");
    fs::write(folder.path().join("torn.toml"), "[world\n").expect("written");
    let told = stderr(&simulate(folder.path(), &["torn.toml"]));
    assert!(told.contains("torn, line 1` is not TOML"), "{told}");
}

#[test]
fn arguments_that_do_not_go_together_end_with_2() {
    let folder = folder();
    for arguments in [
        &["--seeds", "9..1"][..],
        &["--seeds", "1..2", "--plot", "x.svg"],
        &["--from", "x.jsonl"],
        &["--from", "x.jsonl", "--source", "stripe", "--seeds", "1..2"],
        &["--from", "x.jsonl", "--source", "stripe", "--policy", "newest"],
        &["--compare", "newset"],
        &["--duplicate", "2"],
    ] {
        assert_eq!(simulate(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_printed_scenario_runs_as_a_file_of_ones_own() {
    let folder = folder();
    let text = stdout(&simulate(folder.path(), &["--print", "lossy-sequence"]));
    fs::write(folder.path().join("lossy-sequence.toml"), text).expect("written");
    let own = passed(folder.path(), &["lossy-sequence.toml", "--seed", "4"]);
    let shipped = passed(folder.path(), &["lossy-sequence", "--seed", "4"]);
    assert_eq!(own["trace_hash"], shipped["trace_hash"]);
}
