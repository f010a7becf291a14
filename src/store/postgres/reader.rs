//! Reading rows, on a small pool of its own, so that readers never keep a writer waiting.
//!
//! Each query is one statement, bounded by rows and by two seconds; what is dropped half-way is rolled back before its
//! connection serves anyone else.

use async_trait::async_trait;
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{Executor as _, Row as _};
use tidegate_actors::ports::{
    Counts, EventFilter, EventRow, FailureRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader,
    ResourceFilter, ResourceRow, StoreError,
};
use tidegate_actors::rules::event::{EventId, Verdict};
use tidegate_actors::rules::fields::Fields;
use tidegate_actors::rules::key::ResourceHash;
use uuid::Uuid;

use super::errors::unavailable;
use super::rows::text;

/// The most rows of a page.
const ROWS_MAX: u32 = 1_000;

/// An event with what became of it in the end.
macro_rules! event {
    ($headers_and_body:literal, $from:literal) => {
        concat!(
            "SELECT e.id, e.received_at_ms, e.source, e.tenant, e.key, e.kind, e.resource_kind, e.resource_id,
                    e.version_text, coalesce(s.verdict, e.verdict) AS verdict, coalesce(s.tie, e.tie) AS tie,
                    CASE WHEN s.event_id IS NULL THEN e.why ELSE s.why END AS why, s.settled_at_ms, e.conflicts_with,
                    octet_length(e.body)::bigint AS body_bytes, ",
            $headers_and_body,
            " FROM tidegate.events e LEFT JOIN tidegate.settled s ON s.event_id = e.id ",
            $from
        )
    };
}

const EVENTS: &str = event!(
    "NULL::bytea AS headers, NULL::bytea AS body",
    "WHERE ($1::text IS NULL OR e.source = $1) AND ($2::text IS NULL OR coalesce(s.verdict, e.verdict) = $2)
       AND ($3::text IS NULL OR e.key = $3)
       AND ($4::text IS NULL OR e.resource_kind = $4) AND ($5::text IS NULL OR e.resource_id = $5)
       AND ($6::uuid IS NULL OR e.id < $6)
     ORDER BY e.id DESC LIMIT $7"
);

/// The same of one resource: its events are looked up first, whatever the planner thinks of their number.
const EVENTS_OF: &str = concat!(
    "WITH mine AS MATERIALIZED (
         SELECT m.id FROM tidegate.events m WHERE m.resource_hash = $8 AND ($6::uuid IS NULL OR m.id < $6)
     ) ",
    event!(
        "NULL::bytea AS headers, NULL::bytea AS body",
        "JOIN mine ON mine.id = e.id
         WHERE ($1::text IS NULL OR e.source = $1) AND ($2::text IS NULL OR coalesce(s.verdict, e.verdict) = $2)
           AND ($3::text IS NULL OR e.key = $3)
           AND ($4::text IS NULL OR e.resource_kind = $4) AND ($5::text IS NULL OR e.resource_id = $5)
         ORDER BY e.id DESC LIMIT $7"
    )
);

const EVENT: &str = event!("e.headers, e.body", "WHERE e.id = $1");

const HELD: &str = "
    SELECT h.event_id, h.until_ms, h.parked_in IS NOT NULL AS parked, h.why, r.source, r.tenant,
           r.kind AS resource_kind, r.id AS resource_id, e.received_at_ms, e.kind, e.version_text
    FROM tidegate.holds h
    JOIN tidegate.resources r ON r.hash = h.resource_hash
    JOIN tidegate.events e ON e.id = h.event_id
    WHERE ($1::text IS NULL OR r.source = $1) AND ($2::uuid IS NULL OR h.resource_hash = $2)
      AND ($3::uuid IS NULL OR h.event_id > $3)
    ORDER BY h.event_id LIMIT $4";

const FETCH: &str = "SELECT attempts, due_ms, last_error FROM tidegate.fetches WHERE resource_hash = $1";

const RESOURCES: &str = "
    SELECT hash, source, tenant, kind, id, version_text, deleted, event_id, applied_at_ms, applied, epoch, step, held,
           fields
    FROM tidegate.resources
    WHERE rev > 0 AND ($1::text IS NULL OR source = $1) AND ($2::text IS NULL OR kind = $2) AND ($3::text IS NULL OR id = $3)
      AND ($4::uuid IS NULL OR hash > $4)
    ORDER BY hash LIMIT $5";

const RESOURCE: &str = "
    SELECT hash, source, tenant, kind, id, version_text, deleted, event_id, applied_at_ms, applied, epoch, step, held,
           fields
    FROM tidegate.resources WHERE rev > 0 AND hash = $1";

const FAILURES: &str = "SELECT name, event_id, source, tenant, key, kind, effect, error, held, failures, first_at_ms, \
     last_at_ms FROM tidegate.failures WHERE $1::uuid IS NULL OR name > $1 ORDER BY name LIMIT $2";

const QUARANTINE: &str = "
    SELECT id, received_at_ms, source, tenant, code, reason, times, NULL::bytea AS headers, NULL::bytea AS body
    FROM tidegate.quarantine
    WHERE ($1::uuid IS NULL OR id < $1)
    ORDER BY id DESC LIMIT $2";

