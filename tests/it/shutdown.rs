//! The program as a process: what signals do, what the exit code says, what a taken port says.

use std::net::TcpListener;
use std::process::Command;

use crate::support::gate::{Gate, environment, until};
use crate::support::http::{Client, Request};
use crate::support::place::Place;
use crate::support::process::Process;
use crate::support::signing::{signed, thing};

#[test]
fn sigterm_finishes_what_was_accepted_refuses_the_rest_and_exits_with_0() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "", &[]);
    let mut clients: Vec<Client> = (0..40).map(|_| process.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client
            .send(&signed("/in/things", &format!("evt_{number}"), thing(&format!("t{number}"), 1)).bytes())
            .expect("sent");
    }
    process.signal("TERM");
    let answers: Vec<_> = clients.iter_mut().map(|client| client.response()).collect();
    let taken = answers.iter().flatten().filter(|answer| answer.status == 200).count();
    for answer in answers.iter().flatten() {
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
    }
    let status = process.ended();
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(Client::connect(process.public).is_err(), "nobody listens any more");
    let gate = Gate::start_at(place, "");
    assert!(gate.events().len() >= taken, "{taken} were answered 200, {} are there", gate.events().len());
}

#[test]
fn sigint_on_an_idle_gate_ends_at_once_with_0() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "", &[]);
    process.signal("INT");
    assert_eq!(process.ended().code(), Some(0), "{}", process.log());
}

#[test]
fn a_stalled_sender_does_not_hold_up_the_end() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "", &[]);
    let mut stalled = process.client();
    stalled.send(&signed("/in/things", "evt_1", thing("t1", 1)).head()).expect("sent");
    until("it is read", || {
        let mut admin = Client::connect(process.admin).expect("the admin listener");
        let status = admin.call(&Request::new("GET", "/status")).expect("an answer").json();
        status["in_flight_bytes"]["now"].as_u64() > Some(0)
    });
    process.signal("TERM");
    let answer = stalled.response().expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (503, "draining"));
    assert_eq!(process.ended().code(), Some(0), "{}", process.log());
}

#[test]
fn a_second_signal_ends_at_once_with_a_code_of_its_own() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "[server]\nbody_timeout = \"60s\"\ndrain_within = \"60s\"", &[]);
    // an admin connection that is never closed keeps nothing open; a half-sent head does, for a while
    let mut half = process.client();
    half.send(b"POST /in/things HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n").expect("sent");
    until("it is read", || {
        let mut admin = Client::connect(process.admin).expect("the admin listener");
        let status = admin.call(&Request::new("GET", "/status")).expect("an answer").json();
        status["in_flight_bytes"]["now"].as_u64() > Some(0)
    });
    process.signal("TERM");
    process.logs("a second signal ends at once");
    process.signal("TERM");
    let code = process.ended().code();
    assert!(matches!(code, Some(130 | 0)), "{code:?} {}", process.log());
}

#[test]
fn sigkill_loses_nothing_that_was_answered() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "", &[]);
    let mut client = process.client();
    for number in 0..20 {
        let request = signed("/in/things", &format!("evt_{number}"), thing("t1", number));
        assert_eq!(client.call(&request).expect("an answer").verdict(), "applied");
    }
    process.kill();
    let gate = Gate::start_at(place, "");
    assert_eq!(gate.events().len(), 20);
    assert_eq!(gate.post("evt_7", &thing("t1", 7)).verdict(), "duplicate");
    assert_eq!(gate.resources()[0].version.as_deref(), Some("19"));
}

#[test]
fn a_taken_port_is_told_by_setting_and_number_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let place = Place::sqlite();
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("serve")
        .current_dir(folder.path())
        .envs(environment(&place))
        .env("TIDEGATE_SERVER__LISTEN", format!("127.0.0.1:{port}"))
        .output()
        .expect("the program runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for part in ["server.listen", &port.to_string(), "in use", "set another port"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn no_secret_is_ever_logged() {
    let place = Place::sqlite();
    let mut process = Process::start(&place, "[log]\nfilter = \"trace\"", &[]);
    let mut client = process.client();
    let good = signed("/in/things", "evt_1", thing("t1", 1));
    client.call(&good).expect("an answer");
    client.call(&good.clone().without("webhook-signature")).expect("an answer");
    client.call(&signed("/in/things", "evt_2", "not json")).expect("an answer");
    process.signal("TERM");
    process.ended();
    let log = process.log();
    let secret = crate::support::signing::secret(crate::support::signing::KEY);
    assert!(!log.contains(&secret) && !log.contains(&secret["whsec_".len()..]), "the secret is in the log");
    assert!(!log.contains("v1,"), "a signature is in the log");
}
