//! Reading what is stored: one by id, many by filter and cursor, every answer bounded.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreError;
use crate::rules::event::{EventId, Verdict};
use crate::rules::key::ResourceHash;

/// A recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its name.
    pub id: EventId,
    /// When it was received, milliseconds since 1970.
    pub received_at_ms: i64,
    /// Its source.
    pub source: String,
    /// Its tenant; `""` when unused.
    pub tenant: String,
    /// Its idempotency key, for people.
    pub key: String,
    /// The sender's event type.
    pub kind: String,
    /// Type and id of its first resource, if it has one.
    pub resource: Option<(String, String)>,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// What became of it: applied, stale, ignored; `duplicate` for a conflict kept aside.
    pub verdict: Verdict,
    /// Its version equalled the stored one.
    pub tie: bool,
    /// Why, where it was not plainly applied.
    pub why: Option<String>,
    /// When its waiting ended, milliseconds since 1970; of an event that was held.
    pub settled_at_ms: Option<i64>,
    /// Of a duplicate that is kept: the event that holds its key or effect key.
    pub conflicts_with: Option<EventId>,
    /// Headers worth keeping, as a JSON object; left out of lists.
    pub headers: Option<Vec<u8>>,
    /// The raw bytes; left out of lists.
    pub body: Option<Vec<u8>>,
    /// Length of the raw bytes.
    pub body_bytes: i64,
}

/// A resource's stored version and what it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRow {
    /// The row's key.
    pub hash: ResourceHash,
    /// Its source.
    pub source: String,
    /// Its tenant; `""` when unused.
    pub tenant: String,
    /// Its type.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// The stored version; `None` while only events without a version came.
    pub version: Option<String>,
    /// A delete was the last thing applied.
    pub deleted: bool,
    /// The event whose body is the state now; `None` while nothing was applied and events of it wait.
    pub event: Option<EventId>,
    /// When that was applied, milliseconds since 1970.
    pub applied_at_ms: i64,
    /// How many events were applied to it.
    pub applied: i64,
    /// Counts the beginnings of the sender's counter, from 1.
    pub epoch: i64,
    /// The step of its state machine.
    pub step: Option<String>,
    /// How many of its events are held.
    pub held: i64,
    /// The state put together from partial updates, as a JSON object.
    pub fields: Option<String>,
}

/// An event that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The event.
    pub event: EventId,
    /// When it was received, milliseconds since 1970.
    pub received_at_ms: i64,
    /// Its source.
    pub source: String,
    /// Its tenant; `""` when unused.
    pub tenant: String,
    /// The sender's event type.
    pub kind: String,
    /// Type and id of its resource.
    pub resource: (String, String),
    /// Its version, if it has one.
    pub version: Option<String>,
    /// What it waits for.
    pub why: String,
    /// Until when, by the store's clock; `None` waits for a fetch or a person.
    pub until_ms: Option<i64>,
    /// It is parked: a counter fell.
    pub parked: bool,
}

/// A fetch that is to be done, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRow {
    /// Tries since it was asked for.
    pub attempts: i64,
    /// When it is due, milliseconds since 1970; `None` rests.
    pub due_ms: Option<i64>,
    /// The last failure.
    pub last_error: Option<String>,
}

/// A request kept in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRow {
    /// Its name.
    pub id: EventId,
    /// When it first came, milliseconds since 1970.
    pub received_at_ms: i64,
    /// Its source.
    pub source: String,
    /// Its tenant, as far as known.
    pub tenant: String,
    /// Stable code of what is missing.
    pub code: String,
    /// The same for a person.
    pub reason: String,
    /// How often the same bytes came.
    pub times: i64,
    /// Headers worth keeping, as a JSON object; left out of lists.
    pub headers: Option<Vec<u8>>,
    /// The raw bytes; left out of lists.
    pub body: Option<Vec<u8>>,
}

/// An event of which an effect failed: not taken, or held still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRow {
    /// Under which name it is counted: its key's hash, or its id once it is held.
    pub name: Uuid,
    /// The event, at its last try.
    pub event: EventId,
    /// Its source.
    pub source: String,
    /// Its tenant; `""` when unused.
    pub tenant: String,
    /// Its idempotency key, for people.
    pub key: String,
    /// The sender's event type.
    pub kind: String,
    /// The effect's place in the settings.
    pub effect: String,
    /// What the database said.
    pub error: String,
    /// It was taken and is held; else its sender must come again.
    pub held: bool,
    /// How often it failed.
    pub failures: i64,
    /// When it failed first, milliseconds since 1970.
    pub first_at_ms: i64,
    /// When it failed last.
    pub last_at_ms: i64,
}

/// Which events to list. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only this source.
    pub source: Option<String>,
    /// Only this verdict.
    pub verdict: Option<Verdict>,
    /// Only this idempotency key.
    pub key: Option<String>,
    /// Only this resource: type and id.
    pub resource: Option<(String, String)>,
    /// Only of the resource with this hash.
    pub of: Option<ResourceHash>,
}

/// Which held events to list. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct HeldFilter {
    /// Only this source.
    pub source: Option<String>,
    /// Only of this resource.
    pub of: Option<ResourceHash>,
}

/// Which resources to list. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct ResourceFilter {
    /// Only this source.
    pub source: Option<String>,
    /// Only this type.
    pub kind: Option<String>,
    /// Only this id.
    pub id: Option<String>,
}

/// One page of a list, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Hand this in as `after` for the next page; `None` at the end.
    pub next: Option<Uuid>,
}

/// How many rows there are of what: the engine's own bookkeeping (I16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events by verdict. `Duplicate` counts conflicts kept aside, `Quarantined` the quarantine.
    pub events: Vec<(Verdict, i64)>,
    /// Claimed keys in the live parts of the key table.
    pub keys: i64,
    /// Resources with a stored version.
    pub resources: i64,
    /// Events that are held now.
    pub held: i64,
    /// Fetches that are due or claimed.
    pub fetches: i64,
}

/// Reads rows. Lists are newest first for events and in a fixed order for resources, at most `limit` rows
/// (capped at 1,000), each query bounded in time.
#[async_trait(?Send)]
pub trait Reader: Send + Sync + 'static {
    /// Events, newest first, older than the event `after`.
    async fn events(&self, filter: &EventFilter, after: Option<Uuid>, limit: u32)
    -> Result<Page<EventRow>, StoreError>;

    /// One event, with body and headers.
    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError>;

    /// Resources, by hash, behind the hash `after`.
    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError>;

    /// One resource.
    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError>;

    /// Held events, oldest first, newer than the event `after`.
    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError>;

    /// The fetch of a resource, if one was ever asked for.
    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError>;

    /// Events of which an effect failed and that have not gone well since, in a fixed order, behind the name `after`.
    ///
    /// As it stands here there are none: a store that runs effects answers it.
    async fn failures(&self, _after: Option<Uuid>, _limit: u32) -> Result<Page<FailureRow>, StoreError> {
        Ok(Page { rows: Vec::new(), next: None })
    }

    /// Quarantined requests, newest first, older than `after`.
    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError>;

    /// One quarantined request, with its body where the store hands it out.
    ///
    /// As it stands here, it is found through the list and has no body; a store answers it with one.
    async fn quarantined(&self, id: EventId) -> Result<Option<QuarantineRow>, StoreError> {
        let behind = id.0.as_u128().checked_add(1).map(Uuid::from_u128);
        let page = self.quarantine(behind, 1).await?;
        Ok(page.rows.into_iter().find(|row| row.id == id))
    }

    /// Counts every row once; slow on large tables, meant for checks.
    async fn counts(&self) -> Result<Counts, StoreError>;
}
