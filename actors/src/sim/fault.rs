//! What can go wrong, as data: kinds of faults, when, for how long, where.

use serde::{Deserialize, Serialize};

/// One thing that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub what: FaultName,
    /// From when, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// For how long.
    pub for_ms: u64,
    /// To which node; to every one where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// How strong, in milliseconds: of what is slow, or of a clock that jumps.
    #[serde(default)]
    pub by_ms: i64,
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The kinds of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FaultName {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
        }

        impl FaultName {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

faults! {
    /// Every call to the store fails at once.
    StoreAway = "store-away",
    /// Calls to the store hang until the fault is over, then fail.
    StoreHangs = "store-hangs",
    /// No session can be opened.
    OpenFails = "open-fails",
    /// A commit fails; nothing is stored.
    CommitFails = "commit-fails",
    /// A commit takes longer.
    CommitSlow = "commit-slow",
    /// A commit is done and its answer is lost.
    AnswerLost = "answer-lost",
    /// A commit is not done, and nobody knows.
    CommitLost = "commit-lost",
    /// A commit is refused, as a conflict of transactions is.
    CommitRefused = "commit-refused",
    /// The store's adapter panics before the commit.
    PanicBefore = "panic-before",
    /// The store's adapter panics after the commit.
    PanicAfter = "panic-after",
    /// Asking the store for a sign of life panics.
    PulsePanics = "pulse-panics",
    /// The key cache fails.
    CacheDown = "cache-down",
    /// The key cache answers late.
    CacheSlow = "cache-slow",
    /// The key cache is emptied.
    CacheWiped = "cache-wiped",
    /// The key cache is put back to what it was a while ago.
    CacheStale = "cache-stale",
    /// The key cache says of every key that it is done, with facts about others.
    CacheLies = "cache-lies",
    /// The key cache answers for fewer keys than were asked.
    CacheShort = "cache-short",
    /// The key cache's adapter panics.
    CachePanics = "cache-panics",
    /// The provider does not say what the state of a resource is.
    FetchFails = "fetch-fails",
    /// The provider answers late.
    FetchSlow = "fetch-slow",
    /// Every process is killed at once and started again later.
    Kill = "kill",
    /// One node of several is killed and started again later.
    KillNode = "kill-node",
    /// A node shuts down in order and starts again.
    Restart = "restart",
    /// Nothing gets through between senders and gate.
    NetworkDown = "network-down",
    /// A node's clock jumps.
    ClockJump = "clock-jump",
    /// Everything that was sent lately is sent again at once.
    RetryStorm = "retry-storm",
}
