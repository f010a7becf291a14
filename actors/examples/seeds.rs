//! Plays seeds of the default scenario across cores and says how fast: `cargo run --release --features sim
//! --example seeds -- 2000 2`.

use std::io::Write as _;

use tidegate_actors::sim::{MemoryBackend, Scenario, many};

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (seeds, threads) = (numbers.next().unwrap_or(1_000), numbers.next().unwrap_or(2));
    let mut out = std::io::stderr();
    let many = many(&Scenario::default(), 1..=seeds, threads as usize, &MemoryBackend, &|progress| {
        if progress.done == progress.of {
            let _ = writeln!(std::io::stderr(), "{:.0} seeds a second", progress.rate);
        }
    });
    writeln!(out, "{} seeds, {} events, {} faults", many.seeds, many.events, many.faults)?;
    writeln!(out, "{} failed, hash {:x}", many.failed.len(), many.trace_hash)
}
