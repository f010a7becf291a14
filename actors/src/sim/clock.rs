//! Clocks of a run: the store's, which is the driven time, and each node's, which may be off.
//!
//! Owns the time between lives: each life has a runtime with a clock of its own, and time goes on where the
//! last one ended. Promises fresh ids that rise with time and count from the run's start.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use uuid::Uuid;

use crate::ports::Clock;
use crate::rules::event::EventId;

/// When every run starts, in milliseconds since 1970.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// Driven time, through all lives.
#[derive(Debug, Default)]
pub(super) struct DrivenClock {
    life: Mutex<Life>,
    ids: AtomicU64,
}

#[derive(Debug, Default)]
struct Life {
    /// When the present life began, since the start of the run.
    began_ms: u64,
    /// The same by the runtime's clock; `None` between lives.
    began: Option<Instant>,
}

impl DrivenClock {
    /// Milliseconds since the start of the run.
    pub(super) fn elapsed_ms(&self) -> u64 {
        let life = self.life();
        let passed = life.began.map_or(0, |began| began.elapsed().as_millis() as u64);
        life.began_ms + passed
    }

    /// A life begins: call it inside its runtime.
    pub(super) fn begin(&self) {
        self.life().began = Some(Instant::now());
    }

    /// The life ends: call it inside its runtime, last.
    pub(super) fn end(&self) {
        let now_ms = self.elapsed_ms();
        *self.life() = Life { began_ms: now_ms, began: None };
    }

    /// When something is due, by the present runtime's clock.
    pub(super) fn instant(&self, at_ms: u64) -> Instant {
        let life = self.life();
        let began = life.began.unwrap_or_else(Instant::now);
        began + std::time::Duration::from_millis(at_ms.saturating_sub(life.began_ms))
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for DrivenClock {
    fn now_ms(&self) -> i64 {
        EPOCH_MS + self.elapsed_ms().cast_signed()
    }

    fn event_id(&self) -> EventId {
        fresh_id(self.now_ms(), self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

/// A version 7 UUID of this time and number.
fn fresh_id(now_ms: i64, number: u64) -> EventId {
    let time = (now_ms.cast_unsigned() & 0xffff_ffff_ffff) as u128;
    let number = u128::from(number);
    // 12 bits behind the version, the rest behind the variant
    let value = time << 80 | 0x7 << 76 | (number >> 50 & 0xfff) << 64 | 0b10 << 62 | (number & 0x3_ffff_ffff_ffff);
    EventId(Uuid::from_u128(value))
}

/// A node's clock: driven time, and how far it is off.
#[derive(Debug)]
pub(super) struct NodeClock {
    driven: Arc<DrivenClock>,
    off_ms: AtomicI64,
}

impl NodeClock {
    pub(super) fn new(driven: Arc<DrivenClock>, off_ms: i64) -> Self {
        Self { driven, off_ms: off_ms.into() }
    }

    /// Off by this much from now on.
    pub(super) fn set_off(&self, off_ms: i64) {
        self.off_ms.store(off_ms, Ordering::Relaxed);
    }

    pub(super) fn off_ms(&self) -> i64 {
        self.off_ms.load(Ordering::Relaxed)
    }
}

impl Clock for NodeClock {
    fn now_ms(&self) -> i64 {
        self.driven.now_ms() + self.off_ms()
    }

    fn event_id(&self) -> EventId {
        self.driven.event_id()
    }
}
