//! The command line as a process: what it prints, and how it ends.

mod check;
mod help;
mod receiver;
mod rows;
mod send;
mod sources;
mod sources_test;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in a folder of its own, with these variables and none of this process's settings.
fn tidegate(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).current_dir(folder).env_clear().envs(variables.iter().copied());
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

/// The exit code and what was printed to standard error, to be compared at once.
fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), stderr(output))
}
