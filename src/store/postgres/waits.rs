//! What waits: settled when its time is over, released by hand, and fetches, claimed and given up.
//!
//! Due work is found by state and time, by the store's clock (I11, I13). Each call is one transaction that locks its
//! resources, sorted by hash, before it looks at what waits: so whoever writes over a resource meanwhile sees that its
//! revision has moved. Resources that a writer has locked are left for the next call.

use std::collections::HashMap;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Claimed, FetchClaim, Waits};
use tidegate_actors::rules::judge::Push;
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::plan::{Applied, plan};
use uuid::Uuid;

use super::super::effects::Exempt;
use super::effects::{block, transaction};
use super::errors::{Fault, Phase, classify};
use super::load::load;
use super::rows::text;
use super::statements::{Claiming, Statements};
use super::write::{Work, write};
use crate::effect::Effects;

/// Settles holds that are over their time, of at most `limit` resources.
pub(crate) async fn settle_due(
    connection: &mut PgConnection,
    statements: &Statements,
    effects: &Effects,
    limit: u32,
) -> Result<Waits, Fault> {
    let work = async |connection: &mut PgConnection, exempt: &Exempt| {
        let due: Vec<Uuid> = sqlx::query_scalar(include_str!("statements/find_due.sql"))
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await
            .map_err(open)?;
        let (waits, applied) = settle(connection, statements, effects, &due, (Push::None, exempt)).await?;
        let next = sqlx::query_scalar(include_str!("statements/next_due.sql"));
        let due_in_ms = next.fetch_one(connection).await.map_err(open)?;
        Ok((Waits { due_in_ms, ..waits }, applied))
    };
    let (waits, _) = transaction(connection, effects, &[], work).await?;
    Ok(waits)
}

/// Ends the waiting of one resource.
pub(crate) async fn release(
    connection: &mut PgConnection,
    statements: &Statements,
    effects: &Effects,
    resource: ResourceHash,
) -> Result<Option<Waits>, Fault> {
    let hash = Uuid::from_bytes(resource.0);
    let work = async |connection: &mut PgConnection, exempt: &Exempt| {
        let held = lock(connection, hash).await?;
        if held.unwrap_or(0) == 0 {
            return Ok((None, Vec::new()));
        }
        let (waits, applied) = settle(connection, statements, effects, &[hash], (Push::Release, exempt)).await?;
        Ok((Some(waits), applied))
    };
    let (waits, _) = transaction(connection, effects, &[], work).await?;
    Ok(waits)
}

/// Claims fetches that are due.
pub(crate) async fn claim_fetches(connection: &mut PgConnection, limit: u32, lease_ms: i64) -> Result<Claimed, Fault> {
    let mut transaction = connection.begin().await.map_err(open)?;
    let named: Vec<(Uuid, String, String, String, String)> =
        sqlx::query_as(include_str!("statements/lock_due_fetches.sql"))
            .bind(i64::from(limit))
            .fetch_all(&mut *transaction)
            .await
            .map_err(open)?;
    let hashes: Vec<Uuid> = named.iter().map(|row| row.0).collect();
    let claimed: Vec<(Uuid, i64, i64)> = sqlx::query_as(include_str!("statements/claim_fetches.sql"))
        .bind(hashes)
        .bind(lease_ms)
        .fetch_all(&mut *transaction)
        .await
        .map_err(open)?;
    let claimed: HashMap<Uuid, (i64, i64)> = claimed.into_iter().map(|row| (row.0, (row.1, row.2))).collect();
    sqlx::query(include_str!("statements/await_fetches.sql"))
        .bind(claimed.keys().copied().collect::<Vec<_>>())
        .execute(&mut *transaction)
        .await
        .map_err(open)?;
    let due_in_ms = sqlx::query_scalar(include_str!("statements/next_fetch.sql"))
        .fetch_one(&mut *transaction)
        .await
        .map_err(open)?;
    transaction.commit().await.map_err(committing)?;
    let claim = |(hash, source, tenant, kind, id): (Uuid, String, String, String, String)| {
        let &(epoch, attempts) = claimed.get(&hash)?;
        let resource = ResourceHash(hash.into_bytes());
        let attempt = u32::try_from(attempts).unwrap_or(u32::MAX);
        Some(FetchClaim { resource, source, tenant, kind, id, epoch, attempt })
    };
    Ok(Claimed { claims: named.into_iter().filter_map(claim).collect(), due_in_ms })
}

/// Ends a claim that brought no answer; what waits for it expires when it is given up.
pub(crate) async fn fetch_failed(
    connection: &mut PgConnection,
    statements: &Statements,
    effects: &Effects,
    claim: &FetchClaim,
    (why, retry_in_ms): (&str, Option<i64>),
) -> Result<Waits, Fault> {
    let hash = Uuid::from_bytes(claim.resource.0);
    let work = async |connection: &mut PgConnection, exempt: &Exempt| {
        lock(connection, hash).await?;
        let failed = sqlx::query(include_str!("statements/fail_fetch.sql"))
            .bind(hash)
            .bind(claim.epoch)
            .bind(text(why))
            .bind(retry_in_ms)
            .execute(&mut *connection)
            .await
            .map_err(open)?;
        match (failed.rows_affected(), retry_in_ms) {
            (0, _) => Ok((Waits::default(), Vec::new())),
            (_, Some(_)) => Ok((Waits { due_in_ms: retry_in_ms, ..Waits::default() }, Vec::new())),
            (_, None) => settle(connection, statements, effects, &[hash], (Push::GiveUp(claim.epoch), exempt)).await,
        }
    };
    let (waits, _) = transaction(connection, effects, &[], work).await?;
    Ok(waits)
}

/// Lets the rules say what becomes of what waits on resources that are locked, and writes that.
async fn settle(
    connection: &mut PgConnection,
    statements: &Statements,
    effects: &Effects,
    resources: &[Uuid],
    (push, exempt): (Push, &Exempt),
) -> Result<(Waits, Vec<Applied>), Fault> {
    let hashes = resources.iter().map(|hash| ResourceHash(hash.into_bytes()));
    let mut read = load(connection, hashes, false).await?;
    if read.loaded.resources.is_empty() {
        return Ok((Waits::default(), Vec::new()));
    }
    if push == Push::None {
        block(connection, effects, &mut read.loaded, exempt).await?;
    } else {
        // a person wants it tried now
        read.loaded.blocked.clone_from(&exempt.blocked);
    }
    let mut plan = plan(&[], &read.loaded, push).map_err(|error| Fault::Ends(error.into()))?;
    let work = Work { claims: Vec::new(), given: Vec::new(), plan: &plan, read: &read };
    write(connection, statements, Claiming::Before, &work, Phase::Open).await?;
    let waits = Waits::of(&plan, read.loaded.now_ms);
    Ok((waits, std::mem::take(&mut plan.applied)))
}

/// Locks a resource's row; tells how many of its events are held.
async fn lock(connection: &mut PgConnection, hash: Uuid) -> Result<Option<i64>, Fault> {
    sqlx::query_scalar("SELECT held FROM tidegate.resources WHERE hash = $1 FOR UPDATE")
        .bind(hash)
        .fetch_optional(connection)
        .await
        .map_err(open)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn open(error: sqlx::Error) -> Fault {
    classify(&error, Phase::Open)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn committing(error: sqlx::Error) -> Fault {
    classify(&error, Phase::Committing)
}
