//! A circuit breaker: after some failures in a row nothing is asked for a while, then one probe decides.
//! Time is an argument.

/// Whether something outside may be asked.
#[derive(Clone, Debug)]
pub struct Breaker {
    failures_max: u32,
    pause_ms: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until_ms: u64 },
    Probing,
}

impl Breaker {
    /// Opens after `failures_max` failures in a row, for `pause_ms`.
    #[must_use]
    pub fn new(failures_max: u32, pause_ms: u64) -> Self {
        Self { failures_max: failures_max.max(1), pause_ms, state: State::Closed { failures: 0 } }
    }

    /// Whether to ask now. After the pause the first caller is let through as the probe, and nobody else
    /// until the probe has ended.
    pub fn allows(&mut self, now_ms: u64) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { until_ms } if now_ms >= until_ms => {
                self.state = State::Probing;
                true
            }
            State::Open { .. } | State::Probing => false,
        }
    }

    /// Whether [`Self::allows`] would say yes now; claims no probe.
    #[must_use]
    pub fn would_allow(&self, now_ms: u64) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { until_ms } => now_ms >= until_ms,
            State::Probing => false,
        }
    }

    /// An answer came in time.
    pub fn succeeded(&mut self) {
        self.state = State::Closed { failures: 0 };
    }

    /// No answer, or a late one.
    pub fn failed(&mut self, now_ms: u64) {
        let failures = match self.state {
            State::Closed { failures } => failures.saturating_add(1),
            State::Probing => self.failures_max,
            State::Open { .. } => return,
        };
        self.state = if failures >= self.failures_max {
            State::Open { until_ms: now_ms.saturating_add(self.pause_ms) }
        } else {
            State::Closed { failures }
        };
    }

    /// Nothing is asked at the moment.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_in_a_row_only() {
        let mut breaker = Breaker::new(3, 1_000);
        breaker.failed(0);
        breaker.failed(1);
        breaker.succeeded();
        breaker.failed(2);
        breaker.failed(3);
        assert!(breaker.allows(3));
        breaker.failed(4);
        assert!(breaker.is_open());
        assert!(!breaker.allows(1_003));
    }

    #[test]
    fn one_probe_decides_after_the_pause() {
        let mut breaker = Breaker::new(1, 1_000);
        breaker.failed(0);
        assert!(breaker.allows(1_000), "the probe");
        assert!(!breaker.allows(1_000), "nobody beside the probe");
        breaker.failed(1_050);
        assert!(!breaker.allows(2_049));
        assert!(breaker.allows(2_050));
        breaker.succeeded();
        assert!(breaker.allows(2_051) && breaker.allows(2_051));
    }

    #[test]
    fn late_failures_do_not_prolong_the_pause() {
        let mut breaker = Breaker::new(1, 100);
        breaker.failed(0);
        breaker.failed(90);
        assert!(breaker.allows(100));
    }
}
