//! The engine of Tidegate: what orders events, decides about them and batches them into transactions.
//!
//! Owns the rules (pure functions), the ports (what the engine needs from outside) and the actors.
//! Promises the invariants of `ARCHITECTURE.md`, cited there and in the tests as I1 to I17.
//! Knows no web server, no SQL, no Redis and no wall clock: those are adapters in the package `tidegate`.
//! On failure an actor answers "unavailable" and comes back clean; what was committed is in the store.

pub mod admission;
pub mod engine;
pub mod figures;
pub mod ingress;
pub mod memory;
pub mod ports;
pub mod rules;
#[cfg(feature = "sim")]
pub mod sim;

mod alarm;
mod dedup;
mod fetch;
mod holds;
mod live;
mod ordering;
mod reaper;
mod resource;
mod supervise;
mod turn;
mod work;
mod writer;

pub use admission::{Permit, Refused};
pub use engine::{Drained, Engine, EngineSettings, PoolStatus, Ports, Status};
pub use ingress::Ingress;
pub use rules::lookup::LookupMode;
