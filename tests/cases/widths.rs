//! B85: counters on both sides of 2^31 and 2^32, and no column that could not hold them.

use std::process::Command;

use serde_json::Value;

use crate::support::fault::Outsider;
use crate::support::gate::{Gate, environment};
use crate::support::place::Place;
use crate::support::signing::{signed, thing};

/// A little below what 32 bits hold, with a sign and without.
const BRINKS: [i64; 2] = [(1 << 31) - 3, (1 << 32) - 3];
const EVENTS: i64 = 10;

/// Sets everything that counts.
fn set_counters(place: &Place, to: i64) {
    let mut outsider = Outsider::connect(place);
    outsider.run(&format!("UPDATE resources SET applied = {to}; UPDATE quarantine SET times = {to}"));
    if place.is_sqlite() {
        outsider.run(&format!(
            "UPDATE events SET seq = {to} WHERE seq = (SELECT max(seq) FROM events);
             UPDATE quarantine SET seq = {to}; UPDATE meta SET opened = {to}"
        ));
    }
}

fn listed(place: &Place, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .current_dir(folder.path())
        .envs(environment(place))
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn events_go_in_across(brink: i64, gate: &Gate) {
    set_counters(gate.place(), brink);
    for number in 1..=EVENTS {
        let version = brink + number;
        let answer = gate.post(&format!("evt_{version}"), &thing("t1", version));
        assert_eq!(answer.verdict(), "applied", "number {number} across {brink}");
        assert_eq!(gate.post(&format!("evt_{version}"), &thing("t1", version)).verdict(), "duplicate");
        assert_eq!(gate.call(&signed("/in/things", "evt", "not json")).status, 422);
    }
    let reached = brink + EVENTS;
    assert_eq!(gate.resources()[0].applied, reached);
    assert_eq!(gate.quarantined()[0].times, reached);

    let place = gate.place();
    let resources = listed(place, &["resources", "--json"]);
    assert_eq!(resources["rows"][0]["applied"], reached, "{resources}");
    let shown = listed(place, &["resources", "things", "thing", "t1", "--json"]);
    assert_eq!(shown["resource"]["applied"], reached, "{shown}");
    assert_eq!(shown["resource"]["version"], reached.to_string(), "{shown}");
    let quarantine = listed(place, &["quarantine", "--json"]);
    assert_eq!(quarantine["rows"][0]["times"], reached, "{quarantine}");
    let newest = listed(place, &["events", "--limit", "3", "--json"]);
    assert_eq!(newest["rows"][0]["version"], reached.to_string(), "{newest}");
    let next = newest["next"].as_str().expect("another page");
    let rest = listed(place, &["events", "--limit", "100", "--after", next, "--json"]);
    assert_eq!(rest["rows"][0]["version"], (reached - 3).to_string(), "{rest}");
    let shown = listed(place, &["events", newest["rows"][0]["id"].as_str().expect("an id"), "--json"]);
    assert_eq!(shown["key"], format!("evt_{reached}"), "{shown}");
}

fn counters_pass_32_bits(place: Place) {
    let mut gate = Gate::start_at(place, "");
    gate.post("evt_first", &thing("t1", 1));
    assert_eq!(gate.call(&signed("/in/things", "evt", "not json")).status, 422);
    for brink in BRINKS {
        events_go_in_across(brink, &gate);
        let (_, place) = gate.stop();
        if place.is_sqlite() {
            let seq = Outsider::connect(&place).number("SELECT max(seq) FROM events");
            assert_eq!(seq, brink + EVENTS, "the log goes on behind the largest number");
        }
        gate = Gate::start_at(place, "");
        assert_eq!(gate.post("evt_first", &thing("t1", 1)).verdict(), "duplicate", "a later start finds all as it was");
    }
}

#[test]
fn counters_pass_the_brinks_of_32_bits_on_sqlite() {
    counters_pass_32_bits(Place::sqlite());
}

#[test]
fn counters_pass_the_brinks_of_32_bits_on_postgres() {
    counters_pass_32_bits(Place::postgres());
}

#[test]
fn no_column_and_no_sequence_of_either_store_is_narrower_than_what_it_counts() {
    let (sqlite, postgres) = (Place::sqlite(), Place::postgres());
    for place in [&sqlite, &postgres] {
        Gate::start_at(place.clone(), "").stop();
    }
    // SQLite's INTEGER has 64 bits; another name for a number would be one that nobody checked.
    let types = Outsider::connect(&sqlite).texts(
        "SELECT DISTINCT c.type FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1",
    );
    assert_eq!(types, ["BLOB", "INTEGER", "TEXT"]);

    let mut outsider = Outsider::connect(&postgres);
    let numbers = outsider.texts(
        "SELECT DISTINCT table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns
         WHERE table_schema = 'tidegate' AND numeric_precision IS NOT NULL AND data_type <> 'bigint' ORDER BY 1",
    );
    assert_eq!(numbers, ["meta.key_slot smallint"], "the number of one of three tables, and no counter");
    assert_eq!(outsider.number("SELECT count(*) FROM pg_sequences"), 0, "nothing is numbered by a sequence");
}
