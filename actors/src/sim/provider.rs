//! The provider whose API a gate may ask: it knows what has happened so far, and nothing of what was sent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::fault::FaultName;
use super::plan::PlannedEvent;
use super::prepared::Prepared;
use super::store::Ground;
use crate::ports::{Clock, FetchClaim, FetchOutcome, Fetcher};
use crate::rules::event::Event;
use crate::rules::key::Key;

/// The type of an event that a fetch makes.
pub(super) const FETCHED: &str = "tidegate.fetched";

/// A node's way to the provider.
pub(super) struct SimFetcher {
    pub(super) ground: Arc<Ground>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) clock: Arc<dyn Clock>,
}

impl SimFetcher {
    /// The newest event that has happened to a resource.
    fn newest(&self, resource: u32) -> Option<(u32, &PlannedEvent)> {
        let now_ms = self.ground.clock.elapsed_ms();
        let happened = (0..).zip(&self.prepared.plan.events).filter(|(_, event)| event.at_ms <= now_ms);
        let of_it = happened.filter(|(_, event)| {
            !event.ignored && event.guards.first().is_some_and(|guard| guard.resource == resource)
        });
        of_it.max_by_key(|(_, event)| event.truth)
    }
}

#[async_trait(?Send)]
impl Fetcher for SimFetcher {
    async fn fetch(&self, claim: &FetchClaim) -> FetchOutcome {
        let ground = &self.ground;
        ground.lives().await;
        if let Some(strike) = ground.strikes(FaultName::FetchSlow) {
            tokio::time::sleep(Duration::from_millis(strike.by_ms.unsigned_abs())).await;
            ground.lives().await;
        }
        let failed = |why: &str| FetchOutcome::Failed { why: why.to_owned(), retry_after: None, last: false };
        if ground.strikes(FaultName::FetchFails).is_some() {
            return failed("the provider fails, as planned");
        }
        let newest = self.prepared.resource(claim.resource).and_then(|resource| self.newest(resource));
        let Some((index, planned)) = newest else { return failed("nothing is known of it") };
        let name = format!("refetch:{}:{}", claim.resource, claim.epoch);
        let Ok(key) = Key::new(&claim.source, &claim.tenant, [name.as_str()]) else { return failed("no key") };
        ground.ledger.see("state fetched");
        let template = self.prepared.template(index);
        let event = Event {
            id: self.clock.event_id(),
            received_at_ms: self.clock.now_ms(),
            key,
            kind: FETCHED.to_owned(),
            guards: template.guards.iter().take(1).cloned().collect(),
            effect_key: None,
            fetched: Some(claim.epoch),
            deletes: planned.deletes,
            ..template.clone()
        };
        FetchOutcome::State(Box::new(event))
    }
}
