//! Requests that are not vouched for: one answer for all of them, and nothing kept.

use crate::support::gate::Gate;
use crate::support::http::{Request, Response};
use crate::support::signing::{now_s, signature, signed, signed_at, thing};

/// Everything a sender sees of an answer, but for the time it was given.
fn seen(response: &Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let mut headers: Vec<_> = response.headers.iter().filter(|(name, _)| name != "date").cloned().collect();
    headers.sort(); // their order is drawn anew for every response
    (response.status, headers, response.body.clone())
}

#[test]
fn every_reason_gets_the_same_401_byte_for_byte_and_keeps_nothing() {
    let gate = Gate::start("");
    let good = signed("/in/things", "evt_1", thing("t1", 5));
    let with = |name: &str, value: &str| good.clone().without(name).header(name, value);
    let other_body = Request { body: thing("t1", 6).into_bytes(), ..good.clone() };
    let other_key = with(
        "webhook-signature",
        &signature(b"another secret, just as long as it", "evt_1", &now_s().to_string(), &good.body),
    );
    let cases: Vec<(&str, Request)> = vec![
        ("an unknown source", signed("/in/nobody", "evt_1", thing("t1", 5))),
        ("an unknown tenant", signed("/in/things/acme", "evt_1", thing("t1", 5))),
        ("an unknown source and tenant", signed("/in/nobody/acme", "evt_1", thing("t1", 5))),
        ("a flipped byte", other_body),
        ("another secret", other_key),
        ("no signature", good.clone().without("webhook-signature")),
        ("no id", good.clone().without("webhook-id")),
        ("no time", good.clone().without("webhook-timestamp")),
        ("an empty signature", with("webhook-signature", "")),
        ("not base64", with("webhook-signature", "v1,!!!!")),
        ("a short signature", with("webhook-signature", "v1,AAAA")),
        ("an unknown version", with("webhook-signature", "v9,AAAA")),
        (
            "a signature that is not text",
            good.clone().without("webhook-signature").header("webhook-signature", b"v1,\xff\xfe"),
        ),
        ("a huge signature", with("webhook-signature", &format!("v1,{}", "A".repeat(20_000)))),
        ("many signatures", with("webhook-signature", &"v1,AAAA ".repeat(200))),
        ("two times", good.clone().header("webhook-timestamp", "1")),
        ("two ids", good.clone().header("webhook-id", "evt_2")),
        ("no number for a time", with("webhook-timestamp", "soon")),
        ("a time with a sign", with("webhook-timestamp", "+5")),
        ("the largest time", with("webhook-timestamp", &i64::MAX.to_string())),
        ("the smallest time", with("webhook-timestamp", &i64::MIN.to_string())),
        ("a time long ago", signed_at("/in/things", "evt_1", now_s() - 3_600, thing("t1", 5))),
        ("a time far ahead", signed_at("/in/things", "evt_1", now_s() + 3_600, thing("t1", 5))),
        ("no body and no signature", Request::post("/in/things", "")),
    ];
    let expected = seen(&gate.call(&cases[0].1));
    assert_eq!(expected.0, 401);
    for (what, request) in &cases {
        let response = gate.call(request);
        assert_eq!(seen(&response), expected, "{what}");
        assert_eq!(response.code(), "unauthorized");
        assert!(response.header("www-authenticate").is_some(), "a 401 says how to authenticate");
    }
    gate.assert_empty();
    assert_eq!(gate.call(&good).verdict(), "applied", "the request they were made from is good");
}

#[test]
fn an_unknown_source_and_a_wrong_signature_leave_the_connection_alike() {
    let gate = Gate::start("");
    for target in ["/in/nobody", "/in/things"] {
        let mut client = gate.client();
        for _ in 0..3 {
            let request = signed(target, "evt_1", thing("t1", 5)).without("webhook-signature");
            assert_eq!(client.call(&request).expect("an answer").status, 401, "{target}");
        }
    }
}

#[test]
fn the_edges_of_the_window_are_inside() {
    let gate = Gate::start("");
    for (number, offset) in [(1, -295), (2, 295)] {
        let request = signed_at("/in/things", &format!("evt_{number}"), now_s() + offset, thing("t1", number));
        assert_eq!(gate.call(&request).verdict(), "applied", "{offset} s");
    }
}

#[test]
fn a_request_replayed_to_another_source_or_tenant_is_refused_when_its_secret_is_another() {
    let settings = format!(
        "{}\n[[source]]\nname = \"others\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:OTHER_SECRET\"]\n",
        crate::support::gate::SOURCES
    );
    let gate = Gate::start(&settings);
    let mut request = signed("/in/things", "evt_1", thing("t1", 5));
    assert_eq!(gate.call(&request).verdict(), "applied");
    request.target = "/in/others".to_owned();
    assert_eq!(gate.call(&request).code(), "unauthorized");
    assert_eq!(gate.events().len(), 1);
}
