//! The system's clock, and event ids made from it.
//!
//! Owns the one place where wall time is read. Promises that ids made by one process never go back, even
//! within a millisecond or when the wall clock is set back. Knows nothing of the store's clock: the engine
//! compares the two. Nothing here can fail; a clock before 1970 reads as 1970.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_actors::ports::Clock;
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

/// Bits of an id that count within a millisecond (`rand_a` of UUID version 7).
const COUNTER_BITS: u32 = 12;
/// The newest millisecond that fits an id.
const MS_MAX: u64 = (1 << 48) - 1;

/// Wall time of this machine, and fresh ids.
#[derive(Debug, Default)]
pub struct SystemClock {
    /// Milliseconds and counter of the newest id. A full counter runs over into the next millisecond.
    newest: AtomicU64,
}

impl SystemClock {
    /// A clock with no ids made yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { newest: AtomicU64::new(0) }
    }

    fn event_id_at(&self, now_ms: u64, random: u64) -> EventId {
        let earliest = now_ms.min(MS_MAX) << COUNTER_BITS;
        let next = |newest: u64| earliest.max(newest + 1);
        // Relaxed: only the number itself is shared, nothing is published through it.
        let newest = self.newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |newest| Some(next(newest)));
        let ticket = newest.map_or(earliest, next);
        let (ms, counter) = (ticket >> COUNTER_BITS, ticket & ((1 << COUNTER_BITS) - 1));
        let high = ms << 16 | 0x7000 | counter;
        let low = random >> 2 | 1 << 63;
        EventId(Uuid::from_u64_pair(high, low))
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads wall time")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that draws ids")]
    fn event_id(&self) -> EventId {
        self.event_id_at(u64::try_from(self.now_ms()).unwrap_or(0), rand::random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_version_7_uuid_of_its_millisecond() {
        let id = SystemClock::new().event_id_at(1_700_000_000_123, u64::MAX).0;
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.as_u64_pair().0 >> 16, 1_700_000_000_123);
    }

    #[test]
    fn ids_never_go_back_within_a_millisecond_nor_with_the_clock() {
        let clock = SystemClock::new();
        let mut last = clock.event_id_at(1_000, 0);
        for now_ms in std::iter::repeat_n(1_000, 5_000).chain([900, 5_000]) {
            let next = clock.event_id_at(now_ms, 0);
            assert!(next > last, "{next} after {last}");
            last = next;
        }
    }

    #[test]
    fn the_wall_clock_is_past_2020() {
        assert!(SystemClock::new().now_ms() > 1_577_836_800_000);
    }
}
