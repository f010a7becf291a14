//! What the statements take, as rows of the composite types that the migrations make.

use std::borrow::Cow;

use sqlx::error::BoxDynError;
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::{Event, EventId, Guard, Intent, Verdict};
use tidegate_actors::rules::fields::Fields as Members;
use tidegate_actors::rules::judge::{State, Subject};
use tidegate_actors::rules::key::{KeyHash, ResourceHash};
use tidegate_actors::rules::order::Tie;
use tidegate_actors::rules::plan::{Fetching, Settled};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::rows::{Fields, Row, RowType, RowTypes};

/// `tidegate.given`: an event, with what became of it where that is known already.
pub(crate) struct Given<'a> {
    /// Its place in the batch, where the statement decides by it.
    pub(crate) n: usize,
    pub(crate) event: &'a Event,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) tie: bool,
    pub(crate) why: Option<Cow<'a, str>>,
    pub(crate) conflicts_with: Option<EventId>,
}

impl<'a> Given<'a> {
    /// An event that the statement says the rest about.
    pub(crate) fn open(event: &'a Event, n: usize) -> Self {
        Self { n, event, verdict: None, tie: false, why: None, conflicts_with: None }
    }
}

impl Row for Given<'_> {
    const COLUMNS: i32 = 23;

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
        fields.text(self.why.as_deref())?;
        fields.uuid(self.conflicts_with.map(|first| first.0))?;
        fields.bytes(Some(&event.headers))?;
        fields.bytes(Some(&event.body))
    }

    fn weight(&self) -> usize {
        self.event.weight() + 512
    }
}

/// Whether an equal version applies; what has no version always does.
fn ties_apply(event: &Event, guard: &Guard) -> bool {
    guard.version.is_none() || event.order.tie() == Tie::Apply
}

/// `tidegate.claim`: a key to claim.
impl Row for (KeyHash, Claim) {
    const COLUMNS: i32 = 3;

    fn of(types: &RowTypes) -> RowType {
        types.claim
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        let (hash, Claim { first, digest }) = self;
        fields.hash(hash.0)?;
        fields.uuid(Some(first.0))?;
        fields.hash(digest.0)
    }

    fn weight(&self) -> usize {
        72
    }
}

/// `tidegate.state`: a resource's row as it shall be, over the revision it was decided on.
pub(crate) struct StateRow<'a> {
    pub(crate) hash: ResourceHash,
    /// The row's revision afterwards: one more than the one that was read, 1 for a new row.
    pub(crate) rev: i64,
    /// Where the row may be new.
    pub(crate) named_by: Option<(&'a Event, &'a Guard)>,
    pub(crate) state: Cow<'a, State>,
}

impl Row for StateRow<'_> {
    const COLUMNS: i32 = 16;

    fn of(types: &RowTypes) -> RowType {
        types.state
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        let state = &*self.state;
        fields.hash(self.hash.0)?;
        fields.int(Some(self.rev))?;
        let names = self.named_by.map_or([""; 4], |(event, guard)| {
            [&event.source, &event.tenant, guard.resource.kind.as_str(), guard.resource.id.as_str()]
        });
        for name in names {
            fields.text(Some(name))?;
        }
        fields.bytes(state.version.as_ref().map(Version::bytes))?;
        fields.text(state.version.as_ref().map(Version::text))?;
        fields.int(Some(state.epoch))?;
        fields.text(state.step.as_deref())?;
        fields.flag(state.deleted)?;
        fields.text(state.fields.as_ref().map(Members::stored).as_deref())?;
        fields.uuid(state.event.map(|event| event.0))?;
        fields.int(Some(state.applied_at_ms))?;
        fields.int(Some(state.applied))?;
        fields.int(Some(state.held))
    }

    fn weight(&self) -> usize {
        384
    }
}

/// `tidegate.hold`: a hold as it shall be.
pub(crate) struct HoldRow<'a> {
    pub(crate) event: EventId,
    pub(crate) resource: ResourceHash,
    pub(crate) hold: &'a tidegate_actors::rules::judge::Hold,
    pub(crate) subject: Cow<'a, Subject>,
}

impl Row for HoldRow<'_> {
    const COLUMNS: i32 = 7;

    fn of(types: &RowTypes) -> RowType {
        types.hold
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        fields.uuid(Some(self.event.0))?;
        fields.hash(self.resource.0)?;
        fields.int(self.hold.until_ms)?;
        fields.int(self.hold.parked_in)?;
        fields.int(self.hold.fetch)?;
        fields.text(Some(&self.hold.why))?;
        fields.text(Some(&self.subject.stored()))
    }

    fn weight(&self) -> usize {
        512
    }
}

/// `tidegate.ended`: a hold that ended.
impl Row for Settled {
    const COLUMNS: i32 = 4;

    fn of(types: &RowTypes) -> RowType {
        types.ended
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        fields.uuid(Some(self.id.0))?;
        fields.text(Some(self.verdict.word()))?;
        fields.flag(self.tie)?;
        fields.text(self.why.as_deref())
    }

    fn weight(&self) -> usize {
        128
    }
}

/// `tidegate.fetching`: what becomes of a resource's fetch.
impl Row for Fetching {
    const COLUMNS: i32 = 3;

    fn of(types: &RowTypes) -> RowType {
        types.fetching
    }

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError> {
        fields.hash(self.resource.0)?;
        fields.int(Some(self.answered.unwrap_or(0)))?;
        fields.flag(self.wanted)
    }

    fn weight(&self) -> usize {
        64
    }
}
