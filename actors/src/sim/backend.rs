//! What a run is played on: a store that a run starts empty and that outlives its processes.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::memory::MemoryStore;
use crate::ports::{Clock, Reader, Store, StoreError};
use crate::rules::event::Incarnation;

/// Makes fresh stores.
pub trait Backend: Send + Sync {
    /// An empty store for one run; `clock` is the store's own clock.
    fn fresh(&self, clock: Arc<dyn Clock>) -> Result<Box<dyn Place>, StoreError>;

    /// Its calls take real time: driven time stands still while one runs.
    fn takes_real_time(&self) -> bool {
        false
    }
}

/// A store's place, where it stays from one process's life to the next.
#[async_trait(?Send)]
pub trait Place {
    /// Opens the store for one life, inside that life's runtime.
    async fn open(&self) -> Result<Opened, StoreError>;
}

/// A store for one life.
#[derive(Clone)]
pub struct Opened {
    /// What the engine writes to.
    pub store: Arc<dyn Store>,
    /// What the checker reads.
    pub reader: Arc<dyn Reader>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

/// The store in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBackend;

impl Backend for MemoryBackend {
    fn fresh(&self, clock: Arc<dyn Clock>) -> Result<Box<dyn Place>, StoreError> {
        Ok(Box::new(InMemory(MemoryStore::new(clock, Incarnation(Uuid::from_u128(1))))))
    }
}

struct InMemory(MemoryStore);

#[async_trait(?Send)]
impl Place for InMemory {
    async fn open(&self) -> Result<Opened, StoreError> {
        Ok(Opened { store: Arc::new(self.0.clone()), reader: Arc::new(self.0.clone()) })
    }
}

/// Driven time stands still until the work is done: a task that blocks holds it.
pub(super) async fn hold_time<F: Future>(takes_real_time: bool, work: F) -> F::Output {
    if !takes_real_time {
        return work.await;
    }
    let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
    let pin = tokio::task::spawn_blocking(move || held.recv().ok());
    let output = work.await;
    drop(release);
    pin.await.ok();
    output
}
