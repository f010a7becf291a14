//! What waits, ended by time, by a person or by the provider: each call is one transaction on the writer's turn.
//!
//! Owns no state. Promises that due work is found by state and time (I11), by the store's clock (I13), and that
//! a claim of a fetch raises its epoch (I9) and counts the attempt before the work (I10). Judges nothing: what
//! becomes of an event is said by the rules. On failure nothing happened, and the next call finds the same work.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Executor as _, Row as _};
use tidegate_actors::ports::{Claimed, FetchClaim, StoreError, Waits};
use tidegate_actors::rules::judge::Push;
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::plan::{Applied, plan};

use super::super::effects::Exempt;
use super::commit::end;
use super::effects::Staged;
use super::error::Fault;
use super::execute::bytes16;
use super::{SqliteStore, Turn, effects, load, write};

const DUE: &str = "SELECT DISTINCT resource_hash FROM \
     (SELECT resource_hash FROM holds WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)";
const NEXT_DUE: &str = "SELECT min(until_ms) FROM holds WHERE until_ms IS NOT NULL";

const OPEN_FETCHES: &str = "SELECT f.resource_hash, f.epoch + 1, f.attempts + 1, r.source, r.tenant, r.kind, r.id \
     FROM fetches AS f JOIN resources AS r ON r.hash = f.resource_hash \
     WHERE f.due_ms <= ?1 AND (f.leased_until_ms IS NULL OR f.leased_until_ms <= ?1) \
     ORDER BY f.due_ms, f.resource_hash LIMIT ?2";
const CLAIM_FETCH: &str =
    "UPDATE fetches SET epoch = epoch + 1, attempts = attempts + 1, leased_until_ms = ?2 WHERE resource_hash = ?1";
/// What waits for the provider, and not for a person or for time.
const AWAIT_FETCH: &str =
    "UPDATE holds SET fetch = ?2 WHERE resource_hash = ?1 AND until_ms IS NULL AND parked_in IS NULL";
/// A claimed fetch was due when it was claimed, so what is due later is free.
const NEXT_FETCH: &str = "SELECT CASE WHEN EXISTS (SELECT 1 FROM fetches \
         WHERE due_ms <= ?1 AND (leased_until_ms IS NULL OR leased_until_ms <= ?1)) THEN ?1 \
     ELSE (SELECT min(at) FROM (SELECT min(leased_until_ms) AS at FROM fetches WHERE due_ms <= ?1 \
         UNION ALL SELECT min(due_ms) FROM fetches WHERE due_ms > ?1)) END";
const FETCH_FAILED: &str = "UPDATE fetches SET last_error = ?3, leased_until_ms = NULL, due_ms = ?4, \
     attempts = CASE WHEN ?4 IS NULL THEN 0 ELSE attempts END WHERE resource_hash = ?1 AND epoch = ?2";

/// All of them, to be looked at by a test.
#[cfg(test)]
pub(super) const TEXTS: [&str; 7] = [DUE, NEXT_DUE, OPEN_FETCHES, CLAIM_FETCH, AWAIT_FETCH, NEXT_FETCH, FETCH_FAILED];

/// Settles holds that are over their time, of at most so many resources.
pub(super) async fn settle_due(store: &SqliteStore, limit: u32) -> Result<Waits, StoreError> {
    settling(store, async |connection, now_ms, exempt| {
        let rows = sqlx::query(DUE).bind(now_ms).bind(i64::from(limit)).fetch_all(&mut *connection).await;
        let due: Result<Vec<[u8; 16]>, _> = rows.map_err(fault)?.iter().map(|row| bytes16(row, 0)).collect();
        let (waits, applied) = settle(connection, store, &due.map_err(fault)?, now_ms, (Push::None, exempt)).await?;
        let next = connection.fetch_one(NEXT_DUE).await.and_then(|row| row.try_get(0)).map_err(fault)?;
        Ok((Waits { due_in_ms: behind(next, now_ms), ..waits }, applied))
    })
    .await
}

/// Ends the waiting of a resource by hand.
pub(super) async fn release(store: &SqliteStore, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
    settling(store, async |connection, now_ms, exempt| {
        let loaded = load::known(connection, &store.shared.statements, &[resource.0], now_ms).await?;
        if loaded.resources.values().all(|known| known.state.held == 0) {
            return Ok((None, Vec::new()));
        }
        let settled = settle(connection, store, &[resource.0], now_ms, (Push::Release, exempt)).await;
        settled.map(|(waits, applied)| (Some(waits), applied))
    })
    .await
}

