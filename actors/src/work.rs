//! What travels between the actors: an event with the means to answer for it.

use actix::{Actor, Addr, Context, Handler, Message, dev::ToEnvelope};
use smallvec::SmallVec;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::admission::{Permit, Refused};
use crate::figures::PoolFigures;
use crate::ports::Fact;
use crate::resource::ResourceActor;
use crate::rules::event::{Event, EventId, Incarnation, Receipt, Unusable};

/// What the sender's request waits for. A reply that is dropped reads as "unavailable".
pub(crate) type Answer = Result<Receipt, Refused>;

/// The means to answer for one event, and its room in the budgets until then.
#[derive(Debug)]
pub(crate) struct Ticket {
    reply: oneshot::Sender<Answer>,
    /// When it was last handed on, if it is one of the sampled ones.
    stamp: Option<Instant>,
    /// The key cache was asked, and did not know.
    pub(crate) asked: bool,
    _permit: Permit,
}

impl Ticket {
    pub(crate) fn new(reply: oneshot::Sender<Answer>, permit: Permit, sampled: bool) -> Self {
        Self { reply, stamp: sampled.then(Instant::now), asked: false, _permit: permit }
    }

    /// Tells the sender's request, if it still waits.
    pub(crate) fn answer(self, answer: Answer) {
        // the request may be gone; the event is what it is
        let _ = self.reply.send(answer);
    }

    pub(crate) fn refuse(self, refused: Refused) {
        self.answer(Err(refused));
    }

    /// How long it lay in the mailbox.
    pub(crate) fn waited(&mut self, pool: &PoolFigures) {
        if let Some(stamp) = &mut self.stamp {
            let now = Instant::now();
            pool.wait.observe(now.duration_since(*stamp).as_secs_f64());
            *stamp = now;
        }
    }
}

/// One event on its way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) event: Event,
    pub(crate) ticket: Ticket,
}

/// The next actor is asked to take an event. Boxed once, at admission.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Take(pub(crate) Box<Job>);

/// An unusable request is to be kept in quarantine.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Keep {
    pub(crate) item: Box<Unusable>,
    pub(crate) reply: oneshot::Sender<Result<EventId, Refused>>,
    pub(crate) permit: Permit,
}

/// Events of one resource (or one event of none), for one commit.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Write {
    pub(crate) jobs: SmallVec<[Box<Job>; 1]>,
    pub(crate) release: Release,
}

/// Says `Done` to the resource actor when its events are settled, however that came about.
#[derive(Debug, Default)]
pub(crate) struct Release(pub(crate) Option<Addr<ResourceActor>>);

impl Release {
    /// Nothing was handed over: the actor needs not be told.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(resource) = self.0.take() {
            // an address of its own has a place of its own in the mailbox: never refused while the actor lives
            let _ = resource.try_send(Done);
        }
    }
}

/// The commit of a resource's events is over.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Done;

/// What a commit taught.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Learnt {
    pub(crate) incarnation: Incarnation,
    pub(crate) facts: Vec<Fact>,
    /// Keys that were new to the store.
    pub(crate) new: u32,
    /// Repeats only the store knew, although the cache had been asked.
    pub(crate) repeats_asked: u32,
    /// Repeats only the store knew, the cache not having been asked.
    pub(crate) repeats_unasked: u32,
}

/// The store was asked for its incarnation, or has broken off (`None`): until somebody has seen the same
/// incarnation again, nothing is answered from memory.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Seen(pub(crate) Option<Incarnation>);

/// Stop when what is in flight is done.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Stop;

/// Puts a message into a mailbox, or gives it back with the reason.
pub(crate) fn post<A, M>(to: &Addr<A>, pool: &PoolFigures, message: M) -> Result<(), (Refused, M)>
where
    A: Actor<Context = Context<A>> + Handler<M>,
    M: Message<Result = ()> + Send + 'static,
    Context<A>: ToEnvelope<A, M>,
{
    // counted first, so that the depth never reads below zero
    pool.depth.inc();
    to.try_send(message).map_err(|error| {
        pool.depth.dec();
        match error {
            actix::prelude::SendError::Full(message) => {
                pool.full.inc();
                (Refused::Overloaded, message)
            }
            actix::prelude::SendError::Closed(message) => {
                (Refused::Unavailable(format!("the {} actor has stopped", pool.name)), message)
            }
        }
    })
}
