//! Effects in a transaction of SQLite: run behind what the rules said, before COMMIT.
//!
//! Promises that what an event does to the user's tables is stored with its key or not at all (I4). A failing statement
//! rolls back its own event: all failing ones are found in one pass, and the transaction is done again without them.
//! Statements are bounded in time. A fault of the disk or of the connection is no failure of an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Executor as _, Row as _, SqlSafeStr as _};
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::plan::{Applied, Blocked, Loaded};
use uuid::Uuid;

use super::super::effects::{Exempt, Failure, ROUNDS_MAX, Subject, held_of, names, still_blocked, subjects};
use super::commit::{abandon, finish};
use super::error::{Blame, Fault, blame};
use crate::effect::{Effects, Parameter, Statement, checked_json, instant};

/// Steps of SQLite's machine between looks at the clock.
const STEPS_A_LOOK: i32 = 10_000;

const READ_HELD: &str = "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, version_text, \
     body FROM events WHERE id = ?1";
const FAIL: &str = "INSERT INTO failures (name, event_id, source, tenant, key, kind, effect, error, held, failures, \
         first_at_ms, last_at_ms) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?10) \
     ON CONFLICT (name) DO UPDATE SET event_id = excluded.event_id, effect = excluded.effect, error = excluded.error, \
         held = excluded.held, failures = failures + 1, last_at_ms = excluded.last_at_ms \
     RETURNING failures";
const ANY: &str = "SELECT 1 FROM failures LIMIT 1";
const WENT_WELL: &str = "DELETE FROM failures WHERE name = ?1";
const FAILED_BEFORE: &str = "SELECT effect, error, failures FROM failures WHERE name = ?1 AND held";

/// Those that look for rows, to be looked at by a test.
#[cfg(test)]
pub(super) const TEXTS: [&str; 4] = [READ_HELD, FAIL, WENT_WELL, FAILED_BEFORE];

