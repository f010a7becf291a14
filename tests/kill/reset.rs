//! Clients that reset their connection in the middle of a request.

use std::time::Duration;

use crate::support::fault::Outsider;
use crate::support::gate::{Gate, until};
use crate::support::place::Place;
use crate::support::signing;

const REQUESTS: usize = 2_000;
const CLIENTS: usize = 8;

#[test]
fn requests_cut_off_by_a_reset_leave_no_transaction_open_and_lose_no_write() {
    let place = Place::postgres();
    let gate = Gate::start_at(place.clone(), "");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let gate = &gate;
            scope.spawn(move || (client..REQUESTS).step_by(CLIENTS).for_each(|number| cut_off(gate, number)));
        }
    });
    let mut outsider = Outsider::connect(&place);
    until("no connection is in a transaction", || {
        outsider.number(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL
             AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
        ) == 0
    });

    let mut client = gate.client();
    for number in 0..REQUESTS {
        let answer = client.call(&request(number)).expect("an answer");
        assert!(["applied", "duplicate", "stale"].contains(&answer.verdict().as_str()), "{}", answer.text());
    }
    let recorded = outsider.number("SELECT count(*) FROM events");
    assert_eq!(recorded, i64::try_from(REQUESTS).expect("a count"), "each event is recorded once");
    assert_eq!(gate.counts().keys, recorded);
}

fn request(number: usize) -> crate::support::http::Request {
    signing::signed("/in/things", &format!("cut-{number}"), signing::thing(&format!("r{}", number % 50), number))
}

/// Sends a whole request or a part of it, waits a moment for an answer, and resets the connection.
fn cut_off(gate: &Gate, number: usize) {
    let bytes = request(number).bytes();
    let length = if number.is_multiple_of(4) { rand::random_range(1..bytes.len()) } else { bytes.len() };
    let mut client = gate.client();
    client.send(&bytes[..length]).expect("bytes go out");
    client.reset_after(Duration::from_micros(rand::random_range(1..4_000))).expect("a reset");
}
