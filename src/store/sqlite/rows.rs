//! Rows for people: the columns of each list, and what is made of them.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use tidegate_actors::ports::{EventRow, FailureRow, FetchRow, HeldRow, QuarantineRow, ResourceRow};
use tidegate_actors::rules::event::{EventId, Verdict};
use tidegate_actors::rules::fields::Fields;
use tidegate_actors::rules::key::ResourceHash;
use uuid::Uuid;

pub(super) const EVENT_LIST: &str = "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, \
     version_text, verdict, tie, why, settled_at_ms, conflicts_with, length(body), NULL, NULL FROM events WHERE true";
pub(super) const EVENT_ONE: &str = "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, \
     version_text, verdict, tie, why, settled_at_ms, conflicts_with, length(body), headers, body FROM events WHERE id = ";
pub(super) const RESOURCES: &str = "SELECT hash, source, tenant, kind, id, version_text, deleted, event_id, applied_at_ms, applied, \
     epoch, step, held, fields FROM resources WHERE true";
pub(super) const FAILURES: &str = "SELECT name, event_id, source, tenant, key, kind, effect, error, held, failures, \
     first_at_ms, last_at_ms FROM failures WHERE true";
pub(super) const QUARANTINE: &str =
    "SELECT id, received_at_ms, source, tenant, code, reason, times, NULL, NULL FROM quarantine WHERE true";
pub(super) const QUARANTINE_ONE: &str =
    "SELECT id, received_at_ms, source, tenant, code, reason, times, body, headers FROM quarantine WHERE id = ";
pub(super) const HELD: &str = "SELECT h.event_id, e.received_at_ms, e.source, e.tenant, e.kind, e.resource_kind, e.resource_id, \
     e.version_text, h.why, h.until_ms, h.parked_in IS NOT NULL \
     FROM holds AS h JOIN events AS e ON e.id = h.event_id WHERE true";
pub(super) const FETCH: &str = "SELECT attempts, due_ms, last_error FROM fetches WHERE resource_hash = ";

pub(super) fn event_row(row: &SqliteRow) -> Result<EventRow, sqlx::Error> {
    let resource: (Option<String>, Option<String>) = (row.try_get(6)?, row.try_get(7)?);
    Ok(EventRow {
        id: EventId(row.try_get(0)?),
        received_at_ms: row.try_get(1)?,
        source: row.try_get(2)?,
        tenant: row.try_get(3)?,
        key: row.try_get(4)?,
        kind: row.try_get(5)?,
        resource: resource.0.zip(resource.1),
        version: row.try_get(8)?,
        verdict: verdict(row.try_get(9)?)?,
        tie: row.try_get(10)?,
        why: row.try_get(11)?,
        settled_at_ms: row.try_get(12)?,
        conflicts_with: row.try_get::<Option<Uuid>, _>(13)?.map(EventId),
        body_bytes: row.try_get(14)?,
        headers: row.try_get(15)?,
        body: row.try_get(16)?,
    })
}

fn verdict(word: &str) -> Result<Verdict, sqlx::Error> {
    Verdict::from_word(word).ok_or_else(|| sqlx::Error::Decode(format!("{word:?} is no verdict").into()))
}

pub(super) fn resource_row(row: &SqliteRow) -> Result<ResourceRow, sqlx::Error> {
    let odd = |text: String| sqlx::Error::Decode(text.into());
    let fields: Option<&str> = row.try_get(13)?;
    Ok(ResourceRow {
        hash: ResourceHash(row.try_get::<Uuid, _>(0)?.into_bytes()),
        source: row.try_get(1)?,
        tenant: row.try_get(2)?,
        kind: row.try_get(3)?,
        id: row.try_get(4)?,
        version: row.try_get(5)?,
        deleted: row.try_get(6)?,
        event: row.try_get::<Option<Uuid>, _>(7)?.map(EventId),
        applied_at_ms: row.try_get(8)?,
        applied: row.try_get(9)?,
        epoch: row.try_get(10)?,
        step: row.try_get(11)?,
        held: row.try_get(12)?,
        fields: fields.map(Fields::from_stored).transpose().map_err(odd)?.as_ref().map(Fields::document),
    })
}

pub(super) fn quarantine_row(row: &SqliteRow) -> Result<QuarantineRow, sqlx::Error> {
    Ok(QuarantineRow {
        id: EventId(row.try_get(0)?),
        received_at_ms: row.try_get(1)?,
        source: row.try_get(2)?,
        tenant: row.try_get(3)?,
        code: row.try_get(4)?,
        reason: row.try_get(5)?,
        times: row.try_get(6)?,
        body: row.try_get(7)?,
        headers: row.try_get(8)?,
    })
}

pub(super) fn failure_row(row: &SqliteRow) -> Result<FailureRow, sqlx::Error> {
    Ok(FailureRow {
        name: row.try_get(0)?,
        event: EventId(row.try_get(1)?),
        source: row.try_get(2)?,
        tenant: row.try_get(3)?,
        key: row.try_get(4)?,
        kind: row.try_get(5)?,
        effect: row.try_get(6)?,
        error: row.try_get(7)?,
        held: row.try_get(8)?,
        failures: row.try_get(9)?,
        first_at_ms: row.try_get(10)?,
        last_at_ms: row.try_get(11)?,
    })
}

pub(super) fn held_row(row: &SqliteRow) -> Result<HeldRow, sqlx::Error> {
    Ok(HeldRow {
        event: EventId(row.try_get(0)?),
        received_at_ms: row.try_get(1)?,
        source: row.try_get(2)?,
        tenant: row.try_get(3)?,
        kind: row.try_get(4)?,
        resource: (row.try_get(5)?, row.try_get(6)?),
        version: row.try_get(7)?,
        why: row.try_get(8)?,
        until_ms: row.try_get(9)?,
        parked: row.try_get(10)?,
    })
}

pub(super) fn fetch_row(row: &SqliteRow) -> Result<FetchRow, sqlx::Error> {
    Ok(FetchRow { attempts: row.try_get(0)?, due_ms: row.try_get(1)?, last_error: row.try_get(2)? })
}
