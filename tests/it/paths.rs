//! Paths, methods, probes and health.

use crate::support::gate::Gate;
use crate::support::http::{Client, Request};
use crate::support::signing::{signed, thing};

#[test]
fn whatever_is_no_door_is_404_and_never_redirects() {
    let gate = Gate::start("");
    for path in ["/", "/in", "/in/", "/in//x", "/in/things/", "/in/things/a/b", "/metrics", "/status", "/IN/things"] {
        for method in ["GET", "POST"] {
            let mut request = signed(path, "evt_1", thing("t1", 5));
            request.method = method.to_owned();
            let answer = gate.call(&request);
            assert_eq!((answer.status, answer.code().as_str()), (404, "not-found"), "{method} {path}");
            assert_eq!(answer.header("location"), None);
        }
    }
    gate.assert_empty();
}

#[test]
fn a_wrong_method_is_405_and_lists_what_is_allowed_known_source_or_not() {
    let gate = Gate::start("");
    for path in ["/in/things", "/in/nobody"] {
        for method in ["PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
            let answer = gate.call(&Request::new(method, path));
            assert_eq!((answer.status, answer.code().as_str()), (405, "method-not-allowed"), "{method} {path}");
            assert_eq!(answer.header("allow"), Some("POST, GET, HEAD, OPTIONS"));
        }
    }
    let answer = gate.call(&Request::new("POST", "/healthz"));
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn probes_of_a_known_source_are_200_and_keep_nothing() {
    let gate = Gate::start("");
    for method in ["GET", "HEAD", "OPTIONS"] {
        let mut client = gate.client();
        let request = Request::new(method, "/in/things");
        client.send(&request.bytes()).expect("sent");
        let answer = client.response_to(method).expect("an answer");
        assert_eq!(answer.status, 200, "{method}");
        assert_eq!(answer.body.is_empty(), method == "HEAD");
        assert_eq!(gate.call(&Request::new("GET", "/in/nobody")).status, 404);
    }
    gate.assert_empty();
}

#[test]
fn health_is_public_and_figures_and_status_are_not() {
    let gate = Gate::start("");
    assert_eq!(gate.call(&Request::new("GET", "/healthz")).json()["status"], "alive");
    crate::support::gate::until("the gate is ready", || gate.call(&Request::new("GET", "/readyz")).status == 200);
    for path in ["/healthz", "/readyz", "/metrics", "/status"] {
        assert_eq!(gate.admin_get(path).status, 200, "{path}");
        let mut client = Client::connect(gate.admin).expect("a connection");
        let answer = client.call(&Request::post(path, "{}")).expect("an answer");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{path}");
    }
    assert_eq!(gate.admin_get("/in/things").status, 404, "webhooks do not come in by the admin door");
}

#[test]
fn status_tells_pools_bounds_and_the_history_of_the_store() {
    let gate = Gate::start("");
    gate.post("evt_1", &thing("t1", 5));
    let status = gate.admin_get("/status").json();
    assert_eq!(status["ready"], true, "{status}");
    assert_eq!(status["sources"], serde_json::json!(["things"]));
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert!(status["incarnation"].is_string());
    let pools: Vec<&str> =
        status["pools"].as_array().expect("pools").iter().filter_map(|pool| pool["name"].as_str()).collect();
    for pool in ["ingress", "dedup", "ordering", "writer"] {
        assert!(pools.contains(&pool), "{pool} in {pools:?}");
    }
    assert!(status["in_flight_bytes"]["bound"].as_u64().expect("a bound") > 0);
    assert!(!status.to_string().contains("whsec"), "no secret in {status}");
}
