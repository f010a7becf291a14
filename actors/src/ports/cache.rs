//! The key cache: allowed to forget, never to decide.

use async_trait::async_trait;

use crate::rules::event::{EventId, Incarnation};
use crate::rules::key::{BodyDigest, KeyHash};

/// "This key, with this body digest, is done": true for ever within one incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The claimed key.
    pub key: KeyHash,
    /// The event that claimed it.
    pub first: EventId,
    /// Digest of that event's body.
    pub digest: BodyDigest,
}

/// The cache could not be asked or told. Never more than a miss (I8).
#[derive(Debug, thiserror::Error)]
#[error("the key cache is not available: {0}")]
pub struct CacheError(pub String);

/// A shared cache of facts in front of the key table.
///
/// An adapter connects and reconnects by itself, checks what it reads (a value that is odd, of another
/// incarnation, or not vouched for is a miss) and may be dropped in the middle of a call: the caller
/// bounds each call by its own deadline.
#[async_trait(?Send)]
pub trait KeyCache: Send + Sync + 'static {
    /// What is known of these keys, in their order.
    async fn get(&self, incarnation: Incarnation, keys: &[KeyHash]) -> Result<Vec<Option<Fact>>, CacheError>;

    /// Keeps facts, after their commit.
    async fn put(&self, incarnation: Incarnation, facts: &[Fact]) -> Result<(), CacheError>;
}
