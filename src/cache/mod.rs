//! Key caches: what this process may ask before it asks the store.
//!
//! Owns the adapters behind the port [`KeyCache`]: [`NoCache`] without settings, Redis with a `redis://` URL.
//! Promises that whatever the cache holds, lacks or invents changes only speed (I8). Does not know when it
//! pays to ask: the engine decides that, and remembers recent keys itself. On failure a call answers an error,
//! which is a miss to the engine.

mod none;
mod redis;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tidegate_actors::ports::KeyCache;

pub use none::NoCache;

/// What a cache needs to know.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// `redis://` or `rediss://` (TLS) address with user, password and database; without one there is no cache.
    pub url: Option<SecretString>,
    /// First part of every Redis key, so that several installations share a server.
    pub namespace: String,
    /// Vouches for what is stored, beside the database's incarnation. All nodes share it. May be empty: the
    /// incarnation alone is then what a stranger has to know.
    pub secret: SecretString,
    /// How long a fact is kept.
    pub ttl: Duration,
    /// The longest that one call may take.
    pub deadline: Duration,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            url: None,
            namespace: "default".into(),
            secret: SecretString::default(),
            ttl: Duration::from_hours(72),
            deadline: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
        }
    }
}

/// The settings do not make a cache.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

/// Makes the cache that the settings ask for. Connects later, on first use: a cache that is away does not
/// keep the gate from opening.
pub fn open(settings: &CacheSettings) -> Result<Arc<dyn KeyCache>, OpenError> {
    match &settings.url {
        None => Ok(Arc::new(NoCache)),
        Some(url) => Ok(Arc::new(redis::RedisCache::new(url, settings)?)),
    }
}
