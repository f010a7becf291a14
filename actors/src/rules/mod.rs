//! The rules: what an event is, how versions compare, what a policy means. Pure functions and plain
//! data, with no clock and no I/O, shared by every store.

pub mod breaker;
pub mod claim;
pub mod event;
pub mod fields;
pub mod graph;
pub mod judge;
pub mod key;
pub mod lookup;
pub mod order;
pub mod plan;
pub mod recent;
pub mod retry;
pub mod version;
