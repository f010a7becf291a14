//! Memory of one server: idle, with 100,000 live resources, and after many more events and resources.

use std::process::Command;

use super::contender::{Contender, Running, SECRET};
use super::processes::resident_mb;
use super::summary::thousands;

const LIVE: u64 = 100_000;
const MORE_EVENTS: u64 = 1_000_000;
const MORE_RESOURCES: u64 = 500_000;

/// Resident megabytes at each step.
pub(super) struct Note {
    pub(super) contender: Contender,
    pub(super) idle_mb: f64,
    pub(super) live_mb: f64,
    /// After many more keys on the same resources.
    pub(super) keys_mb: f64,
    /// After many more resources.
    pub(super) resources_mb: f64,
}

impl Note {
    pub(super) fn text(&self) -> String {
        format!(
            "- ({}) resident memory: {:.0} MB idle; {:.0} MB with {} live resources (+{:.0} MB); {:.0} MB after {} more \
             keys on them; {:.0} MB after {} more resources\n",
            self.contender.letter(),
            self.idle_mb,
            self.live_mb,
            thousands(LIVE as f64),
            self.live_mb - self.idle_mb,
            self.keys_mb,
            thousands(MORE_EVENTS as f64),
            self.resources_mb,
            thousands(MORE_RESOURCES as f64)
        )
    }
}

pub(super) fn watch(contender: Contender, running: &Running, connections: usize) -> Result<Note, String> {
    let resident = || resident_mb(running.pid()).ok_or("the server is gone".to_owned());
    let idle_mb = resident()?;
    send(running, connections, &["--walk", "--duplicates", "0"], LIVE)?;
    let live_mb = resident()?;
    send(running, connections, &[], MORE_EVENTS)?;
    let keys_mb = resident()?;
    let first = LIVE.to_string();
    let more = MORE_RESOURCES.to_string();
    send(running, connections, &["--walk", "--first-resource", &first, "--resources", &more], MORE_RESOURCES)?;
    Ok(Note { contender, idle_mb, live_mb, keys_mb, resources_mb: resident()? })
}

/// Sends `count` events, however long it takes (up to ten minutes).
fn send(running: &Running, connections: usize, more: &[&str], count: u64) -> Result<(), String> {
    let output = Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
        .args(["load", "--json", "--secret", SECRET, "--target", &running.address.to_string()])
        .args(["--connections", &connections.to_string(), "--count", &count.to_string()])
        .args(["--seconds", "600", "--warmup", "0"])
        .args(more)
        .output()
        .map_err(|error| format!("the load generator: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("the load generator failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
