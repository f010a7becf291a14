//! Effects in a transaction of Postgres: run behind what the rules said, before COMMIT.
//!
//! Promises that what an event does to the user's tables is stored with its key or not at all (I4). A failing statement
//! rolls back its own event: the transaction is done again without it, with a savepoint before each event, so that all
//! failing ones are found at once. Statements are bounded in time. A fault of the connection or of the server is no
//! failure of an event.

use std::collections::HashMap;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _, SqlSafeStr as _};
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::plan::{Applied, Blocked, Loaded};
use uuid::Uuid;

use super::super::effects::{Exempt, Failure, ROUNDS_MAX, Subject, held_of, names, still_blocked, subjects};
use super::errors::{Fault, Phase, classify, describe, of_statement};
use super::rows::text;
use crate::effect::{Effects, Parameter, Statement, checked_json};

/// Until the end of the transaction statements have a bounded time, and names without a schema are the user's: a user
/// who is called `tidegate` would else meet the gate's own schema first.
async fn enter(connection: &mut PgConnection, effects: &Effects) -> Result<(), sqlx::Error> {
    let within_ms = effects.statement_within.as_millis().to_string();
    sqlx::query(include_str!("statements/enter.sql")).bind(within_ms).execute(connection).await.map(drop)
}

/// Asks the server whether it can run all statements, in the caller's transaction; tells what is wrong, each with its
/// place.
async fn prepare(connection: &mut PgConnection, effects: &Effects) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    for effect in effects.all() {
        for statement in &effect.statements {
            // a fault must not hide the next one
            connection.execute("SAVEPOINT prepare").await.map_err(told)?;
            let prepared = connection.prepare(AssertSqlSafe(statement.sql.clone()).into_sql_str()).await;
            if let Err(error) = prepared {
                faults.push(format!("`{}.sql`: {}", effect.key, describe(&error)));
                connection.execute("ROLLBACK TO SAVEPOINT prepare").await.map_err(told)?;
            }
            connection.execute("RELEASE SAVEPOINT prepare").await.map_err(told)?;
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Makes the tables that effects say they need, one node at a time, and asks the server whether it can run all
/// statements.
pub(crate) async fn set_up(connection: &mut PgConnection, effects: &Effects) -> Result<(), Vec<String>> {
    let mut transaction = connection.begin().await.map_err(told)?;
    try_all(&mut transaction, effects).await?;
    transaction.commit().await.map_err(told)
}

/// The same for settings that serve nowhere yet: what they would make is made, looked at and rolled back.
pub(crate) async fn check(connection: &mut PgConnection, effects: &Effects) -> Result<(), Vec<String>> {
    let mut transaction = connection.begin().await.map_err(told)?;
    try_all(&mut transaction, effects).await?;
    transaction.rollback().await.map_err(told)
}

async fn try_all(connection: &mut PgConnection, effects: &Effects) -> Result<(), Vec<String>> {
    if effects.is_empty() {
        return Ok(());
    }
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('tidegate effects'))").await.map_err(told)?;
    enter(connection, effects).await.map_err(told)?;
    for effect in effects.all() {
        for setup in &effect.setup {
            let made = connection.execute(AssertSqlSafe(setup.clone()).into_sql_str()).await;
            made.map_err(|error| vec![format!("`{}.setup`: {}", effect.key, describe(&error))])?;
        }
    }
    prepare(connection, effects).await
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn told(error: sqlx::Error) -> Vec<String> {
    vec![format!("`effect`: {}", describe(&error))]
}

/// Does work in a transaction, and the effects of what it says is applied; again without those whose effects fail.
pub(crate) async fn transaction<T>(
    connection: &mut PgConnection,
    effects: &Effects,
    batch: &[Event],
    mut work: impl AsyncFnMut(&mut PgConnection, &Exempt) -> Result<(T, Vec<Applied>), Fault>,
) -> Result<(T, Exempt), Fault> {
    let mut exempt = Exempt::default();
    for round in 0..ROUNDS_MAX {
        let mut transaction = connection.begin().await.map_err(open)?;
        let (done, applied) = work(&mut transaction, &exempt).await?;
        let mut failures = Vec::new();
        if !effects.is_empty() {
            failures = run(&mut transaction, effects, (batch, &exempt), &applied, round > 0).await?;
        }
        if failures.is_empty() {
            transaction.commit().await.map_err(|error| classify(&error, Phase::Committing))?;
            return Ok((done, exempt));
        }
        transaction.rollback().await.map_err(open)?;
        record(connection, &failures, &mut exempt).await?;
    }
    Err(Fault::Ends(StoreError::Refused(format!("effects failed in each of {ROUNDS_MAX} rounds"))))
}

/// Blocks events whose effects failed before and whose pause is not over.
pub(crate) async fn block(
    connection: &mut PgConnection,
    effects: &Effects,
    loaded: &mut Loaded,
    exempt: &Exempt,
) -> Result<(), Fault> {
    loaded.blocked.clone_from(&exempt.blocked);
    let waiting: HashMap<Uuid, i64> = still_blocked(loaded).into_iter().map(|(id, until)| (id.0, until)).collect();
    if effects.is_empty() || waiting.is_empty() {
        return Ok(());
    }
    let failed: Vec<(Uuid, String, String, i64)> =
        sqlx::query_as("SELECT name, effect, error, failures FROM tidegate.failures WHERE name = ANY($1) AND held")
            .bind(waiting.keys().copied().collect::<Vec<_>>())
            .fetch_all(connection)
            .await
            .map_err(open)?;
    for (name, effect, error, failures) in failed {
        let why = format!("{effect} failed, time {failures}: {error}");
        loaded.blocked.insert(EventId(name), Blocked { until_ms: waiting.get(&name).copied(), why });
    }
    Ok(())
}

/// Runs the effects of what was applied. Gives the failures: the first, or with `savepoints` all of them.
async fn run(
    connection: &mut PgConnection,
    effects: &Effects,
    (batch, exempt): (&[Event], &Exempt),
    applied: &[Applied],
    savepoints: bool,
) -> Result<Vec<Failure>, Fault> {
    let held = read_held(connection, &held_of(applied)).await?;
    let subjects = subjects(effects, batch, held, applied);
    if !subjects.is_empty() {
        enter(connection, effects).await.map_err(open)?;
    }
    let mut failures = Vec::new();
    for subject in &subjects {
        if savepoints {
            connection.execute("SAVEPOINT effect").await.map_err(open)?;
        }
        match run_all(connection, effects, subject).await? {
            None if savepoints => {
                connection.execute("RELEASE SAVEPOINT effect").await.map_err(open)?;
            }
            None => {}
            Some(failure) => {
                failures.push(failure);
                if !savepoints {
                    return Ok(failures);
                }
                connection.execute("ROLLBACK TO SAVEPOINT effect").await.map_err(open)?;
            }
        }
    }
    if failures.is_empty() {
        let names = names(batch, exempt, applied);
        let gone = "DELETE FROM tidegate.failures WHERE name = ANY($1)";
        sqlx::query(gone).bind(names).execute(connection).await.map_err(open)?;
    }
    Ok(failures)
}

/// All effects of one event; the first that fails ends them.
async fn run_all(
    connection: &mut PgConnection,
    effects: &Effects,
    subject: &Subject<'_>,
) -> Result<Option<Failure>, Fault> {
    for effect in effects.of(&subject.source, &subject.kind) {
        for statement in &effect.statements {
            let Err(error) = execute(connection, statement, subject).await else { continue };
            let Some(why) = of_statement(&error, effects.statement_within)? else {
                return Err(open(error));
            };
            return Ok(Some(Failure::of(subject, &effect.key, &why)));
        }
    }
    Ok(None)
}

async fn execute(
    connection: &mut PgConnection,
    statement: &Statement,
    subject: &Subject<'_>,
) -> Result<(), sqlx::Error> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql.clone()));
    for parameter in &statement.parameters {
        query = match parameter {
            Parameter::Id => query.bind(subject.id.0),
            Parameter::Source => query.bind(text(&subject.source)),
            Parameter::Tenant => query.bind(text(&subject.tenant)),
            Parameter::Key => query.bind(text(&subject.key)),
            Parameter::Type => query.bind(text(&subject.kind)),
            Parameter::ResourceType => query.bind(subject.resource.as_ref().map(|(kind, _)| text(kind))),
            Parameter::Resource => query.bind(subject.resource.as_ref().map(|(_, id)| text(id))),
            Parameter::Version => query.bind(subject.version.as_deref().map(text)),
            Parameter::ReceivedAt => query.bind(subject.received_at_ms),
            Parameter::Body => query.bind(checked_json(&subject.body)),
            Parameter::Raw => query.bind(&*subject.body),
        };
    }
    query.execute(connection).await.map(drop)
}

