//! Draws requests: which events travel together, when, and what becomes of each try.

use super::world::Drawn;
use crate::sim::chance::Chance;
use crate::sim::plan::{Fate, Hop, Message, Resend};
use crate::sim::scenario::{Scenario, Span};

/// Tries whose fate is drawn; later ones arrive as the last of them does.
const TRIES_DRAWN: usize = 4;

/// Each event is in one message.
pub(super) fn draw(scenario: &Scenario, world: &Drawn, nodes: u64, chance: &mut Chance) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut open: Vec<Pending> = Vec::new();
    for (index, event) in world.events.iter().enumerate() {
        let lot = &world.lots[index];
        let message = Pending { sender: lot.sender, at_ms: event.at_ms, size: 1, events: vec![index as u32] };
        // what will never be answered well must not take others along
        if lot.never || event.poison || scenario.world.batch.max <= 1 {
            messages.push(message.close(scenario, nodes, lot.never, chance));
            continue;
        }
        match open.iter().position(|pending| pending.sender == lot.sender) {
            Some(place) => {
                let pending = &mut open[place];
                pending.events.push(index as u32);
                pending.at_ms = event.at_ms;
                if pending.events.len() as u64 >= pending.size {
                    messages.push(open.swap_remove(place).close(scenario, nodes, false, chance));
                }
            }
            None => {
                let size = chance.within(scenario.world.batch);
                if size <= 1 {
                    messages.push(message.close(scenario, nodes, false, chance));
                } else {
                    open.push(Pending { size, ..message });
                }
            }
        }
    }
    messages.extend(open.into_iter().map(|pending| pending.close(scenario, nodes, false, chance)));
    messages.sort_by_key(|message| message.at_ms);
    messages
}

/// A request that is being filled.
struct Pending {
    sender: u32,
    at_ms: u64,
    size: u64,
    events: Vec<u32>,
}

impl Pending {
    fn close(self, scenario: &Scenario, nodes: u64, never: bool, chance: &mut Chance) -> Message {
        let Self { sender, at_ms, events, size: _ } = self;
        let mut hops = Vec::new();
        while hops.len() < TRIES_DRAWN {
            let hop = hop(scenario, nodes, chance);
            hops.push(hop);
            if hop.fate == Fate::Arrives {
                break;
            }
        }
        let copies = if chance.hits(scenario.sender.duplicates) { chance.within(scenario.sender.copies) } else { 0 };
        let copies = (0..copies).map(|_| Resend {
            at_ms: at_ms + chance.within(scenario.sender.copies_after_ms),
            hop: hop(scenario, nodes, chance),
        });
        Message { events, sender, at_ms, never, hops, copies: copies.collect() }
    }
}

fn hop(scenario: &Scenario, nodes: u64, chance: &mut Chance) -> Hop {
    let network = &scenario.network;
    let slow = chance.hits(network.slow);
    let there_ms = chance.within(if slow { network.slow_ms } else { network.delay_ms });
    let back_ms = chance.within(Span::new(network.delay_ms.min, network.delay_ms.max));
    let fate = if chance.hits(network.loss) {
        Fate::Lost
    } else if chance.hits(network.cut) {
        Fate::Cut
    } else {
        Fate::Arrives
    };
    Hop { node: chance.below(nodes) as u32, there_ms, back_ms, fate }
}
