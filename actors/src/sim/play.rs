//! Plays a plan: one thing after another, in driven time, through as many lives as the plan has kills.
//!
//! Owns the world that outlives a process: senders, faults, cache, store, ledger, time. Promises that nothing
//! but the plan and the engine's answers decides what happens. A life is a runtime of its own; when every node
//! is killed, it is dropped where it stands, and the next one begins at that instant.

mod faults;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Either, LocalBoxFuture, abortable, select};
use futures_util::stream::FuturesUnordered;

use super::backend::{Backend, Opened, Place, hold_time};
use super::board::Board;
use super::cache::Shared;
use super::check::parked;
use super::clock::{DrivenClock, NodeClock};
use super::fault::FaultName;
use super::ledger::Ledger;
use super::node::{Answers, Node, Start, Wrapping, alive, heard};
use super::plan::{Fate, Hop};
use super::prepared::Prepared;
use super::senders::{Heard, Senders, Stand};
use super::store::Ground;
use super::trace::Happened;
use crate::ports::{Reader, StoreError};

/// How often it is looked whether everything is settled.
const LOOK_EVERY_MS: u64 = 250;
/// At least so long after healing began, so that pulses have come round.
const HEAL_AT_LEAST_MS: u64 = 4_000;

/// What comes next, at its time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Ready { message: u32 },
    Arrive { way: Way },
    Hear { message: u32, attempt: u32, heard: Heard },
    TimeOut { message: u32, attempt: u32 },
    FaultBegins(u32),
    FaultEnds(u32),
    Start { node: u32 },
    Heal,
    Look,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    message: u32,
    attempt: u32,
    copy: bool,
    hop: Hop,
}

/// What came of something under way.
enum Came {
    Answer {
        number: u64,
        answers: Answers,
    },
    Drained {
        node: u32,
        complete: bool,
    },
    /// The client went away, and the request with it.
    Gone,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Every process was killed.
    Killed,
    /// Everything is settled, or the time was up.
    Over,
}

/// A node between its lives.
#[derive(Clone, Copy, Debug)]
struct Seat {
    off_ms: i64,
    down_until_ms: u64,
    lives: u32,
}

/// A run under way.
pub(super) struct Play<'a> {
    pub(super) prepared: Arc<Prepared>,
    pub(super) clock: Arc<DrivenClock>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) senders: Senders,
    pub(super) lives: u64,
    board: Arc<Board>,
    cache: Arc<Shared>,
    place: Box<dyn Place>,
    wrapping: &'a dyn Wrapping,
    pub(super) takes_real_time: bool,
    steps: BTreeMap<(u64, u64), Step>,
    numbered: u64,
    seats: Vec<Seat>,
    copies: u32,
}

/// What lives and dies with a process.
pub(super) struct Life {
    pub(super) nodes: Vec<Option<Node>>,
    pub(super) opened: Opened,
    under_way: FuturesUnordered<LocalBoxFuture<'static, Came>>,
    /// By number: what is at which node, and how to take it away.
    at_gate: BTreeMap<u64, AtGate>,
}

