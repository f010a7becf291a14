//! SQLite under a run: the real store, in a file of the run's own, by the run's clock.
//!
//! Promises an empty database for each run, which stays from one process's life to the next and is removed with
//! the run; and that a call takes no driven time and lets nothing else happen meanwhile, so that a run is the
//! same every time (see [`at_once`]).

mod at_once;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tidegate_actors::ports::{Clock, StoreError};
use tidegate_actors::sim::{Backend, Opened, Place};

use self::at_once::{AtOnce, now};
use crate::store::StoreSettings;
use crate::store::sqlite::{SqliteStore, open_reader};

/// Makes a database file for each run.
#[derive(Debug, Default)]
pub(super) struct SqliteBackend {
    runs: AtomicU64,
}

impl Backend for SqliteBackend {
    fn fresh(&self, clock: Arc<dyn Clock>) -> Result<Box<dyn Place>, StoreError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tidegate-simulate-{}-{run}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .map_err(|error| StoreError::Unavailable(format!("cannot make {}: {error}", folder.display())))?;
        Ok(Box::new(File { folder, clock }))
    }
}

/// A run's database.
struct File {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

#[async_trait(?Send)]
impl Place for File {
    async fn open(&self) -> Result<Opened, StoreError> {
        let settings = StoreSettings::of(format!("sqlite:{}", self.folder.join("run.db").display()));
        let failed = |error: crate::store::OpenError| StoreError::Unavailable(error.to_string());
        let store = now(SqliteStore::open(&settings)).map_err(failed)?.with_clock(Arc::clone(&self.clock));
        let reader = now(open_reader(&settings)).map_err(failed)?;
        Ok(Opened { store: Arc::new(AtOnce::new(store)), reader: Arc::new(AtOnce::new(reader)) })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // What cannot be removed is a temporary file that stays behind.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