/// Asks the database whether it can run all statements; tells what is wrong, each with its place.
pub(super) async fn prepare(connection: &mut SqliteConnection, effects: &Effects) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    for effect in effects.all() {
        for statement in &effect.statements {
            let prepared = connection.prepare(AssertSqlSafe(statement.sql.clone()).into_sql_str()).await;
            if let Err(error) = prepared {
                faults.push(format!("`{}.sql`: {error}", effect.key));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Makes the tables that effects say they need.
pub(super) async fn set_up(connection: &mut SqliteConnection, effects: &Effects) -> Result<(), Vec<String>> {
    for effect in effects.all() {
        for setup in &effect.setup {
            let made = connection.execute(AssertSqlSafe(setup.clone()).into_sql_str()).await;
            made.map_err(|error| vec![format!("`{}.setup`: {error}", effect.key)])?;
        }
    }
    Ok(())
}

/// What a transaction did, the effects still to come.
pub(super) struct Staged<T> {
    pub(super) done: T,
    pub(super) applied: Vec<Applied>,
    /// The store's clock.
    pub(super) now_ms: i64,
}

/// Does work that begins a transaction, and the effects of what it says is applied; again without those whose effects
/// fail. Ends the transaction.
pub(super) async fn transaction<T>(
    connection: &mut SqliteConnection,
    effects: &Effects,
    batch: &[Event],
    mut work: impl AsyncFnMut(&mut SqliteConnection, &Exempt) -> Result<Staged<T>, Fault>,
) -> Result<(T, Exempt), Fault> {
    let mut exempt = Exempt::default();
    for _ in 0..ROUNDS_MAX {
        let ran = match work(connection, &exempt).await {
            Ok(staged) if effects.is_empty() => Ok((staged, Vec::new())),
            Ok(staged) => {
                let failures = run(connection, effects, (batch, &exempt), &staged.applied).await;
                failures.map(|failures| (staged, failures))
            }
            Err(fault) => Err(fault),
        };
        let (staged, failures) = match ran {
            Ok(ran) => ran,
            Err(fault) => return Err(abandon(connection, fault).await),
        };
        if failures.is_empty() {
            finish(connection).await?;
            return Ok((staged.done, exempt));
        }
        // a statement that took too long has ended the transaction by itself
        let _ = connection.execute("ROLLBACK").await;
        record(connection, &failures, staged.now_ms, &mut exempt).await?;
    }
    let text = format!("effects failed in each of {ROUNDS_MAX} rounds");
    Err(Fault { error: StoreError::Refused(text), dead: false, disk: false })
}

/// Blocks events whose effects failed before and whose pause is not over.
pub(super) async fn block(
    connection: &mut SqliteConnection,
    effects: &Effects,
    loaded: &mut Loaded,
    exempt: &Exempt,
) -> Result<(), Fault> {
    loaded.blocked.clone_from(&exempt.blocked);
    if effects.is_empty() {
        return Ok(());
    }
    for (id, until_ms) in still_blocked(loaded) {
        let row = sqlx::query(FAILED_BEFORE).bind(id.0).fetch_optional(&mut *connection).await.map_err(fault)?;
        let Some(row) = row else { continue };
        let (effect, error, failures): (String, String, i64) =
            (row.try_get(0).map_err(fault)?, row.try_get(1).map_err(fault)?, row.try_get(2).map_err(fault)?);
        let why = format!("{effect} failed, time {failures}: {error}");
        loaded.blocked.insert(id, Blocked { until_ms: Some(until_ms), why });
    }
    Ok(())
}

/// Runs the effects of what was applied. Gives all that failed; after one that took too long, those so far.
async fn run(
    connection: &mut SqliteConnection,
    effects: &Effects,
    (batch, exempt): (&[Event], &Exempt),
    applied: &[Applied],
) -> Result<Vec<Failure>, Fault> {
    let mut held = Vec::new();
    for id in held_of(applied) {
        let row = sqlx::query(READ_HELD).bind(id.0).fetch_optional(&mut *connection).await.map_err(fault)?;
        held.extend(row.as_ref().map(subject).transpose().map_err(fault)?);
    }
    let subjects = subjects(effects, batch, held, applied);
    let mut failures = Vec::new();
    if !subjects.is_empty() {
        let watch = Watch::start(connection, effects).await?;
        for subject in &subjects {
            let Some((failure, ended)) = run_all(connection, effects, &watch, subject).await? else { continue };
            failures.push(failure);
            if ended {
                break;
            }
        }
        watch.stop(connection).await?;
    }
    if failures.is_empty() && sqlx::query(ANY).fetch_optional(&mut *connection).await.map_err(fault)?.is_some() {
        for name in names(batch, exempt, applied) {
            sqlx::query(WENT_WELL).bind(name).execute(&mut *connection).await.map_err(fault)?;
        }
    }
    Ok(failures)
}

/// All effects of one event; the first that fails ends them. Also whether it ended the transaction.
async fn run_all(
    connection: &mut SqliteConnection,
    effects: &Effects,
    watch: &Watch,
    subject: &Subject<'_>,
) -> Result<Option<(Failure, bool)>, Fault> {
    for effect in effects.of(&subject.source, &subject.kind) {
        for statement in &effect.statements {
            watch.next();
            let Err(error) = execute(connection, statement, subject).await else { continue };
            let (why, ended) = match blame(&error) {
                Blame::Statement => (error.to_string(), false),
                Blame::TooLong => (format!("it took longer than {:?}", effects.statement_within), true),
                Blame::Store => return Err(fault(error)),
            };
            return Ok(Some((Failure::of(subject, &effect.key, &why), ended)));
        }
    }
    Ok(None)
}

async fn execute(
    connection: &mut SqliteConnection,
    statement: &Statement,
    subject: &Subject<'_>,
) -> Result<(), sqlx::Error> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.clone()));
    for parameter in &statement.parameters {
        query = match parameter {
            Parameter::Id => query.bind(subject.id.to_string()),
            Parameter::Source => query.bind(&*subject.source),
            Parameter::Tenant => query.bind(&*subject.tenant),
            Parameter::Key => query.bind(&*subject.key),
            Parameter::Type => query.bind(&*subject.kind),
            Parameter::ResourceType => query.bind(subject.resource.as_ref().map(|(kind, _)| &**kind)),
            Parameter::Resource => query.bind(subject.resource.as_ref().map(|(_, id)| &**id)),
            Parameter::Version => query.bind(subject.version.as_deref()),
            Parameter::ReceivedAt => query.bind(instant(subject.received_at_ms)),
            Parameter::Body => query.bind(checked_json(&subject.body)),
            Parameter::Raw => query.bind(&*subject.body),
        };
    }
    query.execute(connection).await.map(drop)
}

