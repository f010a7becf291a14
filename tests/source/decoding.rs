//! What references are read from: texts inside texts, forms, XML, lines, the address, the source's own settings.

use actix_web::http::header::CONTENT_TYPE;
use tidegate::source::{Item, Reading, Source};
use tidegate_actors::rules::event::Event;

use super::common::{Sent, plain, sent};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn items(source: &Source, sent: &Sent) -> Vec<Item> {
    match sent.read(source) {
        Reading::Batch(items) => items,
        other => panic!("no batch: {other:?}"),
    }
}

fn event(item: &Item) -> &Event {
    match item {
        Item::Event(event) => event,
        Item::Unusable(unusable) => panic!("unusable: {}", unusable.reason),
    }
}

fn form(source: &Source, body: &str) -> Sent {
    Sent::new(&[FORM], body.to_owned()).signed(source, "id", "")
}

#[test]
fn a_pointer_steps_into_a_text_that_holds_json() {
    let source = plain(
        "key = 'body:/MessageId'\ntype = 'body:/Message/~json/detail-type | body:/Type'\n\
         resource = { type = 'literal:thing', id = 'body:/Message/~json/detail/id | body:/TopicArn' }",
    );
    let of = |message: &str| {
        let body =
            serde_json::json!({ "Type": "Notification", "MessageId": "m1", "TopicArn": "arn", "Message": message });
        let event = sent(&source, &body.to_string()).event(&source);
        (event.kind.clone(), event.guards[0].resource.id.clone())
    };
    assert_eq!(
        of(r#"{"detail-type":"order.paid","detail":{"id":12345678901234567890}}"#),
        ("order.paid".to_owned(), "12345678901234567890".to_owned())
    );
    for plain in ["just words", "", "{\"detail\":", "[1]"] {
        assert_eq!(of(plain), ("Notification".to_owned(), "arn".to_owned()), "{plain:?} holds nothing of the kind");
    }
}

#[test]
fn a_pointer_steps_into_base64_of_json_also_in_items() {
    let source = plain("batch = 'body:/messages'\nkey = 'item:/data/~base64/~json/id'");
    let items = items(
        &source,
        &sent(&source, r#"{"messages":[{"data":"eyJpZCI6ImEifQ=="},{"data":"eyJpZCI6ImIifQ"},{"data":"*"}]}"#),
    );
    assert_eq!((event(&items[0]).key.text.as_str(), event(&items[1]).key.text.as_str()), ("a", "b"));
    assert!(matches!(&items[2], Item::Unusable(unusable) if unusable.code == "key-missing"));
}

#[test]
fn a_form_field_may_hold_an_array_of_events() {
    let source = plain(
        "form_json = 'mandrill_events'\nbatch = 'body:'\nkey = ['item:/_id', 'item:/event']\ntype = 'item:/event'",
    );
    let items = items(
        &source,
        &form(
            &source,
            "mandrill_events=%5B%7B%22_id%22%3A%22a%22%2C%22event%22%3A%22send%22%7D%2C%7B%22event%22%3A%22x%22%7D%5D",
        ),
    );
    assert_eq!(event(&items[0]).kind, "send");
    assert_eq!(event(&items[0]).body.as_ref(), br#"{"_id":"a","event":"send"}"#, "the item's own text is kept");
    assert!(matches!(&items[1], Item::Unusable(unusable) if unusable.code == "key-missing"), "its neighbour is not");
}

#[test]
fn base64_of_xml_in_a_form_field_is_read_by_the_same_pointers() {
    let source = plain(
        "form_json = 'bt_payload'\ndecode = 'base64-xml'\nkey = 'raw:sha256'\ntype = 'body:/notification/kind'\n\
         resource = { type = 'literal:subscription', id = 'body:/notification/subject/subscription/id' }\n\
         version = [{ from = 'body:/notification/timestamp', as = 'rfc3339' }]",
    );
    let xml = "<notification>\n <timestamp type=\"datetime\">2016-01-01T00:00:00Z</timestamp>\n <kind>subscription_canceled</kind>\n \
               <subject><subscription><id>my_id</id><transactions type=\"array\"><t/><t/></transactions></subscription></subject>\n</notification>";
    let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, xml);
    let body =
        format!("bt_signature=x&bt_payload={}%0A", payload.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"));
    let event = form(&source, &body).event(&source);
    assert_eq!(event.kind, "subscription_canceled");
    assert_eq!(event.guards[0].resource.id, "my_id");
    assert_eq!(event.body.as_ref(), body.as_bytes(), "the bytes that were verified are kept");
    assert_eq!(form(&source, "bt_payload=*").unusable(&source).code, "body-not-base64");
    assert_eq!(form(&source, "bt_payload=eA==").unusable(&source).code, "body-not-xml");
}

#[test]
fn lines_are_events_and_blank_ones_are_nothing() {
    let source = plain("batch = 'lines'\nbatch_items = 3\nkey = 'item:/id'");
    let all = items(&source, &sent(&source, "{\"id\":\"a\"}\r\n\n  {\"id\":\"b\", \"x\":1}\nnonsense"));
    assert_eq!(event(&all[1]).body.as_ref(), br#"{"id":"b", "x":1}"#);
    assert!(matches!(&all[2], Item::Unusable(unusable) if unusable.code == "body-not-json"));
    assert_eq!(sent(&source, "{}\n{}\n{}\n{}").unusable(&source).code, "batch-too-large");
    assert!(items(&source, &sent(&source, "\n")).is_empty());
}

#[test]
fn a_batch_of_two_levels_reads_both() {
    let source = plain(
        "batch = 'body:/entry/*/changes'\nbatch_items = 4\nkey = ['outer:/id', 'outer:/time', 'item:/field']\ntype = 'item:/field'\n\
         version = [{ from = 'outer:/time', as = 'epoch-s' }, { from = 'index', as = 'integer' }]\n\
         resource = { type = 'literal:page', id = 'outer:/id' }",
    );
    let body = r#"{"entry":[{"id":"1","time":5,"changes":[{"field":"feed"},{"field":"likes"}]},{"id":"2"},{"id":"3","time":6,"changes":[{"field":"feed"}]}]}"#;
    let all = items(&source, &sent(&source, body));
    let keys: Vec<_> = [0, 1, 3].into_iter().map(|place| event(&all[place]).key.text.clone()).collect();
    assert_eq!(keys, ["1/5/feed", "1/5/likes", "3/6/feed"]);
    let version = |place: usize| event(&all[place]).guards[0].version.clone();
    assert!(version(0) < version(1), "within one request the place decides");
    assert!(
        matches!(&all[2], Item::Unusable(unusable) if unusable.code == "batch-missing" && unusable.body == br#"{"id":"2"}"#[..])
    );
    let many = r#"{"entry":[{"id":"1","time":5,"changes":[1,2,3]},{"id":"2","time":5,"changes":[1,2]}]}"#;
    assert_eq!(sent(&source, many).unusable(&source).code, "batch-too-large");
}

#[test]
fn the_name_of_what_is_there_can_be_the_type() {
    let source = plain("key = 'body:/update_id'\ntype = 'has:body:/message | has:body:/edited_message'");
    let kind = |body: &str| sent(&source, body).event(&source).kind;
    assert_eq!(kind(r#"{"update_id":1,"edited_message":{"text":"x"}}"#), "edited_message");
    assert_eq!(kind(r#"{"update_id":1,"message":{}}"#), "message");
    assert_eq!(kind(r#"{"update_id":1,"message":null}"#), "");
}

#[test]
fn a_digest_of_the_stable_members_is_a_key_for_senders_without_ids() {
    let source = plain("key = 'digest'\ndigest_without = ['/attempt', '/meta/sent_at']");
    let key = |body: &str| sent(&source, body).event(&source).key.text;
    let first = key(r#"{"a":1.00,"b":{"c":"é"},"attempt":1,"meta":{"sent_at":5,"v":2}}"#);
    assert_eq!(
        key("{\"meta\" : {\"v\":2}, \"b\":{\"c\":\"\\u00e9\"}, \"a\":1.00, \"attempt\":7}"),
        first,
        "order, blanks and volatile members do not count"
    );
    assert_ne!(key(r#"{"a":1.0,"b":{"c":"é"},"meta":{"v":2}}"#), first, "numbers count as they are written");
    assert_eq!(sent(&source, r#"{"a":1,"a":2}"#).unusable(&source).code, "body-duplicate-key");
    assert_eq!(
        sent(&source, &format!("{}{}", "[".repeat(80), "]".repeat(80))).unusable(&source).code,
        "digest-too-deep"
    );
    let items = plain("batch = 'body:'\nkey = 'digest'\ndigest_without = ['/n']");
    let Reading::Batch(all) = sent(&items, r#"[{"a":1,"n":1},{"n":2,"a":1}]"#).read(&items) else { panic!("no batch") };
    assert_eq!(event(&all[0]).key, event(&all[1]).key);
    let part = plain("key = ['body:/id', 'digest:body:/data']");
    let key = |body: &str| sent(&part, body).event(&part).key.text;
    assert_eq!(key(r#"{"id":1,"data":{"a":1,"b":2},"x":1}"#), key(r#"{"id":1,"data":{"b":2,"a":1},"x":2}"#));
}

#[test]
fn the_address_and_the_sources_own_settings_are_read_too() {
    let source = plain("config = { shop = 'one' }\nkey = ['query:id', 'config:shop', 'raw:sha256']");
    let sent = sent(&source, "{}");
    let request = tidegate::source::Request { target: "/in/test?x=1&id=a%20b", ..sent.request() };
    let verified = source.verify(&request).expect("signed");
    let Reading::Event(event) =
        source.read(&request, &verified, &|| tidegate_actors::rules::event::EventId(uuid::Uuid::nil()))
    else {
        panic!("no event")
    };
    assert!(event.key.text.starts_with("a b/one/"), "{}", event.key.text);
}

#[test]
fn times_are_read_in_the_forms_senders_write() {
    let version = |form: &str, text: &str| {
        let source = plain(&format!(
            "key = 'body:/id'\nresource = {{ type = 'literal:a', id = 'body:/id' }}\nversion = [{{ from = 'body:/t', {form} }}]"
        ));
        let body = format!(r#"{{"id":"x","t":"{text}"}}"#);
        match sent(&source, &body).read(&source) {
            Reading::Event(event) => event.guards[0].version.as_ref().map(|version| version.text().to_owned()),
            Reading::Unusable(unusable) => Some(unusable.code.to_owned()),
            other => panic!("{other:?}"),
        }
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(version("as = 'time'", "2024-05-06T07:08:09.1+0000"), is("2024-05-06T07:08:09.1Z"));
    assert_eq!(version("as = 'time'", "2024-05-06 07:08:09 UTC"), is("2024-05-06T07:08:09Z"));
    assert_eq!(version("as = 'time'", "2024-05-06T07:08:09"), is("version-malformed"));
    assert_eq!(version("as = 'time', zone = '+02:00'", "2024-05-06T07:08:09"), is("2024-05-06T05:08:09Z"));
    assert_eq!(version("as = 'http-date'", "Tue, 15 Nov 1994 08:12:31 GMT"), is("1994-11-15T08:12:31Z"));
    assert_eq!(version("as = 'rfc2822'", "Tue, 15 Nov 1994 10:12:31 +0200"), is("1994-11-15T08:12:31Z"));
    assert_eq!(version("as = 'epoch-us'", "1700000000000001"), is("2023-11-14T22:13:20.000001Z"));
    assert_eq!(version("as = 'epoch-s'", "1683440337.5137901"), is("2023-05-07T06:18:57.5137901Z"));
}

#[test]
fn a_signed_body_that_is_said_to_be_a_form_and_holds_no_event_is_no_event() {
    // the content type is unsigned, and the key stands in a header: what is left must not pass as an empty event
    let source =
        plain("form_json = 'payload'\nkey = 'header:x-delivery'\nresource = { type = 'literal:a', id = 'body:/id' }");
    let body = r#"{"id":"a"}"#;
    let signed = Sent::new(&[("x-delivery", "d1")], body).signed(&source, "d1", "");
    assert_eq!(signed.event(&source).guards.len(), 1);
    let mut moved = signed;
    moved.headers.insert(CONTENT_TYPE, FORM.1.parse().expect("a value"));
    assert_eq!(moved.unusable(&source).code, "form-field-missing");
}
