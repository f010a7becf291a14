//! One thread's connection to Redis: opened on first use, watched, dropped when it goes bad, opened again.
//!
//! Owns the connection and the decision to give it up. Promises that no call waits for a reconnection: only
//! the very first connection is waited for, within the deadline; later, while Redis is away, calls fail at
//! once. A call may be dropped half way by its caller, which counts as one that was not answered. A command
//! whose answer nobody waits for may still run later, which does no harm: facts stay true.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Pipeline, RedisError, ServerErrorKind};
use tidegate_actors::ports::CacheError;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use super::health::Health;

/// The most calls under way at once; more are refused, so nothing piles up behind a slow server.
const CALLS_MAX: usize = 32;
/// Calls in a row without an answer before the connection is given up: its other end may be gone silently.
const UNANSWERED_MAX: u32 = 4;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) deadline: Duration,
    pub(super) connect: Duration,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    limits: Limits,
    health: Arc<Health>,
    phase: Mutex<Phase>,
    opened: Notify,
    calls: Semaphore,
    unanswered: AtomicU32,
}

#[derive(Debug)]
enum Phase {
    /// Not connected; may try from `after` on. `failures` tries in a row went wrong.
    Closed { after: Option<Instant>, failures: u32 },
    /// A task is connecting.
    Opening { failures: u32 },
    /// Connected. The number tells this connection from later ones.
    Open { connection: MultiplexedConnection, number: u64 },
}

impl Link {
    pub(super) fn new(client: Client, limits: Limits, health: Arc<Health>) -> Self {
        Self {
            client,
            limits,
            health,
            phase: Mutex::new(Phase::Closed { after: None, failures: 0 }),
            opened: Notify::new(),
            calls: Semaphore::new(CALLS_MAX),
            unanswered: AtomicU32::new(0),
        }
    }

    /// Sends commands and reads their answers, all within the deadline.
    pub(super) async fn ask<T: FromRedisValue>(self: Arc<Self>, commands: &Pipeline) -> Result<T, CacheError> {
        let Ok(_place) = self.calls.try_acquire() else {
            return Err(CacheError(format!("{CALLS_MAX} calls are already under way")));
        };
        let deadline = self.limits.deadline;
        let mut watch = Watch { link: &self, number: None };
        let answer = timeout(deadline, async {
            let (mut connection, number) = self.connection().await?;
            watch.number = Some(number);
            commands.query_async(&mut connection).await.map_err(|error| self.judge(&error, number))
        })
        .await;
        match answer {
            Ok(Ok(value)) => {
                watch.number = None;
                self.unanswered.store(0, Ordering::Relaxed);
                self.health.well();
                Ok(value)
            }
            Ok(Err(error)) => {
                watch.number = None;
                Err(error)
            }
            Err(_) => Err(CacheError(format!("no answer within {deadline:?}"))),
        }
    }

    /// The connection, when there is one; starts a task to open it when there is none.
    async fn connection(self: &Arc<Self>) -> Result<(MultiplexedConnection, u64), CacheError> {
        loop {
            let opened = self.opened.notified();
            {
                let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
                match &*phase {
                    Phase::Open { connection, number } => return Ok((connection.clone(), *number)),
                    Phase::Closed { after: Some(after), .. } if Instant::now() < *after => {
                        return Err(CacheError("not connected".into()));
                    }
                    Phase::Closed { failures, .. } => {
                        let failures = *failures;
                        *phase = Phase::Opening { failures };
                        let opening = Opening { link: self.clone(), done: false };
                        tokio::spawn(opening.run(failures));
                        if failures > 0 {
                            return Err(CacheError("connecting again".into()));
                        }
                    }
                    Phase::Opening { failures: 0 } => {}
                    Phase::Opening { .. } => return Err(CacheError("connecting again".into())),
                }
            }
            opened.await;
        }
    }

    /// What an error says of the connection, and in the log.
    fn judge(&self, error: &RedisError, number: u64) -> CacheError {
        // READONLY and its like: the name now leads to another server, which only a new connection finds.
        let elsewhere =
            matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown));
        let reason = error.to_string();
        if elsewhere || error.is_io_error() || error.kind() == ErrorKind::Parse || error.is_unrecoverable_error() {
            self.close(number);
        }
        self.health.failed(&reason);
        CacheError(reason)
    }

    fn missed(&self, number: u64) {
        self.health.failed("no answer within the deadline");
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_MAX {
            self.close(number);
        }
    }

    /// Gives up the connection with this number, if it is still the one in use.
    fn close(&self, number: u64) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*phase, Phase::Open { number: current, .. } if *current == number) {
            *phase = Phase::Closed { after: Some(Instant::now() + BACKOFF_FIRST), failures: 1 };
        }
    }
}

/// Notices a call that got no answer, also when its caller dropped it.
struct Watch<'a> {
    link: &'a Link,
    number: Option<u64>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.link.missed(number);
        }
    }
}

/// A connection being opened. When its runtime ends half way, the next call starts anew.
struct Opening {
    link: Arc<Link>,
    done: bool,
}

impl Opening {
    async fn run(mut self, failures: u32) {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.link.limits.connect))
            .set_response_timeout(Some(self.link.limits.connect.max(self.link.limits.deadline * 2)));
        // The connection's own time limit does not cover the resolver or a handshake that never ends.
        let within = self.link.limits.connect * 2;
        let opened = timeout(within, self.link.client.get_multiplexed_async_connection_with_config(&config)).await;
        match opened {
            Ok(Ok(connection)) => self.settle(Ok(connection), failures),
            Ok(Err(error)) => self.settle(Err(error.to_string()), failures),
            Err(_) => self.settle(Err(format!("not connected within {within:?}")), failures),
        }
    }

    fn settle(&mut self, opened: Result<MultiplexedConnection, String>, failures: u32) {
        self.done = true;
        if let Err(reason) = &opened {
            self.link.health.failed(reason);
        }
        let phase = match opened {
            Ok(connection) => {
                self.link.unanswered.store(0, Ordering::Relaxed);
                Phase::Open { connection, number: next_number() }
            }
            Err(_) => {
                let wait = BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
                Phase::Closed { after: Some(Instant::now() + wait), failures: failures.saturating_add(1) }
            }
        };
        *self.link.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        self.link.opened.notify_waiters();
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.done {
            self.settle(Err("the thread that was connecting ended".into()), 0);
        }
    }
}

fn next_number() -> u64 {
    use std::sync::atomic::AtomicU64;
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}
