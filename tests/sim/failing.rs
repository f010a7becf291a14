//! A run that fails: seed, smallest stream, story, and a command that repeats it.
//!
//! The engine keeps its promises, so what fails here is asked for and cannot be had: that everything is settled
//! within a second, while senders wait half a minute before they send again what got lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{folder, simulate, stdout};

const IMPOSSIBLE: [&str; 9] = [
    "gentle",
    "--loss",
    "0.3",
    "--set",
    "heal_within_ms=1000",
    "--set",
    "sender.backoff_ms=30000",
    "--set",
    "sender.backoff_max_ms=30000",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    IMPOSSIBLE.iter().chain(more).copied().collect()
}

/// The command line that a report gives, without the program's name.
fn command<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(before)).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().skip(2).collect()
}

#[test]
fn it_says_what_did_not_hold_and_the_command_does_the_same_again() {
    let folder = folder();
    let output = simulate(folder.path(), &with(&["--seed", "7"]));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("FAIL  gentle, seed 7, store memory\n"), "{text}");
    for part in
        ["what did not hold:", "the smallest run that still fails has ", "what happens in it:", "does not hold: "]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let again = command(&text, "repeat it: ");
    assert_eq!(again[..3], ["gentle", "--seed", "7"]);
    let output = simulate(folder.path(), &again);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), text));
}

#[test]
fn the_smallest_run_is_small_and_can_be_played_alone() {
    let folder = folder();
    let output = simulate(folder.path(), &with(&["--seed", "7", "--out", "smallest.json"]));
    let text = stdout(&output);
    let played = command(&text, "the smallest alone: ");
    assert_eq!(played, ["--play", "smallest.json"]);
    let plan: Value = serde_json::from_slice(&read(folder.path(), "smallest.json")).expect("JSON");
    let count = |what: &str| plan[what].as_array().expect("a list").len();
    assert!(count("events") <= 3 && count("faults") == 0, "{} events, {} faults", count("events"), count("faults"));
    let output = simulate(folder.path(), &played);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
}

#[test]
fn failed_seeds_go_to_a_file_with_their_commands() {
    let folder = folder();
    let output = simulate(folder.path(), &with(&["--seeds", "1..8"]));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("all failed seeds are in failed-seeds.txt"), "{text}");
    assert!(text.contains("the smallest run that still fails has "), "{text}");
    let file = String::from_utf8(read(folder.path(), "failed-seeds.txt")).expect("text");
    let line = file.lines().find(|line| !line.starts_with('#')).expect("a failed seed");
    let [seed, broken, command] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert!(broken.contains("liveness"), "{line}");
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words[..4], ["tidegate", "simulate", "gentle", "--seed"]);
    assert_eq!(words[4], seed);
    assert_eq!(simulate(folder.path(), &words[2..]).status.code(), Some(1));
}

#[test]
fn a_command_with_blanks_in_it_is_quoted_for_the_shell() {
    let folder = folder();
    fs::create_dir(folder.path().join("my files")).expect("a folder");
    let scenario = stdout(&simulate(folder.path(), &["--print", "gentle"]));
    fs::write(folder.path().join("my files/it's.toml"), scenario).expect("written");
    let dials: Vec<&str> = IMPOSSIBLE.iter().skip(1).copied().chain(["--json"]).collect();
    let output = simulate(folder.path(), &[&["my files/it's.toml"][..], &dials].concat());
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let repeat = told["repeat"].as_str().expect("a command").replace("tidegate", env!("CARGO_BIN_EXE_tidegate"));
    let again = Command::new("sh").args(["-c", &format!("{repeat} --json")]).current_dir(folder.path()).output();
    assert_eq!(again.expect("a shell").stdout, output.stdout);
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("a file")
}
