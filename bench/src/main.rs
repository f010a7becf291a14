//! The benchmark of Tidegate: `load` generates the load, `run` starts one contender after the other and compares.
//!
//! `scripts/bench` calls `run` on private servers; `load` alone measures any server on this machine that takes the
//! same events. Knows nothing of Tidegate but its command line, so it measures what a user would run.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads real clocks and waits for real processes")]
#![allow(clippy::print_stdout, reason = "its tables are its output")]

mod load;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The benchmark of Tidegate")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Posts signed events to one server of this machine and reports rate and latency.
    Load(load::Settings),
    /// Measures every contender and prints the tables.
    Run(Box<run::Settings>),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Load(settings) => load::run(&settings),
        Command::Run(settings) => run::run(&settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
