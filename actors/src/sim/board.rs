//! The board: which faults are on, where, and which of them did something.
//!
//! Owns what the wrapped ports ask before each call. Promises that a fault that is over does nothing more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault::{Fault, FaultName};

/// Faults that are on.
#[derive(Debug, Default)]
pub(super) struct Board {
    inner: Mutex<Vec<On>>,
}

#[derive(Debug)]
struct On {
    index: u32,
    fault: Fault,
    fired: bool,
}

/// A fault that strikes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strike {
    /// How strong, in milliseconds.
    pub(super) by_ms: i64,
    /// When it is over.
    pub(super) until_ms: u64,
    /// It did nothing yet.
    pub(super) first: bool,
}

impl Board {
    /// A fault begins.
    pub(super) fn begin(&self, index: u32, fault: &Fault) {
        self.on().push(On { index, fault: fault.clone(), fired: false });
    }

    /// A fault is over; tells whether it did anything.
    pub(super) fn end(&self, index: u32) -> bool {
        let mut on = self.on();
        let fired = on.iter().any(|on| on.index == index && on.fired);
        on.retain(|on| on.index != index);
        fired
    }

    /// The fault of this kind that strikes a node now, if one is on.
    pub(super) fn strikes(&self, what: FaultName, node: u32) -> Option<Strike> {
        let mut on = self.on();
        let on = on.iter_mut().find(|on| on.fault.what == what && on.fault.node.is_none_or(|only| only == node))?;
        let first = !std::mem::replace(&mut on.fired, true);
        Some(Strike { by_ms: on.fault.by_ms, until_ms: on.fault.at_ms + on.fault.for_ms, first })
    }

    fn on(&self) -> MutexGuard<'_, Vec<On>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
