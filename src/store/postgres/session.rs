//! A writer's session: one connection, opened on the writer's own runtime, never pooled.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use tidegate_actors::ports::{Committed, Outcome, Session, StoreError};
use tidegate_actors::rules::event::{Event, EventId, Incarnation, Unusable};

use super::connect::Connector;
use super::errors::{Fault, unavailable};
use super::repeats::Claims;
use super::rows::RowTypes;
use super::statements::Statements;
use super::{Way, connect, loaded, locked, plain, quarantine, repeats};
use crate::store::sql::batch::{Claim, fold};

/// How often a batch that met rivals is tried before the sender is asked to come again.
const TRIES_MAX: u32 = 8;
/// How many of those tries take no locks before they write.
const UNLOCKED_TRIES: u32 = 2;
/// One writer's connection to the database.
pub(crate) struct PgSession {
    connection: PgConnection,
    statements: Statements,
    incarnation: Incarnation,
    way: Way,
    /// Keys of the last batch were taken, which this process did not know: so may be those of the next one.
    repeats_likely: bool,
    /// When a connection that does not answer is given up; the server ends a statement well before.
    answer_within: Duration,
    /// Set while work is under way: what fails or is dropped half-way leaves it set, and the session refuses.
    broken: bool,
}

impl PgSession {
    /// Connects, and prepares the statements that nearly all batches take.
    pub(crate) async fn open(connector: &Connector, way: Way) -> Result<Self, StoreError> {
        let mut connection = connector.writer().await?;
        let incarnation = connect::incarnation(&mut connection).await?;
        let slot = current_slot(&mut connection).await?;
        let types = RowTypes::of(&mut connection).await.map_err(|error| unavailable(&error))?;
        let statements = Statements::new(slot, types);
        for sql in statements.usual() {
            connection.prepare(AssertSqlSafe(sql).into_sql_str()).await.map_err(|error| unavailable(&error))?;
        }
        Ok(Self {
            connection,
            statements,
            incarnation,
            way,
            repeats_likely: false,
            answer_within: connector.answer_within(),
            broken: false,
        })
    }

    async fn commit_batch(&mut self, batch: &[Event]) -> Result<Vec<Outcome>, StoreError> {
        let folded = fold(batch);
        let mut progress = Progress::new(batch.len(), folded.distinct);
        let mut rival = String::from("the key ring moved on");
        for tries in 0..TRIES_MAX {
            if progress.open.is_empty() {
                break;
            }
            match self.try_commit(batch, &mut progress, tries).await {
                Ok(()) => {}
                Err(Fault::Redo(text)) => {
                    rival = text;
                    self.repeats_likely = true;
                }
                Err(Fault::Ends(error)) => return Err(weigh(error, progress.stored)),
            }
        }
        let Progress { open, mut outcomes, met, stored } = progress;
        if !open.is_empty() {
            let text = format!("gave up after {TRIES_MAX} tries against rivals: {rival}");
            return Err(weigh(StoreError::Unavailable(text), stored));
        }
        for (index, first) in folded.repeats {
            let claim = met.get(&first).copied().unwrap_or_else(|| Claim::of(&batch[first]));
            outcomes[index] = Some(claim.meets(&batch[index]));
        }
        let outcomes: Option<Vec<Outcome>> = outcomes.into_iter().collect();
        let outcomes =
            outcomes.ok_or_else(|| StoreError::Unknown("an event of the batch has no outcome".to_owned()))?;
        self.keep_conflicts(batch, &outcomes).await.map_err(|error| weigh(error, stored))?;
        Ok(outcomes)
    }

    /// One try: commits what is still open, and learns who claimed the rest. What neither committed nor was claimed
    /// stays open: the ring has moved on, or a rival's claim was rolled back or just forgotten.
    async fn try_commit(&mut self, batch: &[Event], progress: &mut Progress, tries: u32) -> Result<(), Fault> {
        let shape = if self.way == Way::Cheapest { plain::shape(batch, &progress.open) } else { None };
        let locked = self.way == Way::Locked || tries >= UNLOCKED_TRIES;
        if shape.is_none() && !locked && self.repeats_likely {
            // The loaded way takes all keys or none, so those that are taken are left out beforehand.
            self.repeats_likely = self.meet(batch, progress).await?;
            if progress.open.is_empty() {
                return Ok(());
            }
        }
        let connection = &mut self.connection;
        let done = match shape {
            Some(shape) => plain::commit(connection, &self.statements, shape, batch, &progress.open).await?,
            None if locked => locked::commit(connection, &self.statements, batch, &progress.open).await?,
            None => loaded::commit(connection, &self.statements, batch, &progress.open).await?,
        };
        progress.commit(done);
        if !progress.open.is_empty() {
            self.meet(batch, progress).await?;
        }
        Ok(())
    }

