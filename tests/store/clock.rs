//! The clock of a case: system time, and as much ahead of it as the case says.

use std::sync::atomic::{AtomicI64, Ordering};

use tidegate::clock::SystemClock;
use tidegate_actors::ports::Clock;
use tidegate_actors::rules::event::EventId;

#[derive(Default)]
pub(crate) struct TestClock {
    system: SystemClock,
    ahead_ms: AtomicI64,
}

impl TestClock {
    pub(crate) fn pass(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.system.now_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    fn event_id(&self) -> EventId {
        self.system.event_id()
    }
}
