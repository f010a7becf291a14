//! A batch as the statements take it: events as rows of `tidegate.given`, states as rows of `tidegate.state`.

use sqlx::error::BoxDynError;
use tidegate_actors::rules::event::{Event, Guard, Intent, Verdict};
use tidegate_actors::rules::order::{Policy, Tie};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::rows::{Fields, Row, RowType, RowTypes};
use crate::store::sql::decide::Changed;

/// An event, with what became of it where that is known already.
pub(crate) struct Given<'a> {
    /// Its place in the batch.
    pub(crate) n: usize,
    pub(crate) event: &'a Event,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) tie: bool,
    pub(crate) conflicts_with: Option<Uuid>,
}

impl<'a> Given<'a> {
    /// An event that is to be decided by the statement.
    pub(crate) fn open(batch: &'a [Event], n: usize) -> Self {
        Self { n, event: &batch[n], verdict: None, tie: false, conflicts_with: None }
    }
}

impl Row for Given<'_> {
    const COLUMNS: i32 = 22;

    fn of(types: &RowTypes) -> RowType {
        types.given
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        let event = self.event;
        let guard = event.guards.first();
        let resource = guard.map(|guard| &guard.resource);
        let version = guard.and_then(|guard| guard.version.as_ref());
        fields.int(Some(i64::try_from(self.n)?))?;
        fields.hash(event.key.hash.0)?;
        fields.uuid(Some(event.id.0))?;
        fields.hash(event.digest.0)?;
        fields.int(Some(event.received_at_ms))?;
        for text in [&*event.source, &*event.tenant, event.key.text.as_str(), event.kind.as_str()] {
            fields.text(Some(text))?;
        }
        fields.uuid(resource.map(|resource| Uuid::from_bytes(resource.hash.0)))?;
        fields.text(resource.map(|resource| resource.kind.as_str()))?;
        fields.text(resource.map(|resource| resource.id.as_str()))?;
        fields.bytes(version.map(Version::bytes))?;
        fields.text(version.map(Version::text))?;
        fields.flag(guard.is_some_and(|guard| ties_apply(event, guard)))?;
        fields.flag(event.deletes)?;
        fields.flag(event.intent != Intent::Apply)?;
        fields.text(self.verdict.map(Verdict::word))?;
        fields.flag(self.tie)?;
        fields.uuid(self.conflicts_with)?;
        fields.bytes(Some(&event.headers))?;
        fields.bytes(Some(&event.body))
    }

    fn weight(&self) -> usize {
        self.event.weight() + 512
    }
}

/// A resource's row as it shall be, over the revision it was decided on.
pub(crate) struct State<'a> {
    pub(crate) changed: &'a Changed<'a>,
    /// The row's revision afterwards: one more than the one that was read, 1 for a new row.
    pub(crate) rev: i64,
}

impl Row for State<'_> {
    const COLUMNS: i32 = 13;

    fn of(types: &RowTypes) -> RowType {
        types.state
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        let Changed { guard, version, event, applied } = self.changed;
        fields.hash(guard.resource.hash.0)?;
        fields.int(Some(self.rev))?;
        fields.text(Some(&event.source))?;
        fields.text(Some(&event.tenant))?;
        fields.text(Some(&guard.resource.kind))?;
        fields.text(Some(&guard.resource.id))?;
        fields.bytes(version.as_ref().map(Version::bytes))?;
        fields.text(version.as_ref().map(Version::text))?;
        fields.flag(ties_apply(event, guard))?;
        fields.flag(event.deletes)?;
        fields.uuid(Some(event.id.0))?;
        fields.int(Some(event.received_at_ms))?;
        fields.int(Some(*applied))
    }

    fn weight(&self) -> usize {
        256
    }
}

/// Whether an equal version applies; what has no version always does.
pub(crate) fn ties_apply(event: &Event, guard: &Guard) -> bool {
    guard.version.is_none() || matches!(event.order.policy, Policy::Newest { tie: Tie::Apply } | Policy::Arrival)
}
