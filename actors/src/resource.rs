//! One live resource: takes its events in the order they came, one commit in flight.
//!
//! Owns the events of its resource that wait. Promises arrival order into the store, and that what waits
//! while a commit runs goes together in the next one. Knows no state of the resource: that is in the store,
//! so the actor may stop whenever nothing waits. When the writer refuses, so does the actor.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, AsyncContext, Context, Handler};
use smallvec::SmallVec;

use crate::admission::Refused;
use crate::figures::Figures;
use crate::live::Work;
use crate::supervise::guarded;
use crate::turn::{Turn, gather};
use crate::work::{Done, Job, Release, Take, Write, post};
use crate::writer::WriterActor;

/// How many events wait in the resource actors of a shard; shared with its writer on the same arbiter.
pub(crate) type Waiting = Rc<Cell<usize>>;

/// What the resource actors of a shard share.
pub(crate) struct Desk {
    pub(crate) writer: Addr<WriterActor>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) mailbox: usize,
    /// The most events of one resource in one commit, in events and in bytes.
    pub(crate) gather_events: usize,
    pub(crate) gather_bytes: usize,
    /// The most events of one resource that wait.
    pub(crate) waiting_max: usize,
    /// Events that wait in any resource actor of the shard, for the writer to see.
    pub(crate) waiting: Waiting,
}

impl Desk {
    /// Hands events to the writer, or answers for it.
    pub(crate) fn write(&self, write: Write) -> Result<(), u32> {
        post(&self.writer, &self.figures.writer, write).map_err(|(refused, mut write)| {
            write.release.disarm();
            let count = write.jobs.len();
            for job in std::mem::take(&mut write.jobs) {
                job.ticket.refuse(refused.clone());
            }
            u32::try_from(count).unwrap_or(u32::MAX)
        })
    }
}

/// Third of a shard's line of actors; about a kilobyte each.
pub(crate) struct ResourceActor {
    desk: Rc<Desk>,
    work: Work,
    waiting: VecDeque<Box<Job>>,
    in_flight: u32,
    /// Events received and not settled; what lies in the mailbox is in `work` only.
    received: u32,
}

impl ResourceActor {
    pub(crate) fn wake(desk: Rc<Desk>, work: Work) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(desk.mailbox);
            Self { desk, work, waiting: VecDeque::new(), in_flight: 0, received: 0 }
        })
    }

    fn take(&mut self, mut job: Box<Job>) {
        job.ticket.waited(&self.desk.figures.resource);
        if self.waiting.len() < self.desk.waiting_max {
            self.waiting.push_back(job);
            self.desk.waiting.set(self.desk.waiting.get() + 1);
        } else {
            self.desk.figures.resource.full.inc();
            self.settled(1);
            job.ticket.refuse(Refused::Overloaded);
        }
    }

    /// Hands what waits to the writer: as much as one commit may hold of one resource.
    fn hand_over(&mut self, ctx: &Context<Self>) {
        while self.in_flight == 0 && !self.waiting.is_empty() {
            let mut bytes = 0;
            let mut jobs = SmallVec::new();
            while let Some(job) = self.waiting.front() {
                bytes += job.event.weight();
                if !jobs.is_empty() && (jobs.len() >= self.desk.gather_events || bytes > self.desk.gather_bytes) {
                    break;
                }
                jobs.extend(self.waiting.pop_front());
            }
            self.left(jobs.len());
            let count = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
            let release = Release(Some(ctx.address()));
            match self.desk.write(Write { jobs, release }) {
                Ok(()) => self.in_flight = count,
                Err(refused) => self.settled(refused),
            }
        }
    }

    fn settled(&mut self, count: u32) {
        self.received = self.received.saturating_sub(count);
        self.work.set(self.work.get().saturating_sub(count));
    }

    fn left(&self, count: usize) {
        self.desk.waiting.set(self.desk.waiting.get().saturating_sub(count));
    }

    /// After a panic only the commit in flight is known to be there.
    fn reset(&mut self) {
        self.left(self.waiting.len());
        self.waiting.clear();
        self.settled(self.received - self.in_flight.min(self.received));
    }
}

impl Actor for ResourceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.desk.figures.resource.actors.inc();
        gather(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.desk.figures.resource.actors.dec();
    }
}

impl Turn for ResourceActor {
    fn turn(&mut self, ctx: &mut Context<Self>) {
        if self.in_flight > 0 || self.waiting.is_empty() {
            return;
        }
        let desk = Rc::clone(&self.desk);
        if guarded(&desk.figures.resource, || self.hand_over(ctx)).is_none() {
            self.reset();
        }
    }

    fn at_rest(&self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty()
    }
}

impl Handler<Take> for ResourceActor {
    type Result = ();

    fn handle(&mut self, Take(job): Take, _: &mut Context<Self>) {
        self.desk.figures.resource.depth.dec();
        self.received += 1;
        let desk = Rc::clone(&self.desk);
        if guarded(&desk.figures.resource, || self.take(job)).is_none() {
            self.reset();
        }
    }
}

impl Handler<Done> for ResourceActor {
    type Result = ();

    fn handle(&mut self, _: Done, _: &mut Context<Self>) {
        self.settled(self.in_flight);
        self.in_flight = 0;
    }
}
