//! A writer's session: its turns on the writer connection.
//!
//! Owns nothing but its right to a turn. Promises one transaction a call; two sessions are served one behind
//! the other. After an outcome that nobody knows, it refuses further work, so that its owner opens a new one.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_actors::ports::{Clock, Committed, Session, StoreError};
use tidegate_actors::rules::event::{Event, EventId, Unusable};

use super::{Shared, Turn, commit, quarantine};

pub(super) struct SqliteSession {
    shared: Arc<Shared>,
    clock: Option<Arc<dyn Clock>>,
    dead: bool,
}

impl SqliteSession {
    pub(super) fn new(shared: Arc<Shared>, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { shared, clock, dead: false }
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.dead {
            return Err(StoreError::Unavailable("this session ended with an unknown commit: open a new one".into()));
        }
        Ok(())
    }

    fn learn<T>(&mut self, result: &Result<T, StoreError>) {
        self.dead |= matches!(result, Err(StoreError::Unknown(_)));
    }
}

#[async_trait(?Send)]
impl Session for SqliteSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        self.alive()?;
        let shared = Arc::clone(&self.shared);
        let mut turn = Turn::wait(&shared).await;
        let mut connection = turn.take().await?;
        let result =
            commit::commit(&mut connection, &shared.statements, &shared.effects, batch, self.clock.as_deref()).await;
        let result = turn.settle(connection, result).await;
        self.learn(&result);
        result
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.alive()?;
        let shared = Arc::clone(&self.shared);
        let mut turn = Turn::wait(&shared).await;
        let mut connection = turn.take().await?;
        let result = quarantine::keep(&mut connection, items).await;
        let result = turn.settle(connection, result).await;
        self.learn(&result);
        result
    }
}
