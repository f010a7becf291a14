//! Answers repeats without the store, as far as they are known for sure.
//!
//! Owns the keys this process committed lately, the lookups in the key cache, and the facts still to be
//! written to it. Promises that only a key with the same body, done under the current incarnation, is
//! answered as a duplicate (I7, I8), and that events keep their arrival order through a lookup. Knows
//! nothing of resources. Anything odd, late or broken about the cache is a miss: the store decides.

mod cache;

use std::collections::VecDeque;
use std::sync::Arc;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler};

use self::cache::CacheLine;
use crate::figures::{Figures, Tally};
use crate::ordering::OrderingActor;
use crate::rules::event::{EventId, Incarnation, Receipt, Verdict};
use crate::rules::lookup::Ask;
use crate::rules::recent::Recent;
use crate::supervise::guarded;
use crate::turn::{Turn, gather};
use crate::work::{Job, Keep, Learnt, Seen, Stop, Take, post};
use crate::writer::WriterActor;

pub(crate) use self::cache::CacheSettings;

/// First of a shard's line of actors.
#[expect(clippy::vec_box, reason = "events travel boxed: a move of 8 bytes instead of 400 at each step")]
pub(crate) struct DedupActor {
    ordering: Addr<OrderingActor>,
    writer: Addr<WriterActor>,
    figures: Arc<Figures>,
    tally: Tally,
    recent: Recent,
    recent_counted: usize,
    incarnation: Option<Incarnation>,
    /// Somebody has seen the incarnation since the store last broke off.
    confirmed: bool,
    cache: CacheLine,
    /// Events that wait for a lookup, or behind one, in the order they came.
    waiting: VecDeque<Box<Job>>,
    waiting_max: usize,
    /// Events whose lookup is under way.
    held: Vec<Box<Job>>,
}

impl DedupActor {
    pub(crate) fn new(
        ordering: Addr<OrderingActor>,
        writer: Addr<WriterActor>,
        figures: Arc<Figures>,
        recent_keys: usize,
        waiting_max: usize,
        cache: CacheSettings,
    ) -> Self {
        Self {
            ordering,
            writer,
            tally: Tally::new(Arc::clone(&figures)),
            recent: Recent::new(recent_keys),
            recent_counted: 0,
            incarnation: None,
            confirmed: false,
            cache: CacheLine::new(cache, Arc::clone(&figures)),
            waiting: VecDeque::new(),
            waiting_max,
            held: Vec::new(),
            figures,
        }
    }

    fn take(&mut self, mut job: Box<Job>) {
        job.ticket.waited(&self.figures.dedup);
        let known = if self.confirmed { self.recent.get(&job.event.key.hash) } else { None };
        if let Some((first, digest)) = known {
            if digest == job.event.digest {
                self.figures.recent_hits.inc();
                return self.duplicate(job, first);
            }
            // the same key with other bytes: only the store may say so, and the cache has nothing to add
        } else if self.confirmed {
            match self.cache.ask() {
                Ask::Wait => job.ticket.asked = true,
                Ask::Sample => self.cache.sample(job.event.key.hash),
                Ask::No => {}
            }
        }
        let in_order = self.waiting.is_empty() && self.held.is_empty();
        if in_order && !job.ticket.asked {
            self.forward(job);
        } else if self.waiting.len() < self.waiting_max {
            self.waiting.push_back(job);
        } else {
            self.figures.dedup.full.inc();
            job.ticket.refuse(crate::admission::Refused::Overloaded);
        }
    }

    fn forward(&self, job: Box<Job>) {
        if let Err((refused, Take(job))) = post(&self.ordering, &self.figures.ordering, Take(job)) {
            job.ticket.refuse(refused);
        }
    }

    fn duplicate(&mut self, job: Box<Job>, first: EventId) {
        let Job { event, ticket } = *job;
        let receipt = Receipt { verdict: Verdict::Duplicate, id: first, tie: false, conflict: false };
        self.tally.count(&event.source, &receipt);
        ticket.answer(Ok(receipt));
    }

    /// Starts the next lookup over what waits; events at the front that need none go on at once.
    fn look_up(&mut self, ctx: &mut Context<Self>) {
        while self.held.is_empty() && !self.waiting.is_empty() {
            let count = self.waiting.len().min(self.cache.batch_max());
            let batch: Vec<Box<Job>> = self.waiting.drain(..count).collect();
            let keys: Vec<_> = batch.iter().filter(|job| job.ticket.asked).map(|job| job.event.key.hash).collect();
            let asks = !keys.is_empty() && self.confirmed && self.cache.breaker_allows();
            let Some(incarnation) = self.incarnation.filter(|_| asks) else {
                for mut job in batch {
                    job.ticket.asked = false;
                    self.forward(job);
                }
                continue;
            };
            self.held = batch;
            let lookup = self.cache.lookup(incarnation, keys);
            ctx.spawn(cache::then(lookup, move |actor: &mut Self, facts| actor.looked_up(incarnation, facts)));
        }
    }

