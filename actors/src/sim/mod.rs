//! The simulator: this engine, unchanged, on one thread under driven time, with everything drawn from a seed.
//!
//! Owns worlds, plans, faults, the checker and its verdict. Promises that a plan gives one run, always the
//! same, and that a run which reached too little to mean anything fails. Knows nothing of files, terminals
//! and pictures: those belong to the command line.

mod backend;
#[cfg(feature = "bad-engines")]
pub mod bad;
mod board;
mod cache;
mod chance;
mod check;
mod clock;
mod compare;
mod fault;
mod generate;
mod ledger;
mod many;
mod model;
mod node;
mod outcome;
mod plan;
mod play;
mod policy;
mod prepared;
mod provider;
mod run;
mod scenario;
mod senders;
mod shrink;
mod store;
mod story;
mod trace;

pub use self::backend::{Backend, MemoryBackend, Opened, Place};
pub use self::clock::EPOCH_MS;
pub use self::compare::compare;
pub use self::fault::{Fault, FaultName};
pub use self::generate::{StreamEvent, generate, generate_from};
pub use self::many::many;
pub use self::outcome::{
    Arrival, Comparison, FailedSeed, FetchedState, Many, Misfortune, Progress, Reached, Run, RunCounts, Timeline,
    Violation,
};
pub use self::plan::{
    Fate, Gate, Hop, Message, Plan, PlannedEvent, PlannedGuard, PlannedResource, PlannedVersion, Resend,
};
pub use self::policy::{GapChoice, PolicyChoice, TieChoice, VersionKind};
pub use self::run::{RunOptions, run};
pub use self::scenario::{ClockModel, FaultDials, GateModel, Network, OrderModel, Scenario, Sender, Span, World};
pub use self::shrink::{Shrunk, shrink};
pub use self::trace::{Happened, TraceLine};
