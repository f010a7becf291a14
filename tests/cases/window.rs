//! B30 over the whole window: a key is found again however often the ring of key tables turned since, in
//! either store, by a process that has never seen it; and forgotten only when its window is over.

use crate::support::fault::Outsider;
use crate::support::gate::{Gate, until};
use crate::support::http::Response;
use crate::support::place::Place;
use crate::support::signing::thing;

/// A little more than half of the 35 days that keys are kept: the time for one turn.
const TURN_MS: i64 = 18 * 86_400_000;

/// Lets that much time pass for the key tables, and starts a process that finds the next turn due.
fn after_a_turn(gate: Gate) -> Gate {
    let (drained, place) = gate.stop();
    assert!(drained.complete);
    let mut outsider = Outsider::connect(&place);
    let before = outsider.number("SELECT CAST(key_slot AS bigint) FROM meta");
    outsider.run(&format!("UPDATE meta SET key_slot_since_ms = key_slot_since_ms - {TURN_MS}"));
    let gate = Gate::start_at(place, "");
    until("the ring has turned", || outsider.number("SELECT CAST(key_slot AS bigint) FROM meta") != before);
    gate
}

fn repeats_are_found_across_the_window(place: Place) {
    let mut gate = Gate::start_at(place, "");
    let body = thing("t1", 5);
    let first = gate.post("evt_1", &body).json()["id"].clone();
    let is_known = |answer: &Response, when: &str| {
        assert_eq!((answer.verdict().as_str(), &answer.json()["id"]), ("duplicate", &first), "{when}");
    };
    for turn in 1..=2 {
        gate = after_a_turn(gate);
        is_known(&gate.post("evt_1", &body), &format!("after turn {turn}, {} days", turn * 18));
        is_known(&gate.post("evt_1", &body), "from what the process has learnt of it");
        assert_eq!(gate.post(&format!("evt_of_turn_{turn}"), &thing("t2", turn)).verdict(), "applied");
    }
    gate = after_a_turn(gate);
    let late = gate.post("evt_1", &body);
    assert_eq!(late.verdict(), "stale", "after 54 days the key is forgotten, and the stored version still refuses");
    assert_eq!(gate.post("evt_of_turn_1", &thing("t2", 1)).verdict(), "duplicate", "a younger key is not");
    let applied = gate.resources().into_iter().map(|resource| (resource.id, resource.applied)).collect::<Vec<_>>();
    assert!(applied.contains(&("t1".to_owned(), 1)), "one effect in all that time: {applied:?}");
}

#[test]
fn a_repeat_is_found_in_every_part_of_its_window_on_sqlite() {
    repeats_are_found_across_the_window(Place::sqlite());
}

#[test]
fn a_repeat_is_found_in_every_part_of_its_window_on_postgres() {
    repeats_are_found_across_the_window(Place::postgres());
}
