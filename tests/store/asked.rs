//! What cases ask of a store, in short words, about resources of source `shop`.

use tidegate_actors::ports::{Committed, EventRow, HeldFilter, HeldRow, Outcome, ResourceRow, Waits};
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::key::ResourceHash;

use crate::events::resource;
use crate::world::World;

/// The resource of source `shop` with this id.
pub(crate) fn hash(id: &str) -> ResourceHash {
    resource("shop", "", id).hash
}

impl World {
    pub(crate) async fn committed(&self, batch: &[Event]) -> Committed {
        let mut session = self.node.session().await;
        session.commit(batch).await.unwrap()
    }

    pub(crate) async fn commit(&self, batch: &[Event]) -> Vec<Outcome> {
        self.committed(batch).await.outcomes
    }

    /// Commits one event.
    pub(crate) async fn take(&self, event: &Event) -> Outcome {
        self.commit(std::slice::from_ref(event)).await[0]
    }

    pub(crate) async fn state(&self, id: &str) -> ResourceRow {
        self.node.reader.resource(hash(id)).await.unwrap().expect("a resource")
    }

    /// The stored version, and how many events wait.
    pub(crate) async fn at(&self, id: &str) -> (Option<String>, i64) {
        let row = self.state(id).await;
        (row.version, row.held)
    }

    /// What waits of a resource, in the order it came.
    pub(crate) async fn held(&self, id: &str) -> Vec<HeldRow> {
        let of = HeldFilter { of: Some(hash(id)), ..HeldFilter::default() };
        self.node.reader.held(&of, None, 1_000).await.unwrap().rows
    }

    /// The event's own row.
    pub(crate) async fn row(&self, event: &Event) -> EventRow {
        self.node.reader.event(event.id).await.unwrap().expect("the event's row")
    }

    /// What the event's row says: verdict and why.
    pub(crate) async fn said(&self, event: &Event) -> (Verdict, String) {
        let row = self.row(event).await;
        (row.verdict, row.why.unwrap_or_default())
    }

    pub(crate) async fn verdict(&self, event: &Event) -> Verdict {
        self.row(event).await.verdict
    }

    /// Settles everything that is due.
    pub(crate) async fn settle(&self) -> Waits {
        self.node.store.settle_due(1_000).await.unwrap()
    }
}
