//! Looks after the store: its pulse, its clock, its incarnation, and the upkeep of its tables.
//!
//! Owns what is known of the store's health. Promises that a changed incarnation reaches every shard within
//! about a second, so that nothing is answered from the memory of another database history (I8). Knows no
//! events. A failed pulse makes the node not ready; failed upkeep is tried again at the next turn.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::fut::{ActorFutureExt as _, wrap_future};
use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};
use tokio::time::Instant;

use crate::dedup::DedupActor;
use crate::figures::Figures;
use crate::ports::{Clock, Pulse, Store, StoreError, Upkeep};
use crate::rules::event::Incarnation;
use crate::supervise::guarded_future;
use crate::work::{Seen, Stop, post};

/// What the last pulses said.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) answered: Option<Instant>,
    pub(crate) error: Option<String>,
    pub(crate) clock_difference_ms: i64,
    pub(crate) incarnation: Option<Incarnation>,
}

/// Health, readable from any thread.
#[derive(Debug)]
pub(crate) struct SharedHealth(Mutex<Health>);

impl SharedHealth {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Health {
            answered: None,
            error: Some("the store was not asked yet".to_owned()),
            clock_difference_ms: 0,
            incarnation: None,
        }))
    }

    pub(crate) fn read(&self) -> Health {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Health)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReaperSettings {
    pub(crate) pulse_every: Duration,
    pub(crate) pulse_within: Duration,
    pub(crate) upkeep_every: Duration,
}

/// One for the whole process.
pub(crate) struct ReaperActor {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    shards: Vec<Addr<DedupActor>>,
    settings: ReaperSettings,
    health: Arc<SharedHealth>,
    figures: Arc<Figures>,
}

impl ReaperActor {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        shards: Vec<Addr<DedupActor>>,
        settings: ReaperSettings,
        health: Arc<SharedHealth>,
        figures: Arc<Figures>,
    ) -> Addr<Self> {
        Self { store, clock, shards, settings, health, figures }.start()
    }

    fn pulse(&self, ctx: &mut Context<Self>) {
        let store = Arc::clone(&self.store);
        let asked_at_ms = self.clock.now_ms();
        let (figures, within) = (Arc::clone(&self.figures), self.settings.pulse_within);
        let call = async move { bounded(&figures, within, async move { store.pulse().await }).await };
        ctx.spawn(wrap_future::<_, Self>(call).map(move |result, actor, ctx| {
            actor.pulsed(asked_at_ms, result);
            ctx.run_later(actor.settings.pulse_every, |actor, ctx| actor.pulse(ctx));
        }));
    }

    fn pulsed(&self, asked_at_ms: i64, result: Result<Pulse, String>) {
        let pulse = match result {
            Ok(pulse) => pulse,
            Err(why) => {
                self.figures.store_up.set(0);
                return self.health.change(|health| {
                    if health.error.is_none() {
                        tracing::warn!(why, "the store gives no sign of life");
                    }
                    health.error = Some(why);
                });
            }
        };
        // the store read its clock somewhere between asking and hearing
        let here_ms = asked_at_ms + (self.clock.now_ms() - asked_at_ms) / 2;
        let difference_ms = pulse.now_ms - here_ms;
        self.figures.store_up.set(1);
        self.figures.clock_difference_ms.set(difference_ms);
        self.health.change(|health| {
            health.answered = Some(Instant::now());
            health.error = None;
            health.clock_difference_ms = difference_ms;
            if health.incarnation.is_some_and(|known| known != pulse.incarnation) {
                tracing::warn!("the store has another history now; what this node remembers is forgotten");
            }
            health.incarnation = Some(pulse.incarnation);
        });
        for shard in &self.shards {
            // a full mailbox hears of it with the next pulse
            let _ = post(shard, &self.figures.dedup, Seen(Some(pulse.incarnation)));
        }
    }

    fn upkeep(&self, ctx: &mut Context<Self>) {
        let (store, figures) = (Arc::clone(&self.store), Arc::clone(&self.figures));
        let call = async move { guarded_future(&figures.reaper, async move { store.upkeep().await }).await };
        ctx.spawn(wrap_future::<_, Self>(call).map(|result, actor, ctx| {
            actor.kept_up(result);
            ctx.run_later(actor.settings.upkeep_every, |actor, ctx| actor.upkeep(ctx));
        }));
    }

    fn kept_up(&self, result: Option<Result<Upkeep, StoreError>>) {
        match result {
            Some(Ok(upkeep)) => {
                self.figures.upkeep_dropped.inc_by(upkeep.dropped);
                if upkeep != Upkeep::default() {
                    tracing::info!(rotated = upkeep.keys_rotated, dropped = upkeep.dropped, "the store was kept up");
                }
            }
            Some(Err(error)) => tracing::warn!(%error, "the upkeep of the store failed and is tried again later"),
            None => {}
        }
    }
}

async fn bounded<T>(
    figures: &Arc<Figures>,
    within: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, String> {
    match guarded_future(&figures.reaper, tokio::time::timeout(within, call)).await {
        Some(Ok(Ok(value))) => Ok(value),
        Some(Ok(Err(error))) => Err(error.to_string()),
        Some(Err(_)) => Err(format!("no answer within {} ms", within.as_millis())),
        None => Err("asking failed".to_owned()),
    }
}

impl Actor for ReaperActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.reaper.actors.inc();
        self.pulse(ctx);
        self.upkeep(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.reaper.actors.dec();
    }
}

impl Handler<Stop> for ReaperActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.figures.reaper.depth.dec();
        ctx.stop();
    }
}
