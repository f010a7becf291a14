//! Key caches: what this process may ask before it asks the store.
//!
//! Owns the adapters behind the port [`KeyCache`]: [`NoCache`] without settings, Redis with a `redis://` URL.
//! Promises that whatever the cache holds, lacks or invents changes only speed (I8). Does not know when it
//! pays to ask: the engine decides that, and remembers recent keys itself. On failure a call answers an error,
//! which is a miss to the engine.

mod none;
mod redis;

use std::sync::Arc;

use tidegate_actors::ports::KeyCache;

use crate::config::Cache;

pub use none::NoCache;

/// The settings do not make a cache.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

/// Makes the cache that the settings ask for. Connects later, on first use: a cache that is away does not
/// keep the gate from opening.
pub fn open(settings: &Cache) -> Result<Arc<dyn KeyCache>, OpenError> {
    match &settings.url {
        None => Ok(Arc::new(NoCache)),
        Some(url) => Ok(Arc::new(redis::RedisCache::new(url, settings)?)),
    }
}
