//! A writer's session: one connection, opened on the writer's own runtime, never pooled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use tidegate_actors::ports::{Committed, Outcome, Session, StoreError};
use tidegate_actors::rules::event::{Event, EventId, Incarnation, Unusable};

use super::connect::Connector;
use super::errors::{Fault, unavailable};
use super::given::GivenType;
use super::plain::Shape;
use super::{Way, connect, loaded, plain, quarantine, repeats};
use crate::store::sql::batch::{Claim, fold};

/// How often a batch that met rivals is tried before the sender is asked to come again.
const TRIES_MAX: u32 = 8;
/// Slots of the key ring.
const SLOTS: i16 = 3;

/// The statements that name a slot of the key ring.
pub(crate) struct Statements {
    slot: i16,
    pub(crate) given: GivenType,
    commit_once: Arc<str>,
    commit_plain: Arc<str>,
    pub(crate) claim: Arc<str>,
}

impl Statements {
    fn new(slot: i16, given: GivenType) -> Self {
        let fill = |sql: &str| {
            let table = |step: i16| format!("keys_{}", (slot + step).rem_euclid(SLOTS));
            sql.replace("{current}", &table(0))
                .replace("{older_a}", &table(2))
                .replace("{older_b}", &table(1))
                .replace("{slot}", &slot.rem_euclid(SLOTS).to_string())
                .into()
        };
        Self {
            slot,
            given,
            commit_once: fill(include_str!("statements/commit_once.sql")),
            commit_plain: fill(include_str!("statements/commit_plain.sql")),
            claim: fill(include_str!("statements/claim.sql")),
        }
    }

    /// The one statement for batches of this shape.
    pub(crate) fn plain(&self, shape: Shape) -> Arc<str> {
        match shape {
            Shape::Once => self.commit_once.clone(),
            Shape::Several => self.commit_plain.clone(),
        }
    }
}

/// One writer's connection to the database.
pub(crate) struct PgSession {
    connection: PgConnection,
    statements: Statements,
    incarnation: Incarnation,
    way: Way,
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
        let given = GivenType::of(&mut connection).await.map_err(|error| unavailable(&error))?;
        let statements = Statements::new(slot, given);
        for shape in [Shape::Once, Shape::Several] {
            let sql = AssertSqlSafe(statements.plain(shape)).into_sql_str();
            connection.prepare(sql).await.map_err(|error| unavailable(&error))?;
        }
        Ok(Self { connection, statements, incarnation, way, answer_within: connector.answer_within(), broken: false })
    }

    async fn commit_batch(&mut self, batch: &[Event]) -> Result<Vec<Outcome>, StoreError> {
        let folded = fold(batch);
        let mut outcomes: Vec<Option<Outcome>> = vec![None; batch.len()];
        // Claims that were there before this batch, by the index of the event that met them.
        let mut met: HashMap<usize, Claim> = HashMap::new();
        // What part of the batch is durable already: then no later fault means "nothing was stored".
        let mut stored = false;
        let mut open = folded.distinct;
        let mut rival = String::from("the key ring moved on");
        for _ in 0..TRIES_MAX {
            if open.is_empty() {
                break;
            }
            match self.try_commit(batch, &mut open, &mut outcomes, &mut met, &mut stored).await {
                Ok(()) => {}
                Err(Fault::Redo(text)) => rival = text,
                Err(Fault::Ends(error)) => return Err(weigh(error, stored)),
            }
        }
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

    /// One try: commits what is still open, then asks who claimed the rest. What neither committed nor was claimed
    /// stays open: the ring has moved on, or a rival's claim was rolled back or just forgotten.
    async fn try_commit(
        &mut self,
        batch: &[Event],
        open: &mut Vec<usize>,
        outcomes: &mut [Option<Outcome>],
        met: &mut HashMap<usize, Claim>,
        stored: &mut bool,
    ) -> Result<(), Fault> {
        let shape = if self.way == Way::Cheapest { plain::shape(batch, open) } else { None };
        let done = match shape {
            Some(shape) => plain::commit(&mut self.connection, &self.statements, shape, batch, open).await?,
            None => loaded::commit(&mut self.connection, &self.statements, batch, open).await?,
        };
        *stored |= !done.is_empty();
        for (index, outcome) in done {
            outcomes[index] = Some(outcome);
        }
        open.retain(|&index| outcomes[index].is_none());
        if open.is_empty() {
            return Ok(());
        }
        let claims = repeats::find(&mut self.connection, batch, open).await?;
        for &index in open.iter() {
            let Some(&claim) = claims.found.get(&batch[index].key.hash) else { continue };
            outcomes[index] = Some(claim.meets(&batch[index]));
            met.insert(index, claim);
        }
        open.retain(|&index| outcomes[index].is_none());
        if claims.slot != self.statements.slot {
            self.statements = Statements::new(claims.slot, self.statements.given);
        }
        Ok(())
    }

    async fn keep_conflicts(&mut self, batch: &[Event], outcomes: &[Outcome]) -> Result<(), StoreError> {
        let mut rival = String::new();
        for _ in 0..TRIES_MAX {
            match repeats::keep_conflicts(&mut self.connection, self.statements.given, batch, outcomes).await {
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
