//! What one load run saw, as text for people and JSON for the runner.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) connections: usize,
    /// Offered rate of an open loop.
    pub(crate) rate: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) answered: u64,
    /// Answered with a 2xx, per second.
    pub(crate) events_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
    /// Cores this load generator used in the measured time.
    pub(crate) loader_cores: f64,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) applied: u64,
    pub(crate) duplicate: u64,
    pub(crate) stale: u64,
    /// Other 2xx answers.
    pub(crate) other: u64,
    /// Events that repeated an earlier one.
    pub(crate) repeated: u64,
    pub(crate) broken: u64,
    /// Events of an open loop that were due and found no free connection until the end.
    pub(crate) unsent: u64,
}

impl Report {
    pub(crate) fn latencies(&mut self, histogram: &Histogram<u64>) {
        let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        self.p50_ms = at(0.5);
        self.p99_ms = at(0.99);
        self.p999_ms = at(0.999);
        self.max_ms = histogram.max() as f64 / 1e6;
    }

    /// Answers that were not a 2xx, and connections that broke.
    pub(crate) fn failures(&self) -> u64 {
        let refused: u64 = self.statuses.iter().filter(|(status, _)| **status / 100 != 2).map(|(_, count)| count).sum();
        refused + self.broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => writeln!(f, "open loop at {rate:.0}/s over {} connections", self.connections)?,
            None => writeln!(f, "closed loop over {} connections", self.connections)?,
        }
        writeln!(f, "{:.0} events/s ({} answers in {:.1} s)", self.events_per_second, self.answered, self.seconds)?;
        writeln!(
            f,
            "latency p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, longest {:.1} ms",
            self.p50_ms, self.p99_ms, self.p999_ms, self.max_ms
        )?;
        writeln!(
            f,
            "applied {}, duplicate {}, stale {}, other {} (sent again: {})",
            self.applied, self.duplicate, self.stale, self.other, self.repeated
        )?;
        let statuses: Vec<_> = self.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        writeln!(f, "answers {}; connections broken {}; unsent {}", statuses.join(", "), self.broken, self.unsent)?;
        write!(f, "load generator {:.2} cores", self.loader_cores)
    }
}
