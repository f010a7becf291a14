//! Finds, wakes and passivates the resource actors of a shard.
//!
//! Owns the table of live resources. Promises one actor for each live resource, a hard bound on them, and
//! that none with work in flight is stopped: a second one would break "one commit in flight". Knows nothing
//! of what events mean; one with several guards goes by its first, and the store's row locks do the rest.
//! When every live resource has work, the answer is "overloaded". Nothing is lost with an actor: its state
//! is in the store.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};
use smallvec::smallvec;

use crate::admission::Refused;
use crate::figures::Figures;
use crate::live::{Live, Work};
use crate::resource::{Desk, ResourceActor};
use crate::supervise::guarded;
use crate::work::{Job, Release, Stop, Take, Write, post};

/// How often idle resources are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Second of a shard's line of actors.
pub(crate) struct OrderingActor {
    desk: Rc<Desk>,
    live: Live<Addr<ResourceActor>>,
    /// Sweeps done, the clock of "last used".
    now: u64,
    idle_sweeps: u64,
    counted: usize,
    figures: Arc<Figures>,
}

impl OrderingActor {
    pub(crate) fn new(desk: Desk, live_max: usize, idle: Duration, figures: Arc<Figures>) -> Self {
        let idle_sweeps = idle.as_secs().max(1);
        Self { desk: Rc::new(desk), live: Live::new(live_max), now: 0, idle_sweeps, counted: 0, figures }
    }

    fn take(&mut self, mut job: Box<Job>) {
        job.ticket.waited(&self.figures.ordering);
        let Some(hash) = job.event.guards.first().map(|guard| guard.resource.hash) else {
            let write = Write { jobs: smallvec![job], release: Release::default() };
            // refused ones were answered
            let _ = self.desk.write(write);
            return;
        };
        if let Some((resource, work)) = self.live.touch(&hash, self.now)
            && resource.connected()
        {
            return hand_over(resource, work, &self.figures, job);
        }
        // an actor that died all the same is replaced
        self.live.forget(&hash);
        match self.live.make_room() {
            Err(()) => return job.ticket.refuse(Refused::Overloaded),
            Ok(Some(_stops_by_itself)) => {
                self.figures.passivated.inc();
            }
            Ok(None) => {}
        }
        let work = Rc::new(Cell::new(0));
        let resource = ResourceActor::wake(Rc::clone(&self.desk), Rc::clone(&work));
        self.figures.woken.inc();
        hand_over(&resource, &work, &self.figures, job);
        self.live.insert(hash, resource, work, self.now);
        self.count_live();
    }

    fn sweep(&mut self) {
        self.now += 1;
        let before = (self.now + 1).saturating_sub(self.idle_sweeps);
        while self.live.pop_idle(before).is_some() {
            self.figures.passivated.inc();
        }
        self.count_live();
    }

    fn count_live(&mut self) {
        let now = self.live.len();
        self.figures.live.inc_by(now as i64 - self.counted as i64);
        self.counted = now;
    }
}

/// The work is counted before the actor has it: from now on it must not be passivated.
fn hand_over(resource: &Addr<ResourceActor>, work: &Work, figures: &Figures, job: Box<Job>) {
    work.set(work.get() + 1);
    if let Err((refused, Take(job))) = post(resource, &figures.resource, Take(job)) {
        work.set(work.get().saturating_sub(1));
        job.ticket.refuse(refused);
    }
}

impl Actor for OrderingActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.ordering.actors.inc();
        ctx.run_interval(SWEEP_EVERY, |actor, _| {
            let figures = Arc::clone(&actor.figures);
            guarded(&figures.ordering, || actor.sweep());
        });
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.ordering.actors.dec();
        self.live.clear();
        self.count_live();
    }
}

impl Handler<Take> for OrderingActor {
    type Result = ();

    fn handle(&mut self, Take(job): Take, _: &mut Context<Self>) {
        self.figures.ordering.depth.dec();
        // no reset after a panic: the table must keep every actor that may have a commit in flight
        let figures = Arc::clone(&self.figures);
        guarded(&figures.ordering, || self.take(job));
    }
}

impl Handler<Stop> for OrderingActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.figures.ordering.depth.dec();
        ctx.stop();
    }
}
