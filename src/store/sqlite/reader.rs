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
    Counts, EventFilter, EventRow, FailureRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader,
    ResourceFilter, ResourceRow, StoreError,
};
use tidegate_actors::rules::event::{EventId, Verdict};
use tidegate_actors::rules::key::ResourceHash;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::error::{Fault, unavailable};
use super::rows::{self, event_row, failure_row, fetch_row, held_row, quarantine_row, resource_row};
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
        let mut query = Query::new(rows::EVENT_LIST);
        also(&mut query, "id < ", after);
        also(&mut query, "source = ", filter.source.clone());
        also(&mut query, "verdict = ", filter.verdict.map(Verdict::word));
        also(&mut query, "key = ", filter.key.clone());
        if let Some((kind, id)) = filter.resource.clone() {
            also(&mut query, "resource_kind = ", Some(kind));
            also(&mut query, "resource_id = ", Some(id));
        }
        also(&mut query, "resource_hash = ", filter.of.map(|hash| Uuid::from_bytes(hash.0)));
        query.push(" ORDER BY id DESC");
        self.page(query, limit, event_row, |row| row.id.0).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        let mut query = Query::new(rows::EVENT_ONE);
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
        let mut query = Query::new(rows::RESOURCES);
        also(&mut query, "hash > ", after);
        also(&mut query, "source = ", filter.source.clone());
        also(&mut query, "kind = ", filter.kind.clone());
        also(&mut query, "id = ", filter.id.clone());
        query.push(" ORDER BY hash");
        self.page(query, limit, resource_row, |row| Uuid::from_bytes(row.hash.0)).await
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        let mut query = Query::new(rows::RESOURCES);
        also(&mut query, "hash = ", Some(Uuid::from_bytes(hash.0)));
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(resource_row).transpose().map_err(|error| unavailable("read a resource", &error))
    }

    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError> {
        let mut query = Query::new(rows::HELD);
        also(&mut query, "h.event_id > ", after);
        also(&mut query, "h.resource_hash = ", filter.of.map(|hash| Uuid::from_bytes(hash.0)));
        also(&mut query, "e.source = ", filter.source.clone());
        query.push(" ORDER BY h.event_id");
        self.page(query, limit, held_row, |row| row.event.0).await
    }

    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        let mut query = Query::new(rows::FETCH);
        query.push_bind(Uuid::from_bytes(resource.0));
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(fetch_row).transpose().map_err(|error| unavailable("read a fetch", &error))
    }

    async fn failures(&self, after: Option<Uuid>, limit: u32) -> Result<Page<FailureRow>, StoreError> {
        let mut query = Query::new(rows::FAILURES);
        also(&mut query, "name > ", after);
        query.push(" ORDER BY name");
        self.page(query, limit, failure_row, |row| row.name).await
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        let mut query = Query::new(rows::QUARANTINE);
        also(&mut query, "id < ", after);
        query.push(" ORDER BY id DESC");
        self.page(query, limit, quarantine_row, |row| row.id.0).await
    }

    async fn quarantined(&self, id: EventId) -> Result<Option<QuarantineRow>, StoreError> {
        let mut query = Query::new(rows::QUARANTINE_ONE);
        query.push_bind(id.0);
        let rows = self.rows(query, QUERY_WITHIN).await?;
        rows.first().map(quarantine_row).transpose().map_err(|error| unavailable("read a request", &error))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let broken = |error| unavailable("count rows", &error);
        let mut query = Query::new("SELECT verdict, count(*) FROM events GROUP BY verdict");
        query.push(" UNION ALL SELECT 'quarantined', count(*) FROM quarantine");
        query.push(" UNION ALL SELECT 'resources', count(*) FROM resources");
        query.push(" UNION ALL SELECT 'holds', count(*) FROM holds");
        query.push(" UNION ALL SELECT 'fetches', count(*) FROM fetches WHERE due_ms IS NOT NULL");
        for slot in 0..KEY_SLOTS {
            query.push(format!(" UNION ALL SELECT 'keys', count(*) FROM keys_{slot}"));
        }
        let mut counts = Counts::default();
        for row in self.rows(query, COUNT_WITHIN).await? {
            let (word, count): (String, i64) = (row.try_get(0).map_err(broken)?, row.try_get(1).map_err(broken)?);
            match (word.as_str(), Verdict::from_word(&word)) {
                (_, Some(verdict)) if count > 0 => counts.events.push((verdict, count)),
                ("resources", _) => counts.resources = count,
                ("holds", _) => counts.held = count,
                ("fetches", _) => counts.fetches = count,
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
