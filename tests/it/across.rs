//! Two nodes on one database and what waits in it: held by one, released, settled or asked for by either, once.

use std::sync::Barrier;

use tidegate_actors::rules::event::Verdict;

use crate::support::gate::{Gate, until};
use crate::support::place::Place;
use crate::support::provider::Provider;
use crate::support::signing::signed;

fn settings(order: &str) -> String {
    format!(
        "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
         resource = {{ type = \"literal:thing\", id = \"body:/id\" }}\n\
         version = [{{ from = \"body:/n\", as = \"integer\" }}]\n{order}\n"
    )
}

fn nodes(order: &str) -> [Gate; 2] {
    let (place, settings) = (Place::postgres(), settings(order));
    [Gate::start_at(place.clone(), &settings), Gate::start_at(place, &settings)]
}

fn post(gate: &Gate, id: &str, n: i64) -> String {
    let body = format!(r#"{{"type":"thing.updated","id":"{id}","n":{n}}}"#);
    gate.call(&signed("/in/things", &format!("evt_{id}_{n}"), body)).verdict()
}

fn verdicts(gate: &Gate) -> Vec<Verdict> {
    gate.events().iter().map(|event| event.verdict).collect()
}

#[test]
fn what_waits_at_one_node_is_released_by_what_comes_to_the_other() {
    let [left, right] = nodes(r#"order = { policy = "sequence", hold_for = "1h" }"#);
    assert_eq!(post(&left, "t1", 1), "applied");
    assert_eq!(post(&right, "t1", 3), "held");
    assert_eq!(post(&left, "t1", 4), "held");
    assert_eq!(post(&right, "t1", 3), "duplicate");
    assert_eq!(post(&right, "t1", 2), "applied");
    let thing = left.resources().remove(0);
    assert_eq!((thing.version.as_deref(), thing.applied, thing.held), (Some("4"), 4, 0));
    assert_eq!(post(&left, "t1", 5), "applied");
}

#[test]
fn numbers_shuffled_over_both_nodes_at_once_end_in_one_state_without_a_gap() {
    const THINGS: usize = 4;
    const NUMBERS: i64 = 40;
    let nodes = nodes(r#"order = { policy = "sequence", hold_for = "1h" }"#);
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for sender in 0..8_i64 {
            let (node, together) = (&nodes[usize::try_from(sender % 2).unwrap()], &together);
            scope.spawn(move || {
                together.wait();
                // each sender has every eighth number, from the highest down
                for n in (1..=NUMBERS).rev().filter(|n| n % 8 == sender) {
                    for thing in 0..THINGS {
                        let verdict = post(node, &format!("t{thing}"), n);
                        assert!(["applied", "held"].contains(&verdict.as_str()), "{verdict}");
                    }
                }
            });
        }
    });
    let things = nodes[0].resources();
    assert_eq!(things.len(), THINGS);
    for thing in things {
        let expected = (Some(NUMBERS.to_string()), NUMBERS, 0);
        assert_eq!((thing.version.clone(), thing.applied, thing.held), expected, "{thing:?}");
    }
    assert!(verdicts(&nodes[1]).iter().all(|verdict| *verdict == Verdict::Applied));
}

#[test]
fn a_hold_that_a_dead_node_knew_of_is_settled_by_the_other() {
    let [left, right] = nodes(r#"order = { policy = "sequence", hold_for = "1s", on_gap = "expire" }"#);
    assert_eq!(post(&left, "t1", 1), "applied");
    assert_eq!(post(&left, "t1", 3), "held");
    left.stop();
    until("the other node settles the hold", || verdicts(&right) == [Verdict::Applied, Verdict::Expired]);
    assert_eq!(right.resources()[0].held, 0);
}

#[test]
fn a_hold_runs_out_once_however_many_nodes_look() {
    let nodes = nodes(r#"order = { policy = "sequence", hold_for = "500ms", on_gap = "expire" }"#);
    for thing in 0..10 {
        assert_eq!(post(&nodes[thing % 2], &format!("t{thing}"), 7), "held");
    }
    until("all of them expire", || nodes[0].counts().held == 0);
    assert_eq!(verdicts(&nodes[1]), [Verdict::Expired; 10]);
    let told: i64 = nodes.iter().map(expired).sum();
    assert_eq!(told, 10, "each is counted by the node that settled it, and by no other");
}

fn expired(gate: &Gate) -> i64 {
    let figures = gate.admin_get("/metrics").text();
    let line = figures.lines().find_map(|line| line.strip_prefix(r#"tidegate_holds_settled_total{result="expired"} "#));
    line.expect("the figure").parse().expect("a number")
}

#[test]
fn signals_at_both_nodes_are_one_question_to_the_provider_at_a_time() {
    let provider = Provider::start(r#"{"n":7}"#);
    let order = format!(
        "order = {{ policy = \"refetch\" }}\nrefetch = {{ url = \"http://{}/things/{{id}}\" }}",
        provider.address
    );
    let nodes = nodes(&order);
    std::thread::scope(|scope| {
        for n in 0..20 {
            let node = &nodes[usize::try_from(n % 2).unwrap()];
            scope.spawn(move || assert_eq!(post(node, "t1", n), "held"));
        }
    });
    until("all signals are settled", || nodes[0].counts().held == 0);
    assert!(provider.asked().len() < 20, "{} questions for 20 signals", provider.asked().len());
    assert_eq!(nodes[1].resources()[0].version.as_deref(), Some("7"));
}
