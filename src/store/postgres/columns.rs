//! Events as columns: one array a column, so that a batch is one statement of fixed text.

use std::borrow::Cow;

use tidegate_actors::rules::event::{Event, Guard, Intent};
use tidegate_actors::rules::order::{Policy, Tie};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use crate::store::sql::decide::record;
use tidegate_actors::ports::Outcome;

/// The columns that every statement about events shares.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    pub(crate) n: Vec<i64>,
    pub(crate) hash: Vec<Uuid>,
    pub(crate) id: Vec<Uuid>,
    pub(crate) digest: Vec<Uuid>,
    pub(crate) received_at_ms: Vec<i64>,
    pub(crate) source: Vec<Cow<'a, str>>,
    pub(crate) tenant: Vec<Cow<'a, str>>,
    pub(crate) key: Vec<Cow<'a, str>>,
    pub(crate) kind: Vec<Cow<'a, str>>,
    pub(crate) resource_hash: Vec<Option<Uuid>>,
    pub(crate) resource_kind: Vec<Option<Cow<'a, str>>>,
    pub(crate) resource_id: Vec<Option<Cow<'a, str>>>,
    pub(crate) version: Vec<Option<&'a [u8]>>,
    pub(crate) version_text: Vec<Option<&'a str>>,
    pub(crate) ties_apply: Vec<bool>,
    pub(crate) deletes: Vec<bool>,
    pub(crate) ignored: Vec<bool>,
    pub(crate) headers: Vec<&'a [u8]>,
    pub(crate) body: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    /// Columns of the events of `batch` at `indexes`, in that order.
    pub(crate) fn of(batch: &'a [Event], indexes: impl ExactSizeIterator<Item = usize>) -> Self {
        let mut columns = Self::with_capacity(indexes.len());
        for index in indexes {
            columns.push(index, &batch[index]);
        }
        columns
    }

    fn push(&mut self, index: usize, event: &'a Event) {
        let guard = event.guards.first();
        let version = guard.and_then(|guard| guard.version.as_ref());
        self.n.push(i64::try_from(index).unwrap_or(i64::MAX));
        self.hash.push(Uuid::from_bytes(event.key.hash.0));
        self.id.push(event.id.0);
        self.digest.push(Uuid::from_bytes(event.digest.0));
        self.received_at_ms.push(event.received_at_ms);
        self.source.push(text(&event.source));
        self.tenant.push(text(&event.tenant));
        self.key.push(text(&event.key.text));
        self.kind.push(text(&event.kind));
        self.resource_hash.push(guard.map(|guard| Uuid::from_bytes(guard.resource.hash.0)));
        self.resource_kind.push(guard.map(|guard| text(&guard.resource.kind)));
        self.resource_id.push(guard.map(|guard| text(&guard.resource.id)));
        self.version.push(version.map(Version::bytes));
        self.version_text.push(version.map(Version::text));
        self.ties_apply.push(guard.is_some_and(|guard| ties_apply(event, guard)));
        self.deletes.push(event.deletes);
        self.ignored.push(event.intent != Intent::Apply);
        self.headers.push(&event.headers);
        self.body.push(&event.body);
    }

    fn with_capacity(n: usize) -> Self {
        Self {
            n: Vec::with_capacity(n),
            hash: Vec::with_capacity(n),
            id: Vec::with_capacity(n),
            digest: Vec::with_capacity(n),
            received_at_ms: Vec::with_capacity(n),
            source: Vec::with_capacity(n),
            tenant: Vec::with_capacity(n),
            key: Vec::with_capacity(n),
            kind: Vec::with_capacity(n),
            resource_hash: Vec::with_capacity(n),
            resource_kind: Vec::with_capacity(n),
            resource_id: Vec::with_capacity(n),
            version: Vec::with_capacity(n),
            version_text: Vec::with_capacity(n),
            ties_apply: Vec::with_capacity(n),
            deletes: Vec::with_capacity(n),
            ignored: Vec::with_capacity(n),
            headers: Vec::with_capacity(n),
            body: Vec::with_capacity(n),
        }
    }
}

/// The verdict columns of events with these outcomes.
pub(crate) fn verdicts(outcomes: &[Outcome]) -> (Vec<&'static str>, Vec<bool>) {
    outcomes.iter().map(|&outcome| record(outcome)).map(|(verdict, tie)| (verdict.word(), tie)).unzip()
}

/// Whether an equal version applies; what has no version always does.
pub(crate) fn ties_apply(event: &Event, guard: &Guard) -> bool {
    guard.version.is_none() || matches!(event.policy, Policy::Newest { tie: Tie::Apply } | Policy::Arrival)
}

/// A text for people. Postgres takes no NUL in a text, and an authentic event is never refused for what it holds; the
/// hash beside it, and the raw bytes, stay exact.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
