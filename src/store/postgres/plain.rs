//! The plain way: where the rule is the version guard, one statement does it all.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_actors::ports::{Outcome, StoreError, Waits};
use tidegate_actors::rules::claim::{Claim, Folded, fold};
use tidegate_actors::rules::event::{Event, Intent};
use tidegate_actors::rules::key::KeyHash;
use tidegate_actors::rules::order::Policy;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::given::Given;
use super::judged::Done;
use super::rows::Rows;
use super::statements::Statements;

/// How a batch can be committed by one statement that says what the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No resource comes twice.
    Once,
    /// Some resource comes several times.
    Several,
}

/// A batch that the plain way can commit, with its repeats folded.
pub(crate) fn start(batch: &[Event]) -> Option<Progress> {
    if !batch.iter().all(Event::is_plain) {
        return None;
    }
    let Folded { distinct, repeats } = fold(batch);
    shape(batch, &distinct)?;
    let outcomes = vec![None; batch.len()];
    Some(Progress { open: distinct, repeats, outcomes, met: HashMap::new(), is_stored: false })
}

/// The shape of these events; `None` where only the rules can say what becomes of them.
pub(crate) fn shape(batch: &[Event], indexes: &[usize]) -> Option<Shape> {
    // With and without a version on one resource: what has none goes last, which the statement does not know.
    let mut versioned = HashMap::with_capacity(indexes.len());
    let mut shape = Shape::Once;
    for event in indexes.iter().map(|&index| &batch[index]).filter(|event| event.intent == Intent::Apply) {
        let guard = match event.guards.as_slice() {
            [] => continue,
            [guard] => guard,
            _ => return None,
        };
        if !event.is_plain() {
            return None;
        }
        let is_versioned = guard.version.is_some();
        if is_versioned && !matches!(event.order.policy, Policy::Newest { .. }) {
            return None;
        }
        if let Some(before) = versioned.insert(guard.resource.hash, is_versioned) {
            shape = Shape::Several;
            if before != is_versioned {
                return None;
            }
        }
    }
    Some(shape)
}

/// Commits the events at `indexes` (sorted by key); returns the outcomes of those whose key was free.
pub(crate) async fn commit(
    connection: &mut PgConnection,
    statements: &Statements,
    shape: Shape,
    batch: &[Event],
    indexes: &[usize],
) -> Result<Vec<(usize, Outcome)>, Fault> {
    let places: HashMap<Uuid, usize> = indexes.iter().map(|&index| (batch[index].id.0, index)).collect();
    let given: Vec<Given<'_>> = indexes.iter().map(|&index| Given::open(&batch[index], index)).collect();
    let rows: Vec<(Uuid, String, bool)> = sqlx::query_as(AssertSqlSafe(statements.plain(shape)))
        .bind(Rows::new(&statements.types, &given))
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Committing))?;
    let place = |id: &Uuid| {
        let unknown =
            || StoreError::Unknown(format!("the statement answered about an event {id} that it was not given"));
        places.get(id).copied().ok_or_else(unknown)
    };
    rows.iter().map(|(id, verdict, tie)| Ok((place(id)?, outcome(verdict, *tie)?))).collect()
}

fn outcome(verdict: &str, tie: bool) -> Result<Outcome, StoreError> {
    match verdict {
        "applied" => Ok(Outcome::Applied { tie }),
        "stale" => Ok(Outcome::Stale { tie }),
        "ignored" => Ok(Outcome::Ignored),
        other => Err(StoreError::Unknown(format!("the statement answered with the verdict {other:?}"))),
    }
}

/// How far a batch has come.
pub(crate) struct Progress {
    /// Indexes of events without an outcome, sorted by key.
    open: Vec<usize>,
    /// Indexes of later events of a key, each with the index of the first.
    repeats: Vec<(usize, usize)>,
    outcomes: Vec<Option<Outcome>>,
    /// Claims that were there before this batch, by the index of the event that met them.
    met: HashMap<usize, Claim>,
    /// A part of the batch is durable: then no later fault means "nothing was stored".
    is_stored: bool,
}

impl Progress {
    pub(crate) fn open(&self) -> &[usize] {
        &self.open
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.is_stored
    }

    /// These are durable.
    pub(crate) fn commit(&mut self, done: Vec<(usize, Outcome)>) {
        self.is_stored |= !done.is_empty();
        for (index, outcome) in done {
            self.outcomes[index] = Some(outcome);
        }
        self.open.retain(|&index| self.outcomes[index].is_none());
    }

    /// These keys are taken.
    pub(crate) fn meet(&mut self, batch: &[Event], claims: &HashMap<KeyHash, Claim>) {
        for &index in &self.open {
            let Some(&claim) = claims.get(&batch[index].key.hash) else { continue };
            self.outcomes[index] = Some(claim.meets(&batch[index]));
            self.met.insert(index, claim);
        }
        self.open.retain(|&index| self.outcomes[index].is_none());
    }

    /// Everything has an outcome but the repeats within the batch.
    pub(crate) fn finish(mut self, batch: &[Event]) -> Result<Done, StoreError> {
        for (index, first) in self.repeats {
            let claim = self.met.get(&first).copied().unwrap_or_else(|| Claim::of(&batch[first]));
            self.outcomes[index] = Some(claim.meets(&batch[index]));
        }
        let outcomes: Option<Vec<Outcome>> = self.outcomes.into_iter().collect();
        let lost = || StoreError::Unknown("an event of the batch has no outcome".to_owned());
        Ok(Done { outcomes: outcomes.ok_or_else(lost)?, waits: Waits::default() })
    }
}
