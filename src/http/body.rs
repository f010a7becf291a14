//! Reads a request's raw body under limits of size, time and rate.
//!
//! Promises that what it returns is exactly what was announced and sent: never cut short, never decoded.
//! Knows nothing of what the bytes mean. A body that is too large, too slow or incomplete is an outcome
//! with a name, found while streaming; nothing has been kept by then.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::web::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt as _, StreamExt as _};
use tidegate_actors::{Permit, Refused};
use tokio::time::{Instant, Sleep, sleep};

/// A slow start is forgiven for this long before the rate counts.
const RATE_GRACE: Duration = Duration::from_secs(2);
/// How often a body that is being waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How much, how long and how slowly a body may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    /// The most bytes.
    pub(super) bytes: usize,
    /// The longest time in all.
    pub(super) within: Duration,
    /// The fewest bytes a second, counted after a grace of two seconds.
    pub(super) bytes_per_second: u64,
}

/// Why there is no body.
#[derive(Debug)]
pub(super) enum BodyFault {
    /// More bytes than the limit.
    TooLarge,
    /// Too slow in all, or a second at a time.
    Slow,
    /// Fewer bytes than announced, or broken framing.
    Incomplete,
    /// The process has no room for the next bytes.
    NoRoom(Refused),
    /// The node began to shut down while it waited for the rest.
    Draining,
}

/// Reads all of it. `permit` covers the declared length already; without one it grows with what comes.
/// A body that is still being waited for is given up once `draining` is set: nothing of it was accepted.
pub(super) async fn read(
    payload: &mut Payload,
    declared: Option<usize>,
    limits: BodyLimits,
    permit: &mut Permit,
    draining: &AtomicBool,
) -> Result<Bytes, BodyFault> {
    let mut patience = Patience { limits, draining, since: None, received: 0 };
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(chunk) = patience.next(payload).await? {
        let total = patience.received;
        if total > limits.bytes {
            return Err(BodyFault::TooLarge);
        }
        if declared.is_none() {
            permit.grow(chunk.len()).map_err(BodyFault::NoRoom)?;
        }
        match &mut rest {
            Some(rest) => rest.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut joined = BytesMut::with_capacity(declared.unwrap_or(total * 2).min(limits.bytes).max(total));
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&chunk);
                rest = Some(joined);
            }
        }
    }
    let body = rest.map_or(first, BytesMut::freeze);
    if declared.is_some_and(|declared| declared != body.len()) {
        return Err(BodyFault::Incomplete);
    }
    Ok(body)
}

/// Waits for chunks; looks at the clock only once a chunk lets itself be waited for.
struct Patience<'a> {
    draining: &'a AtomicBool,
    limits: BodyLimits,
    since: Option<Instant>,
    received: usize,
}

impl Patience<'_> {
    async fn next(&mut self, payload: &mut Payload) -> Result<Option<Bytes>, BodyFault> {
        if let Some(ready) = payload.next().now_or_never() {
            return self.counted(ready);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let look = sleep(LOOK_EVERY.min(self.limits.within.saturating_sub(since.elapsed())));
        tokio::pin!(look);
        loop {
            tokio::select! {
                biased;
                chunk = payload.next() => return self.counted(chunk),
                () = &mut look => self.look_again(since, look.as_mut())?,
            }
        }
    }

    fn counted(&mut self, chunk: Option<Result<Bytes, PayloadError>>) -> Result<Option<Bytes>, BodyFault> {
        match chunk {
            None => Ok(None),
            Some(Ok(bytes)) => {
                self.received = self.received.saturating_add(bytes.len());
                self.check(self.since)?;
                Ok(Some(bytes))
            }
            Some(Err(PayloadError::Overflow)) => Err(BodyFault::TooLarge),
            Some(Err(_)) => Err(BodyFault::Incomplete),
        }
    }

    fn look_again(&self, since: Instant, look: Pin<&mut Sleep>) -> Result<(), BodyFault> {
        self.check(Some(since))?;
        if self.draining.load(Ordering::Relaxed) {
            return Err(BodyFault::Draining);
        }
        let left = self.limits.within.saturating_sub(since.elapsed());
        look.reset(Instant::now() + LOOK_EVERY.min(left));
        Ok(())
    }

    fn check(&self, since: Option<Instant>) -> Result<(), BodyFault> {
        let Some(since) = since else { return Ok(()) };
        let waited = since.elapsed();
        if waited >= self.limits.within {
            return Err(BodyFault::Slow);
        }
        let counted_s = waited.saturating_sub(RATE_GRACE).as_secs();
        let due = counted_s.saturating_mul(self.limits.bytes_per_second);
        if (self.received as u64) < due { Err(BodyFault::Slow) } else { Ok(()) }
    }
}
