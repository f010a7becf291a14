//! The ports: what the engine needs from outside. Adapters live in the package `tidegate`.

mod cache;
mod clock;
mod fetch;
mod reader;
mod store;

pub use crate::rules::event::Outcome;
pub use cache::{CacheError, Fact, KeyCache};
pub use clock::Clock;
pub use fetch::{Claimed, FetchClaim, FetchOutcome, Fetcher, NoFetcher};
pub use reader::{
    Counts, EventFilter, EventRow, FailureRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader,
    ResourceFilter, ResourceRow,
};
pub use store::{Committed, Pulse, Session, Store, StoreError, Upkeep, Waits};
