//! The command line beside a running gate: what waits, the timeline of a resource, and its release by hand.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::gate::{Gate, environment};
use crate::support::place::Place;
use crate::support::signing::signed;

on_each_store! {
    what_waits_is_listed_with_what_it_waits_for_and_until_when;
    a_resource_is_shown_with_what_came_what_became_of_it_and_why;
    a_resource_of_fields_is_shown_with_its_state;
    a_resource_is_released_by_hand_and_says_what_became_of_it;
    generated_events_fit_batches_and_state_machines;
}

fn open(place: Place, order: &str) -> Gate {
    let settings = format!(
        "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
         resource = {{ type = \"literal:thing\", id = \"body:/id\" }}\n\
         version = [{{ from = \"body:/n\", as = \"integer\" }}]\n{order}\n"
    );
    Gate::start_at(place, &settings)
}

fn post(gate: &Gate, n: i64) -> String {
    let body = format!(r#"{{"type":"thing.updated","id":"t1","n":{n}}}"#);
    gate.call(&signed("/in/things", &format!("evt_{n}"), body)).verdict()
}

fn tidegate(gate: &Gate, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .current_dir(folder.path())
        .envs(environment(gate.place()))
        .output()
        .expect("the program runs")
}

/// What a command prints, in columns that are parted by one blank.
fn printed(gate: &Gate, arguments: &[&str]) -> String {
    let output = tidegate(gate, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

fn json(gate: &Gate, arguments: &[&str]) -> Value {
    let output = tidegate(gate, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const SEQUENCE: &str = r#"order = { policy = "sequence", hold_for = "1h" }"#;

fn what_waits_is_listed_with_what_it_waits_for_and_until_when(place: Place) {
    let gate = open(place, SEQUENCE);
    for n in [1, 3, 4] {
        post(&gate, n);
    }
    let listed = json(&gate, &["events", "--held", "--json"]);
    assert_eq!(listed["rows"].as_array().map(Vec::len), Some(2), "{listed}");
    let first = &listed["rows"][0];
    assert_eq!((&first["version"], &first["waits_for"]), (&Value::from("3"), &Value::from("waits for 2")));
    assert_eq!((&first["resource"]["id"], &first["parked"]), (&Value::from("t1"), &Value::from(false)));
    assert!(first["until"].as_str() > first["received_at"].as_str(), "{first}");
    let text = printed(&gate, &["events", "--held", "--source", "things"]);
    assert!(text.starts_with("ID RECEIVED SOURCE TYPE RESOURCE VERSION WAITS UNTIL\n"), "{text}");
    assert!(text.contains("things thing.updated thing t1 3 waits for 2 "), "{text}");
    let one = printed(&gate, &["events", "--held", "--limit", "1"]);
    let next = one.rsplit(' ').next().expect("where the next page begins").to_owned();
    let rest = json(&gate, &["events", "--held", "--after", &next, "--json"]);
    assert_eq!((&rest["rows"][0]["version"], &rest["next"]), (&Value::from("4"), &Value::Null), "{rest}");
    assert_eq!(json(&gate, &["events", "--held", "--source", "others", "--json"])["rows"], Value::Array(Vec::new()));
}

fn a_resource_is_shown_with_what_came_what_became_of_it_and_why(place: Place) {
    let gate = open(place, SEQUENCE);
    for n in [1, 4, 3, 2, 6] {
        post(&gate, n);
    }
    let shown = json(&gate, &["resources", "show", "things", "thing", "t1", "--json"]);
    let resource = &shown["resource"];
    assert_eq!((&resource["version"], &resource["held"], &resource["epoch"]), (&"4".into(), &1.into(), &1.into()));
    let events = shown["events"].as_array().expect("events");
    let came: Vec<_> = events.iter().map(|event| event["version"].as_str().expect("a version")).collect();
    assert_eq!(came, ["1", "4", "3", "2", "6"], "in the order they came");
    assert_eq!(
        (&events[1]["verdict"], events[1]["settled_at"].is_string()),
        (&"applied".into(), true),
        "{}",
        events[1]
    );
    assert_eq!((&events[4]["verdict"], &events[4]["why"]), (&"held".into(), &"waits for 5".into()), "{}", events[4]);
    assert_eq!(shown["held"][0]["version"], "6");
    assert_eq!(shown["fetch"], Value::Null);

    let text = printed(&gate, &["resources", "things", "thing", "t1"]);
    for line in ["version 4", "state live, 1 held", "RECEIVED TYPE VERSION VERDICT WHY SETTLED ID", "waiting"] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    assert!(text.contains("thing.updated 6 held waits for 5 - "), "{text}");
    let newest = json(&gate, &["resources", "show", "things", "thing", "t1", "--limit", "2", "--json"]);
    assert_eq!(newest["events"][1]["version"], "6");
    let older = newest["next"].as_str().expect("older ones");
    let older = json(&gate, &["resources", "show", "things", "thing", "t1", "--after", older, "--json"]);
    assert_eq!(older["events"].as_array().map(Vec::len), Some(3));
    let nobody = tidegate(&gate, &["resources", "show", "things", "thing", "nobody"]);
    assert_eq!(nobody.status.code(), Some(1));
}

fn a_resource_of_fields_is_shown_with_its_state(place: Place) {
    let gate = open(place, "merge = \"fields\"");
    post(&gate, 1);
    let shown = json(&gate, &["resources", "show", "things", "thing", "t1", "--json"]);
    assert_eq!(shown["fields"], serde_json::json!({ "type": "thing.updated", "id": "t1", "n": 1 }));
    let text = printed(&gate, &["resources", "show", "things", "thing", "t1"]);
    assert!(text.contains("\nfields\n{\"id\":\"t1\",\"n\":1,\"type\":\"thing.updated\"}\n"), "{text}");
}

fn a_resource_is_released_by_hand_and_says_what_became_of_it(place: Place) {
    let gate = open(place, SEQUENCE);
    for n in [3, 4] {
        post(&gate, n);
    }
    let shown = printed(&gate, &["resources", "things"]);
    assert!(shown.contains("things - thing t1 - nothing yet, 2 held 0 -"), "{shown}");
    let admin = format!("http://{}", gate.admin);
    let release = |more: &[&str]| {
        let mut arguments = vec!["resources", "release", "things", "thing", "t1", "--admin", &admin];
        arguments.extend(more);
        tidegate(&gate, &arguments)
    };
    let released = release(&["--json"]);
    let released: Value = serde_json::from_slice(&released.stdout).expect("JSON");
    assert_eq!(released, serde_json::json!({ "applied": 2, "stale": 0, "expired": 0 }));
    let again = release(&[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing of thing t1 of things waits"));
    post(&gate, 9);
    assert_eq!(String::from_utf8_lossy(&release(&[]).stdout), "1 applied, 0 stale, 0 expired\n");
    let text = printed(&gate, &["resources", "show", "things", "thing", "t1"]);
    assert!(text.contains(" 9 applied the gap before it was given up "), "{text}");
    let away = tidegate(&gate, &["resources", "release", "things", "thing", "t1", "--admin", "http://127.0.0.1:9"]);
    assert_eq!(away.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&away.stderr).contains("is `tidegate serve` running?"));
}

fn generated_events_fit_batches_and_state_machines(place: Place) {
    let source = |rules: &str| {
        format!(
            "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
             on_unusable = \"refuse\"\n{rules}\n"
        )
    };
    let rules = "batch = \"body:/events\"\nkey = \"item:/id\"\ntype = \"item:/type\"\n\
                 resource = { type = \"literal:thing\", id = \"item:/thing\" }\n\
                 version = [{ from = \"item:/n\", as = \"integer\" }]\n\
                 order = { policy = \"transition\", step = \"item:/step\", graph = { made = [\"sold\"], sold = [\"sent\"] } }";
    let settings = source(rules);
    let gate = Gate::start_at(place, &settings);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("things.toml");
    std::fs::write(&file, &settings).expect("a settings file");
    let url = format!("http://{}", gate.public);
    let config = file.display().to_string();
    let arguments =
        ["--config", &config, "send", "things", "--count", "30", "--versions", "3", "--shuffle", "--url", &url];
    let sent = tidegate(&gate, &arguments);
    assert!(
        sent.status.success(),
        "{}{}",
        String::from_utf8_lossy(&sent.stdout),
        String::from_utf8_lossy(&sent.stderr)
    );
    let resources = gate.resources();
    assert_eq!(resources.len(), 10);
    for resource in resources {
        assert_eq!((resource.step.as_deref(), resource.applied, resource.held), (Some("sent"), 3, 0), "{resource:?}");
    }
}
