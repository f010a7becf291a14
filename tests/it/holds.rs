//! Events that wait: held in the store, released by what comes before them, by time or by hand, and told.

use serde_json::Value;
use tidegate_actors::ports::{EventRow, HeldFilter, HeldRow, ResourceRow};
use tidegate_actors::rules::event::Verdict;

use crate::support::gate::{Gate, until};
use crate::support::http::{Client, Request, Response};
use crate::support::place::Place;
use crate::support::signing::signed;

on_each_store! {
    what_is_above_a_gap_waits_in_the_store_and_goes_in_behind_what_closes_it;
    a_restart_forgets_nothing_that_waits;
    when_its_time_is_over_a_held_event_expires_with_a_record_and_the_state_stays;
    when_its_time_is_over_a_held_event_is_released_and_the_gap_is_given_up;
    events_of_a_window_go_in_in_version_order_when_it_closes;
    a_step_that_is_not_reachable_yet_waits_and_one_that_is_over_is_stale;
    partial_updates_in_any_order_end_in_one_state;
    a_second_id_for_the_same_effect_is_a_duplicate_under_its_own_id;
    a_counter_that_falls_is_parked_until_a_person_releases_it;
    a_gap_is_given_up_by_hand_over_the_admin_listener;
    only_json_from_here_releases_anything;
    a_repeat_of_a_held_event_is_a_duplicate_also_after_a_restart;
}

/// The source `things` with these rules of order; the step is the type.
fn source(order: &str) -> String {
    format!(
        "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
         type = \"body:/type\"\nresource = {{ type = \"literal:thing\", id = \"body:/id\" }}\n\
         version = [{{ from = \"body:/n\", as = \"integer\" }}]\n{order}\n"
    )
}

fn open(place: Place, order: &str) -> Gate {
    Gate::start_at(place, &source(order))
}

