//! Authentic, and not usable: kept in quarantine and told, or accepted where the sender stops at a 4xx.

use crate::support::gate::{Gate, SOURCES};
use crate::support::place::Place;
use crate::support::signing::{signed, thing};

on_each_store! {
    what_cannot_be_read_is_422_with_the_reason_and_kept_raw;
    the_same_unusable_bytes_again_are_counted_and_not_kept_twice;
    where_the_sender_stops_at_a_4xx_it_is_accepted_and_kept_in_quarantine;
    an_empty_authentic_body_is_400_and_nothing_is_kept;
    quarantine_makes_no_key_so_the_repaired_event_is_applied;
}

fn what_cannot_be_read_is_422_with_the_reason_and_kept_raw(place: Place) {
    let gate = Gate::start_at(place, "");
    let bodies: [&[u8]; 5] = [b"not json", b"{\"type\":", b"[1,2", b"{\"a\":NaN}", b"\xff\xfe\x00"];
    for (number, body) in bodies.into_iter().enumerate() {
        let answer = gate.call(&signed("/in/things", &format!("evt_{number}"), body));
        assert_eq!(answer.status, 422, "{}", answer.text());
        let document = answer.json();
        assert_eq!(answer.code(), document["code"].as_str().expect("a code"));
        assert!(document["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        let kept = gate.quarantined();
        assert_eq!(kept.len(), number + 1);
        assert_eq!(Some(kept[0].id.to_string().as_str()), document["id"].as_str());
    }
    assert_eq!(gate.counts().keys, 0);
    assert!(gate.events().is_empty());
}

fn the_same_unusable_bytes_again_are_counted_and_not_kept_twice(place: Place) {
    let gate = Gate::start_at(place, "");
    let first = gate.call(&signed("/in/things", "evt_1", "not json")).json();
    let second = gate.call(&signed("/in/things", "evt_1", "not json")).json();
    assert_eq!(first["id"], second["id"]);
    let kept = gate.quarantined();
    assert_eq!((kept.len(), kept[0].times), (1, 2));
}

fn where_the_sender_stops_at_a_4xx_it_is_accepted_and_kept_in_quarantine(place: Place) {
    let gate = Gate::start_at(place, &SOURCES.replace("[[source]]", "[[source]]\non_unusable = \"accept\""));
    let answer = gate.call(&signed("/in/things", "evt_1", "not json"));
    assert_eq!((answer.status, answer.verdict().as_str()), (202, "quarantined"));
    assert_eq!(gate.quarantined()[0].id.to_string(), answer.json()["id"].as_str().expect("an id"));
}

fn an_empty_authentic_body_is_400_and_nothing_is_kept(place: Place) {
    let gate = Gate::start_at(place, "");
    let answer = gate.call(&signed("/in/things", "evt_1", ""));
    assert_eq!((answer.status, answer.code().as_str()), (400, "body-empty"));
    gate.assert_empty();
}

fn quarantine_makes_no_key_so_the_repaired_event_is_applied(place: Place) {
    let gate = Gate::start_at(place, "");
    assert_eq!(gate.call(&signed("/in/things", "evt_1", "not json")).status, 422);
    assert_eq!(gate.post("evt_1", &thing("t1", 5)).verdict(), "applied");
}