    /// Asks who claimed what is open, and follows the key ring.
    async fn meet(&mut self, batch: &[Event], progress: &mut Progress) -> Result<bool, Fault> {
        let claims = repeats::find(&mut self.connection, batch, &progress.open).await?;
        progress.meet(batch, &claims);
        if claims.slot != self.statements.slot {
            self.statements = Statements::new(claims.slot, self.statements.types);
        }
        Ok(!claims.found.is_empty())
    }

    async fn keep_conflicts(&mut self, batch: &[Event], outcomes: &[Outcome]) -> Result<(), StoreError> {
        let mut rival = String::new();
        for _ in 0..TRIES_MAX {
            match repeats::keep_conflicts(&mut self.connection, &self.statements.types, batch, outcomes).await {
                Ok(()) => return Ok(()),
                Err(Fault::Redo(text)) => rival = text,
                Err(Fault::Ends(error)) => return Err(error),
            }
        }
        Err(StoreError::Unavailable(format!("keeping conflicts aside gave up after {TRIES_MAX} tries: {rival}")))
    }

    async fn quarantine_all(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        let mut rival = String::new();
        for _ in 0..TRIES_MAX {
            match quarantine::keep(&mut self.connection, items).await {
                Ok(ids) => return Ok(ids),
                Err(Fault::Redo(text)) => rival = text,
                Err(Fault::Ends(error)) => return Err(error),
            }
        }
        Err(StoreError::Unavailable(format!("the quarantine gave up after {TRIES_MAX} tries: {rival}")))
    }

    fn begin_work(&mut self) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(StoreError::Unavailable("this session failed before: open a new one".to_owned()));
        }
        Ok(())
    }
}

/// How far a batch has come.
struct Progress {
    /// Indexes of events without an outcome, sorted by key.
    open: Vec<usize>,
    outcomes: Vec<Option<Outcome>>,
    /// Claims that were there before this batch, by the index of the event that met them.
    met: HashMap<usize, Claim>,
    /// A part of the batch is durable: then no later fault means "nothing was stored".
    stored: bool,
}

impl Progress {
    fn new(events: usize, open: Vec<usize>) -> Self {
        Self { open, outcomes: vec![None; events], met: HashMap::new(), stored: false }
    }

    fn commit(&mut self, done: Vec<(usize, Outcome)>) {
        self.stored |= !done.is_empty();
        for (index, outcome) in done {
            self.outcomes[index] = Some(outcome);
        }
        self.open.retain(|&index| self.outcomes[index].is_none());
    }

    fn meet(&mut self, batch: &[Event], claims: &Claims) {
        if claims.found.is_empty() {
            return;
        }
        for &index in &self.open {
            let Some(&claim) = claims.found.get(&batch[index].key.hash) else { continue };
            self.outcomes[index] = Some(claim.meets(&batch[index]));
            self.met.insert(index, claim);
        }
        self.open.retain(|&index| self.outcomes[index].is_none());
    }
}

#[async_trait(?Send)]
impl Session for PgSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        self.begin_work()?;
        let outcomes = within(self.answer_within, self.commit_batch(batch)).await?;
        self.broken = false;
        Ok(Committed { outcomes, incarnation: self.incarnation, waits: Default::default() })
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.begin_work()?;
        let ids = within(self.answer_within, self.quarantine_all(items)).await?;
        self.broken = false;
        Ok(ids)
    }
}

/// Bounds the wait for a connection that went silent. The session is broken then and its socket closes with it; the
/// server finishes or rolls back, nobody knows which (I1).
async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = || StoreError::Unknown(format!("no answer within {limit:?}"));
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(late()))
}

/// Once a part of the batch is durable, "nothing was stored" is no longer true of it.
fn weigh(error: StoreError, stored: bool) -> StoreError {
    match error {
        StoreError::Unavailable(text) | StoreError::Refused(text) if stored => StoreError::Unknown(text),
        other => other,
    }
}

async fn current_slot(connection: &mut PgConnection) -> Result<i16, StoreError> {
    let slot = sqlx::query_scalar("SELECT key_slot FROM tidegate.meta WHERE one").fetch_one(connection).await;
    slot.map_err(|error| unavailable(&error))
}
