//! One request with several events: each kept as an event of its own, and answered together.

use tidegate_actors::rules::event::Verdict;

use crate::support::fault::{self, Outsider};
use crate::support::gate::Gate;
use crate::support::http::{Request, Response};
use crate::support::place::Place;
use crate::support::signing::signed;

on_each_store! {
    each_item_is_kept_with_its_exact_bytes_and_answered_in_its_place;
    a_bad_item_is_kept_in_quarantine_and_its_neighbours_go_in;
    the_same_batch_again_is_all_duplicates_and_the_bad_item_is_counted_and_not_kept_twice;
    items_of_one_resource_go_in_in_the_order_they_stand;
    an_empty_batch_is_answered_2xx_and_keeps_nothing;
    what_is_no_batch_is_422_and_kept_whole;
    while_nothing_can_be_written_the_answer_is_503_for_all_and_the_retry_goes_in;
    an_item_that_the_store_refuses_costs_its_neighbours_nothing;
    more_items_of_one_resource_than_may_wait_for_it_go_in;
    a_source_with_an_answer_of_its_own_gives_it_for_a_batch_too;
    a_gate_with_the_smallest_mailboxes_takes_a_batch_too;
}

const SOURCE: &str = r#"
[[source]]
name = "things"
preset = "standard-webhooks"
secrets = ["env:TEST_SECRET"]
batch = "body:/events"
key = "item:/id"
type = "item:/type"
resource = { type = "literal:thing", id = "item:/thing" }
version = [{ from = "item:/v", as = "integer" }]
order = { policy = "newest", tie = "keep" }
"#;

fn open(place: Place) -> Gate {
    Gate::start_at(place, SOURCE)
}

