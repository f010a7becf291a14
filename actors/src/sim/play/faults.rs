//! What planned faults do to a run that the wrapped ports cannot do: kills, restarts, clocks, storms.

use super::{AtGate, Came, Ended, Life, Play, Step, Way};
use crate::sim::fault::FaultName;
use crate::sim::plan::{Fate, Hop, Message};
use crate::sim::senders::Heard;
use crate::sim::trace::Happened;
use std::sync::Arc;

/// Requests that a storm repeats.
const STORM_MAX: usize = 60;

impl Play<'_> {
    pub(super) fn fault_begins(&mut self, life: &mut Life, index: u32) -> Option<Ended> {
        let prepared = Arc::clone(&self.prepared);
        let fault = &prepared.plan.faults[index as usize];
        self.ledger.happened(Happened::FaultBegan { fault: index });
        let node = fault.node.unwrap_or(0) % self.seats.len() as u32;
        let over_ms = fault.at_ms + fault.for_ms;
        match fault.what {
            FaultName::Kill => {
                for node in 0..self.seats.len() as u32 {
                    self.kill(life, node, over_ms);
                }
                self.ledger.fired(fault.what, node, true);
                return Some(Ended::Killed);
            }
            FaultName::KillNode if life.nodes[node as usize].is_some() => {
                self.kill(life, node, over_ms);
                self.ledger.fired(fault.what, node, true);
            }
            FaultName::Restart => {
                if let Some(running) = &life.nodes[node as usize] {
                    self.ledger.fired(fault.what, node, true);
                    let engine = running.engine.clone();
                    let within = std::time::Duration::from_millis(fault.for_ms);
                    life.under_way.push(Box::pin(async move {
                        let complete = engine.drain(within).await.complete;
                        Came::Drained { node, complete }
                    }));
                }
            }
            FaultName::ClockJump => {
                self.ledger.fired(fault.what, node, true);
                if let Some(running) = &life.nodes[node as usize] {
                    running.clock.set_off(self.seats[node as usize].off_ms + fault.by_ms);
                }
            }
            FaultName::CacheWiped => {
                self.ledger.fired(fault.what, node, true);
                self.cache.wipe();
            }
            FaultName::CacheStale => {
                self.ledger.fired(fault.what, node, true);
                self.cache.go_back();
            }
            FaultName::RetryStorm => {
                self.ledger.fired(fault.what, node, true);
                self.storm(fault.for_ms);
            }
            _ => self.board.begin(index, fault),
        }
        if fault.what != FaultName::CacheStale {
            self.cache.remember();
        }
        None
    }

    pub(super) fn fault_ends(&mut self, life: &Life, index: u32) {
        let prepared = Arc::clone(&self.prepared);
        let fault = &prepared.plan.faults[index as usize];
        self.ledger.happened(Happened::FaultEnded { fault: index });
        self.board.end(index);
        let node = fault.node.unwrap_or(0) as usize % self.seats.len();
        if let (FaultName::ClockJump, Some(running)) = (fault.what, &life.nodes[node]) {
            running.clock.set_off(self.seats[node].off_ms);
        }
    }

    /// A node is gone: whoever waited for it hears that the connection broke.
    fn kill(&mut self, life: &mut Life, node: u32, until_ms: u64) {
        let seat = &mut self.seats[node as usize];
        seat.down_until_ms = seat.down_until_ms.max(until_ms);
        let until_ms = seat.down_until_ms;
        self.at(until_ms, Step::Start { node });
        let Some(running) = life.nodes[node as usize].take() else { return };
        running.kill();
        self.ledger.happened(Happened::Killed { node });
        let now_ms = self.clock.elapsed_ms();
        let cut: Vec<_> = life.at_gate.extract_if(.., |_, at_gate| at_gate.node == node).collect();
        for (_, AtGate { way, handle, .. }) in cut {
            self.ledger.see("connection broke under a request");
            handle.abort();
            if !way.copy {
                let Way { message, attempt, .. } = way;
                self.at(now_ms + 1, Step::Hear { message, attempt, heard: Heard::Badly });
            }
        }
    }

    pub(super) fn drained(&mut self, life: &mut Life, node: u32, complete: bool) {
        if life.nodes[node as usize].is_none() {
            return;
        }
        self.ledger.happened(Happened::Drained { node, complete });
        self.ledger.see(if complete { "drained" } else { "drain cut short" });
        // the process ends, with what was not finished
        self.kill(life, node, self.clock.elapsed_ms());
    }

    /// What was sent lately is sent again.
    fn storm(&mut self, for_ms: u64) {
        let now_ms = self.clock.elapsed_ms();
        let prepared = Arc::clone(&self.prepared);
        let sent = |message: &(u32, &Message)| self.senders.attempts(message.0) > 0;
        let messages = (0..).zip(&prepared.plan.messages).filter(|message| message.1.at_ms <= now_ms);
        let mut lately: Vec<u32> = messages.filter(sent).map(|(message, _)| message).collect();
        let storm = lately.split_off(lately.len().saturating_sub(STORM_MAX));
        let count = storm.len().max(1) as u64;
        for (number, message) in (0_u64..).zip(storm) {
            let hop = Hop { node: number as u32, there_ms: 0, back_ms: 0, fate: Fate::Arrives };
            let way = Way { message, attempt: 0, copy: true, hop };
            self.send_copy(now_ms + for_ms.min(500) * number / count, way);
        }
    }
}