/// Ends statements that take too long.
struct Watch {
    began: Instant,
    /// Until when the statement under way may go on, in microseconds since the beginning.
    until: Arc<AtomicU64>,
    within: u64,
}

impl Watch {
    #[expect(clippy::disallowed_methods, reason = "the database's thread has real time only")]
    async fn start(connection: &mut SqliteConnection, effects: &Effects) -> Result<Self, Fault> {
        let within = u64::try_from(effects.statement_within.as_micros()).unwrap_or(u64::MAX);
        let watch = Self { began: Instant::now(), until: Arc::new(AtomicU64::new(u64::MAX)), within };
        let (began, until) = (watch.began, Arc::clone(&watch.until));
        let mut handle = connection.lock_handle().await.map_err(fault)?;
        handle.set_progress_handler(STEPS_A_LOOK, move || passed(began) < until.load(Ordering::Relaxed));
        Ok(watch)
    }

    /// Another statement begins.
    fn next(&self) {
        self.until.store(passed(self.began).saturating_add(self.within), Ordering::Relaxed);
    }

    async fn stop(self, connection: &mut SqliteConnection) -> Result<(), Fault> {
        connection.lock_handle().await.map_err(fault)?.remove_progress_handler();
        Ok(())
    }
}

fn passed(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn subject(row: &SqliteRow) -> Result<Subject<'static>, sqlx::Error> {
    let (kind, id): (Option<String>, Option<String>) = (row.try_get(6)?, row.try_get(7)?);
    let name: Uuid = row.try_get(0)?;
    Ok(Subject {
        id: EventId(name),
        received_at_ms: row.try_get(1)?,
        source: row.try_get::<String, _>(2)?.into(),
        tenant: row.try_get::<String, _>(3)?.into(),
        key: row.try_get::<String, _>(4)?.into(),
        kind: row.try_get::<String, _>(5)?.into(),
        resource: kind.zip(id).map(|(kind, id)| (kind.into(), id.into())),
        version: row.try_get::<Option<String>, _>(8)?.map(Into::into),
        body: row.try_get::<Vec<u8>, _>(9)?.into(),
        failure: name,
        held: true,
    })
}

/// Counts failures, each in a transaction of its own: they are to be known whatever becomes of the rest.
async fn record(
    connection: &mut SqliteConnection,
    failures: &[Failure],
    now_ms: i64,
    exempt: &mut Exempt,
) -> Result<(), Fault> {
    for failure in failures {
        let row = sqlx::query(FAIL)
            .bind(failure.name)
            .bind(failure.event.0)
            .bind(&failure.source)
            .bind(&failure.tenant)
            .bind(&failure.key)
            .bind(&failure.kind)
            .bind(&failure.effect)
            .bind(&failure.error)
            .bind(failure.held)
            .bind(now_ms)
            .fetch_one(&mut *connection)
            .await
            .map_err(fault)?;
        exempt.add(failure, row.try_get(0).map_err(fault)?, now_ms);
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn fault(error: sqlx::Error) -> Fault {
    Fault::before_commit("run effects", &error)
}
