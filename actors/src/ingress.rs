//! The entrance: admits events and quarantined requests and sends each to its shard.
//!
//! Owns one actor on each HTTP worker thread, with one address per shard. Promises an answer within the
//! stated time, and that a caller who goes away never harms a commit: the work is in actors, not in the
//! caller's future. Knows nothing of HTTP. A full budget, mailbox or queue is an answer (I15).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use tokio::sync::oneshot;

use crate::admission::{Admission, Permit, Refused};
use crate::dedup::DedupActor;
use crate::figures::Figures;
use crate::rules::event::{Event, EventId, Receipt, Unusable};
use crate::supervise::guarded;
use crate::work::{Job, Keep, Take, Ticket, post};

/// One event in so many is timed at every hop.
const SAMPLE_EVERY: u32 = 16;

/// The way into the engine for one thread. Not to be cloned: its address is what the mailbox bound counts.
#[derive(Debug)]
pub struct Ingress {
    actor: Addr<IngressActor>,
    admission: Arc<Admission>,
    figures: Arc<Figures>,
    answer_within: Duration,
    taken: std::sync::atomic::AtomicU32,
}

impl Ingress {
    pub(crate) fn start(
        shards: Vec<Addr<DedupActor>>,
        mailbox: usize,
        answer_within: Duration,
        admission: Arc<Admission>,
        figures: Arc<Figures>,
    ) -> Self {
        let of_actor = Arc::clone(&figures);
        let actor = IngressActor::create(|ctx| {
            ctx.set_mailbox_capacity(mailbox);
            IngressActor { shards, figures: of_actor }
        });
        Self { actor, admission, figures, answer_within, taken: 0.into() }
    }

    /// Room for a request of so many bytes, before its body is read. The permit can grow.
    pub fn reserve(&self, bytes: usize) -> Result<Permit, Refused> {
        self.admission.reserve(bytes).inspect_err(|refused| self.figures.refuse(refused))
    }

    /// Takes an event: the answer comes when its commit has returned (I1). The event is on its way when
    /// this returns; the future only waits.
    pub fn take(&self, event: Event, mut permit: Permit) -> impl Future<Output = Result<Receipt, Refused>> + use<'_> {
        let (reply, answer) = oneshot::channel();
        let admitted = permit.admit().and_then(|()| {
            let count = self.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let ticket = Ticket::new(reply, permit, count.is_multiple_of(SAMPLE_EVERY));
            let job = Take(Box::new(Job { event, ticket }));
            post(&self.actor, &self.figures.ingress, job).map_err(|(refused, _)| refused)
        });
        self.wait(admitted, answer)
    }

    /// Keeps an authentic but unusable request in quarantine.
    pub fn quarantine(
        &self,
        item: Unusable,
        mut permit: Permit,
    ) -> impl Future<Output = Result<EventId, Refused>> + use<'_> {
        let (reply, answer) = oneshot::channel();
        let admitted = permit.admit().and_then(|()| {
            let keep = Keep { item: Box::new(item), reply, permit };
            post(&self.actor, &self.figures.ingress, keep).map_err(|(refused, _)| refused)
        });
        self.wait(admitted, answer)
    }

    async fn wait<T>(
        &self,
        admitted: Result<(), Refused>,
        answer: oneshot::Receiver<Result<T, Refused>>,
    ) -> Result<T, Refused> {
        let result = match admitted {
            Err(refused) => Err(refused),
            Ok(()) => match tokio::time::timeout(self.answer_within, answer).await {
                Err(_) => Err(Refused::TooLate),
                Ok(Err(_)) => Err(Refused::Unavailable("the work failed and was given up".to_owned())),
                Ok(Ok(answer)) => answer,
            },
        };
        result.inspect_err(|refused| self.figures.refuse(refused))
    }
}

/// Sends each event to the shard of its first resource, or of its key.
#[derive(Debug)]
pub(crate) struct IngressActor {
    shards: Vec<Addr<DedupActor>>,
    figures: Arc<Figures>,
}

impl IngressActor {
    fn route(&self, mut job: Box<Job>) {
        job.ticket.waited(&self.figures.ingress);
        let shards = self.shards.len();
        let event = &job.event;
        let shard = match event.guards.first() {
            Some(guard) => guard.resource.hash.shard(shards),
            None => event.key.hash.shard(shards),
        };
        if let Err((refused, Take(job))) = post(&self.shards[shard], &self.figures.dedup, Take(job)) {
            job.ticket.refuse(refused);
        }
    }

    fn keep(&self, keep: Keep) {
        let shard = usize::from(keep.item.digest.0[0]) % self.shards.len();
        if let Err((refused, keep)) = post(&self.shards[shard], &self.figures.dedup, keep) {
            let _ = keep.reply.send(Err(refused));
        }
    }
}

impl Actor for IngressActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.figures.ingress.actors.inc();
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.figures.ingress.actors.dec();
    }
}

impl Handler<Take> for IngressActor {
    type Result = ();

    fn handle(&mut self, Take(job): Take, _: &mut Context<Self>) {
        self.figures.ingress.depth.dec();
        guarded(&self.figures.ingress, || self.route(job));
    }
}

impl Handler<Keep> for IngressActor {
    type Result = ();

    fn handle(&mut self, keep: Keep, _: &mut Context<Self>) {
        self.figures.ingress.depth.dec();
        guarded(&self.figures.ingress, || self.keep(keep));
    }
}