const QUARANTINED: &str = "
    SELECT id, received_at_ms, source, tenant, code, reason, times, headers, body
    FROM tidegate.quarantine WHERE id = $1";

/// Reads from one database.
#[derive(Clone)]
pub struct PgReader {
    pool: PgPool,
}

impl PgReader {
    /// A reader on a pool made by [`super::small_pool`].
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    async fn counted(&self) -> Result<Counts, sqlx::Error> {
        // One snapshot, so that the counts belong together.
        let mut transaction = self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        transaction.execute("SET LOCAL statement_timeout = '60s'").await?;
        let found: Vec<(String, i64)> = sqlx::query_as(
            "SELECT coalesce(s.verdict, e.verdict), count(*)
                 FROM tidegate.events e LEFT JOIN tidegate.settled s ON s.event_id = e.id GROUP BY 1",
        )
        .fetch_all(&mut *transaction)
        .await?;
        let (quarantined, keys, resources, held, fetches): (i64, i64, i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM tidegate.quarantine),
                    (SELECT count(*) FROM tidegate.keys_0) + (SELECT count(*) FROM tidegate.keys_1)
                        + (SELECT count(*) FROM tidegate.keys_2),
                    (SELECT count(*) FROM tidegate.resources WHERE rev > 0),
                    (SELECT count(*) FROM tidegate.holds),
                    (SELECT count(*) FROM tidegate.fetches WHERE due_ms IS NOT NULL)",
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.rollback().await?;
        let of_events = |verdict: Verdict| found.iter().find(|(word, _)| word == verdict.word()).map_or(0, |row| row.1);
        let count = |verdict| if verdict == Verdict::Quarantined { quarantined } else { of_events(verdict) };
        Ok(Counts {
            events: Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).collect(),
            keys,
            resources,
            held,
            fetches,
        })
    }
}

#[async_trait(?Send)]
impl Reader for PgReader {
    async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<EventRow>, StoreError> {
        let (kind, id) = filter.resource.as_ref().map(|(kind, id)| (text(kind), text(id))).unzip();
        let query = sqlx::query(if filter.of.is_some() { EVENTS_OF } else { EVENTS });
        let query = query
            .bind(filter.source.as_deref().map(text))
            .bind(filter.verdict.map(Verdict::word))
            .bind(filter.key.as_deref().map(text))
            .bind(kind)
            .bind(id)
            .bind(after)
            .bind(one_more(limit));
        let query = match filter.of {
            Some(hash) => query.bind(Uuid::from_bytes(hash.0)),
            None => query,
        };
        let rows = query.fetch_all(&self.pool).await;
        page(rows, limit, event_row, |row| row.id.0)
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        one(sqlx::query(EVENT).bind(id.0).fetch_optional(&self.pool).await, event_row)
    }

    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError> {
        let rows = sqlx::query(RESOURCES)
            .bind(filter.source.as_deref().map(text))
            .bind(filter.kind.as_deref().map(text))
            .bind(filter.id.as_deref().map(text))
            .bind(after)
            .bind(one_more(limit))
            .fetch_all(&self.pool)
            .await;
        page(rows, limit, resource_row, |row| Uuid::from_bytes(row.hash.0))
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        let row = sqlx::query(RESOURCE).bind(Uuid::from_bytes(hash.0)).fetch_optional(&self.pool).await;
        one(row, resource_row)
    }

    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError> {
        let rows = sqlx::query(HELD)
            .bind(filter.source.as_deref().map(text))
            .bind(filter.of.map(|hash| Uuid::from_bytes(hash.0)))
            .bind(after)
            .bind(one_more(limit))
            .fetch_all(&self.pool)
            .await;
        page(rows, limit, held_row, |row| row.event.0)
    }

    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        let row = sqlx::query(FETCH).bind(Uuid::from_bytes(resource.0)).fetch_optional(&self.pool).await;
        one(row, |row| {
            Ok(FetchRow {
                attempts: row.try_get("attempts")?,
                due_ms: row.try_get("due_ms")?,
                last_error: row.try_get("last_error")?,
            })
        })
    }

    async fn failures(&self, after: Option<Uuid>, limit: u32) -> Result<Page<FailureRow>, StoreError> {
        let rows = sqlx::query(FAILURES).bind(after).bind(one_more(limit)).fetch_all(&self.pool).await;
        page(rows, limit, failure_row, |row| row.name)
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        let rows = sqlx::query(QUARANTINE).bind(after).bind(one_more(limit)).fetch_all(&self.pool).await;
        page(rows, limit, quarantine_row, |row| row.id.0)
    }

    async fn quarantined(&self, id: EventId) -> Result<Option<QuarantineRow>, StoreError> {
        one(sqlx::query(QUARANTINED).bind(id.0).fetch_optional(&self.pool).await, quarantine_row)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.counted().await.map_err(|error| unavailable(&error))
    }
}