/// Posts version `n` of thing `t1` under a key of its own.
fn post(gate: &Gate, n: i64) -> Response {
    gate.call(&signed("/in/things", &format!("evt_{n}"), format!(r#"{{"id":"t1","n":{n},"data":{{"at":{n}}}}}"#)))
}

fn thing(gate: &Gate) -> ResourceRow {
    let rows = gate.resources();
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.into_iter().next().expect("the thing")
}

fn version(gate: &Gate) -> Option<String> {
    thing(gate).version
}

fn held(gate: &Gate) -> Vec<HeldRow> {
    gate.ask(|reader| async move { reader.held(&HeldFilter::default(), None, 100).await.expect("held events").rows })
}

fn event(gate: &Gate, key: &str) -> EventRow {
    gate.events().into_iter().find(|event| event.key == key).unwrap_or_else(|| panic!("no event {key}"))
}

fn what_is_above_a_gap_waits_in_the_store_and_goes_in_behind_what_closes_it(place: Place) {
    let gate = open(place, r#"order = { policy = "sequence", hold_for = "1h" }"#);
    assert_eq!(post(&gate, 1).verdict(), "applied");
    assert_eq!(post(&gate, 4).verdict(), "held");
    assert_eq!(post(&gate, 3).verdict(), "held");
    let waiting = held(&gate);
    assert_eq!(waiting.len(), 2);
    assert_eq!((waiting[0].version.as_deref(), waiting[0].why.as_str()), (Some("4"), "waits for 2"));
    assert!(waiting[0].until_ms > Some(waiting[0].received_at_ms + 3_500_000), "an hour by the store's clock");
    assert_eq!((thing(&gate).version.as_deref(), thing(&gate).held), (Some("1"), 2));

    assert_eq!(post(&gate, 2).verdict(), "applied");
    assert_eq!((thing(&gate).version.as_deref(), thing(&gate).held, thing(&gate).applied), (Some("4"), 0, 4));
    assert!(held(&gate).is_empty());
    let third = event(&gate, "evt_3");
    assert_eq!((third.verdict, third.settled_at_ms.is_some()), (Verdict::Applied, true));
    assert_eq!(post(&gate, 2).verdict(), "duplicate");
}

fn a_restart_forgets_nothing_that_waits(place: Place) {
    let rules = r#"order = { policy = "sequence", hold_for = "1h" }"#;
    let gate = open(place, rules);
    assert_eq!(post(&gate, 2).verdict(), "held");
    let (_, place) = gate.stop();
    let gate = open(place, rules);
    assert_eq!(held(&gate).len(), 1);
    assert_eq!(post(&gate, 1).verdict(), "applied");
    assert_eq!(version(&gate).as_deref(), Some("2"));
}

fn a_repeat_of_a_held_event_is_a_duplicate_also_after_a_restart(place: Place) {
    let rules = r#"order = { policy = "sequence", hold_for = "1h" }"#;
    let gate = open(place, rules);
    let first = post(&gate, 2);
    assert_eq!(first.verdict(), "held");
    let again = post(&gate, 2);
    assert_eq!((again.verdict().as_str(), &again.json()["id"]), ("duplicate", &first.json()["id"]));
    let (_, place) = gate.stop();
    let gate = open(place, rules);
    assert_eq!(post(&gate, 2).verdict(), "duplicate");
    assert_eq!(held(&gate).len(), 1);
}

fn when_its_time_is_over_a_held_event_expires_with_a_record_and_the_state_stays(place: Place) {
    let gate = open(place, r#"order = { policy = "sequence", hold_for = "200ms", on_gap = "expire" }"#);
    assert_eq!(post(&gate, 1).verdict(), "applied");
    assert_eq!(post(&gate, 3).verdict(), "held");
    until("the held event expires", || event(&gate, "evt_3").verdict == Verdict::Expired);
    let expired = event(&gate, "evt_3");
    assert!(expired.settled_at_ms.is_some() && expired.why.is_some(), "{expired:?}");
    assert_eq!((version(&gate).as_deref(), thing(&gate).held), (Some("1"), 0));
    assert_eq!(post(&gate, 2).verdict(), "applied", "what comes late goes in behind the state");
    assert_eq!(version(&gate).as_deref(), Some("2"));
    let figures = gate.admin_get("/metrics").text();
    assert!(figures.contains(r#"tidegate_holds_settled_total{result="expired"} 1"#), "{figures}");
}

fn when_its_time_is_over_a_held_event_is_released_and_the_gap_is_given_up(place: Place) {
    let gate = open(place, r#"order = { policy = "sequence", hold_for = "200ms" }"#);
    assert_eq!(post(&gate, 1).verdict(), "applied");
    assert_eq!(post(&gate, 4).verdict(), "held");
    assert_eq!(post(&gate, 3).verdict(), "held");
    until("the held events are released", || version(&gate).as_deref() == Some("4"));
    assert_eq!(thing(&gate).applied, 3);
    assert!(event(&gate, "evt_3").why.is_some_and(|why| why.contains("gap")), "{:?}", event(&gate, "evt_3"));
    assert_eq!(post(&gate, 2).verdict(), "stale", "too late");
}

fn events_of_a_window_go_in_in_version_order_when_it_closes(place: Place) {
    let gate = open(place, r#"order = { policy = "window", window = "300ms" }"#);
    for n in [3, 1, 2] {
        assert_eq!(post(&gate, n).verdict(), "held");
    }
    until("the window closes", || thing(&gate).held == 0);
    assert_eq!((thing(&gate).version.as_deref(), thing(&gate).applied), (Some("3"), 3), "none is stale");
    assert_eq!(post(&gate, 2).verdict(), "duplicate");
    let late = gate.call(&signed("/in/things", "evt_late", r#"{"id":"t1","n":2}"#));
    assert_eq!(late.verdict(), "stale");
}

fn a_step_that_is_not_reachable_yet_waits_and_one_that_is_over_is_stale(place: Place) {
    let order = r#"order = { policy = "transition", graph = { created = ["paid", "void"], paid = ["shipped"] }, hold_for = "1h" }"#;
    let gate = open(place, order);
    let step = |step: &str, n: i64| {
        let body = format!(r#"{{"type":"{step}","id":"t1","n":{n}}}"#);
        gate.call(&signed("/in/things", &format!("evt_{step}"), body)).verdict()
    };
    assert_eq!(step("shipped", 3), "held");
    assert_eq!(step("created", 1), "applied");
    assert_eq!(held(&gate)[0].why, "waits for paid");
    assert_eq!(step("paid", 2), "applied");
    assert_eq!(thing(&gate).step.as_deref(), Some("shipped"), "what waited went in behind it");
    assert_eq!(step("void", 4), "stale");
    assert_eq!(gate.call(&signed("/in/things", "evt_x", r#"{"type":"lost","id":"t1","n":9}"#)).code(), "step-unknown");
}

fn partial_updates_in_any_order_end_in_one_state(place: Place) {
    let gate = open(place, "merge = \"fields\"\nstate = \"body:/data\"");
    let updates = [(1, r#"{"plan":"pro","seats":3}"#), (3, r#"{"plan":null}"#), (2, r#"{"seats":5.0}"#)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let id = format!("t{order:?}");
        for place in order {
            let (n, data) = updates[place];
            let body = format!(r#"{{"id":"{id}","n":{n},"data":{data}}}"#);
            gate.call(&signed("/in/things", &format!("{id}-{n}"), body));
        }
        let rows = gate.resources();
        let row = rows.iter().find(|row| row.id == id).expect("the thing");
        assert_eq!(row.fields.as_deref(), Some(r#"{"plan":null,"seats":5.0}"#), "{order:?}");
        assert_eq!(row.version.as_deref(), Some("3"));
    }
}

fn a_second_id_for_the_same_effect_is_a_duplicate_under_its_own_id(place: Place) {
    let gate = open(place, "effect_key = [\"body:/type\", \"body:/n\"]");
    let send = |id: &str| gate.call(&signed("/in/things", id, r#"{"type":"a","id":"t1","n":1}"#));
    let first = send("evt_1");
    assert_eq!(first.verdict(), "applied");
    let second = send("evt_2");
    assert_eq!(second.verdict(), "duplicate");
    assert_eq!(send("evt_2").verdict(), "duplicate");
    let (first, second) = (event(&gate, "evt_1"), event(&gate, "evt_2"));
    assert_eq!((second.verdict, second.conflicts_with), (Verdict::Duplicate, Some(first.id)));
    assert_eq!((thing(&gate).applied, gate.events().len()), (1, 2), "one effect, and both ids are kept");
}

fn a_counter_that_falls_is_parked_until_a_person_releases_it(place: Place) {
    let gate = open(place, "epoch_on = { falls_by = 100 }");
    assert_eq!(post(&gate, 1000).verdict(), "applied");
    assert_eq!(post(&gate, 990).verdict(), "stale", "a late event is no new start");
    assert_eq!(post(&gate, 2).verdict(), "held");
    let parked = held(&gate);
    assert!(parked[0].parked && parked[0].until_ms.is_none() && parked[0].why.contains("1000"), "{parked:?}");
    let figures = gate.admin_get("/metrics").text();
    assert!(figures.contains("tidegate_version_regressions_total 1"), "{figures}");

    let answer = release(&gate, "t1");
    assert_eq!((answer.status, answer.json()["applied"].clone()), (200, Value::from(1)));
    assert_eq!((thing(&gate).version.as_deref(), thing(&gate).epoch, thing(&gate).held), (Some("2"), 2, 0));
    assert_eq!(post(&gate, 3).verdict(), "applied", "the new epoch goes on");
}

fn release_request(id: &str) -> Request {
    let body = format!(r#"{{"source":"things","type":"thing","id":"{id}"}}"#);
    Request::post("/api/resources/release", body).header("content-type", "application/json")
}

fn admin(gate: &Gate, request: &Request) -> Response {
    Client::connect(gate.admin).expect("the admin listener takes connections").call(request).expect("an answer")
}

fn release(gate: &Gate, id: &str) -> Response {
    admin(gate, &release_request(id))
}

fn a_gap_is_given_up_by_hand_over_the_admin_listener(place: Place) {
    let gate = open(place, r#"order = { policy = "sequence", hold_for = "1h" }"#);
    assert_eq!(post(&gate, 3).verdict(), "held");
    assert_eq!(post(&gate, 5).verdict(), "held");
    let answer = release(&gate, "t1");
    assert_eq!(answer.json(), serde_json::json!({ "applied": 2, "stale": 0, "expired": 0 }));
    assert_eq!(version(&gate).as_deref(), Some("5"));
    let again = release(&gate, "t1");
    assert_eq!((again.status, again.code().as_str()), (404, "nothing-waits"));
    assert_eq!(release(&gate, "never seen").code(), "nothing-waits");
}

fn only_json_from_here_releases_anything(place: Place) {
    let gate = open(place, r#"order = { policy = "sequence", hold_for = "1h" }"#);
    assert_eq!(post(&gate, 3).verdict(), "held");
    let good = release_request("t1");
    let form = good.clone().without("content-type").header("content-type", "application/x-www-form-urlencoded");
    let text = good.clone().without("content-type").header("content-type", "text/plain");
    let elsewhere = good.clone().header("origin", "https://evil.example");
    let renamed = good.clone().without("host").header("host", "evil.example").header("origin", "http://evil.example");
    for (request, status, code) in [
        (good.clone().without("content-type"), 415, "json-only"),
        (form, 415, "json-only"),
        (text, 415, "json-only"),
        (elsewhere, 403, "origin-foreign"),
        (renamed, 403, "origin-foreign"),
        (Request { body: b"{}".to_vec(), ..good.clone() }, 400, "not-a-resource"),
        (Request { body: b"[".to_vec(), ..good.clone() }, 400, "not-a-resource"),
        (Request { body: vec![b' '; 5000], ..good.clone() }, 413, "too-large"),
        (Request { method: "PUT".to_owned(), ..good.clone() }, 405, "method-not-allowed"),
    ] {
        let answer = admin(&gate, &request);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{request:?}");
    }
    assert_eq!(gate.admin_get("/api/resources/release").status, 405);
    assert_eq!(held(&gate).len(), 1, "nothing was released");
    let here = format!("http://{}", gate.admin);
    let from_here = good.without("host").header("host", gate.admin.to_string()).header("origin", here);
    assert_eq!(admin(&gate, &from_here).status, 200);
}
