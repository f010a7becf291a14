//! No cache at all: knows nothing, keeps nothing.
//!
//! The honest adapter for one process: recent keys are already remembered by the dedup actors, bounded and
//! without a copy here; what they have forgotten, the key table knows. Never fails.

use async_trait::async_trait;
use tidegate_actors::ports::{CacheError, Fact, KeyCache};
use tidegate_actors::rules::event::Incarnation;
use tidegate_actors::rules::key::KeyHash;

/// Answers a miss to everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCache;

#[async_trait(?Send)]
impl KeyCache for NoCache {
    async fn get(&self, _: Incarnation, keys: &[KeyHash]) -> Result<Vec<Option<Fact>>, CacheError> {
        Ok(vec![None; keys.len()])
    }

    async fn put(&self, _: Incarnation, _: &[Fact]) -> Result<(), CacheError> {
        Ok(())
    }
}
