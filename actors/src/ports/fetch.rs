//! Asking a provider for the current state of a resource.

use std::time::Duration;

use async_trait::async_trait;

use crate::rules::event::Event;
use crate::rules::key::ResourceHash;

/// A fetch that is claimed: whoever holds it asks the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchClaim {
    /// The resource.
    pub resource: ResourceHash,
    /// Its source.
    pub source: String,
    /// Its tenant; `""` when unused.
    pub tenant: String,
    /// Its type.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// The claim's own number: the answer counts only while it is the newest (I9).
    pub epoch: i64,
    /// Which try this is, from 1.
    pub attempt: u32,
}

/// What there was to claim.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// The claims.
    pub claims: Vec<FetchClaim>,
    /// In how many milliseconds the next fetch is due: 0 when there was more.
    pub due_in_ms: Option<i64>,
}

/// What came of asking.
#[derive(Debug)]
pub enum FetchOutcome {
    /// The current state, as an event: `fetched` is the claim's epoch, its key is made of resource and epoch,
    /// its first guard is the resource with the version that the answer states.
    State(Box<Event>),
    /// No usable answer.
    Failed {
        /// What happened, for people.
        why: String,
        /// Not before this long, as the provider asked.
        retry_after: Option<Duration>,
        /// Trying again cannot help: the source is gone, or has no such settings any more.
        last: bool,
    },
}

/// Asks providers.
#[async_trait(?Send)]
pub trait Fetcher: Send + Sync + 'static {
    /// Asks for one resource, within a deadline of its own. A refusal is an outcome, not an error.
    async fn fetch(&self, claim: &FetchClaim) -> FetchOutcome;
}

/// Where no source has anything to fetch.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFetcher;

#[async_trait(?Send)]
impl Fetcher for NoFetcher {
    async fn fetch(&self, claim: &FetchClaim) -> FetchOutcome {
        FetchOutcome::Failed {
            why: format!("source {} has no `refetch` settings", claim.source),
            retry_after: None,
            last: true,
        }
    }
}
