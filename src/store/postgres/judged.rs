//! The judged way: load, let the rules decide, write if nothing has changed since.
//!
//! Two round trips and no explicit transaction: loading takes no lock, and the one statement that writes claims the
//! keys and ends itself where a key was taken or a row has another revision than the one that was read. Then all of
//! it is done again. Locks are taken in the order of the other ways: keys, then effect keys, then resources, each
//! sorted by hash.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError, Waits};
use tidegate_actors::rules::claim::{Claim, Met, meet};
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::judge::Push;
use tidegate_actors::rules::key::KeyHash;
use tidegate_actors::rules::plan::{Applied, Plan, plan, resources};

use super::errors::{Fault, Phase};
use super::given::Given;
use super::load::{Read, answers_a_fetch, load};
use super::statements::{Claiming, Statements};
use super::write::{Work, write};

/// A batch that is durable.
pub(crate) struct Done {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) waits: Waits,
}

/// Commits a batch that meets these claims: all of it, or a rival came first.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    batch: &[Event],
    mut claims: HashMap<KeyHash, Claim>,
) -> Result<Done, Fault> {
    let met = meet(batch, &mut claims);
    if met.claims.is_empty() {
        return Ok(done(met, Vec::new(), Waits::default()));
    }
    let read = load(connection, resources(&met.fresh).into_keys(), answers_a_fetch(&met.fresh)).await?;
    let (done, _) = decide_and_write(connection, statements, (batch, met), &read, Claiming::Now).await?;
    Ok(done)
}

/// Lets the rules decide over what was read, and writes that. Tells what takes effect.
pub(crate) async fn decide_and_write(
    connection: &mut PgConnection,
    statements: &Statements,
    (batch, met): (&[Event], Met<'_>),
    read: &Read,
    claiming: Claiming,
) -> Result<(Done, Vec<Applied>), Fault> {
    let mut plan = plan(&met.fresh, &read.loaded, Push::None).map_err(StoreError::from)?;
    let (claims, phase) = match claiming {
        Claiming::Now => (in_order_of_locks(batch, &met.claims), Phase::Committing),
        Claiming::Before => (Vec::new(), Phase::Open),
    };
    let work = Work { claims, given: given(&met, &plan), plan: &plan, read };
    write(connection, statements, claiming, &work, phase).await?;
    let waits = Waits::of(&plan, read.loaded.now_ms);
    let applied = std::mem::take(&mut plan.applied);
    let outcomes = plan.recorded.iter().map(|recorded| recorded.outcome).collect();
    Ok((done(met, outcomes, waits), applied))
}

/// Keys, then effect keys, each sorted by hash.
fn in_order_of_locks(batch: &[Event], claims: &[(KeyHash, Claim)]) -> Vec<(KeyHash, Claim)> {
    let effects: HashSet<KeyHash> =
        batch.iter().filter_map(|event| event.effect_key.as_ref()).map(|key| key.hash).collect();
    let mut claims = claims.to_vec();
    claims.sort_unstable_by_key(|(hash, _)| (effects.contains(hash), *hash));
    claims
}

fn given<'a>(met: &Met<'a>, plan: &Plan<'a>) -> Vec<Given<'a>> {
    let fresh = met.fresh.iter().zip(&plan.recorded).map(|(event, recorded)| Given {
        verdict: Some(recorded.verdict),
        tie: recorded.tie,
        why: recorded.why.clone().map(Into::into),
        ..Given::open(event, 0)
    });
    let repeats = met.repeats.iter().map(|(event, first)| Given {
        verdict: Some(Verdict::Duplicate),
        why: Some("its effect key was claimed under another id".into()),
        conflicts_with: Some(*first),
        ..Given::open(event, 0)
    });
    fresh.chain(repeats).collect()
}

fn done(met: Met<'_>, judged: Vec<Outcome>, waits: Waits) -> Done {
    let mut judged = judged.into_iter();
    // As many as there are gaps: each fresh event has one.
    let outcomes = met.outcomes.into_iter().filter_map(|outcome| outcome.or_else(|| judged.next())).collect();
    Done { outcomes, waits }
}
