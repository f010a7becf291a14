//! Reads rows on connections of its own, which never hold the writer up.
//!
//! Owns a few read-only connections. Promises at most [`ROWS_MAX`] rows an answer and an end to every query:
//! SQLite asks now and then whether it should go on. A long read keeps the write-ahead log from being reused,
//! so the bound is for the writer's sake too. On failure the connection is dropped and the next one is fresh.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row as _};
use tidegate_actors::ports::{
    Counts, EventFilter, EventRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader, ResourceFilter,
    ResourceRow, StoreError,
};
use tidegate_actors::rules::event::{EventId, Verdict};
use tidegate_actors::rules::key::ResourceHash;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::error::{Fault, unavailable};
use super::{KEY_SLOTS, connect, schema};
use crate::store::OpenError;

/// The most rows of one answer.
const ROWS_MAX: u32 = 1_000;
const CONNECTIONS: usize = 2;
const QUERY_WITHIN: Duration = Duration::from_secs(5);
/// Counting reads every row there is.
const COUNT_WITHIN: Duration = Duration::from_secs(600);
/// Steps of SQLite's machine between two looks at the clock: well below a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

const EVENT_LIST: &str = "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, \
     version_text, verdict, tie, conflicts_with, length(body), NULL, NULL FROM events WHERE true";
const EVENT_ONE: &str = "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, \
     version_text, verdict, tie, conflicts_with, length(body), headers, body FROM events WHERE id = ";
const RESOURCES: &str = "SELECT hash, source, tenant, kind, id, version_text, deleted, event_id, applied_at_ms, applied \
     FROM resources WHERE true";
const QUARANTINE: &str =
    "SELECT id, received_at_ms, source, tenant, code, reason, times, NULL FROM quarantine WHERE true";
const QUARANTINE_ONE: &str =
    "SELECT id, received_at_ms, source, tenant, code, reason, times, body FROM quarantine WHERE id = ";

/// Reads one database.
pub struct SqliteReader {
    path: PathBuf,
    started: Instant,
    permits: Semaphore,
    idle: Mutex<Vec<ReadConnection>>,
}

struct ReadConnection {
    connection: SqliteConnection,
    /// When its query must end, in milliseconds behind the reader's start.
    deadline_ms: Arc<AtomicU64>,
}

type Query = QueryBuilder<Sqlite>;

impl SqliteReader {
    /// A reader of a database that this process has open.
    #[expect(
        clippy::disallowed_methods,
        reason = "SQLite asks for the time on its own thread, where no test's clock reaches"
    )]
    pub(super) fn over(path: PathBuf) -> Self {
        let idle = Mutex::new(Vec::with_capacity(CONNECTIONS));
        Self { path, started: Instant::now(), permits: Semaphore::new(CONNECTIONS), idle }
    }

    /// A reader beside another process.
    pub(super) async fn open(path: PathBuf) -> Result<Self, OpenError> {
        if !path.exists() {
            return Err(OpenError::Empty(format!("no database at {}", path.display())));
        }
        let reader = Self::over(path);
        let mut fresh = reader.connect().await?;
        schema::check(&mut fresh.connection).await?;
        reader.put(fresh);
        Ok(reader)
    }

    /// The one row of a query without parameters.
    pub(super) async fn one(&self, sql: &'static str) -> Result<SqliteRow, StoreError> {
        let rows = self.rows(Query::new(sql), QUERY_WITHIN).await?;
        rows.into_iter().next().ok_or_else(|| StoreError::Unavailable("the `meta` row is missing".into()))
    }

    async fn rows(&self, mut query: Query, within: Duration) -> Result<Vec<SqliteRow>, StoreError> {
        let permit = self.permits.acquire().await;
        let _permit = permit.map_err(|_| StoreError::Unavailable("the reader is closed".into()))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reading = match idle {
            Some(reading) => reading,
            None => self.connect().await?,
        };
        let deadline = self.started.elapsed() + within;
        reading.deadline_ms.store(millis(deadline), Ordering::Relaxed);
        // dropped with its connection when the caller goes away; the deadline ends what still runs
        match query.build().fetch_all(&mut reading.connection).await {
            Ok(rows) => {
                self.put(reading);
                Ok(rows)
            }
            Err(error) => {
                if !Fault::before_commit("read", &error).dead {
                    self.put(reading);
                }
                Err(unavailable("read", &error))
            }
        }
    }

    async fn connect(&self) -> Result<ReadConnection, StoreError> {
        let mut connection = connect::reader(&self.path).await?;
        let deadline_ms = Arc::new(AtomicU64::new(u64::MAX));
        let (started, until) = (self.started, Arc::clone(&deadline_ms));
        let mut handle = connection.lock_handle().await.map_err(|error| unavailable("read", &error))?;
        handle.set_progress_handler(STEPS_BETWEEN_LOOKS, move || {
            millis(started.elapsed()) <= until.load(Ordering::Relaxed)
        });
        drop(handle);
        Ok(ReadConnection { connection, deadline_ms })
    }

    fn put(&self, reading: ReadConnection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait(?Send)]
