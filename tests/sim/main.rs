//! `simulate` as a process: scenarios, input, reports, pictures, and what it says when something fails.

mod failing;
mod input;
mod pictures;
mod recorded;
mod scenarios;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Every scenario that comes with the program.
const SHIPPED: [&str; 5] = ["gentle", "retry-storm", "reorder-storm", "flaky-store", "lossy-sequence"];

/// Runs the program in a folder of its own, with none of this process's settings.
fn simulate(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    // temporary databases go below the folder, so that what stays behind is seen
    command.arg("simulate").args(arguments).current_dir(folder).env_clear().env("TMPDIR", folder);
    command.output().expect("the program runs")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is text")
}

/// The report of a run that went well.
#[track_caller]
fn passed(folder: &Path, arguments: &[&str]) -> Value {
    let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let output = simulate(folder, &all);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{}\n{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}
