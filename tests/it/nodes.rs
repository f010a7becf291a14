//! Two nodes on one database, told the same things at the same time.

use std::sync::Barrier;

use crate::support::fault::Outsider;
use crate::support::gate::Gate;
use crate::support::http::Response;
use crate::support::place::Place;
use crate::support::redis::RedisServer;
use crate::support::signing::{signed, thing};

const EVENTS: usize = 200;
const THREADS: usize = 4;
const RESOURCES: usize = 16;

/// The same bytes, whoever sends.
fn same(number: usize, _sender: usize) -> String {
    thing(&format!("t{}", number % RESOURCES), number)
}

/// Two forms of each event: half of the senders of each node have the one, half the other.
fn either(number: usize, sender: usize) -> String {
    same(number, sender).replace('ä', if sender.is_multiple_of(2) { "left" } else { "right" })
}

/// Posts every event from each thread to its node, all at the same instant; answers by event, in the order of
/// the senders.
fn race(nodes: &[Gate], body: fn(usize, usize) -> String) -> Vec<Vec<Response>> {
    let together = Barrier::new(nodes.len() * THREADS);
    let by_sender: Vec<Vec<Response>> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..THREADS)
            .flat_map(|thread| nodes.iter().map(move |node| (thread, node)))
            .map(|(sender, node)| {
                let together = &together;
                scope.spawn(move || {
                    let mut client = node.client();
                    let post = |number: usize| {
                        let request = signed("/in/things", &format!("evt_{number}"), body(number, sender));
                        together.wait();
                        client.call(&request).expect("an answer")
                    };
                    (0..EVENTS).map(post).collect()
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    });
    (0..EVENTS).map(|event| by_sender.iter().map(|answers| answers[event].clone()).collect()).collect()
}

fn assert_applied_by_one(answers: &[Response], number: usize) {
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 503)), "evt_{number}: {answers:?}");
    let told = |verdict: &str| {
        let of_it = |answer: &&Response| answer.status == 200 && answer.verdict() == verdict;
        answers.iter().filter(of_it).count()
    };
    let refused = answers.iter().filter(|answer| answer.status == 503).count();
    let (applied, duplicates) = (told("applied"), told("duplicate"));
    assert_eq!(applied + duplicates + refused, answers.len(), "evt_{number}: {answers:?}");
    assert!(applied == 1 || (applied == 0 && refused > 0), "evt_{number} took effect in one of {answers:?}");
    let taken = answers.iter().filter(|answer| answer.status == 200);
    let mut ids: Vec<_> = taken.map(|answer| answer.json()["id"].clone()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "all are told the same id: {ids:?}");
}

fn assert_rows(place: &Place) {
    let mut outsider = Outsider::connect(place);
    let events = i64::try_from(EVENTS).unwrap();
    assert_eq!(outsider.number("SELECT count(*) FROM events"), events);
    assert_eq!(outsider.number("SELECT count(DISTINCT key) FROM events WHERE verdict = 'applied'"), events);
    assert_eq!(outsider.number("SELECT CAST(sum(applied) AS bigint) FROM resources"), events, "no effect twice");
    let newest = outsider.texts("SELECT id || ' ' || version_text FROM resources ORDER BY id");
    let mut expected: Vec<_> = (EVENTS - RESOURCES..EVENTS).map(|n| format!("t{} {n}", n % RESOURCES)).collect();
    expected.sort();
    assert_eq!(newest, expected);
}

#[test]
fn two_nodes_told_the_same_at_once_by_eight_senders_take_each_event_in_once() {
    let place = Place::postgres();
    let nodes = [Gate::start_at(place.clone(), ""), Gate::start_at(place.clone(), "")];
    for (number, answers) in race(&nodes, same).iter().enumerate() {
        assert_applied_by_one(answers, number);
    }
    assert_rows(&place);
}

#[test]
fn one_node_on_sqlite_told_the_same_at_once_by_four_senders_takes_each_event_in_once() {
    let place = Place::sqlite();
    let nodes = [Gate::start_at(place.clone(), "[pools.dedup]\nrecent = 0")];
    for (number, answers) in race(&nodes, same).iter().enumerate() {
        assert_applied_by_one(answers, number);
    }
    assert_rows(&place);
}

#[test]
fn of_two_forms_of_an_event_told_at_once_the_first_stands_and_the_other_is_kept_aside_once() {
    let place = Place::postgres();
    let nodes = [Gate::start_at(place.clone(), ""), Gate::start_at(place.clone(), "")];
    for (number, answers) in race(&nodes, either).iter().enumerate() {
        assert_applied_by_one(answers, number);
        let Some(winner) = answers.iter().position(|answer| answer.status == 200 && answer.verdict() == "applied")
        else {
            continue; // its answer was lost, and the rows below say whether it took effect once
        };
        let form = |at: usize| at / nodes.len() % 2;
        for (at, answer) in answers.iter().enumerate().filter(|(_, answer)| answer.status == 200) {
            let conflict = answer.json()["conflict"] == true;
            assert_eq!(conflict, form(at) != form(winner), "evt_{number}, sender {at} of {answers:?}");
        }
    }
    let mut outsider = Outsider::connect(&place);
    let events = i64::try_from(EVENTS).unwrap();
    assert_eq!(outsider.number("SELECT count(*) FROM events WHERE verdict = 'applied'"), events);
    assert_eq!(outsider.number("SELECT count(*) FROM events WHERE conflicts_with IS NOT NULL"), events);
    assert_eq!(outsider.number("SELECT count(DISTINCT conflicts_with) FROM events"), events, "one for each event");
    assert_eq!(outsider.number("SELECT CAST(sum(applied) AS bigint) FROM resources"), events, "no effect twice");
}

#[test]
fn two_nodes_that_ask_the_cache_about_everything_take_each_event_in_once_all_the_same() {
    let (place, redis) = (Place::postgres(), RedisServer::start(&[]));
    let settings = format!("[cache]\nurl = \"{}\"\nlookup = \"always\"\n[pools.dedup]\nrecent = 0", redis.url());
    let nodes = [Gate::start_at(place.clone(), &settings), Gate::start_at(place.clone(), &settings)];
    for (number, answers) in race(&nodes, same).iter().enumerate() {
        assert_applied_by_one(answers, number);
    }
    assert_rows(&place);
}