impl Reader for SqliteReader {
    async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<EventRow>, StoreError> {
        let mut query = Query::new(EVENT_LIST);
        also(&mut query, "id < ", after);
        also(&mut query, "source = ", filter.source.clone());
        also(&mut query, "verdict = ", filter.verdict.map(Verdict::word));
        also(&mut query, "key = ", filter.key.clone());
        if let Some((kind, id)) = filter.resource.clone() {
            also(&mut query, "resource_kind = ", Some(kind));
            also(&mut query, "resource_id = ", Some(id));
        }
        query.push(" ORDER BY id DESC");
        self.page(query, limit, event_row, |row| row.id.0).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        let mut query = Query::new(EVENT_ONE);
        query.push_bind(id.0);
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(event_row).transpose().map_err(|error| unavailable("read an event", &error))
    }

    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError> {
        let mut query = Query::new(RESOURCES);
        also(&mut query, "hash > ", after);
        also(&mut query, "source = ", filter.source.clone());
        also(&mut query, "kind = ", filter.kind.clone());
        also(&mut query, "id = ", filter.id.clone());
        query.push(" ORDER BY hash");
        self.page(query, limit, resource_row, |row| Uuid::from_bytes(row.hash.0)).await
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        let mut query = Query::new(RESOURCES);
        also(&mut query, "hash = ", Some(Uuid::from_bytes(hash.0)));
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(resource_row).transpose().map_err(|error| unavailable("read a resource", &error))
    }

    async fn held(&self, _: &HeldFilter, _: Option<Uuid>, _: u32) -> Result<Page<HeldRow>, StoreError> {
        Ok(Page { rows: Vec::new(), next: None })
    }

    async fn fetch(&self, _: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        Ok(None)
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        let mut query = Query::new(QUARANTINE);
        also(&mut query, "id < ", after);
        query.push(" ORDER BY id DESC");
        self.page(query, limit, quarantine_row, |row| row.id.0).await
    }

    async fn quarantined(&self, id: EventId) -> Result<Option<QuarantineRow>, StoreError> {
        let mut query = Query::new(QUARANTINE_ONE);
        query.push_bind(id.0);
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(quarantine_row).transpose().map_err(|error| unavailable("read a request", &error))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let broken = |error| unavailable("count rows", &error);
        let mut query = Query::new("SELECT verdict, count(*) FROM events GROUP BY verdict");
        query.push(" UNION ALL SELECT 'quarantined', count(*) FROM quarantine");
        query.push(" UNION ALL SELECT 'resources', count(*) FROM resources");
        for slot in 0..KEY_SLOTS {
            query.push(format!(" UNION ALL SELECT 'keys', count(*) FROM keys_{slot}"));
        }
        let mut counts = Counts::default();
        for row in self.rows(query, COUNT_WITHIN).await? {
            let (word, count): (String, i64) = (row.try_get(0).map_err(broken)?, row.try_get(1).map_err(broken)?);
            match (word.as_str(), Verdict::from_word(&word)) {
                (_, Some(verdict)) if count > 0 => counts.events.push((verdict, count)),
                ("resources", _) => counts.resources = count,
                ("keys", _) => counts.keys += count,
                _ => {}
            }
        }
        counts.events.sort_unstable();
        Ok(counts)
    }
}

impl SqliteReader {
    async fn page<T>(
        &self,
        mut query: Query,
        limit: u32,
        read: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
        place: impl Fn(&T) -> Uuid,
    ) -> Result<Page<T>, StoreError> {
        let limit = limit.min(ROWS_MAX);
        // one more than asked for, to know whether there is a next page
        query.push(" LIMIT ").push_bind(i64::from(limit) + 1);
        let found = self.rows(query, QUERY_WITHIN).await?;
        let more = found.len() > limit as usize;
        let rows: Result<Vec<T>, _> = found.iter().take(limit as usize).map(read).collect();
        let rows = rows.map_err(|error| unavailable("read a list", &error))?;
        let next = if more { rows.last().map(place) } else { None };
        Ok(Page { rows, next })
    }
}

/// One more condition, where there is something to ask for.
fn also<T>(query: &mut Query, condition: &'static str, value: Option<T>)
where
    T: 'static + sqlx::Encode<'static, Sqlite> + sqlx::Type<Sqlite>,
{
    if let Some(value) = value {
        query.push(" AND ").push(condition).push_bind(value);
    }
}

fn event_row(row: &SqliteRow) -> Result<EventRow, sqlx::Error> {
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
        why: None,
        settled_at_ms: None,
        conflicts_with: row.try_get::<Option<Uuid>, _>(11)?.map(EventId),
        body_bytes: row.try_get(12)?,
        headers: row.try_get(13)?,
        body: row.try_get(14)?,
    })
}

fn verdict(word: &str) -> Result<Verdict, sqlx::Error> {
    Verdict::from_word(word).ok_or_else(|| sqlx::Error::Decode(format!("{word:?} is no verdict").into()))
}

fn resource_row(row: &SqliteRow) -> Result<ResourceRow, sqlx::Error> {
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
        epoch: 1,
        step: None,
        held: 0,
        fields: None,
    })
}

fn quarantine_row(row: &SqliteRow) -> Result<QuarantineRow, sqlx::Error> {
    Ok(QuarantineRow {
        id: EventId(row.try_get(0)?),
        received_at_ms: row.try_get(1)?,
        source: row.try_get(2)?,
        tenant: row.try_get(3)?,
        code: row.try_get(4)?,
        reason: row.try_get(5)?,
        times: row.try_get(6)?,
        body: row.try_get(7)?,
    })
}
