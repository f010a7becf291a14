//! Effects on the user's own tables: in the transaction of the event's key, in order, and each for itself when one fails.

use tidegate_actors::ports::FailureRow;
use tidegate_actors::rules::event::Verdict;

use crate::support::fault::Outsider;
use crate::support::gate::{Gate, config, until};
use crate::support::http::{Client, Request, Response};
use crate::support::place::Place;
use crate::support::signing::signed;

on_each_store! {
    an_applied_event_writes_what_it_is_to_the_users_table;
    only_what_is_applied_has_effects_and_a_held_event_has_them_when_it_is_released;
    effects_run_in_version_order_also_inside_one_batch;
    a_failing_effect_keeps_nothing_of_its_event_and_its_sender_may_come_again;
    a_failing_effect_leaves_the_rest_of_the_batch_untouched;
    several_statements_of_an_event_are_one_and_roll_back_together;
    a_statement_that_takes_too_long_fails_its_own_event_and_no_other;
    a_held_event_whose_effect_fails_waits_on_and_stops_nobody;
    a_repair_lets_the_held_event_whose_effect_failed_go_in_by_hand;
    bodies_that_no_database_takes_as_they_are_are_still_json_to_an_effect;
    a_setup_makes_the_tables_and_a_restart_makes_them_no_second_time;
    statements_that_the_database_cannot_run_are_told_with_their_place_and_the_gate_does_not_open;
}

const TABLES: &str =
    "CREATE TABLE seen (id TEXT PRIMARY KEY, n BIGINT NOT NULL); CREATE TABLE log (entry TEXT NOT NULL)";

/// A place with the user's tables in it, beside the gate's.
fn prepared(place: Place) -> Place {
    let (_, place) = Gate::start_at(place, "").stop();
    users(&place).run(TABLES);
    place
}

/// A connection that sees the user's tables.
fn users(place: &Place) -> Outsider {
    let mut outsider = Outsider::connect(place);
    if !place.is_sqlite() {
        outsider.run("SET search_path = public");
    }
    outsider
}

/// The source `things` with an order, and effects on its events.
fn settings(order: &str, effects: &[&str]) -> String {
    let mut text = format!(
        "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
         type = \"body:/type\"\nresource = {{ type = \"literal:thing\", id = \"body:/id\" }}\n\
         version = [{{ from = \"body:/n\", as = \"integer\" }}]\n{order}\n"
    );
    for effect in effects {
        text.push_str(&format!("[[effect]]\non = {{ source = \"things\", types = [\"thing.*\"] }}\n{effect}\n"));
    }
    text
}

const LOG: &str = r#"sql = "INSERT INTO log (entry) VALUES (:resource || ':' || :version)""#;
/// Refuses negative numbers, by a constraint that the user may repair.
const SEE: &str = r#"sql = "INSERT INTO seen (id, n) VALUES (:key, CAST(:version AS BIGINT))""#;