    fn looked_up(&mut self, incarnation: Incarnation, facts: cache::Facts) {
        let same_history = self.incarnation == Some(incarnation) && self.confirmed;
        let mut facts = self.cache.looked_up(facts).into_iter();
        for job in std::mem::take(&mut self.held) {
            let fact = if job.ticket.asked { facts.next().flatten() } else { None };
            match fact {
                Some(fact) if same_history && fact.key == job.event.key.hash && fact.digest == job.event.digest => {
                    self.recent.insert(fact.key, (fact.first, fact.digest));
                    self.cache.knew();
                    self.duplicate(job, fact.first);
                }
                _ => self.forward(job),
            }
        }
    }

    fn learn(&mut self, learnt: Learnt) {
        self.see(learnt.incarnation);
        for fact in &learnt.facts {
            self.recent.insert(fact.key, (fact.first, fact.digest));
        }
        self.cache.learn(learnt);
        self.count_recent();
    }

    fn see(&mut self, incarnation: Incarnation) {
        if self.incarnation != Some(incarnation) {
            self.recent.clear();
            self.cache.forget();
            self.incarnation = Some(incarnation);
        }
        self.confirmed = true;
    }

    fn count_recent(&mut self) {
        let now = self.recent.len();
        let change = now as i64 - self.recent_counted as i64;
        self.figures.recent_keys.inc_by(change);
        self.recent_counted = now;
    }

    /// Runs work of a handler; a panic in it is counted, and the actor starts clean.
    fn or_reset(&mut self, work: impl FnOnce(&mut Self)) {
        let figures = Arc::clone(&self.figures);
        if guarded(&figures.dedup, || work(self)).is_none() {
            self.reset();
        }
    }

    /// After a panic: whoever waited is told by the dropped reply; what is known is learnt anew.
    fn reset(&mut self) {
        self.waiting.clear();
        self.held.clear();
        self.recent.clear();
        self.cache.reset();
        self.confirmed = false;
    }
}

impl Actor for DedupActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.figures.dedup.actors.inc();
        gather(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.dedup.actors.dec();
    }
}

impl Turn for DedupActor {
    fn turn(&mut self, ctx: &mut Context<Self>) {
        self.or_reset(|actor| {
            actor.look_up(ctx);
            if let Some(incarnation) = actor.incarnation {
                if let Some(put) = actor.cache.put(incarnation) {
                    ctx.spawn(cache::then(put, |actor: &mut Self, result| actor.cache.put_done(result)));
                }
                if let Some(sampling) = actor.cache.sampling(incarnation) {
                    ctx.spawn(cache::then(sampling, |actor: &mut Self, facts| actor.cache.sampled(facts)));
                }
            }
        });
    }

    fn at_rest(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty()
    }
}

impl Handler<Take> for DedupActor {
    type Result = ();

    fn handle(&mut self, Take(job): Take, _: &mut Context<Self>) {
        self.figures.dedup.depth.dec();
        self.or_reset(|actor| actor.take(job));
    }
}

impl Handler<Keep> for DedupActor {
    type Result = ();

    fn handle(&mut self, keep: Keep, _: &mut Context<Self>) {
        self.figures.dedup.depth.dec();
        if let Err((refused, keep)) = post(&self.writer, &self.figures.writer, keep) {
            let _ = keep.reply.send(Err(refused));
        }
    }
}

impl Handler<Learnt> for DedupActor {
    type Result = ();

    fn handle(&mut self, learnt: Learnt, _: &mut Context<Self>) {
        self.figures.dedup.depth.dec();
        self.or_reset(|actor| actor.learn(learnt));
    }
}

impl Handler<Seen> for DedupActor {
    type Result = ();

    fn handle(&mut self, Seen(incarnation): Seen, _: &mut Context<Self>) {
        self.figures.dedup.depth.dec();
        match incarnation {
            Some(incarnation) => self.see(incarnation),
            None => self.confirmed = false,
        }
    }
}

impl Handler<Stop> for DedupActor {
    type Result = ();

    fn handle(&mut self, stop: Stop, ctx: &mut Context<Self>) {
        self.figures.dedup.depth.dec();
        let _ = post(&self.ordering, &self.figures.ordering, stop);
        let _ = post(&self.writer, &self.figures.writer, stop);
        ctx.stop();
    }
}
