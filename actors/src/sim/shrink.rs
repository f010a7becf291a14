//! From a plan that fails to the smallest one that still does.
//!
//! Owns the search: delta debugging over what can be left out (messages with their events, copies, faults,
//! tries), then simpler values. Deterministic, and bounded in runs. Promises that what comes back fails, and
//! that, within the bound, nothing of it can be left out. Knows nothing of why it fails.

use super::plan::{Fate, Hop, Message, Plan};

/// So many messages are few: each may be tried in turn.
const FEW: usize = 8;

/// What shrinking found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest plan that still fails.
    pub plan: Plan,
    /// How many plans were tried.
    pub runs: u32,
    /// Nothing more can be left out; otherwise the bound of runs was reached.
    pub complete: bool,
}

/// Shrinks a plan that fails. `fails` plays a plan and says whether it still fails in the same way.
pub fn shrink(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool, runs_max: u32) -> Shrunk {
    let mut search = Search { plan: plan.clone(), fails: &mut fails, runs: 0, runs_max };
    loop {
        let before = size(&search.plan);
        search.leave_out(|plan| plan.faults.len(), |plan, keep| retain(&mut plan.faults, keep));
        search.leave_out(|plan| plan.messages.len(), keep_messages);
        search.leave_out(copies, keep_copies);
        search.leave_out(in_batches, keep_in_batches);
        search.simplify();
        if size(&search.plan) == before || search.spent() {
            break;
        }
    }
    let complete = !search.spent();
    let Search { plan, runs, .. } = search;
    Shrunk { plan: without_unsent(&plan), runs, complete }
}

/// What a plan weighs: parts first, then how far from plain its values are.
fn size(plan: &Plan) -> (usize, usize, usize, u64) {
    let tries = plan.messages.iter().map(|message| message.hops.len() + message.copies.len()).sum::<usize>();
    let carried = plan.messages.iter().map(|message| message.events.len()).sum::<usize>();
    let hops = plan.messages.iter().flat_map(|message| &message.hops);
    let times = hops.map(|hop| hop.there_ms + hop.back_ms).sum::<u64>() + plan.heal_at_ms;
    let gate = plan.gate.nodes.len() + plan.gate.shards as usize + usize::from(plan.gate.tight.is_some());
    (carried + plan.faults.len(), tries, gate, times + plan.faults.iter().map(|fault| fault.for_ms).sum::<u64>())
}

struct Search<'a> {
    plan: Plan,
    fails: &'a mut dyn FnMut(&Plan) -> bool,
    runs: u32,
    runs_max: u32,
}

impl Search<'_> {
    const fn spent(&self) -> bool {
        self.runs >= self.runs_max
    }

    /// Takes a smaller plan if it fails too.
    fn accepts(&mut self, plan: Plan) -> bool {
        if self.spent() {
            return false;
        }
        self.runs += 1;
        let fails = (self.fails)(&plan);
        if fails {
            self.plan = plan;
        }
        fails
    }

    /// Delta debugging: leaves out ever smaller parts of a list, until no single one can go.
    fn leave_out(&mut self, count: impl Fn(&Plan) -> usize, keep: impl Fn(&mut Plan, &[bool])) {
        let mut part = count(&self.plan).div_ceil(2);
        while part > 0 && !self.spent() {
            let mut from = 0;
            let mut left_out = false;
            while from < count(&self.plan) {
                let all = count(&self.plan);
                let kept: Vec<bool> = (0..all).map(|place| place < from || place >= from + part).collect();
                let mut plan = self.plan.clone();
                keep(&mut plan, &kept);
                if self.accepts(plan) {
                    left_out = true;
                } else {
                    from += part;
                }
                if self.spent() {
                    return;
                }
            }
            if part == 1 && !left_out {
                return;
            }
            part = if part == 1 { 1 } else { part.div_ceil(2) };
        }
    }

    /// Plainer values, each as long as it fails: one node, default bounds, straight ways, short times.
    fn simplify(&mut self) {
        let gates: [fn(&mut Plan); 8] = [
            |plan| plan.gate.nodes.truncate(1),
            |plan| plan.gate.nodes.iter_mut().for_each(|off_ms| *off_ms = 0),
            |plan| plan.gate.shards = 1,
            |plan| plan.gate.tight = None,
            |plan| plan.gate.lookups = false,
            |plan| plan.gate.commit_ms = (plan.gate.commit_ms.0.min(1), plan.gate.commit_ms.1.min(1)),
            |plan| plan.gate.answer_within_ms = 10_000,
            |plan| plan.sender.parallel = 1_000,
        ];
        for simpler in gates {
            self.change(simpler);
        }
        for place in 0..self.plan.messages.len() {
            self.change(|plan| plan.messages[place].hops.truncate(1));
            self.change(|plan| plan.messages[place].hops.iter_mut().for_each(straight));
            self.change(|plan| {
                let plain = Hop { there_ms: 1, back_ms: 1, ..Hop::default() };
                plan.messages[place].hops = vec![plain];
            });
        }
        self.delay_instead();
        for place in 0..self.plan.faults.len() {
            for _ in 0..12 {
                let halved = |plan: &mut Plan| plan.faults[place].for_ms = plan.faults[place].for_ms.div_ceil(2);
                if !self.change(halved) {
                    break;
                }
            }
        }
        self.change(close_up);
        self.change(|plan| {
            let last = plan.messages.iter().map(|message| message.at_ms);
            let faults = plan.faults.iter().map(|fault| fault.at_ms + fault.for_ms);
            plan.heal_at_ms = last.chain(faults).max().unwrap_or(0) + 1;
        });
    }

    /// Often a fault only makes one request late: then a slow way is plainer than the fault.
    fn delay_instead(&mut self) {
        if self.plan.faults.is_empty() || self.plan.messages.len() > FEW {
            return;
        }
        for place in 0..self.plan.messages.len() {
            let slow = Hop { there_ms: 5_000, back_ms: 1, ..Hop::default() };
            let delayed = |plan: &mut Plan| {
                plan.faults.clear();
                plan.messages[place].hops = vec![slow];
            };
            if self.change(delayed) {
                return;
            }
        }
    }

    /// Whether a change was one, and the plan fails with it.
    fn change(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut plan = self.plan.clone();
        change(&mut plan);
        plan != self.plan && self.accepts(plan)
    }
}