fn request(id: &str, n: i64) -> Request {
    signed("/in/things", &format!("evt_{id}_{n}"), format!(r#"{{"type":"thing.moved","id":"{id}","n":{n}}}"#))
}

fn post(gate: &Gate, id: &str, n: i64) -> Response {
    gate.call(&request(id, n))
}

fn log(gate: &Gate) -> Vec<String> {
    let order = if gate.place().is_sqlite() { "rowid" } else { "ctid" };
    users(gate.place()).texts(&format!("SELECT entry FROM log ORDER BY {order}"))
}

fn failed(gate: &Gate) -> Vec<FailureRow> {
    gate.ask(|reader| async move { reader.failures(None, 100).await.expect("failures").rows })
}

fn failures(gate: &Gate) -> i64 {
    failed(gate).iter().map(|row| row.failures).sum()
}

fn an_applied_event_writes_what_it_is_to_the_users_table(place: Place) {
    let place = prepared(place);
    let everything = r#"sql = """INSERT INTO log (entry) VALUES (:source || '|' || :tenant || '|' || :key || '|' || :type || '|' ||
        :resource_type || '|' || :resource || '|' || :version || '|' || (:body ->> 'note') || '|' || CAST(:id AS TEXT))""""#;
    let gate = Gate::start_at(place, &settings("", &[everything]));
    let body = r#"{"type":"thing.moved","id":"t1","n":7,"note":"it's ä"}"#;
    let answer = gate.call(&signed("/in/things", "evt_1", body));
    assert_eq!(answer.verdict(), "applied");
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(log(&gate), [format!("things||evt_1|thing.moved|thing|t1|7|it's ä|{id}")]);
    assert_eq!(gate.call(&signed("/in/things", "evt_1", body)).verdict(), "duplicate");
    assert_eq!(log(&gate).len(), 1, "a duplicate has no effect");
}

fn only_what_is_applied_has_effects_and_a_held_event_has_them_when_it_is_released(place: Place) {
    let place = prepared(place);
    let gate = Gate::start_at(place, &settings(r#"order = { policy = "sequence", hold_for = "1h" }"#, &[LOG]));
    assert_eq!(post(&gate, "a", 3).verdict(), "held");
    assert_eq!(post(&gate, "a", 2).verdict(), "held");
    assert!(log(&gate).is_empty());
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    assert_eq!(log(&gate), ["a:1", "a:2", "a:3"]);
    let stale = signed("/in/things", "other", r#"{"type":"thing.moved","id":"a","n":2}"#);
    assert_eq!(gate.call(&stale).verdict(), "stale");
    let other = signed("/in/things", "unasked", r#"{"type":"other.moved","id":"b","n":1}"#);
    assert_eq!(gate.call(&other).verdict(), "applied");
    assert_eq!(log(&gate).len(), 3, "no effect of what is stale, nor of a type that has none");
}

fn effects_run_in_version_order_also_inside_one_batch(place: Place) {
    let place = prepared(place);
    let batch = settings("", &[LOG])
        .replace("type = \"body:/type\"", "batch = \"body:\"\nkey = \"item:/key\"\ntype = \"item:/type\"")
        .replace("body:/id", "item:/id")
        .replace("body:/n", "item:/n");
    let gate = Gate::start_at(place, &batch);
    let items: Vec<String> =
        [5, 2, 9].map(|n| format!(r#"{{"key":"k{n}","type":"thing.moved","id":"a","n":{n}}}"#)).into();
    let answer = gate.call(&signed("/in/things", "batch", format!("[{}]", items.join(","))));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let log = log(&gate);
    let mut sorted = log.clone();
    sorted.sort();
    assert_eq!(log, sorted, "older ones are stale or come first");
    assert_eq!(log.last().map(String::as_str), Some("a:9"));
}

fn a_failing_effect_keeps_nothing_of_its_event_and_its_sender_may_come_again(place: Place) {
    let place = prepared(place);
    users(&place).run("INSERT INTO seen VALUES ('evt_a_1', 0)");
    let gate = Gate::start_at(place, &settings("", &[LOG, SEE]));
    for times in 1..=2 {
        let answer = post(&gate, "a", 1);
        assert_eq!((answer.status, answer.code().as_str()), (500, "effect-failed"), "{}", answer.text());
        assert_eq!(failures(&gate), times);
    }
    assert!(gate.events().is_empty() && gate.resources().is_empty() && log(&gate).is_empty());
    users(gate.place()).run("DELETE FROM seen");
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    assert_eq!((failures(&gate), log(&gate)), (0, vec!["a:1".to_owned()]));
    let figures = gate.admin_get("/metrics").text();
    assert!(figures.contains(r#"reason="effect-failed"} 2"#), "{figures}");
}

fn a_failing_effect_leaves_the_rest_of_the_batch_untouched(place: Place) {
    let place = prepared(place);
    users(&place).run("INSERT INTO seen VALUES ('k2', 0), ('k4', 0)");
    let batch = settings("", &[LOG, SEE])
        .replace("type = \"body:/type\"", "batch = \"body:\"\nkey = \"item:/key\"\ntype = \"item:/type\"")
        .replace("body:/id", "item:/id")
        .replace("body:/n", "item:/n");
    let gate = Gate::start_at(place, &batch);
    let items: Vec<String> =
        (1..=5).map(|n| format!(r#"{{"key":"k{n}","type":"thing.moved","id":"t{n}","n":1}}"#)).collect();
    let request = signed("/in/things", "batch", format!("[{}]", items.join(",")));
    let answer = gate.call(&request);
    assert_eq!((answer.status, answer.code().as_str()), (500, "effect-failed"), "{}", answer.text());
    let mut entries = log(&gate);
    entries.sort();
    assert_eq!(entries, ["t1:1", "t3:1", "t5:1"]);
    assert_eq!(gate.events().len(), 3);
    users(gate.place()).run("DELETE FROM seen WHERE n = 0");
    assert_eq!(gate.call(&request).status, 200);
    assert_eq!((log(&gate).len(), gate.events().len(), failures(&gate)), (5, 5, 0));
}

fn several_statements_of_an_event_are_one_and_roll_back_together(place: Place) {
    let place = prepared(place);
    users(&place).run("INSERT INTO seen VALUES ('evt_b_1', 0)");
    let both = r#"sql = ["INSERT INTO log (entry) VALUES ('first of ' || :key)", "INSERT INTO seen (id, n) VALUES (:key, 1)"]"#;
    let gate = Gate::start_at(place, &settings("", &[both]));
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    assert_eq!(post(&gate, "b", 1).status, 500);
    assert_eq!(log(&gate), ["first of evt_a_1"]);
}

fn a_statement_that_takes_too_long_fails_its_own_event_and_no_other(place: Place) {
    let place = prepared(place);
    let endless = if place.is_sqlite() {
        "INSERT INTO seen (id, n) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE :resource = 'slow') \
         SELECT :key, count(*) FROM c"
    } else {
        "INSERT INTO seen (id, n) SELECT :key, count(*) FROM generate_series(1, CASE WHEN :resource = 'slow' THEN 100000000000 ELSE 1 END)"
    };
    let bounded =
        format!("[store]\neffect_timeout = \"100ms\"\n{}", settings("", &[LOG, &format!("sql = \"{endless}\"")]));
    let gate = Gate::start_at(place, &bounded);
    let slow = post(&gate, "slow", 1);
    assert_eq!((slow.status, slow.code().as_str()), (500, "effect-failed"), "{}", slow.text());
    assert_eq!(post(&gate, "quick", 1).verdict(), "applied");
    assert_eq!((log(&gate), failures(&gate)), (vec!["quick:1".to_owned()], 1));
    let row = &failed(&gate)[0];
    assert_eq!((row.effect.as_str(), row.error.as_str(), row.held), ("effect[1]", "it took longer than 100ms", false));
    assert_eq!((row.source.as_str(), row.key.as_str(), row.kind.as_str()), ("things", "evt_slow_1", "thing.moved"));
}

fn a_held_event_whose_effect_fails_waits_on_and_stops_nobody(place: Place) {
    let place = prepared(place);
    users(&place).run("INSERT INTO seen VALUES ('evt_a_2', 0)");
    let gate = Gate::start_at(place, &settings(r#"order = { policy = "sequence", hold_for = "1h" }"#, &[LOG, SEE]));
    assert_eq!(post(&gate, "a", 2).verdict(), "held");
    assert_eq!(post(&gate, "a", 1).verdict(), "applied", "the one that closes the gap is not to blame");
    assert_eq!(log(&gate), ["a:1"]);
    let held = gate.events().into_iter().find(|event| event.key == "evt_a_2").expect("the event");
    assert_eq!(held.verdict, Verdict::Held);
    assert_eq!(post(&gate, "a", 3).verdict(), "held", "what comes behind it waits for it");
    users(gate.place()).run("DELETE FROM seen WHERE n = 0");
    until("the effect is tried again", || log(&gate).len() == 3);
    assert_eq!((log(&gate), failures(&gate)), (vec!["a:1".into(), "a:2".into(), "a:3".into()], 0));
}

fn a_repair_lets_the_held_event_whose_effect_failed_go_in_by_hand(place: Place) {
    let place = prepared(place);
    users(&place).run("INSERT INTO seen VALUES ('evt_a_2', 0)");
    let gate = Gate::start_at(place, &settings(r#"order = { policy = "sequence", hold_for = "1h" }"#, &[LOG, SEE]));
    assert_eq!(post(&gate, "a", 2).verdict(), "held");
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    users(gate.place()).run("DELETE FROM seen WHERE n = 0");
    let release = Request::post("/api/resources/release", r#"{"source":"things","type":"thing","id":"a"}"#);
    let request = release.header("content-type", "application/json");
    let answer = Client::connect(gate.admin).expect("the admin listener").call(&request).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(log(&gate), ["a:1", "a:2"], "at once, whatever pause is left");
}

fn bodies_that_no_database_takes_as_they_are_are_still_json_to_an_effect(place: Place) {
    let place = prepared(place);
    let gate = Gate::start_at(place, &settings("", &[r#"sql = "INSERT INTO log (entry) VALUES (:body ->> 'note')""#]));
    let body = r#"{"type":"thing.moved","id":"a","n":1,"note":"x\u0000y\ud800z"}"#;
    assert_eq!(gate.call(&signed("/in/things", "evt_1", body)).verdict(), "applied");
    assert_eq!(log(&gate), ["x\u{fffd}y\u{fffd}z"]);
}

fn a_setup_makes_the_tables_and_a_restart_makes_them_no_second_time(place: Place) {
    let made = r#"setup = ["CREATE TABLE IF NOT EXISTS made (id TEXT PRIMARY KEY)", "CREATE INDEX IF NOT EXISTS made_id ON made (id)"]
sql = "INSERT INTO made (id) VALUES (:key)""#;
    let gate = Gate::start_at(place, &settings("", &[made]));
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    let (_, place) = gate.stop();
    let gate = Gate::start_at(place, &settings("", &[made]));
    assert_eq!(post(&gate, "b", 1).verdict(), "applied");
    assert_eq!(users(gate.place()).number("SELECT count(*) FROM made"), 2);
}

fn statements_that_the_database_cannot_run_are_told_with_their_place_and_the_gate_does_not_open(place: Place) {
    let wrong = [LOG, r#"sql = ["INSERT INTO nowhere (x) VALUES (:id)", "SELECT no_column FROM nothing"]"#];
    let config = config(&place, &settings("", &wrong));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let opened = runtime.block_on(tidegate::store::open(&config.store_settings())).map(drop);
    let gate = Gate::start_at(place, &settings("", &[]));
    assert_eq!(post(&gate, "a", 1).verdict(), "applied");
    let checked = runtime.block_on(tidegate::store::check_effects(&config.store_settings()));
    for told in [opened, checked] {
        let told = told.expect_err("a fault").to_string();
        for said in ["`effect[0].sql`", "log", "`effect[1].sql`", "nowhere", "nothing"] {
            assert!(told.contains(said), "{said}: {told}");
        }
    }
}
