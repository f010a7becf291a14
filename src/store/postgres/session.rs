//! A writer's session: one connection, opened on the writer's own runtime, never pooled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use tidegate_actors::ports::{Committed, Outcome, Session, StoreError};
use tidegate_actors::rules::claim::Claim;
use tidegate_actors::rules::event::{Event, EventId, Incarnation, Unusable};
use tidegate_actors::rules::key::KeyHash;

use super::super::effects::wanted;
use super::connect::Connector;
use super::errors::{Fault, unavailable};
use super::judged::Done;
use super::rows::RowTypes;
use super::statements::Statements;
use super::{Way, connect, judged, locked, plain, quarantine, repeats};
use crate::effect::Effects;

/// How often a batch that met rivals is tried before the sender is asked to come again.
pub(crate) const TRIES_MAX: u32 = 8;
/// How many of those tries take no locks before they write.
const UNLOCKED_TRIES: u32 = 2;
/// One writer's connection to the database.
pub(crate) struct PgSession {
    connection: PgConnection,
    statements: Statements,
    incarnation: Incarnation,
    way: Way,
    effects: Arc<Effects>,
    /// Keys of the last batch were taken, which this process did not know: so may be those of the next one.
    repeats_likely: bool,
    /// When a connection that does not answer is given up; the server ends a statement well before.
    answer_within: Duration,
    /// Set while work is under way: what fails or is dropped half-way leaves it set, and the session refuses.
    broken: bool,
}

impl PgSession {
    /// Connects, and prepares the statements that nearly all batches take.
    pub(crate) async fn open(connector: &Connector, way: Way, effects: Arc<Effects>) -> Result<Self, StoreError> {
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
            effects,
            repeats_likely: false,
            answer_within: connector.answer_within(),
            broken: false,
        })
    }

    async fn commit_batch(&mut self, batch: &[Event]) -> Result<Done, StoreError> {
        let done = match plain::start(batch) {
            Some(progress) if self.way == Way::Cheapest && !wanted(&self.effects, batch) => {
                self.commit_plain(batch, progress).await?
            }
            _ => self.commit_judged(batch).await?,
        };
        self.keep_conflicts(batch, &done.outcomes).await.map_err(|error| weigh(error, true))?;
        Ok(done)
    }

    /// Commits a batch whose events the version guard decides. What a statement neither committed nor found claimed
    /// stays open for the next: the ring has moved on, or a rival's claim was rolled back or just forgotten.
    async fn commit_plain(&mut self, batch: &[Event], mut progress: plain::Progress) -> Result<Done, StoreError> {
        let mut rival = String::from("the key ring moved on");
        for _ in 0..TRIES_MAX {
            match self.try_plain(batch, &mut progress).await {
                Ok(()) => {}
                Err(Fault::Redo(text)) => rival = text,
                Err(Fault::Ends(error)) => return Err(weigh(error, progress.is_stored())),
            }
            if progress.open().is_empty() {
                return progress.finish(batch);
            }
        }
        let text = format!("gave up after {TRIES_MAX} tries against rivals: {rival}");
        Err(weigh(StoreError::Unavailable(text), progress.is_stored()))
    }

    async fn try_plain(&mut self, batch: &[Event], progress: &mut plain::Progress) -> Result<(), Fault> {
        let Some(shape) = plain::shape(batch, progress.open()) else { return Ok(()) };
        let done = plain::commit(&mut self.connection, &self.statements, shape, batch, progress.open()).await?;
        progress.commit(done);
        if !progress.open().is_empty() {
            let asked = progress.open().iter().map(|&index| batch[index].key.hash);
            progress.meet(batch, &self.claims(asked).await?);
        }
        Ok(())
    }

    /// Commits a batch about which the rules decide.
    async fn commit_judged(&mut self, batch: &[Event]) -> Result<Done, StoreError> {
        let mut rival = String::new();
        // Who waits behind what is committed may have effects too.
        let locks = self.way == Way::Locked || !self.effects.is_empty();
        for tries in 0..TRIES_MAX {
            let done = if locks || tries >= UNLOCKED_TRIES {
                locked::commit(&mut self.connection, &self.statements, batch, &self.effects).await
            } else {
                self.try_judged(batch).await
            };
            match done {
                Ok(done) => return Ok(done),
                Err(Fault::Ends(error)) => return Err(error),
                Err(Fault::Redo(text)) => rival = text,
            }
            // A key was taken, a row has moved, or the key ring has.
            self.repeats_likely = true;
            let slot = current_slot(&mut self.connection).await?;
            self.follow_ring(slot);
        }
        Err(StoreError::Unavailable(format!("gave up after {TRIES_MAX} tries against rivals: {rival}")))
    }

    async fn try_judged(&mut self, batch: &[Event]) -> Result<Done, Fault> {
        // All keys are claimed or none, so those that are taken are to be known beforehand.
        let mut claims = HashMap::new();
        if self.repeats_likely || batch.iter().any(|event| event.effect_key.is_some()) {
            claims = self.claims(locked::hashes(batch)).await?;
            self.repeats_likely = batch.iter().any(|event| claims.contains_key(&event.key.hash));
        }
        judged::commit(&mut self.connection, &self.statements, batch, claims).await
    }

    /// Asks who claimed these keys, and follows the key ring.
    async fn claims(&mut self, keys: impl Iterator<Item = KeyHash>) -> Result<HashMap<KeyHash, Claim>, Fault> {
        let claims = repeats::find(&mut self.connection, keys).await?;
        self.follow_ring(claims.slot);
        Ok(claims.found)
    }

    fn follow_ring(&mut self, slot: i16) {
        if slot != self.statements.slot {
            self.statements = Statements::new(slot, self.statements.types);
        }
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

#[async_trait(?Send)]
impl Session for PgSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        self.begin_work()?;
        let Done { outcomes, waits } = within(self.answer_within, self.commit_batch(batch)).await?;
        self.broken = false;
        Ok(Committed { outcomes, incarnation: self.incarnation, waits })
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
