//! One request with several events.

use bytes::Bytes;
use tidegate::source::{Greeting, Item, Reading, Source};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use uuid::Uuid;

use super::common::{SECRET, Sent, plain, secret, sent, try_source};

const RULES: &str = "key = 'item:/id'\ntype = 'item:/type'\n\
                     resource = { type = 'literal:item', id = ['body:/account', 'item:/data/id'] }\n\
                     version = [{ from = 'item:/v', as = 'integer' }]";

fn items_of(sent: &Sent, source: &Source) -> Vec<Item> {
    match sent.read(source) {
        Reading::Batch(items) => items,
        other => panic!("no batch: {other:?}"),
    }
}

fn items(source: &Source, body: &str) -> Vec<Item> {
    items_of(&sent(source, body), source)
}

fn event(item: &Item) -> &Event {
    match item {
        Item::Event(event) => event,
        Item::Unusable(unusable) => panic!("unusable: {unusable:?}"),
    }
}

fn unusable(item: &Item) -> &Unusable {
    match item {
        Item::Event(event) => panic!("an event: {event:?}"),
        Item::Unusable(unusable) => unusable,
    }
}

#[test]
fn each_item_is_an_event_whose_body_is_the_exact_bytes_of_the_item() {
    let source = plain(&format!("batch = 'body:/events'\n{RULES}"));
    let body = "\u{feff}{\"account\": 7, \"events\" : [ {\"id\":\"e1\",\"v\":1.0e0 ,\"v\":1} , {\"id\": \"e2\",\"type\":\"b\",\"v\": 12345678901234567890,\"data\":{\"id\":\"x\\u00e9\"}}\n]}";
    let whole = Sent::new(&[("content-type", "application/json")], body).signed(&source, "", "");
    let items = items_of(&whole, &source);
    assert_eq!(unusable(&items[0]).code, "body-duplicate-key");
    let second = event(&items[1]);
    assert_eq!(second.body, r#"{"id": "e2","type":"b","v": 12345678901234567890,"data":{"id":"x\u00e9"}}"#.as_bytes());
    let (from, to) = (whole.body.as_ptr() as usize, whole.body.as_ptr() as usize + whole.body.len());
    assert!((from..to).contains(&(second.body.as_ptr() as usize)), "a slice of what was verified, and no copy");
    assert_eq!((second.key.text.as_str(), second.kind.as_str()), ("e2", "b"));
    assert_eq!(second.guards[0].resource.id, "7/xé", "body: is read from the whole, item: from the item");
    assert_eq!(second.headers, r#"{"content-type":"application/json"}"#.as_bytes());
}

#[test]
fn items_come_in_their_order_each_under_an_id_of_its_own() {
    let source = plain(&format!("batch = 'body:'\n{RULES}"));
    let body = r#"[{"id":"b","v":2},{"id":"a","v":1},{"id":"b","v":2}]"#;
    let request = sent(&source, body);
    let verified = request.verify(&source).expect("a signed request");
    let next = std::cell::Cell::new(0);
    let ids = || {
        next.set(next.get() + 1);
        EventId(Uuid::from_u128(next.get()))
    };
    let Reading::Batch(items) = source.read(&request.request(), &verified, &ids) else { panic!("no batch") };
    let read: Vec<_> = items.iter().map(event).map(|event| (event.key.text.as_str(), event.id.0.as_u128())).collect();
    assert_eq!(read, [("b", 1), ("a", 2), ("b", 3)], "a key twice is judged by the store: the first wins");
}

#[test]
fn a_bad_item_names_its_place_and_costs_its_neighbours_nothing() {
    let source = plain(&format!("batch = 'body:'\n{RULES}"));
    let items =
        items(&source, r#"[{"id":"a","v":1},{"id":"b","v":"oops","data":{"id":1}},7,{"id":" "},{"id":"c","v":1}]"#);
    assert_eq!((event(&items[0]).key.text.as_str(), event(&items[4]).key.text.as_str()), ("a", "c"));
    for (index, code, body) in [(2, "key-missing", "7"), (3, "key-blank", r#"{"id":" "}"#)] {
        let bad = unusable(&items[index]);
        assert_eq!((bad.code, &*bad.body), (code, body.as_bytes()));
        assert!(bad.reason.starts_with(&format!("item {index} of the batch, counted from 0: ")), "{}", bad.reason);
    }
}

#[test]
fn an_empty_array_is_an_empty_batch_and_whatever_is_no_array_is_unusable_as_a_whole() {
    let source = plain(&format!("batch = 'body:/events'\nbatch_items = 3\n{RULES}"));
    assert!(items(&source, r#"{"events":[ ]}"#).is_empty());
    for (body, code) in [
        (r#"{"events":{"id":"a"}}"#, "batch-not-an-array"),
        (r#"{"events":null}"#, "batch-not-an-array"),
        (r#"{"event":[]}"#, "batch-missing"),
        ("[]", "batch-missing"),
        (r#"{"events":[1,2,3,4]}"#, "batch-too-large"),
        (r#"{"events":[1,2,3}"#, "body-not-json"),
        (r#"{"events":[],"events":[]}"#, "body-duplicate-key"),
    ] {
        let unusable = sent(&source, body).unusable(&source);
        assert_eq!((unusable.code, &*unusable.body), (code, body.as_bytes()));
    }
    assert_eq!(items(&source, r#"{"events":[1,2,3]}"#).len(), 3);
}

#[test]
fn a_batch_has_a_thousand_items_unless_the_source_says_otherwise() {
    let source = plain(&format!("batch = 'body:'\n{RULES}"));
    let body = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    assert_eq!(items(&source, &body(1000)).len(), 1000);
    assert_eq!(sent(&source, &body(1001)).unusable(&source).code, "batch-too-large");
}

#[test]
fn digests_and_hashes_are_of_the_item_alone() {
    let rules = "batch = 'body:/events'\nkey = 'raw:sha256'\ndigest_without = ['/sent']";
    let source = plain(rules);
    let of = |body: &str| {
        let items = items(&source, body);
        let event = event(&items[0]);
        (event.key.text.clone(), event.digest)
    };
    let alone = of(r#"{"events":[{"a":1,"sent":5}]}"#);
    assert_eq!(of(r#"{"at":9,"events":[{"a":1,"sent":5},{"b":2}]}"#), alone, "the neighbours do not count");
    let later = of(r#"{"events":[{"a":1,"sent":6}]}"#);
    assert_ne!(later.0, alone.0);
    assert_eq!(later.1, alone.1, "a volatile member of the item does not count either");
}

#[test]
fn a_handshake_is_looked_for_in_the_whole_body_before_its_items_are() {
    let source = plain(&format!(
        "batch = 'body:'\n{RULES}\n[[handshake]]\nname = 'validate'\nwhen = {{ 'body:/0/type' = 'validate' }}\n\
         answer = {{ text = '{{body:/0/code}}' }}"
    ));
    let Reading::Greeting(Greeting::Answer(answer)) =
        sent(&source, r#"[{"type":"validate","code":"c0de"}]"#).read(&source)
    else {
        panic!("no answer")
    };
    assert_eq!(answer.body.expect("a body").1, Bytes::from_static(b"c0de"));
}

#[test]
fn a_batch_that_cannot_work_is_refused_at_load() {
    let verify = "verify = { scheme = 'hmac-sha256', header = 'x-signature' }";
    for (text, message) in [
        ("key = 'body:/id'\nbatch = 'body:'", "`key` reads nothing of the item"),
        ("key = 'item:/id'", "`key` reads `item:`, and there are no items"),
        ("key = 'body:/id'\nresource = { type = 'literal:a', id = 'item:/b' }", "`resource.id` reads `item:`"),
        ("key = 'item:/id'\nbatch = 'item:/x'", "`batch` must be \"body:\" or \"body:/pointer\""),
        ("key = 'item:/id'\nbatch = 'body:x'", "`batch` has the JSON pointer \"x\""),
        ("key = 'item:/id'\nbatch = 'body:'\nbatch_items = 0", "`batch_items` must be 1 to 10000, got 0"),
        ("key = 'item:/id'\nbatch = 'body:'\nbatch_items = 10001", "`batch_items` must be 1 to 10000, got 10001"),
        ("key = 'body:/id'\nbatch_items = 5", "`batch_items` is set without `batch`"),
        ("key = 'item:/id'\nbatch = 'body:/a/*'", "`*` stands for the items of one array"),
        ("key = 'item:/id'\nbatch = 'body:/a/*/b/*/c'", "`*` stands for the items of one array"),
        ("key = 'item:/id'\nbatch = 'lines'\ndecode = 'xml'", "`batch` is \"lines\""),
        (
            "key = 'item:/id'\nbatch = 'body:'\nalso = [{ each = 'body:/a', resource = { type = 'literal:a', id = 'item:/b' } }]",
            "`also[0].each` cannot go with `batch`",
        ),
    ] {
        let problems = try_source(&format!("{verify}\n{text}"), &[secret(SECRET)]).expect_err("problems");
        let found = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn of_arrays_side_by_side_the_first_that_is_there_is_taken() {
    let keys = |source: &Source, body: &str| -> Vec<String> {
        items(source, body).iter().map(|item| event(item).key.text.clone()).collect()
    };
    let flat = plain(&format!("batch = 'body:/new | body:/gone'\n{RULES}"));
    assert_eq!(keys(&flat, r#"{"gone":[{"id":"a","v":1}]}"#), ["a"]);
    assert_eq!(keys(&flat, r#"{"new":null,"gone":[{"id":"a","v":1}]}"#), ["a"]);
    assert_eq!(keys(&flat, r#"{"new":[{"id":"b","v":1}],"gone":[{"id":"a","v":1}]}"#), ["b"]);
    let nested = plain(&format!("batch = 'body:/entry/*/changes | body:/entry/*/messaging'\n{RULES}"));
    let body = r#"{"entry":[{"messaging":[{"id":"a","v":1}]},{"changes":[{"id":"b","v":1},{"id":"c","v":1}]}]}"#;
    assert_eq!(keys(&nested, body), ["a", "b", "c"]);
    let none = items(&nested, r#"{"entry":[{"other":[]}]}"#);
    assert_eq!(unusable(&none[0]).code, "batch-missing");
}

#[test]
fn a_signal_without_an_id_may_have_a_key_that_no_other_event_has() {
    let source = plain("batch = 'body:/accounts'\nkey = 'unique'\nresource = { type = 'literal:a', id = 'item:' }");
    let request = sent(&source, r#"{"accounts":["x","x"]}"#);
    let verified = request.verify(&source).expect("a signed request");
    let next = std::cell::Cell::new(0);
    let ids = || {
        next.set(next.get() + 1);
        EventId(Uuid::from_u128(next.get()))
    };
    let read = || source.read(&request.request(), &verified, &ids);
    let (Reading::Batch(once), Reading::Batch(again)) = (read(), read()) else { panic!("no batch") };
    let events: Vec<&Event> = once.iter().chain(&again).map(event).collect();
    let keys: Vec<&str> = events.iter().map(|event| event.key.text.as_str()).collect();
    assert_eq!(keys, [1, 2, 3, 4].map(|id| format!("{id:032x}")));
    assert!(events.iter().all(|event| event.guards[0].resource.id == "x"));
}

#[test]
fn a_source_of_one_resource_may_name_it_in_its_own_settings() {
    let source = plain(
        "config = { topic = 'https://example.com/feed' }\nkey = 'raw:sha256'\n\
         resource = { type = 'literal:topic', id = 'config:topic' }",
    );
    let Reading::Event(event) = sent(&source, "{}").read(&source) else { panic!("no event") };
    assert_eq!(event.guards[0].resource.id, "https://example.com/feed");
}
