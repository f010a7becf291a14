//! Ends the waiting of held events whose time is over, and of those a person releases.
//!
//! Owns the timer. Promises that a hold is settled soon after its time by the store's clock (I6, I13), also
//! one that another node made: it is found by state and time (I11), not by who remembers it. A predecessor
//! releases what waits behind it without this actor. If the store is away, it looks again after a pause.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, Message};
use tokio::sync::oneshot;

use crate::alarm::Alarms;
use crate::figures::Figures;
use crate::ports::{Store, StoreError, Waits};
use crate::rules::event::EventId;
use crate::rules::key::ResourceHash;
use crate::supervise::guarded_future;
use crate::work::Stop;

/// Resources settled in one transaction.
const RESOURCES_MAX: u32 = 200;

/// What a person who releases is told: `None` when nothing waited.
pub(crate) type Released = Result<Option<Waits>, StoreError>;

/// A person ends the waiting of a resource.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Release {
    pub(crate) resource: ResourceHash,
    pub(crate) reply: oneshot::Sender<Released>,
}

/// A request is taken out of quarantine.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Discharge {
    pub(crate) quarantined: EventId,
    pub(crate) reply: oneshot::Sender<Result<bool, StoreError>>,
}

/// One for the whole process.
pub(crate) struct HoldsActor {
    store: Arc<dyn Store>,
    alarms: Arc<Alarms>,
    sweep_every: Duration,
    figures: Arc<Figures>,
}

impl HoldsActor {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        alarms: Arc<Alarms>,
        sweep_every: Duration,
        mailbox: usize,
        figures: Arc<Figures>,
    ) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(mailbox);
            Self { store, alarms, sweep_every, figures }
        })
    }
}

/// Settles what is due, again and again.
async fn settle(store: Arc<dyn Store>, alarms: Arc<Alarms>, sweep_every: Duration, figures: Arc<Figures>) {
    let mut failed = false;
    loop {
        alarms.holds.wait(sweep_every).await;
        let round = guarded_future(&figures.holds, store.settle_due(RESOURCES_MAX)).await;
        match round {
            Some(Ok(waits)) => {
                figures.waited(&waits);
                alarms.heed(&waits);
                failed = false;
            }
            Some(Err(error)) if !std::mem::replace(&mut failed, true) => {
                tracing::warn!(%error, "held events cannot be settled now; they stay held until the store is back");
            }
            Some(Err(_)) | None => {}
        }
    }
}

impl Actor for HoldsActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.holds.actors.inc();
        // what an earlier life left is looked at first
        self.alarms.holds.ring_in(0);
        let (store, alarms) = (Arc::clone(&self.store), Arc::clone(&self.alarms));
        ctx.spawn(wrap_future(settle(store, alarms, self.sweep_every, Arc::clone(&self.figures))));
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.holds.actors.dec();
    }
}

impl Handler<Release> for HoldsActor {
    type Result = ();

    fn handle(&mut self, Release { resource, reply }: Release, ctx: &mut Context<Self>) {
        self.figures.holds.depth.dec();
        let (store, alarms, figures) = (Arc::clone(&self.store), Arc::clone(&self.alarms), Arc::clone(&self.figures));
        ctx.spawn(wrap_future(async move {
            let Some(released) = guarded_future(&figures.holds, store.release(resource)).await else { return };
            if let Ok(Some(waits)) = &released {
                figures.waited(waits);
                alarms.heed(waits);
            }
            // whoever asked may be gone; what was released is released
            let _ = reply.send(released);
        }));
    }
}

impl Handler<Discharge> for HoldsActor {
    type Result = ();

    fn handle(&mut self, Discharge { quarantined, reply }: Discharge, ctx: &mut Context<Self>) {
        self.figures.holds.depth.dec();
        let (store, figures) = (Arc::clone(&self.store), Arc::clone(&self.figures));
        ctx.spawn(wrap_future(async move {
            let Some(done) = guarded_future(&figures.holds, store.discharge(quarantined)).await else { return };
            // whoever asked may be gone; what was taken out is out
            let _ = reply.send(done);
        }));
    }
}

impl Handler<Stop> for HoldsActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.figures.holds.depth.dec();
        ctx.stop();
    }
}
