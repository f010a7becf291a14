//! B32: work that takes longer than anybody thought. An event's transaction has no lease to outlive: it ends
//! once, and copies wait for it. What has a lease is the question to a provider, and settings in which the
//! question could outlive it are refused.

use std::collections::BTreeMap;

use tidegate::config::Config;

use crate::case::Case;
use crate::support::fault;
use crate::support::gate::{Gate, until};
use crate::support::http::{Request, Response};
use crate::support::place::Place;

/// Longer than the work takes here.
const SETTINGS: &str =
    "[server]\nanswer_within = \"20s\"\ndrain_within = \"21s\"\n[store]\nstatement_timeout = \"20s\"\n";

fn in_flight(gate: &Gate) -> i64 {
    gate.admin_get("/status").json()["in_flight_events"]["now"].as_i64().expect("a number")
}

fn slow_work_is_done_once(place: &Place) {
    let case = Case::load("B32");
    let settings = format!("{SETTINGS}{}", case.settings());
    let arrival = &case.arrivals[0];
    let mut request = Request::post("/in/case", arrival.body.clone());
    request.headers.extend(arrival.header_bytes());

    let nodes = if place.is_sqlite() { 1 } else { 2 };
    let gates: Vec<Gate> = (0..nodes).map(|_| Gate::start_at(place.clone(), &settings)).collect();
    let hold = fault::hold_writes(place);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        // the sender, and a copy that comes while the work goes on
        let senders: Vec<_> = (0..2)
            .map(|copy| {
                let (gate, request) = (&gates[copy % nodes], &request);
                scope.spawn(move || gate.call(request))
            })
            .collect();
        until("both are being worked on", || gates.iter().map(in_flight).sum::<i64>() == 2);
        drop(hold);
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    });
    let mut verdicts: Vec<_> = answers.iter().map(Response::verdict).collect();
    verdicts.sort();
    assert_eq!(verdicts, ["applied", "duplicate"]);
    let resources = gates[0].resources();
    assert_eq!((resources.len(), resources[0].applied), (1, 1), "one effect: {resources:?}");
    assert_eq!(gates[0].events().len(), 1);
}

#[test]
fn slow_work_is_done_once_on_sqlite() {
    slow_work_is_done_once(&Place::sqlite());
}

#[test]
fn slow_work_is_done_once_on_two_nodes_of_one_postgres() {
    slow_work_is_done_once(&Place::postgres());
}

#[test]
fn a_question_to_a_provider_that_could_outlive_its_lease_is_refused_at_start() {
    let mut case = Case::load("B32");
    case.sources[0]["order"] = serde_json::json!({ "policy": "refetch" });
    let problems = |timeout: &str| {
        let mut case = case.clone();
        case.sources[0]["refetch"] = serde_json::json!({ "url": "https://api.example.com/{id}", "timeout": timeout });
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, case.settings()).expect("a settings file");
        match Config::load(Some(&file), &BTreeMap::new()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    };
    assert_eq!(problems("20s"), Vec::<String>::new());
    assert_eq!(problems("30s"), ["`source.case.refetch.timeout` must be a duration, 100ms to 20s, got 30s"]);
}
