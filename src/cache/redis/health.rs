//! Whether Redis answers, and the one line in the log when that changes.
//!
//! A Redis that is away fails thousands of calls a second, on every thread. All report here, and at most one
//! line a second comes out.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two lines.
const QUIET: Duration = Duration::from_secs(1);
/// How often an outage that goes on is mentioned again.
const AGAIN: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Health {
    /// The address, without user and password.
    address: String,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// What the last line said; nothing yet counts as well.
    away: bool,
    at: Option<Instant>,
    /// Failures since the last line.
    failures: u64,
}

/// What is to be said now.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Away { failures: u64 },
    Back { failures: u64 },
}

impl Said {
    fn heard(&mut self, well: bool, now: Instant) -> Option<Line> {
        if well && !self.away {
            return None;
        }
        self.failures += u64::from(!well);
        let wait = if well || !self.away { QUIET } else { AGAIN };
        if self.at.is_some_and(|at| now.duration_since(at) < wait) {
            return None;
        }
        self.away = !well;
        self.at = Some(now);
        let failures = std::mem::take(&mut self.failures);
        Some(if well { Line::Back { failures } } else { Line::Away { failures } })
    }
}

impl Health {
    pub(super) fn new(address: String) -> Self {
        Self { address, said: Mutex::default() }
    }

    pub(super) fn well(&self) {
        if let Some(Line::Back { failures }) = self.heard(true) {
            tracing::info!(address = %self.address, failures, "the key cache is back");
        }
    }

    pub(super) fn failed(&self, reason: &str) {
        if let Some(Line::Away { failures }) = self.heard(false) {
            tracing::warn!(
                address = %self.address,
                failures,
                reason,
                "the key cache does not answer: the store decides alone until it is back"
            );
        }
    }

    fn heard(&self, well: bool) -> Option<Line> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).heard(well, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_one_line_then_one_a_minute_then_one_when_it_ends() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut said = Said::default();
        assert_eq!(said.heard(true, at(0)), None, "nothing to say while all is well");
        assert_eq!(said.heard(false, at(1)), Some(Line::Away { failures: 1 }));
        for ms in 2..60_001 {
            assert_eq!(said.heard(false, at(ms)), None);
        }
        assert_eq!(said.heard(false, at(60_001)), Some(Line::Away { failures: 60_000 }));
        assert_eq!(said.heard(true, at(61_001)), Some(Line::Back { failures: 0 }));
    }

    #[test]
    fn a_flapping_server_gets_at_most_one_line_a_second() {
        let start = Instant::now();
        let mut said = Said::default();
        let lines = (0..10_000).filter(|ms| said.heard(ms % 2 == 0, start + Duration::from_millis(*ms)).is_some());
        assert!(lines.count() <= 10);
    }
}