/// It arrives, and so does its answer, as fast as may be.
fn straight(hop: &mut Hop) {
    *hop = Hop { there_ms: hop.there_ms.min(10), back_ms: hop.back_ms.min(10), fate: Fate::Arrives, ..*hop };
}

/// Long times in which nothing happens go.
fn close_up(plan: &mut Plan) {
    let messages = plan.messages.iter().map(|message| message.at_ms);
    let copies = plan.messages.iter().flat_map(|message| message.copies.iter().map(|copy| copy.at_ms));
    let faults = plan.faults.iter().map(|fault| fault.at_ms);
    let first = messages.chain(copies).chain(faults).min().unwrap_or(0);
    let earlier = |at_ms: &mut u64| *at_ms = at_ms.saturating_sub(first);
    for message in &mut plan.messages {
        earlier(&mut message.at_ms);
        message.copies.iter_mut().for_each(|copy| earlier(&mut copy.at_ms));
    }
    plan.faults.iter_mut().for_each(|fault| earlier(&mut fault.at_ms));
    plan.events.iter_mut().for_each(|event| earlier(&mut event.at_ms));
    earlier(&mut plan.heal_at_ms);
}

fn retain<T>(list: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    list.retain(|_| keep.next().copied().unwrap_or(true));
}

/// A message that is left out is never sent; its events stay until the end, so that places do not move.
fn keep_messages(plan: &mut Plan, keep: &[bool]) {
    retain(&mut plan.messages, keep);
}

fn copies(plan: &Plan) -> usize {
    plan.messages.iter().map(|message| message.copies.len()).sum()
}

fn keep_copies(plan: &mut Plan, keep: &[bool]) {
    let mut keep = keep.iter();
    for message in &mut plan.messages {
        message.copies.retain(|_| keep.next().copied().unwrap_or(true));
    }
}

fn batches(plan: &mut Plan) -> impl Iterator<Item = &mut Message> {
    plan.messages.iter_mut().filter(|message| message.events.len() > 1)
}

fn in_batches(plan: &Plan) -> usize {
    plan.messages.iter().map(|message| message.events.len()).filter(|events| *events > 1).sum()
}

/// Events of batches, one at a time; a batch keeps at least one.
fn keep_in_batches(plan: &mut Plan, keep: &[bool]) {
    let mut keep = keep.iter();
    for message in batches(plan) {
        let first = message.events.first().copied();
        message.events.retain(|_| keep.next().copied().unwrap_or(true));
        if message.events.is_empty() {
            message.events.extend(first);
        }
    }
}

/// The same plan without events and resources that nobody sends.
fn without_unsent(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let sent = |event: u32, plan: &Plan| plan.messages.iter().any(|message| message.events.contains(&event));
    let kept: Vec<u32> = (0..plan.events.len() as u32).filter(|&event| sent(event, &plan)).collect();
    let place = |of: &[u32], old: u32| of.iter().position(|kept| *kept == old).map_or(0, |place| place as u32);
    for message in &mut plan.messages {
        message.events.iter_mut().for_each(|event| *event = place(&kept, *event));
    }
    plan.events = kept.iter().map(|&event| plan.events[event as usize].clone()).collect();
    let named = |resource: u32, plan: &Plan| {
        plan.events.iter().any(|event| event.guards.iter().any(|guard| guard.resource == resource))
    };
    let kept: Vec<u32> = (0..plan.resources.len() as u32).filter(|&resource| named(resource, &plan)).collect();
    for guard in plan.events.iter_mut().flat_map(|event| &mut event.guards) {
        guard.resource = place(&kept, guard.resource);
    }
    plan.resources = kept.iter().map(|&resource| plan.resources[resource as usize].clone()).collect();
    plan
}