fn batch(items: &[String]) -> Request {
    signed("/in/things", "msg_1", format!(r#"{{"events":[{}]}}"#, items.join(" , ")))
}

fn item(id: &str, thing: &str, version: i64) -> String {
    format!(r#"{{"id":"{id}",  "thing":"{thing}","v":{version}, "n":1.50}}"#)
}

fn verdicts(answer: &Response) -> Vec<String> {
    assert_eq!(answer.verdict(), "batch");
    let answer = answer.json();
    let items = answer["items"].as_array().expect("items");
    items.iter().map(|item| item["status"].as_str().expect("a verdict").to_owned()).collect()
}

/// Key and body of every event, the oldest first.
fn kept(gate: &Gate) -> Vec<(String, Vec<u8>)> {
    let ids: Vec<_> = gate.events().iter().map(|event| event.id).collect();
    gate.ask(move |reader| async move {
        let mut kept = Vec::new();
        for id in ids {
            let event = reader.event(id).await.expect("events").expect("a listed event");
            kept.push((event.key, event.body.expect("a body")));
        }
        kept
    })
}

fn each_item_is_kept_with_its_exact_bytes_and_answered_in_its_place(place: Place) {
    let gate = open(place);
    let items = [item("a", "t1", 2), item("b", "t2", 1), item("c", "t1", 1)];
    let answer = gate.call(&batch(&items));
    assert_eq!(answer.status, 200);
    assert_eq!(verdicts(&answer)[..2], ["applied", "applied"]);
    let mut rows = kept(&gate);
    rows.sort();
    let bodies: Vec<_> = rows.iter().map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect();
    assert_eq!(bodies, items, "the item's bytes as they stood in the request");
    for (event, told) in gate.events().iter().zip(["a", "b", "c"]) {
        assert_eq!(event.key, told, "in the order they stand");
    }
    let ids: Vec<_> = gate.events().iter().map(|event| event.id.to_string()).collect();
    let told = answer.json();
    let told: Vec<_> = told["items"].as_array().expect("items").iter().map(|item| item["id"].clone()).collect();
    assert_eq!(told, ids);
}

fn a_bad_item_is_kept_in_quarantine_and_its_neighbours_go_in(place: Place) {
    let gate = open(place);
    let bad = r#"{"id":"b","thing":"t2","v":"oops"}"#.to_owned();
    let answer = gate.call(&batch(&[item("a", "t1", 1), bad.clone(), item("c", "t3", 1)]));
    assert_eq!(verdicts(&answer), ["applied", "quarantined", "applied"]);
    assert_eq!(answer.json()["items"][1]["code"], "version-malformed");
    let quarantined = gate.quarantined();
    assert_eq!(quarantined.len(), 1);
    assert_eq!(answer.json()["items"][1]["id"], quarantined[0].id.to_string());
    assert!(quarantined[0].reason.starts_with("item 1 of the batch, counted from 0: "), "{}", quarantined[0].reason);
    let id = quarantined[0].id;
    let row = gate.ask(move |reader| async move { reader.quarantined(id).await.expect("a reader").expect("the row") });
    assert_eq!(row.body.as_deref(), Some(bad.as_bytes()));
    let figures = gate.admin_get("/metrics").text();
    assert!(figures.contains(r#"tidegate_http_verdicts_total{source="things",verdict="applied"} 2"#), "{figures}");
    assert!(figures.contains(r#"tidegate_http_verdicts_total{source="things",verdict="quarantined"} 1"#), "{figures}");
}

fn the_same_batch_again_is_all_duplicates_and_the_bad_item_is_counted_and_not_kept_twice(place: Place) {
    let gate = open(place);
    let items = [item("a", "t1", 1), r#"{"v":1}"#.to_owned(), item("c", "t3", 1)];
    let first = gate.call(&batch(&items)).json();
    let again = gate.call(&batch(&items));
    assert_eq!(verdicts(&again), ["duplicate", "quarantined", "duplicate"]);
    for place in 0..3 {
        assert_eq!(again.json()["items"][place]["id"], first["items"][place]["id"], "named by the first id");
    }
    assert_eq!(gate.events().len(), 2);
    let quarantined = gate.quarantined();
    assert_eq!((quarantined.len(), quarantined[0].times), (1, 2));
}

fn items_of_one_resource_go_in_in_the_order_they_stand(place: Place) {
    let source = SOURCE.replace(r#"policy = "newest", tie = "keep""#, r#"policy = "arrival""#);
    let gate = Gate::start_at(place, &source.replace("version =", "# version ="));
    let items: Vec<_> = (0..200).map(|number| item(&format!("e{number:03}"), "t1", number)).collect();
    let answer = gate.call(&batch(&items));
    assert_eq!(verdicts(&answer), vec!["applied"; 200]);
    let keys: Vec<_> = gate.events().into_iter().map(|event| event.key).collect();
    assert_eq!(keys, (0..200).map(|number| format!("e{number:03}")).collect::<Vec<_>>());
    let resource = &gate.resources()[0];
    assert_eq!(resource.event, Some(gate.events()[199].id), "the last one is the state");
}

fn an_empty_batch_is_answered_2xx_and_keeps_nothing(place: Place) {
    let gate = open(place);
    let answer = gate.call(&batch(&[]));
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"status":"batch","items":[]}"#));
    gate.assert_empty();
}

fn what_is_no_batch_is_422_and_kept_whole(place: Place) {
    let gate = Gate::start_at(place, &SOURCE.replace("batch =", "batch_items = 2\nbatch ="));
    for (body, code) in [
        (r#"{"events":{"id":"a"}}"#, "batch-not-an-array"),
        (r#"{"id":"a"}"#, "batch-missing"),
        (r#"{"events":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#, "batch-too-large"),
        (r#"{"events":[{"id":"a"},"#, "body-not-json"),
    ] {
        let answer = gate.call(&signed("/in/things", "msg_1", body));
        assert_eq!((answer.status, answer.code().as_str()), (422, code));
        let id = gate.quarantined()[0].id;
        let row = gate.ask(move |reader| async move { reader.quarantined(id).await.expect("a reader") });
        assert_eq!(row.expect("the row").body.as_deref(), Some(body.as_bytes()), "whole, and no item of it taken");
    }
    assert!(gate.events().is_empty());
}

fn while_nothing_can_be_written_the_answer_is_503_for_all_and_the_retry_goes_in(place: Place) {
    let settings = format!("[server]\nanswer_within = \"300ms\"\n{SOURCE}");
    let gate = Gate::start_at(place, &settings);
    let items = [item("a", "t1", 1), item("b", "t2", 1), r#"{"v":1}"#.to_owned()];
    let hold = fault::hold_writes(gate.place());
    let answer = gate.call(&batch(&items));
    assert_eq!((answer.status, answer.header("retry-after").is_some()), (503, true), "{}", answer.text());
    drop(hold);
    let (_, place) = gate.stop();
    // another process, with all the time there is
    let gate = open(place);
    let answer = verdicts(&gate.call(&batch(&items)));
    assert!(answer[..2].iter().all(|verdict| ["applied", "duplicate"].contains(&verdict.as_str())), "{answer:?}");
    assert_eq!(answer[2], "quarantined");
    let events = gate.events();
    assert_eq!(events.len(), 2, "each is in once");
    assert!(events.iter().all(|event| event.verdict == Verdict::Applied));
}

/// Makes the recording of events with this key fail inside its transaction.
fn refuse_key(place: &Place, key: &str) {
    Outsider::connect(place).run(&match place.is_sqlite() {
        true => format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.key = '{key}'
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        ),
        false => format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'check_violation'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.key = '{key}')
                EXECUTE FUNCTION refuse()"
        ),
    });
}

fn an_item_that_the_store_refuses_costs_its_neighbours_nothing(place: Place) {
    let gate = open(place);
    refuse_key(gate.place(), "b");
    let items = [item("a", "t1", 1), item("b", "t2", 1), item("c", "t3", 1)];
    let answer = gate.call(&batch(&items));
    assert_eq!(verdicts(&answer), ["applied", "quarantined", "applied"]);
    assert_eq!(answer.json()["items"][1]["code"], "store-rejected");
    assert_eq!(gate.events().len(), 2);
    assert_eq!(gate.quarantined()[0].code, "store-rejected");
    assert_eq!(verdicts(&gate.call(&batch(&items))), ["duplicate", "quarantined", "duplicate"], "and again");
}

fn more_items_of_one_resource_than_may_wait_for_it_go_in(place: Place) {
    let gate = open(place);
    let items: Vec<_> = (1..=1000).map(|number| item(&format!("e{number}"), "t1", number)).collect();
    let answer = gate.call(&batch(&items));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(verdicts(&answer), vec!["applied"; 1000]);
    assert_eq!(gate.resources()[0].version.as_deref(), Some("1000"));
}

fn a_source_with_an_answer_of_its_own_gives_it_for_a_batch_too(place: Place) {
    let gate = Gate::start_at(place, &SOURCE.replace("batch =", "answer = { status = 202, body = \"ok\" }\nbatch ="));
    let answer = gate.call(&batch(&[item("a", "t1", 1)]));
    assert_eq!((answer.status, answer.text().as_str()), (202, "ok"));
    assert_eq!(gate.events().len(), 1);
}

fn a_gate_with_the_smallest_mailboxes_takes_a_batch_too(place: Place) {
    let small = "[pools.ingress]\nmailbox = 1\n[pools.dedup]\nmailbox = 1\n[pools.ordering]\nmailbox = 1\nresource_mailbox = 1\n";
    let gate = Gate::start_at(place, &format!("{small}{SOURCE}"));
    let items: Vec<String> = (0..40).map(|n| item(&format!("evt_{n}"), &format!("t{}", n % 3), n)).collect();
    let answer = gate.call(&batch(&items));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(gate.events().len(), 40);
}