async fn read_held(connection: &mut PgConnection, held: &[EventId]) -> Result<Vec<Subject<'static>>, Fault> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = held.iter().map(|id| id.0).collect();
    let rows = sqlx::query(
        "SELECT id, received_at_ms, source, tenant, key, kind, resource_kind, resource_id, version_text, body \
         FROM tidegate.events WHERE id = ANY($1)",
    )
    .bind(ids)
    .fetch_all(connection)
    .await
    .map_err(open)?;
    rows.iter().map(subject).collect::<Result<_, _>>().map_err(open)
}

fn subject(row: &PgRow) -> Result<Subject<'static>, sqlx::Error> {
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

/// Counts failures, in a transaction of their own: they are to be known whatever becomes of the rest.
async fn record(connection: &mut PgConnection, failures: &[Failure], exempt: &mut Exempt) -> Result<(), Fault> {
    for failure in failures {
        let (count, now_ms): (i64, i64) = sqlx::query_as(include_str!("statements/fail.sql"))
            .bind(failure.name)
            .bind(failure.event.0)
            .bind(text(&failure.source))
            .bind(text(&failure.tenant))
            .bind(text(&failure.key))
            .bind(text(&failure.kind))
            .bind(text(&failure.effect))
            .bind(text(&failure.error))
            .bind(failure.held)
            .fetch_one(&mut *connection)
            .await
            .map_err(open)?;
        exempt.add(failure, count, now_ms);
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn open(error: sqlx::Error) -> Fault {
    classify(&error, Phase::Open)
}
