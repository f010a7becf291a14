//! The key cache in Redis: facts that all nodes share.
//!
//! Owns the keys `tidegate:{tag}:k:{hash}`, where the tag stands for the incarnation, so that installations
//! which share a server do not meet. Promises that a fact it returns was written by a node with
//! the same secret, for the same key, under the same incarnation; all else is a miss. Does not know whether
//! the fact is needed. On failure a call answers at once or within the deadline with an error, the connection
//! mends itself in the background, and the log says so once.

mod codec;
mod health;
mod link;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use async_trait::async_trait;
use redis::{Client, IntoConnectionInfo as _};
use secrecy::{ExposeSecret as _, SecretString};
use tidegate_actors::ports::{CacheError, Fact, KeyCache};
use tidegate_actors::rules::event::Incarnation;
use tidegate_actors::rules::key::KeyHash;

use self::codec::Seal;
use self::health::Health;
use self::link::Link;
use super::OpenError;
use crate::config::Cache;

/// The most keys asked for in one MGET: Redis serves others between two of them.
const KEYS_PER_MGET: usize = 512;
/// The longest that connecting may take; calls do not wait for it, but for the very first.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// The most threads that get a connection of their own. Later ones share the last.
const LINKS_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct RedisCache {
    client: Client,
    secret: Option<SecretString>,
    ttl_ms: u64,
    limits: link::Limits,
    health: Arc<Health>,
    // A connection is driven by the runtime that opened it, and each arbiter is a thread with a runtime: with a
    // link for each, a call stays on its thread and no arbiter's end takes another's connection away.
    links: Mutex<Vec<(ThreadId, Arc<Link>)>>,
}

impl RedisCache {
    pub(super) fn new(url: &str, settings: &Cache) -> Result<Self, OpenError> {
        if url.starts_with("rediss:") {
            // Fails when the process has chosen its provider already, which is as good.
            rustls::crypto::ring::default_provider().install_default().ok();
        }
        let unusable = |error| OpenError(format!("`cache.url` is not an address of Redis: {error}"));
        let mut info = url.into_connection_info().map_err(unusable)?;
        if let Some(password) = &settings.password {
            let redis = info.redis_settings().clone().set_password(password.expose_secret());
            info = info.set_redis_settings(redis);
        }
        let client = Client::open(info).map_err(unusable)?;
        let ttl_ms = u64::try_from(settings.keep.as_millis()).unwrap_or(u64::MAX);
        if ttl_ms == 0 {
            return Err(OpenError("`cache.keep` must be at least 1ms, got 0s".into()));
        }
        Ok(Self {
            health: Arc::new(Health::new(client.get_connection_info().addr().to_string())),
            client,
            secret: settings.secret.clone(),
            ttl_ms,
            limits: link::Limits { deadline: settings.deadline, connect: CONNECT_WITHIN },
            links: Mutex::default(),
        })
    }

    fn link(&self) -> Arc<Link> {
        let thread = std::thread::current().id();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, link)) = links.iter().find(|(owner, _)| *owner == thread) {
            return link.clone();
        }
        if links.len() >= LINKS_MAX
            && let Some((_, link)) = links.last()
        {
            return link.clone();
        }
        let link = Arc::new(Link::new(self.client.clone(), self.limits, self.health.clone()));
        links.push((thread, link.clone()));
        link
    }

    fn seal(&self, incarnation: Incarnation) -> Seal {
        let secret = self.secret.as_ref().map_or("", |secret| secret.expose_secret());
        Seal::new(secret.as_bytes(), incarnation)
    }
}

#[async_trait(?Send)]
impl KeyCache for RedisCache {
    async fn get(&self, incarnation: Incarnation, keys: &[KeyHash]) -> Result<Vec<Option<Fact>>, CacheError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let seal = self.seal(incarnation);
        let mut asked = redis::Pipeline::with_capacity(keys.len().div_ceil(KEYS_PER_MGET));
        for chunk in keys.chunks(KEYS_PER_MGET) {
            asked.cmd("MGET");
            for key in chunk {
                asked.arg(seal.name(*key));
            }
        }
        let answers: Vec<Vec<Option<Vec<u8>>>> = self.link().ask(&asked).await?;
        let values: Vec<Option<Vec<u8>>> = answers.into_iter().flatten().collect();
        if values.len() != keys.len() {
            return Err(CacheError(format!("asked for {} keys, got {} values", keys.len(), values.len())));
        }
        Ok(keys.iter().zip(values).map(|(key, value)| seal.open(*key, &value?)).collect())
    }

    async fn put(&self, incarnation: Incarnation, facts: &[Fact]) -> Result<(), CacheError> {
        if facts.is_empty() {
            return Ok(());
        }
        let seal = self.seal(incarnation);
        let mut told = redis::Pipeline::with_capacity(facts.len());
        for fact in facts {
            let value = seal.close(fact);
            told.cmd("SET").arg(seal.name(fact.key)).arg(&value[..]).arg("PX").arg(self.ttl_ms).ignore();
        }
        self.link().ask::<()>(&told).await
    }
}
