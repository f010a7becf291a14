//! A process that is told to end, or killed, while a transaction hangs.

use crate::case::Case;
use crate::support::fault;
use crate::support::http::Request;
use crate::support::place::Place;
use crate::support::process::Process;

/// Short waits: the answer comes before the stop, the stop before the test's patience ends.
const SETTINGS: &str = "[server]\nanswer_within = \"300ms\"\ndrain_within = \"1s\"\n";

/// The signal ends the process though its transaction hangs; a new process takes the retry, once.
fn the_retry_is_taken_after(signal: &str, place: &Place) {
    let case = Case::load("B34");
    let settings = format!("{SETTINGS}{}", case.settings());
    let arrival = &case.arrivals[0];
    let mut request = Request::post("/in/case", arrival.body.clone());
    request.headers.extend(arrival.header_bytes());

    let mut first = Process::start(place, &settings, &[]);
    let hold = fault::hold_writes(place);
    let answer = first.client().call(&request).expect("an answer");
    assert_eq!(answer.status, 503, "an event that is not durable is not answered 2xx: {}", answer.text());
    first.signal(signal);
    let status = first.ended();
    assert!(!status.success(), "a stop that leaves accepted work behind says so: {status}");
    drop(hold);

    // this one has all the time there is
    let second = Process::start(place, &case.settings(), &[]);
    let answer = second.client().call(&request).expect("an answer");
    // where the store finished the orphaned statement by itself, the retry is a duplicate
    assert!(["applied", "duplicate"].contains(&answer.verdict().as_str()), "{}", answer.text());
    let again = second.client().call(&request).expect("an answer");
    assert_eq!(again.verdict(), "duplicate");
    assert_eq!(again.json()["id"], answer.json()["id"], "one event, whoever recorded it");
}

#[test]
fn after_sigterm_with_a_hanging_transaction_the_retry_is_taken_on_sqlite() {
    the_retry_is_taken_after("TERM", &Place::sqlite());
}

#[test]
fn after_sigterm_with_a_hanging_transaction_the_retry_is_taken_on_postgres() {
    the_retry_is_taken_after("TERM", &Place::postgres());
}

#[test]
fn after_sigkill_with_a_hanging_transaction_the_retry_is_taken_on_sqlite() {
    the_retry_is_taken_after("KILL", &Place::sqlite());
}

#[test]
fn after_sigkill_with_a_hanging_transaction_the_retry_is_taken_on_postgres() {
    the_retry_is_taken_after("KILL", &Place::postgres());
}