/// Claims fetches that are due.
pub(super) async fn claim_fetches(store: &SqliteStore, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
    transaction(store, async |connection, now_ms| {
        let rows = sqlx::query(OPEN_FETCHES).bind(now_ms).bind(i64::from(limit)).fetch_all(&mut *connection).await;
        let claims: Result<Vec<FetchClaim>, _> = rows.map_err(fault)?.iter().map(claim_of).collect();
        let claims = claims.map_err(fault)?;
        for claim in &claims {
            let hash = claim.resource.0.as_slice();
            let leased = sqlx::query(CLAIM_FETCH).bind(hash).bind(now_ms.saturating_add(lease_ms));
            leased.execute(&mut *connection).await.map_err(fault)?;
            sqlx::query(AWAIT_FETCH).bind(hash).bind(claim.epoch).execute(&mut *connection).await.map_err(fault)?;
        }
        let next = sqlx::query(NEXT_FETCH).bind(now_ms).fetch_one(&mut *connection).await;
        let next = next.and_then(|row| row.try_get(0)).map_err(fault)?;
        Ok(Claimed { claims, due_in_ms: behind(next, now_ms) })
    })
    .await
}

/// Says that a claimed fetch failed: due again, or given up.
pub(super) async fn fetch_failed(
    store: &SqliteStore,
    claim: &FetchClaim,
    why: &str,
    retry_in_ms: Option<i64>,
) -> Result<Waits, StoreError> {
    settling(store, async |connection, now_ms, exempt| {
        let failed = sqlx::query(FETCH_FAILED).bind(claim.resource.0.as_slice()).bind(claim.epoch).bind(why);
        let failed = failed.bind(retry_in_ms.map(|pause| now_ms.saturating_add(pause)));
        let current = failed.execute(&mut *connection).await.map_err(fault)?.rows_affected() > 0;
        match retry_in_ms {
            _ if !current => Ok((Waits::default(), Vec::new())),
            Some(_) => Ok((Waits { due_in_ms: retry_in_ms, ..Waits::default() }, Vec::new())),
            None => {
                let push = Push::GiveUp(claim.epoch);
                settle(connection, store, &[claim.resource.0], now_ms, (push, exempt)).await
            }
        }
    })
    .await
}

/// Begins, works by the store's clock, and ends as the work came out.
pub(super) async fn transaction<T>(
    store: &SqliteStore,
    work: impl AsyncFnOnce(&mut SqliteConnection, i64) -> Result<T, Fault>,
) -> Result<T, StoreError> {
    let mut turn = Turn::wait(&store.shared).await;
    let mut connection = turn.take().await?;
    let result = match load::begin(&mut connection, store.clock.as_deref()).await {
        Ok(meta) => work(&mut connection, meta.now_ms).await,
        Err(fault) => Err(fault),
    };
    let result = end(&mut connection, result).await;
    turn.settle(connection, result).await
}

/// The same for what may apply events that were held, with their effects.
async fn settling<T>(
    store: &SqliteStore,
    mut work: impl AsyncFnMut(&mut SqliteConnection, i64, &Exempt) -> Result<(T, Vec<Applied>), Fault>,
) -> Result<T, StoreError> {
    let mut turn = Turn::wait(&store.shared).await;
    let mut connection = turn.take().await?;
    let work = async |connection: &mut SqliteConnection, exempt: &Exempt| {
        let now_ms = load::begin(connection, store.clock.as_deref()).await?.now_ms;
        let (done, applied) = work(connection, now_ms, exempt).await?;
        Ok(Staged { done, applied, now_ms })
    };
    let result = effects::transaction(&mut connection, &store.shared.effects, &[], work).await;
    turn.settle(connection, result).await.map(|(done, _)| done)
}

/// Judges resources without new events, and writes what comes of it.
async fn settle(
    connection: &mut SqliteConnection,
    store: &SqliteStore,
    resources: &[[u8; 16]],
    now_ms: i64,
    (push, exempt): (Push, &Exempt),
) -> Result<(Waits, Vec<Applied>), Fault> {
    let statements = &store.shared.statements;
    let mut loaded = load::known(connection, statements, resources, now_ms).await?;
    if push == Push::None {
        effects::block(connection, &store.shared.effects, &mut loaded, exempt).await?;
    } else {
        // a person wants it tried now
        loaded.blocked.clone_from(&exempt.blocked);
    }
    let mut plan = plan(&[], &loaded, push).map_err(Fault::unjudged)?;
    write::plan(connection, statements, &plan, now_ms).await?;
    let waits = Waits::of(&plan, now_ms);
    Ok((waits, std::mem::take(&mut plan.applied)))
}

fn claim_of(row: &SqliteRow) -> Result<FetchClaim, sqlx::Error> {
    let attempt: i64 = row.try_get(2)?;
    Ok(FetchClaim {
        resource: ResourceHash(bytes16(row, 0)?),
        source: row.try_get(3)?,
        tenant: row.try_get(4)?,
        kind: row.try_get(5)?,
        id: row.try_get(6)?,
        epoch: row.try_get(1)?,
        attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
    })
}

fn behind(next: Option<i64>, now_ms: i64) -> Option<i64> {
    next.map(|next| next.saturating_sub(now_ms).max(0))
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn fault(error: sqlx::Error) -> Fault {
    Fault::before_commit("settle what waits", &error)
}
