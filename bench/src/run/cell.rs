//! One measurement: the load generator against one running contender, with the CPU of everybody in the same window.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::contender::{Contender, Running, SECRET};
use super::processes::cpu_seconds;
use crate::load::Report;

/// What the load generator is asked for.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) seconds: f64,
    pub(super) warmup: f64,
    /// Open loop at this rate.
    pub(super) rate: Option<f64>,
    /// Further arguments.
    pub(super) more: Vec<String>,
}

#[derive(Clone, Serialize)]
pub(super) struct Cell {
    pub(super) block: String,
    pub(super) contender: char,
    pub(super) round: usize,
    pub(super) report: Report,
    pub(super) server_cores: f64,
    pub(super) database_cores: f64,
    pub(super) cache_cores: f64,
}

/// The processes beside the server whose CPU belongs to the contender.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    pub(super) database: Option<u32>,
    pub(super) cache: Option<u32>,
}

pub(super) fn measure(
    block: &str,
    contender: Contender,
    round: usize,
    running: &Running,
    beside: Beside,
    load: &Load,
) -> Result<Cell, String> {
    let roots = [Some(running.pid()), beside.database, beside.cache];
    let used = || roots.map(|root| root.map_or(0.0, cpu_seconds));
    let mut child = Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
        .args(["load", "--json", "--secret", SECRET, "--target", &running.address.to_string()])
        .args(["--connections", &load.connections.to_string(), "--seconds", &load.seconds.to_string()])
        .args(["--warmup", &load.warmup.to_string()])
        .args(load.rate.iter().flat_map(|rate| ["--rate".to_owned(), rate.to_string()]))
        .args(&load.more)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the load generator: {error}"))?;
    let mut from = used();
    let mut to = from;
    let mut report = None;
    let output = child.stdout.take().ok_or("the load generator has no output")?;
    for line in BufReader::new(output).lines() {
        match line.map_err(|error| error.to_string())?.as_str() {
            "measuring" => from = used(),
            "measured" => to = used(),
            json => report = Some(serde_json::from_str::<Report>(json).map_err(|error| format!("{error}: {json}"))?),
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let report = report.filter(|_| status.success()).ok_or(format!("the load generator failed: {status}"))?;
    let cores = |index: usize| ((to[index] - from[index]) / report.seconds.max(0.001)).max(0.0);
    Ok(Cell {
        block: block.into(),
        contender: contender.letter(),
        round,
        server_cores: cores(0),
        database_cores: cores(1),
        cache_cores: cores(2),
        report,
    })
}