/// A request at the gate.
struct AtGate {
    way: Way,
    node: u32,
    handle: AbortHandle,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        prepared: &Arc<Prepared>,
        backend: &dyn Backend,
        keeps_trace: bool,
        wrapping: &'a dyn Wrapping,
    ) -> Result<Self, StoreError> {
        let clock = Arc::new(DrivenClock::default());
        let place = backend.fresh(Arc::clone(&clock) as Arc<dyn crate::ports::Clock>)?;
        let ledger = Arc::new(Ledger::new(Arc::clone(prepared), Arc::clone(&clock), keeps_trace));
        let plan = &prepared.plan;
        let seat = |&off_ms: &i64| Seat { off_ms, down_until_ms: 0, lives: 0 };
        let mut play = Self {
            senders: Senders::new(plan),
            seats: plan.gate.nodes.iter().map(seat).collect(),
            prepared: Arc::clone(prepared),
            clock,
            ledger,
            lives: 0,
            board: Arc::default(),
            cache: Arc::default(),
            place,
            wrapping,
            takes_real_time: backend.takes_real_time(),
            steps: BTreeMap::new(),
            numbered: 0,
            copies: 0,
        };
        play.schedule();
        Ok(play)
    }

    fn schedule(&mut self) {
        let prepared = Arc::clone(&self.prepared);
        let plan = &prepared.plan;
        (0..self.seats.len() as u32).for_each(|node| self.at(0, Step::Start { node }));
        for (index, fault) in (0..).zip(&plan.faults) {
            self.at(fault.at_ms, Step::FaultBegins(index));
            self.at(fault.at_ms + fault.for_ms, Step::FaultEnds(index));
        }
        self.at(plan.heal_at_ms, Step::Heal);
        for (index, message) in (0..).zip(&plan.messages).filter(|(_, message)| !message.never) {
            self.at(message.at_ms, Step::Ready { message: index });
            for copy in &message.copies {
                let way = Way { message: index, attempt: 0, copy: true, hop: copy.hop };
                self.send_copy(copy.at_ms + copy.hop.there_ms, way);
            }
        }
    }

    fn at(&mut self, at_ms: u64, step: Step) {
        self.numbered += 1;
        self.steps.insert((at_ms, self.numbered), step);
    }

    fn send_copy(&mut self, at_ms: u64, way: Way) {
        if way.hop.fate != Fate::Lost {
            self.copies += 1;
            self.at(at_ms, Step::Arrive { way });
        }
    }

    /// One life, inside its runtime, until everybody is killed or everything is over.
    pub(super) async fn live(&mut self) -> Result<(Ended, Life), StoreError> {
        self.clock.begin();
        self.lives += 1;
        let opened = hold_time(self.takes_real_time, self.place.open()).await?;
        let nodes = self.seats.iter().map(|_| None).collect();
        let mut life = Life { nodes, opened, under_way: FuturesUnordered::new(), at_gate: BTreeMap::new() };
        loop {
            let now_ms = self.clock.elapsed_ms();
            let Some((&(at_ms, _), _)) = self.steps.first_key_value() else { return Ok((Ended::Over, life)) };
            if at_ms <= now_ms {
                let Some((_, step)) = self.steps.pop_first() else { continue };
                if let Some(ended) = self.step(&mut life, step).await {
                    return Ok((ended, life));
                }
            } else if let Some(came) = next(&mut life, self.clock.instant(at_ms)).await {
                self.came(&mut life, came);
            }
        }
    }

    async fn step(&mut self, life: &mut Life, step: Step) -> Option<Ended> {
        match step {
            Step::Ready { message } => self.ready(message),
            Step::Arrive { way } => self.arrive(life, way),
            Step::Hear { message, attempt, heard } => self.hear(message, attempt, heard),
            Step::TimeOut { message, attempt } => self.time_out(life, message, attempt),
            Step::FaultBegins(fault) => return self.fault_begins(life, fault),
            Step::FaultEnds(fault) => self.fault_ends(life, fault),
            Step::Start { node } => self.start(life, node),
            Step::Heal => {
                self.ledger.happened(Happened::Healing);
                self.senders.healing = true;
                self.at(self.clock.elapsed_ms() + HEAL_AT_LEAST_MS, Step::Look);
            }
            Step::Look => return self.look(life).await,
        }
        None
    }

    fn start(&mut self, life: &mut Life, node: u32) {
        let seat = &mut self.seats[node as usize];
        if life.nodes[node as usize].is_some() || seat.down_until_ms > self.clock.elapsed_ms() {
            return;
        }
        seat.lives += 1;
        let (off_ms, lives) = (seat.off_ms, seat.lives);
        self.ledger.happened(Happened::Started { node, life: lives });
        let ground = Ground {
            node,
            board: Arc::clone(&self.board),
            ledger: Arc::clone(&self.ledger),
            clock: Arc::clone(&self.clock),
            alive: alive(),
        };
        life.nodes[node as usize] = Some(Node::start(Start {
            prepared: &self.prepared,
            ground,
            opened: life.opened.clone(),
            cache: Arc::clone(&self.cache),
            clock: NodeClock::new(Arc::clone(&self.clock), off_ms),
            takes_real_time: self.takes_real_time,
            wrapping: self.wrapping,
        }));
    }

    fn ready(&mut self, message: u32) {
        let prepared = Arc::clone(&self.prepared);
        if self.senders.ready(&prepared.plan, message) {
            self.depart(message);
        }
    }

    fn depart(&mut self, message: u32) {
        let prepared = Arc::clone(&self.prepared);
        let (attempt, hop) = self.senders.depart(&prepared.plan, message);
        self.ledger.happened(Happened::Sent { message, attempt, copy: false });
        if attempt > 1 {
            self.ledger.see("sent again for want of an answer");
        }
        let now_ms = self.clock.elapsed_ms();
        if hop.fate == Fate::Lost {
            self.ledger.see("request lost");
        } else {
            self.at(now_ms + hop.there_ms, Step::Arrive { way: Way { message, attempt, copy: false, hop } });
        }
        self.at(now_ms + prepared.plan.sender.timeout_ms, Step::TimeOut { message, attempt });
    }

    fn arrive(&mut self, life: &mut Life, way: Way) {
        let Way { message, attempt, copy, hop } = way;
        self.copies -= u32::from(copy);
        let node = hop.node % self.seats.len() as u32;
        if let Some(strike) = self.board.strikes(FaultName::NetworkDown, node) {
            return self.ledger.fired(FaultName::NetworkDown, node, strike.first);
        }
        let Some(running) = &life.nodes[node as usize] else {
            self.ledger.happened(Happened::Unreachable { message, node });
            self.ledger.see("node unreachable");
            if !copy {
                let at_ms = self.clock.elapsed_ms() + hop.back_ms;
                self.at(at_ms, Step::Hear { message, attempt, heard: Heard::Badly });
            }
            return;
        };
        self.ledger.known().deliveries += 1;
        self.ledger.happened(Happened::Arrived { message, attempt, node });
        let events = &self.prepared.plan.messages[message as usize].events;
        let serving = running.serve(&self.prepared, events, copy);
        let (serving, handle) = abortable(serving);
        self.numbered += 1;
        let number = self.numbered;
        life.at_gate.insert(number, AtGate { way, node, handle });
        life.under_way.push(Box::pin(async move {
            match serving.await {
                Ok(answers) => Came::Answer { number, answers },
                Err(_aborted) => Came::Gone,
            }
        }));
    }

    fn came(&mut self, life: &mut Life, came: Came) {
        match came {
            Came::Gone => {}
            Came::Answer { number, answers } => {
                let Some(AtGate { way, node, .. }) = life.at_gate.remove(&number) else { return };
                let Way { message, attempt, copy, hop } = way;
                let answers: Answers =
                    answers.into_iter().map(|(id, answer)| (id, self.wrapping.answer(id, answer))).collect();
                for (id, answer) in &answers {
                    self.ledger.answered(*id, node, answer);
                }
                let heard = heard(&answers);
                if copy {
                    return;
                }
                if hop.fate == Fate::Cut && !self.senders.healing {
                    return self.ledger.see("answer cut");
                }
                if let Some(strike) = self.board.strikes(FaultName::NetworkDown, node) {
                    return self.ledger.fired(FaultName::NetworkDown, node, strike.first);
                }
                let at_ms = self.clock.elapsed_ms() + hop.back_ms;
                self.at(at_ms, Step::Hear { message, attempt, heard });
            }
            Came::Drained { node, complete } => self.drained(life, node, complete),
        }
    }

    fn hear(&mut self, message: u32, attempt: u32, heard: Heard) {
        let prepared = Arc::clone(&self.prepared);
        let Some(next) = self.senders.ended(&prepared.plan, message, attempt, heard) else { return };
        match self.senders.stand(message) {
            Stand::Settled => self.ledger.happened(Happened::Settled { message }),
            Stand::Waits => self.again(message),
            _ => {}
        }
        if let Some(next) = next {
            self.depart(next);
        }
    }

    fn again(&mut self, message: u32) {
        let at_ms = self.clock.elapsed_ms() + self.senders.backoff_ms(&self.prepared.plan, message);
        self.at(at_ms, Step::Ready { message });
    }

    fn time_out(&mut self, life: &mut Life, message: u32, attempt: u32) {
        let prepared = Arc::clone(&self.prepared);
        let Some(next) = self.senders.ended(&prepared.plan, message, attempt, Heard::Badly) else { return };
        self.ledger.happened(Happened::TimedOut { message, attempt });
        self.ledger.see("sender timed out");
        // every other client closes the connection, and its handler is dropped
        let mine = |way: &Way| (way.message, way.attempt, way.copy) == (message, attempt, false);
        if message.is_multiple_of(2)
            && let Some(at_gate) = life.at_gate.values().find(|at_gate| mine(&at_gate.way))
        {
            self.ledger.see("client went away");
            at_gate.handle.abort();
        }
        self.again(message);
        if let Some(next) = next {
            self.depart(next);
        }
    }

    async fn look(&mut self, life: &mut Life) -> Option<Ended> {
        let now_ms = self.clock.elapsed_ms();
        let plan = &self.prepared.plan;
        let open = self.senders.open().count();
        let answered = open == 0 && self.copies == 0 && life.under_way.is_empty();
        if answered && hold_time(self.takes_real_time, waiting(&*life.opened.reader)).await == 0 {
            self.ledger.happened(Happened::Quiet);
            return Some(Ended::Over);
        }
        if now_ms > plan.heal_at_ms + plan.heal_within_ms {
            let first = self.senders.open().next();
            let what = format!(
                "{open} messages, {} copies and {} requests are not settled {} ms after healing, the first message {first:?}",
                self.copies,
                life.under_way.len(),
                plan.heal_within_ms
            );
            self.ledger.violate("liveness", what, None);
            return Some(Ended::Over);
        }
        self.at(now_ms + LOOK_EVERY_MS, Step::Look);
        None
    }
}

/// Held events that wait for time or a provider, and fetches that are to be done.
async fn waiting(reader: &dyn Reader) -> i64 {
    let Ok(counts) = reader.counts().await else { return 0 };
    let parked = if counts.held > 0 { parked(reader).await.unwrap_or(0) } else { 0 };
    counts.held - parked + counts.fetches
}

/// The next thing that comes, or nothing until then.
async fn next(life: &mut Life, until: tokio::time::Instant) -> Option<Came> {
    let sleep = std::pin::pin!(tokio::time::sleep_until(until));
    if life.under_way.is_empty() {
        sleep.await;
        return None;
    }
    match select(life.under_way.next(), sleep).await {
        Either::Left((came, _)) => came,
        Either::Right(_) => None,
    }
}
