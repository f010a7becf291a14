//! Senders: each message is sent until it is answered well, in a line of its sender, with growing waits.
//!
//! Owns where each message stands. Promises that an answer to an earlier try changes nothing, as a sender that
//! gave up waiting does not hear it. Knows nothing of the gate.

use std::collections::VecDeque;

use super::plan::{Fate, Hop, Plan};

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Not sent yet, or waiting for its next try.
    Waits,
    /// A try is under way.
    UnderWay,
    /// Everything in it was answered with 2xx.
    Settled,
    /// The gate said that it will never take it.
    GivenUp,
    /// It is never sent.
    Never,
}

/// What a sender heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// 2xx for all of it.
    Well,
    /// A refusal of the very events.
    Rejected,
    /// Anything else, or a broken connection.
    Badly,
}

#[derive(Debug)]
struct Mail {
    stand: Stand,
    attempt: u32,
    /// Its present try began when nothing broke any more, so what it hears is about itself.
    calm: bool,
}

#[derive(Debug, Default)]
struct Line {
    busy: u32,
    waiting: VecDeque<u32>,
}

/// All senders.
#[derive(Debug)]
pub(super) struct Senders {
    mail: Vec<Mail>,
    lines: Vec<Line>,
    /// Nothing gets lost any more.
    pub(super) healing: bool,
}

impl Senders {
    pub(super) fn new(plan: &Plan) -> Self {
        let mail = plan.messages.iter().map(|message| Mail {
            stand: if message.never { Stand::Never } else { Stand::Waits },
            attempt: 0,
            calm: false,
        });
        let lines = plan.messages.iter().map(|message| message.sender + 1).max().unwrap_or(0);
        Self { mail: mail.collect(), lines: (0..lines).map(|_| Line::default()).collect(), healing: false }
    }

    /// A message is ready for its next try: tells whether there is room for it now.
    pub(super) fn ready(&mut self, plan: &Plan, message: u32) -> bool {
        if self.mail[message as usize].stand != Stand::Waits {
            return false;
        }
        let line = &mut self.lines[plan.messages[message as usize].sender as usize];
        if line.busy < plan.sender.parallel.max(1) {
            line.busy += 1;
            return true;
        }
        line.waiting.push_back(message);
        false
    }

    /// The next try begins: its number, and what becomes of it.
    pub(super) fn depart(&mut self, plan: &Plan, message: u32) -> (u32, Hop) {
        let mail = &mut self.mail[message as usize];
        mail.stand = Stand::UnderWay;
        mail.attempt += 1;
        mail.calm = self.healing;
        (mail.attempt, self.hop(plan, message, self.mail[message as usize].attempt))
    }

    /// What becomes of a try.
    pub(super) fn hop(&self, plan: &Plan, message: u32, attempt: u32) -> Hop {
        let hops = &plan.messages[message as usize].hops;
        let drawn = hops.get(attempt as usize - 1).copied();
        let mut hop = drawn.or_else(|| hops.last().copied()).unwrap_or_default();
        if drawn.is_none() {
            // later tries go by another node each time
            hop = Hop { node: hop.node + attempt, there_ms: hop.there_ms.min(50), fate: Fate::Arrives, ..hop };
        }
        if self.healing { Hop { there_ms: hop.there_ms.min(50), fate: Fate::Arrives, ..hop } } else { hop }
    }

    /// A try ended. `None` when it was not the present one; otherwise a message that may go now in its place.
    pub(super) fn ended(&mut self, plan: &Plan, message: u32, attempt: u32, heard: Heard) -> Option<Option<u32>> {
        let mail = &mut self.mail[message as usize];
        if mail.stand != Stand::UnderWay || mail.attempt != attempt {
            return None;
        }
        mail.stand = match heard {
            Heard::Well => Stand::Settled,
            Heard::Rejected if mail.calm => Stand::GivenUp,
            Heard::Rejected | Heard::Badly => Stand::Waits,
        };
        let line = &mut self.lines[plan.messages[message as usize].sender as usize];
        let next = line.waiting.pop_front();
        if next.is_none() {
            line.busy -= 1;
        }
        Some(next)
    }

    /// How long a message waits before its next try.
    pub(super) fn backoff_ms(&self, plan: &Plan, message: u32) -> u64 {
        let attempt = self.mail[message as usize].attempt;
        let wait_ms = plan.sender.backoff_ms.saturating_mul(1 << (attempt.saturating_sub(1)).min(20));
        let wait_ms = wait_ms.min(plan.sender.backoff_max_ms);
        // some jitter, the same each time
        wait_ms + u64::from(message.wrapping_mul(2_654_435_761) ^ attempt) % (wait_ms / 4 + 1)
    }

    pub(super) fn stand(&self, message: u32) -> Stand {
        self.mail[message as usize].stand
    }

    pub(super) fn attempts(&self, message: u32) -> u32 {
        self.mail[message as usize].attempt
    }

    /// Messages that are still to be answered.
    pub(super) fn open(&self) -> impl Iterator<Item = u32> + '_ {
        let open = |mail: &Mail| matches!(mail.stand, Stand::Waits | Stand::UnderWay);
        (0..).zip(&self.mail).filter(move |(_, mail)| open(mail)).map(|(message, _)| message)
    }
}