fn failure_row(row: &PgRow) -> Result<FailureRow, sqlx::Error> {
    Ok(FailureRow {
        name: row.try_get("name")?,
        event: EventId(row.try_get("event_id")?),
        source: row.try_get("source")?,
        tenant: row.try_get("tenant")?,
        key: row.try_get("key")?,
        kind: row.try_get("kind")?,
        effect: row.try_get("effect")?,
        error: row.try_get("error")?,
        held: row.try_get("held")?,
        failures: row.try_get("failures")?,
        first_at_ms: row.try_get("first_at_ms")?,
        last_at_ms: row.try_get("last_at_ms")?,
    })
}

fn capped(limit: u32) -> u32 {
    limit.clamp(1, ROWS_MAX)
}

/// One row more than the page holds tells whether there is a next page.
fn one_more(limit: u32) -> i64 {
    i64::from(capped(limit)) + 1
}

fn page<T>(
    rows: Result<Vec<PgRow>, sqlx::Error>,
    limit: u32,
    read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    cursor: impl Fn(&T) -> Uuid,
) -> Result<Page<T>, StoreError> {
    let rows = rows.map_err(|error| unavailable(&error))?;
    let size = capped(limit) as usize;
    let more = rows.len() > size;
    let rows: Result<Vec<T>, _> = rows.iter().take(size).map(read).collect();
    let rows = rows.map_err(|error| unavailable(&error))?;
    let next = if more { rows.last().map(cursor) } else { None };
    Ok(Page { rows, next })
}

fn one<T>(
    row: Result<Option<PgRow>, sqlx::Error>,
    read: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
) -> Result<Option<T>, StoreError> {
    row.and_then(|row| row.as_ref().map(read).transpose()).map_err(|error| unavailable(&error))
}

fn event_row(row: &PgRow) -> Result<EventRow, sqlx::Error> {
    let word: String = row.try_get("verdict")?;
    let verdict = Verdict::from_word(&word)
        .ok_or_else(|| sqlx::Error::Decode(format!("{word:?} in `tidegate.events.verdict` is no verdict").into()))?;
    let kind: Option<String> = row.try_get("resource_kind")?;
    Ok(EventRow {
        id: EventId(row.try_get("id")?),
        received_at_ms: row.try_get("received_at_ms")?,
        source: row.try_get("source")?,
        tenant: row.try_get("tenant")?,
        key: row.try_get("key")?,
        kind: row.try_get("kind")?,
        resource: kind.zip(row.try_get("resource_id")?),
        version: row.try_get("version_text")?,
        verdict,
        tie: row.try_get("tie")?,
        why: row.try_get("why")?,
        settled_at_ms: row.try_get("settled_at_ms")?,
        conflicts_with: row.try_get::<Option<Uuid>, _>("conflicts_with")?.map(EventId),
        headers: row.try_get("headers")?,
        body: row.try_get("body")?,
        body_bytes: row.try_get("body_bytes")?,
    })
}

fn resource_row(row: &PgRow) -> Result<ResourceRow, sqlx::Error> {
    Ok(ResourceRow {
        hash: ResourceHash(row.try_get::<Uuid, _>("hash")?.into_bytes()),
        source: row.try_get("source")?,
        tenant: row.try_get("tenant")?,
        kind: row.try_get("kind")?,
        id: row.try_get("id")?,
        version: row.try_get("version_text")?,
        deleted: row.try_get("deleted")?,
        event: row.try_get::<Option<Uuid>, _>("event_id")?.map(EventId),
        applied_at_ms: row.try_get("applied_at_ms")?,
        applied: row.try_get("applied")?,
        epoch: row.try_get("epoch")?,
        step: row.try_get("step")?,
        held: row.try_get("held")?,
        fields: row.try_get::<Option<&str>, _>("fields")?.map(document).transpose()?,
    })
}

fn document(stored: &str) -> Result<String, sqlx::Error> {
    Fields::from_stored(stored).map(|fields| fields.document()).map_err(|why| sqlx::Error::Decode(why.into()))
}

fn held_row(row: &PgRow) -> Result<HeldRow, sqlx::Error> {
    Ok(HeldRow {
        event: EventId(row.try_get("event_id")?),
        received_at_ms: row.try_get("received_at_ms")?,
        source: row.try_get("source")?,
        tenant: row.try_get("tenant")?,
        kind: row.try_get("kind")?,
        resource: (row.try_get("resource_kind")?, row.try_get("resource_id")?),
        version: row.try_get("version_text")?,
        why: row.try_get("why")?,
        until_ms: row.try_get("until_ms")?,
        parked: row.try_get("parked")?,
    })
}

fn quarantine_row(row: &PgRow) -> Result<QuarantineRow, sqlx::Error> {
    Ok(QuarantineRow {
        id: EventId(row.try_get("id")?),
        received_at_ms: row.try_get("received_at_ms")?,
        source: row.try_get("source")?,
        tenant: row.try_get("tenant")?,
        code: row.try_get("code")?,
        reason: row.try_get("reason")?,
        times: row.try_get("times")?,
        headers: row.try_get("headers")?,
        body: row.try_get("body")?,
    })
}
