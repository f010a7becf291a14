//! One batch through the session: commits, splits what the store refuses, and answers everybody.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix::Addr;
use tokio::time::Instant;

use super::WriterActor;
use crate::admission::Refused;
use crate::alarm::Alarms;
use crate::dedup::DedupActor;
use crate::figures::{Figures, Tally};
use crate::ports::{Committed, Fact, Outcome, Session, Store, StoreError, Waits};
use crate::resource::Waiting;
use crate::rules::event::{Event, Receipt, Unusable, Verdict};
use crate::work::{Job, Keep, Learnt, Ticket, Write, post};

/// What goes into one turn of the session.
pub(super) struct Batch {
    pub(super) groups: Vec<Write>,
    pub(super) keeps: Vec<Keep>,
}

/// The session with all that a commit needs; it travels into the commit's future and back.
pub(super) struct Line {
    session: Option<Box<dyn Session>>,
    store: Arc<dyn Store>,
    dedup: Addr<DedupActor>,
    alarms: Arc<Alarms>,
    figures: Arc<Figures>,
    tally: Tally,
    resources_wait: Waiting,
    events: Vec<Event>,
    tickets: Vec<Ticket>,
}

impl Line {
    pub(super) fn new(session: Box<dyn Session>, writer: &WriterActor) -> Self {
        Self {
            session: Some(session),
            store: Arc::clone(&writer.store),
            dedup: writer.dedup.clone(),
            alarms: Arc::clone(&writer.alarms),
            figures: Arc::clone(&writer.figures),
            tally: Tally::new(Arc::clone(&writer.figures)),
            resources_wait: Rc::clone(&writer.resources_wait),
            events: Vec::new(),
            tickets: Vec::new(),
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Writes a batch and answers for each part of it.
    pub(super) async fn write(mut self: Box<Self>, batch: Batch) -> Box<Self> {
        let Batch { groups, keeps } = batch;
        let mut releases = Vec::with_capacity(groups.len());
        for Write { jobs, release } in groups {
            for job in jobs {
                let Job { event, ticket } = *job;
                self.events.push(event);
                self.tickets.push(ticket);
            }
            releases.push(release);
        }
        if !self.events.is_empty() {
            let events = std::mem::take(&mut self.events);
            self.events = self.commit_all(events).await;
        }
        // resources go on before the quarantine is written
        drop(releases);
        if !keeps.is_empty() {
            self.quarantine_all(keeps).await;
        }
        if self.resources_wait.get() > 0 {
            // what waits for this commit shall be in the next one, not in the one after
            BehindOthers { queued: false }.await;
        }
        self
    }

    /// Commits the events as one batch; halves it as long as the store refuses, so that one bad event fails
    /// alone. Gives the emptied list back, for its memory.
    async fn commit_all(&mut self, mut events: Vec<Event>) -> Vec<Event> {
        let mut tickets = std::mem::take(&mut self.tickets);
        let mut open = tickets.drain(..);
        let mut parts = Vec::from_iter([whole(&events)]);
        while let Some(part) = parts.pop() {
            let started = Instant::now();
            let result = match self.session().await {
                Ok(session) => session.commit(&events[part.clone()]).await,
                Err(error) => Err(error),
            };
            let refused = match result {
                Ok(committed) if committed.outcomes.len() == part.len() => {
                    self.figures.writer.service.observe(started.elapsed().as_secs_f64());
                    self.figures.batch_events.observe(part.len() as f64);
                    self.settle(&events[part], open.by_ref(), &committed);
                    continue;
                }
                Ok(odd) => Refused::Unknown(format!(
                    "the store gave {} outcomes for {} events",
                    odd.outcomes.len(),
                    part.len()
                )),
                Err(StoreError::Refused(_) | StoreError::Full(_)) if part.len() > 1 => {
                    self.session = None;
                    parts.extend(halves(part));
                    continue;
                }
                Err(error) => self.refused(error),
            };
            self.session = None;
            open.by_ref().take(part.len()).for_each(|ticket| ticket.refuse(refused.clone()));
        }
        drop(open);
        self.tickets = tickets;
        events.clear();
        events
    }

    fn settle(&mut self, events: &[Event], tickets: impl Iterator<Item = Ticket>, committed: &Committed) {
        if committed.waits != Waits::default() {
            self.figures.waited(&committed.waits);
            self.alarms.heed(&committed.waits);
        }
        let mut tickets = tickets.take(events.len()).peekable();
        let mut answers = Vec::with_capacity(events.len());
        let mut learnt = Learnt {
            incarnation: committed.incarnation,
            facts: Vec::with_capacity(events.len()),
            new: 0,
            repeats_asked: 0,
            repeats_unasked: 0,
        };
        for (event, outcome) in events.iter().zip(&committed.outcomes) {
            let Some(ticket) = tickets.next() else { break };
            let Some(receipt) = receipt(event, *outcome) else {
                answers.push((ticket, Err(Refused::EffectFailed)));
                continue;
            };
            self.tally.count(&event.source, &receipt);
            learn(&mut learnt, event, *outcome, ticket.asked);
            answers.push((ticket, Ok(receipt)));
        }
        // before the answers, so that a sender who repeats at once meets what is known
        if let Err((_, learnt)) = post(&self.dedup, &self.figures.dedup, learnt) {
            self.figures.cache.dropped.inc_by(learnt.facts.len() as u64);
        }
        for (ticket, answer) in answers {
            match answer {
                Ok(receipt) => ticket.answer(Ok(receipt)),
                Err(refused) => ticket.refuse(refused),
            }
        }
    }

    async fn quarantine_all(&mut self, keeps: Vec<Keep>) {
        let mut items: Vec<Unusable> = Vec::with_capacity(keeps.len());
        let mut replies = Vec::with_capacity(keeps.len());
        for keep in keeps {
            items.push(*keep.item);
            replies.push((keep.reply, keep.permit));
        }
        let mut open = replies.into_iter();
        let mut parts = Vec::from_iter([whole(&items)]);
        while let Some(part) = parts.pop() {
            let result = match self.session().await {
                Ok(session) => session.quarantine(&items[part.clone()]).await,
                Err(error) => Err(error),
            };
            let refused = match result {
                Ok(ids) if ids.len() == part.len() => {
                    for (id, item) in ids.into_iter().zip(&items[part]) {
                        self.tally.count_quarantined(&item.source);
                        if let Some((reply, _permit)) = open.next() {
                            let _ = reply.send(Ok(id));
                        }
                    }
                    continue;
                }
                Ok(odd) => Refused::Unknown(format!("the store gave {} ids for {} requests", odd.len(), part.len())),
                Err(StoreError::Refused(_) | StoreError::Full(_)) if part.len() > 1 => {
                    self.session = None;
                    parts.extend(halves(part));
                    continue;
                }
                Err(error) => self.refused(error),
            };
            self.session = None;
            for (reply, _permit) in open.by_ref().take(part.len()) {
                let _ = reply.send(Err(refused.clone()));
            }
        }
    }

    /// The session, opened again if the part before lost it.
    async fn session(&mut self) -> Result<&mut Box<dyn Session>, StoreError> {
        if self.session.is_none() {
            self.session = Some(self.store.open().await?);
        }
        self.session.as_mut().ok_or_else(|| StoreError::Unavailable("no session".to_owned()))
    }

    fn refused(&self, error: StoreError) -> Refused {
        match error {
            StoreError::Unavailable(why) => Refused::Unavailable(why),
            StoreError::Unknown(why) => Refused::Unknown(why),
            StoreError::Full(why) => {
                tracing::warn!(why, "an event is refused until there is room");
                Refused::Overloaded
            }
            StoreError::Refused(why) => {
                tracing::error!(why, "the store refuses an event");
                Refused::Rejected(why)
            }
        }
    }
}

/// Goes to the end of the arbiter's queue, once: behind the resource actors that were just released. The
/// runtime's own yield would go through a poll of all input and output.
struct BehindOthers {
    queued: bool,
}

impl Future for BehindOthers {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.queued {
            return Poll::Ready(());
        }
        self.queued = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn whole<T>(items: &[T]) -> Range<usize> {
    0..items.len()
}

/// The left half last, so that it is popped first and events keep their order.
fn halves(part: Range<usize>) -> [Range<usize>; 2] {
    let middle = part.start + part.len() / 2;
    [middle..part.end, part.start..middle]
}

/// What its sender is told; `None` where nothing of the event is stored.
fn receipt(event: &Event, outcome: Outcome) -> Option<Receipt> {
    let of = |verdict, id, tie, conflict| Some(Receipt { verdict, id, tie, conflict });
    match outcome {
        Outcome::Applied { tie } => of(Verdict::Applied, event.id, tie, false),
        Outcome::Stale { tie } => of(Verdict::Stale, event.id, tie, false),
        Outcome::Held => of(Verdict::Held, event.id, false, false),
        Outcome::Ignored => of(Verdict::Ignored, event.id, false, false),
        Outcome::Failed => None,
        Outcome::Repeat { first } => of(Verdict::Duplicate, first, false, false),
        Outcome::Duplicate { first, conflict } => of(Verdict::Duplicate, first, false, conflict),
    }
}

/// A key is known from now on, with the event that claimed it and the digest of that event's body. Of a conflict
/// only the store knows that digest; a repeat under a new id claimed its own key.
fn learn(learnt: &mut Learnt, event: &Event, outcome: Outcome, asked: bool) {
    let first = match outcome {
        Outcome::Duplicate { first, conflict } => {
            if asked {
                learnt.repeats_asked += 1;
            } else {
                learnt.repeats_unasked += 1;
            }
            (!conflict).then_some(first)
        }
        _ => {
            learnt.new += 1;
            Some(event.id)
        }
    };
    if let Some(first) = first {
        learnt.facts.push(Fact { key: event.key.hash, first, digest: event.digest });
    }
}
