//! A fault in the program itself, while it handles a request: that request is a 500, and nothing else is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::app::Backends;
use tidegate_actors::ports::Clock;
use tidegate_actors::rules::event::EventId;

use crate::support::gate::{Gate, until};
use crate::support::http::Request;
use crate::support::place::Place;
use crate::support::signing::{signed, thing};

/// A clock that panics when a request asks it for an id, which happens in the handler and nowhere else.
struct Broken {
    inner: Arc<dyn Clock>,
    broken: Arc<AtomicBool>,
}

impl Clock for Broken {
    fn now_ms(&self) -> i64 {
        self.inner.now_ms()
    }

    fn event_id(&self) -> EventId {
        assert!(!self.broken.load(Ordering::SeqCst), "a fault in the program, as the test wants it");
        self.inner.event_id()
    }
}

fn start() -> (Gate, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let gate = Gate::start_with(Place::sqlite(), "[server]\nworkers = 1", move |backends: Backends| Backends {
        clock: Arc::new(Broken { inner: backends.clock, broken: switch }),
        ..backends
    });
    (gate, broken)
}

/// A body that is verified on the worker's own thread, and one that is handed to another.
fn bodies() -> [String; 2] {
    let pad = format!(r#""pad":"{}""#, "x".repeat(200_000));
    [thing("t1", 1), thing("t2", 1).replace(r#""data""#, &format!(r#"{pad},"data""#))]
}

#[test]
fn a_panic_in_a_handler_is_500_for_that_request_and_the_process_lives() {
    let (gate, broken) = start();
    for (number, body) in bodies().into_iter().enumerate() {
        let request = signed("/in/things", &format!("evt_{number}"), body);
        broken.store(true, Ordering::SeqCst);
        let mut client = gate.client();
        let answer = client.call(&request).expect("an answer, not a closed connection");
        assert_eq!((answer.status, answer.code().as_str()), (500, "internal"), "{}", answer.text());
        assert!(!answer.text().contains("as the test wants it"), "nothing of the inside in {}", answer.text());
        assert_eq!(gate.call(&Request::new("GET", "/healthz")).status, 200, "the only worker lives");
        assert_eq!(gate.events().len(), number, "nothing was kept");

        broken.store(false, Ordering::SeqCst);
        let again = client.call(&request).expect("the same connection goes on");
        assert_eq!(again.verdict(), "applied", "the failed request claimed no key");
    }
    assert_eq!(gate.events().len(), 2);
}

#[test]
fn panics_give_back_the_room_they_held_and_are_counted() {
    let (gate, broken) = start();
    broken.store(true, Ordering::SeqCst);
    for (number, body) in bodies().into_iter().cycle().take(20).enumerate() {
        assert_eq!(gate.call(&signed("/in/things", &format!("evt_{number}"), body)).status, 500);
    }
    until("no room is held", || {
        let status = gate.admin_get("/status").json();
        status["in_flight_events"]["now"] == 0 && status["in_flight_bytes"]["now"] == 0
    });
    let figures = gate.admin_get("/metrics").text();
    assert!(figures.contains("tidegate_http_handler_panics_total 20\n"), "each is counted in {figures}");
    gate.assert_empty();
}
