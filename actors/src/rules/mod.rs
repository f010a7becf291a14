//! The rules: what an event is, how versions compare, what a policy means. Pure functions and plain
//! data, with no clock and no I/O, shared by every store.

pub mod breaker;
pub mod event;
pub mod key;
pub mod lookup;
pub mod order;
pub mod recent;
pub mod version;
