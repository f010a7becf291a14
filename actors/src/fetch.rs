//! Asks providers for the current state of resources, and hands the answers in as events.
//!
//! Owns a bounded number of slots. Promises that every fetch is claimed under an epoch of its own before the
//! work (I9, I10), that no transaction is open while a provider is asked (I12), and that an answer takes the
//! way of every event: claimed, guarded, committed. A failure is recorded and tried again later; when the
//! tries are used up, what waited expires with a record. If the process dies, the lease runs out.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;

use crate::alarm::Alarms;
use crate::figures::Figures;
use crate::ingress::Ingress;
use crate::ports::{FetchClaim, FetchOutcome, Fetcher, Store};
use crate::rules::event::Event;
use crate::rules::retry::Retry;
use crate::supervise::guarded_future;
use crate::work::Stop;

/// Bounds of the fetches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchSettings {
    /// Fetches under way at a time.
    pub(crate) slots: usize,
    /// How long a claim lasts.
    pub(crate) lease: Duration,
    /// How often fetches are looked for that another node left.
    pub(crate) sweep_every: Duration,
    pub(crate) retry: Retry,
}

/// What asking and handing in need.
struct Desk {
    store: Arc<dyn Store>,
    fetcher: Arc<dyn Fetcher>,
    ingress: Ingress,
    alarms: Arc<Alarms>,
    settings: FetchSettings,
    figures: Arc<Figures>,
}

/// One for the whole process.
pub(crate) struct FetchActor {
    desk: Option<Desk>,
    figures: Arc<Figures>,
}

impl FetchActor {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        fetcher: Arc<dyn Fetcher>,
        ingress: Ingress,
        alarms: Arc<Alarms>,
        settings: FetchSettings,
        figures: Arc<Figures>,
    ) -> Addr<Self> {
        let desk = Desk { store, fetcher, ingress, alarms, settings, figures: Arc::clone(&figures) };
        Self { desk: Some(desk), figures }.start()
    }
}

type Running<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = ()> + 'a>>>;

/// Claims what is due as long as a slot is free, again and again.
async fn run(desk: Desk) {
    let mut running: Running<'_> = FuturesUnordered::new();
    loop {
        if running.len() >= desk.settings.slots {
            running.next().await;
            continue;
        }
        {
            let rung = pin!(desk.alarms.fetches.wait(desk.settings.sweep_every));
            if running.is_empty() {
                rung.await;
            } else if let Either::Right(_) = select(rung, running.next()).await {
                // a slot is free again, and there may be more
                desk.alarms.fetches.ring_in(0);
                continue;
            }
        }
        let claims = desk.claim(desk.settings.slots - running.len());
        for claim in beside(&mut running, &desk.alarms, claims).await {
            let desk = &desk;
            running.push(Box::pin(async move { desk.serve(&claim).await }));
        }
    }
}

/// Waits for this while those under way go on: one of them may hold the connection that this one waits for, where a
/// store has a single writer.
async fn beside<T>(running: &mut Running<'_>, alarms: &Alarms, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    while !running.is_empty() {
        match select(work.as_mut(), running.next()).await {
            Either::Left((done, _)) => return done,
            // a slot is free again, and there may be more
            Either::Right(_) => alarms.fetches.ring_in(0),
        }
    }
    work.await
}

impl Desk {
    async fn claim(&self, slots: usize) -> Vec<FetchClaim> {
        let limit = u32::try_from(slots).unwrap_or(u32::MAX);
        let lease_ms = i64::try_from(self.settings.lease.as_millis()).unwrap_or(i64::MAX);
        match guarded_future(&self.figures.fetch, self.store.claim_fetches(limit, lease_ms)).await {
            Some(Ok(claimed)) => {
                if let Some(ms) = claimed.due_in_ms.filter(|_| claimed.claims.len() < slots) {
                    self.alarms.fetches.ring_in(ms + 1);
                }
                claimed.claims
            }
            // the next sweep looks again
            Some(Err(_)) | None => Vec::new(),
        }
    }

    async fn serve(&self, claim: &FetchClaim) {
        let asked = tokio::time::timeout(self.settings.lease, self.fetcher.fetch(claim));
        let failed = match guarded_future(&self.figures.fetch, asked).await {
            Some(Ok(FetchOutcome::State(event))) => match self.hand_in(*event).await {
                Ok(()) => {
                    self.figures.fetches.answered.inc();
                    return;
                }
                Err(why) => (why, None, false),
            },
            Some(Ok(FetchOutcome::Failed { why, retry_after, last })) => (why, retry_after, last),
            Some(Err(_)) => (format!("no answer within {} s", self.settings.lease.as_secs()), None, false),
            None => ("asking failed".to_owned(), None, false),
        };
        self.failed(claim, failed).await;
    }

    /// The answer is an event like any other.
    async fn hand_in(&self, event: Event) -> Result<(), String> {
        let permit = self.ingress.reserve(event.weight()).map_err(|refused| refused.to_string())?;
        self.ingress.take(event, permit).await.map(drop).map_err(|refused| refused.to_string())
    }

    async fn failed(&self, claim: &FetchClaim, (why, retry_after, last): (String, Option<Duration>, bool)) {
        self.figures.fetches.failed.inc();
        let asked_ms = retry_after.map(|pause| i64::try_from(pause.as_millis()).unwrap_or(i64::MAX));
        // spread over nodes and resources without a draw of its own
        let chance =
            u64::from_be_bytes(claim.resource.0[..8].try_into().unwrap_or_default()).rotate_left(claim.attempt);
        let pause_ms = if last { None } else { self.settings.retry.pause_ms(claim.attempt, asked_ms, chance) };
        tracing::warn!(
            source = claim.source,
            kind = claim.kind,
            id = claim.id,
            attempt = claim.attempt,
            pause_ms,
            why,
            "fetching the state of a resource failed"
        );
        // where even that cannot be written, its lease runs out
        let written = guarded_future(&self.figures.fetch, self.store.fetch_failed(claim, &why, pause_ms)).await;
        if let Some(Ok(waits)) = written {
            self.figures.waited(&waits);
            if let Some(ms) = pause_ms {
                self.alarms.fetches.ring_in(ms + 1);
            }
        }
    }
}

impl Actor for FetchActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.fetch.actors.inc();
        if let Some(desk) = self.desk.take() {
            desk.alarms.fetches.ring_in(0);
            ctx.spawn(wrap_future(run(desk)));
        }
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.fetch.actors.dec();
    }
}

impl Handler<Stop> for FetchActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.figures.fetch.depth.dec();
        ctx.stop();
    }
}
