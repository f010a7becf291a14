//! A source's rate limit: so many requests a second with a burst, decided by one atomic number.
//!
//! Promises never to let more through than burst + rate × time, on however many threads. Knows nothing of
//! what a request is; time is handed in. Cannot fail.

use std::sync::atomic::{AtomicU64, Ordering};

/// The moment at which the bucket is full again, in nanoseconds since its owner's start.
#[derive(Debug)]
pub(super) struct Rate {
    full_at_ns: AtomicU64,
    each_ns: u64,
    burst_ns: u64,
}

impl Rate {
    /// At most `per_second` requests a second in the long run, `burst` of them at once.
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        let each_ns = 1_000_000_000 / u64::from(per_second.max(1));
        Self { full_at_ns: AtomicU64::new(0), each_ns, burst_ns: each_ns.saturating_mul(u64::from(burst.max(1))) }
    }

    /// Takes one request's worth, if there is one.
    pub(super) fn allows(&self, now_ns: u64) -> bool {
        self.full_at_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at_ns| {
                let next_ns = full_at_ns.max(now_ns).saturating_add(self.each_ns);
                (next_ns <= now_ns.saturating_add(self.burst_ns)).then_some(next_ns)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_burst_passes_and_the_next_one_does_not() {
        let rate = Rate::new(10, 3);
        assert_eq!((0..5).filter(|_| rate.allows(SECOND_NS)).count(), 3);
    }

    #[test]
    fn the_long_run_is_held_to_the_rate() {
        let rate = Rate::new(10, 1);
        let passed = (0..10_000).filter(|step| rate.allows(step * SECOND_NS / 1000)).count();
        assert!((99..=101).contains(&passed), "{passed} in ten seconds");
    }

    #[test]
    fn an_idle_source_saves_up_no_more_than_its_burst() {
        let rate = Rate::new(10, 3);
        assert!(rate.allows(0));
        assert_eq!((0..9).filter(|_| rate.allows(3600 * SECOND_NS)).count(), 3);
    }
}
