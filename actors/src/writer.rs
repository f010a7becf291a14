//! The writer of a shard: one session, one transaction per batch.
//!
//! Owns its session, opened on its own arbiter, and the groups that wait for the next commit. Promises one
//! commit at a time, none ever cancelled, and a batch of whatever waited while the last one ran (bounded in
//! events and bytes, no lingering). Knows nothing of SQL. While the store is away it answers "unavailable"
//! at once and reopens with growing pauses; a refused batch is split until only the bad event fails (I14);
//! an unknown commit is answered as unknown (I1). A session that failed is dropped.

mod commit;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::fut::{ActorFutureExt as _, wrap_future};
use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};
use tokio::time::Instant;

use self::commit::{Batch, Line};
use crate::admission::Refused;
use crate::alarm::Alarms;
use crate::dedup::DedupActor;
use crate::figures::Figures;
use crate::ports::Store;
use crate::resource::Waiting;
use crate::supervise::{guarded, guarded_future};
use crate::turn::{Turn, gather};
use crate::work::{Keep, Seen, Stop, Write, post};

/// Bounds and pauses of a writer.
#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    pub(crate) batch_events: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) waiting_max: usize,
    pub(crate) open_within: Duration,
    pub(crate) pause_min: Duration,
    pub(crate) pause_max: Duration,
}

/// Where the writer stands with its store.
enum Stand {
    /// A session is being opened; what comes waits until the time is up.
    Opening { until: Instant },
    /// The last try failed; the next one comes after a pause.
    Away { why: String },
    /// Ready for the next batch.
    Idle(Box<Line>),
    /// A commit is in flight.
    Busy,
}

/// Last of a shard's line of actors.
pub(crate) struct WriterActor {
    store: Arc<dyn Store>,
    dedup: Addr<DedupActor>,
    alarms: Arc<Alarms>,
    figures: Arc<Figures>,
    settings: WriterSettings,
    up: Arc<AtomicBool>,
    resources_wait: Waiting,
    stand: Stand,
    pause: Duration,
    groups: VecDeque<Write>,
    events: usize,
    keeps: VecDeque<Keep>,
}

impl WriterActor {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        dedup: Addr<DedupActor>,
        alarms: Arc<Alarms>,
        figures: Arc<Figures>,
        settings: WriterSettings,
        up: Arc<AtomicBool>,
        resources_wait: Waiting,
    ) -> Self {
        Self {
            store,
            dedup,
            alarms,
            figures,
            pause: settings.pause_min,
            settings,
            up,
            resources_wait,
            stand: Stand::Away { why: "not opened yet".to_owned() },
            groups: VecDeque::new(),
            events: 0,
            keeps: VecDeque::new(),
        }
    }

    fn write(&mut self, mut write: Write) {
        for job in &mut write.jobs {
            job.ticket.waited(&self.figures.writer);
        }
        if self.events + self.keeps.len() >= self.settings.waiting_max {
            self.figures.writer.full.inc();
            return refuse_group(write, &Refused::Overloaded);
        }
        self.events += write.jobs.len();
        self.groups.push_back(write);
    }

    fn keep(&mut self, keep: Keep) {
        if self.events + self.keeps.len() >= self.settings.waiting_max {
            self.figures.writer.full.inc();
            let _ = keep.reply.send(Err(Refused::Overloaded));
            return;
        }
        self.keeps.push_back(keep);
    }

    /// The next batch: what waits, within the bounds, but at least one group.
    fn gather(&mut self) -> Batch {
        let (mut events, mut bytes) = (0, 0);
        let mut groups = Vec::new();
        while let Some(group) = self.groups.front() {
            events += group.jobs.len();
            bytes += group.jobs.iter().map(|job| job.event.weight()).sum::<usize>();
            let full = events > self.settings.batch_events || bytes > self.settings.batch_bytes;
            if full && !groups.is_empty() {
                break;
            }
            self.events = self.events.saturating_sub(group.jobs.len());
            groups.extend(self.groups.pop_front());
        }
        let keeps = self.keeps.len().min(self.settings.batch_events);
        Batch { groups, keeps: self.keeps.drain(..keeps).collect() }
    }

    fn commit(&mut self, ctx: &mut Context<Self>) {
        if !matches!(self.stand, Stand::Idle(_)) || (self.groups.is_empty() && self.keeps.is_empty()) {
            return;
        }
        let batch = self.gather();
        let Stand::Idle(line) = std::mem::replace(&mut self.stand, Stand::Busy) else { return };
        let figures = Arc::clone(&self.figures);
        let work = async move { guarded_future(&figures.writer, line.write(batch)).await };
        ctx.spawn(wrap_future::<_, Self>(work).map(|line, actor, ctx| {
            match line {
                Some(line) if line.has_session() => actor.stand = Stand::Idle(line),
                // the session was dropped, by an error or with the panicking future
                _ => actor.reopen(ctx),
            }
            actor.turn(ctx);
        }));
    }

    /// The first try comes at once, and what waits may wait for it.
    fn reopen(&mut self, ctx: &mut Context<Self>) {
        let _ = post(&self.dedup, &self.figures.dedup, Seen(None));
        self.open(ctx);
    }

    fn open(&mut self, ctx: &mut Context<Self>) {
        self.stand = Stand::Opening { until: Instant::now() + self.settings.open_within };
        let (store, figures) = (Arc::clone(&self.store), Arc::clone(&self.figures));
        let opening = async move { guarded_future(&figures.writer, async move { store.open().await }).await };
        ctx.run_later(self.settings.open_within, |actor, ctx| actor.turn(ctx));
        ctx.spawn(wrap_future::<_, Self>(opening).map(|opened, actor, ctx| {
            match opened {
                Some(Ok(session)) => {
                    actor.up.store(true, Ordering::Relaxed);
                    actor.pause = actor.settings.pause_min;
                    let line = Line::new(session, actor);
                    actor.stand = Stand::Idle(Box::new(line));
                }
                Some(Err(error)) => actor.away(error.to_string(), ctx),
                None => actor.away("opening a session failed".to_owned(), ctx),
            }
            actor.turn(ctx);
        }));
    }

    fn away(&mut self, why: String, ctx: &mut Context<Self>) {
        if self.up.swap(false, Ordering::Relaxed) {
            tracing::warn!(why, "a writer lost the store; events are refused until it is back");
        }
        self.stand = Stand::Away { why };
        ctx.run_later(self.pause, |actor, ctx| {
            if matches!(actor.stand, Stand::Away { .. }) {
                actor.open(ctx);
            }
        });
        self.pause = (self.pause * 2).min(self.settings.pause_max);
    }

    /// Nobody waits for a store that is away.
    fn refuse_waiting(&mut self) {
        let why = match &self.stand {
            Stand::Away { why } => why.clone(),
            Stand::Opening { until } if Instant::now() >= *until => "the store does not answer".to_owned(),
            _ => return,
        };
        let refused = Refused::Unavailable(why);
        self.events = 0;
        for group in self.groups.drain(..) {
            refuse_group(group, &refused);
        }
        for keep in self.keeps.drain(..) {
            let _ = keep.reply.send(Err(refused.clone()));
        }
    }

    /// Runs work of a handler; a panic in it is counted, and the actor starts clean.
    fn or_reset(&mut self, work: impl FnOnce(&mut Self)) {
        let figures = Arc::clone(&self.figures);
        if guarded(&figures.writer, || work(self)).is_none() {
            self.reset();
        }
    }

    /// After a panic in a handler: whoever waited is told by the dropped reply; a commit in flight goes on.
    fn reset(&mut self) {
        self.groups.clear();
        self.keeps.clear();
        self.events = 0;
    }
}

fn refuse_group(mut write: Write, refused: &Refused) {
    for job in std::mem::take(&mut write.jobs) {
        job.ticket.refuse(refused.clone());
    }
}

impl Actor for WriterActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.writer.actors.inc();
        gather(ctx);
        self.open(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.writer.actors.dec();
    }
}

impl Turn for WriterActor {
    fn turn(&mut self, ctx: &mut Context<Self>) {
        self.or_reset(|actor| {
            actor.refuse_waiting();
            actor.commit(ctx);
        });
    }

    fn at_rest(&self) -> bool {
        self.groups.is_empty() && self.keeps.is_empty() && !matches!(self.stand, Stand::Busy)
    }
}

impl Handler<Write> for WriterActor {
    type Result = ();

    fn handle(&mut self, write: Write, _: &mut Context<Self>) {
        self.figures.writer.depth.dec();
        self.or_reset(|actor| actor.write(write));
    }
}

impl Handler<Keep> for WriterActor {
    type Result = ();

    fn handle(&mut self, keep: Keep, _: &mut Context<Self>) {
        self.figures.writer.depth.dec();
        self.or_reset(|actor| actor.keep(keep));
    }
}

impl Handler<Stop> for WriterActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.figures.writer.depth.dec();
        ctx.stop();
    }
}
