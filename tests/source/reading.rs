//! What is read out of verified requests.

use bytes::Bytes;
use tidegate::source::Reading;
use tidegate_actors::rules::event::{Ignored, Intent};
use tidegate_actors::rules::order::{Policy, Tie};

use super::common::{Sent, plain, preset, sent};

const RULES: &str = "key = 'body:/id'\ntype = 'body:/type'\nresource = { type = 'literal:item', id = 'body:/data/id' }\n\
                     version = [{ from = 'body:/v', as = 'integer' }]";

#[test]
fn a_blank_missing_or_odd_key_is_unusable_and_says_why() {
    let source = plain(RULES);
    for (body, code) in [
        (r#"{"id":""}"#, "key-blank"),
        (r#"{"id":"   "}"#, "key-blank"),
        (r#"{"id":null}"#, "key-missing"),
        (r#"{"v":1}"#, "key-missing"),
        (r#"{"id":{"a":1}}"#, "key-not-scalar"),
        (r#"{"id":["x"]}"#, "key-not-scalar"),
        (r#"{"id":"a\u0000b"}"#, "key-not-text"),
        (r#"{"id":"\ud800"}"#, "key-not-text"),
        (r#"{"id":"x","id":"y"}"#, "body-duplicate-key"),
        (r#"{"id":"x"}}"#, "body-not-json"),
        ("not json", "body-not-json"),
    ] {
        let unusable = sent(&source, body).unusable(&source);
        assert_eq!(unusable.code, code, "{body}");
        assert!(!unusable.reason.is_empty() && unusable.body == body.as_bytes());
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(256));
    assert_eq!(sent(&source, &long).unusable(&source).code, "key-too-long");
    let bytes = Sent::new(&[], Bytes::from_static(b"{\"id\":\"\xff\"}")).signed(&source, "", "");
    assert_eq!(bytes.unusable(&source).code, "body-not-text");
    assert!(matches!(sent(&source, "").read(&source), Reading::Empty));
}

#[test]
fn the_reason_names_the_place() {
    let source = plain(RULES);
    assert!(sent(&source, "{}").unusable(&source).reason.contains("body:/id"));
}

#[test]
fn numbers_above_two_to_the_53_keep_all_digits() {
    let source = plain(RULES);
    let event = sent(&source, r#"{"id":"e","v":640000000000000003,"data":{"id":640000000000000001}}"#).event(&source);
    assert_eq!(event.guards[0].resource.id, "640000000000000001");
    assert_eq!(event.guards[0].version.as_ref().map(|version| version.text()), Some("640000000000000003"));
    assert_eq!(event.order.policy, Policy::Newest { tie: Tie::Keep });
}

#[test]
fn nul_and_lone_surrogates_in_other_fields_a_byte_order_mark_and_new_fields_do_no_harm() {
    let source = plain(RULES);
    for body in [
        r#"{"id":"e","v":1,"data":{"id":"i","diff":"a\u0000b"}}"#,
        r#"{"id":"e","v":1,"data":{"id":"i","diff":"lone \ud800 half"}}"#,
        "\u{feff}{\"id\":\"e\",\"v\":1,\"data\":{\"id\":\"i\",\"name\":null,\"extra\":{\"x\":[1]}}}\r\n",
    ] {
        let event = sent(&source, body).event(&source);
        assert_eq!((event.key.text.as_str(), event.guards.len()), ("e", 1), "{body}");
        assert_eq!(event.body, body.as_bytes());
    }
}

#[test]
fn an_event_without_a_resource_passes_unguarded_and_one_without_a_version_follows_its_rule() {
    let source = plain(RULES);
    assert!(sent(&source, r#"{"id":"e","v":1,"data":null}"#).event(&source).guards.is_empty());
    assert_eq!(sent(&source, r#"{"id":"e","data":{"id":"i"}}"#).event(&source).guards[0].version, None);
    assert_eq!(sent(&source, r#"{"id":"e","data":{"id":" "}}"#).unusable(&source).code, "resource-blank");
    assert_eq!(sent(&source, r#"{"id":"e","v":1.5,"data":{"id":"i"}}"#).unusable(&source).code, "version-malformed");
    assert_eq!(sent(&source, r#"{"id":"e","v":"oops"}"#).unusable(&source).code, "version-malformed");
    let strict = plain(&format!("on_missing_version = 'quarantine'\n{RULES}"));
    assert_eq!(sent(&strict, r#"{"id":"e","data":{"id":"i"}}"#).unusable(&strict).code, "version-missing");
}

#[test]
fn unwanted_types_pings_and_unknown_tenants_are_ignored_and_not_refused() {
    let source =
        plain(&format!("types = ['item.*']\npings = ['ping']\ntenant = 'body:/owner'\ntenants = ['t1']\n{RULES}"));
    let intent = |kind: &str, owner: &str| {
        sent(&source, &format!(r#"{{"id":"e","type":"{kind}","owner":"{owner}","v":1,"data":{{"id":"i"}}}}"#))
            .event(&source)
            .intent
    };
    assert_eq!(intent("item.updated", "t1"), Intent::Apply);
    assert_eq!(intent("order.updated", "t1"), Intent::Ignore(Ignored::UnwantedType));
    assert_eq!(intent("ping", "t1"), Intent::Ignore(Ignored::Ping));
    assert_eq!(intent("item.updated", "gone"), Intent::Ignore(Ignored::UnknownTenant));
    assert_eq!(sent(&source, r#"{"id":"e","type":"item.updated"}"#).unusable(&source).code, "tenant-missing");
}

#[test]
fn deletes_are_told_by_type_or_by_field() {
    let source = plain(&format!("delete = {{ types = ['*.deleted'], from = 'body:/gone', equals = 'true' }}\n{RULES}"));
    let deletes =
        |rest: &str| sent(&source, &format!(r#"{{"id":"e","v":1,"data":{{"id":"i"}},{rest}}}"#)).event(&source).deletes;
    assert!(deletes(r#""type":"item.deleted""#));
    assert!(deletes(r#""type":"item.updated","gone":true"#));
    assert!(!deletes(r#""type":"item.updated","gone":{}"#));
}

#[test]
fn one_event_guards_each_resource_it_names_once() {
    let source = plain(
        "key = 'body:/id'\nresource = { type = 'literal:item', id = 'body:/data/id' }\n\
         version = [{ from = 'body:/v', as = 'integer' }]\n\
         also = [{ each = 'body:/data/touch', resource = { type = 'literal:item', id = 'item:' } }]",
    );
    let event = sent(&source, r#"{"id":"e","v":3,"data":{"touch":["A","B","A"]}}"#).event(&source);
    let ids: Vec<&str> = event.guards.iter().map(|guard| guard.resource.id.as_str()).collect();
    assert_eq!(ids, ["A", "B"]);
    assert!(event.guards.iter().all(|guard| guard.version.is_some()));
    assert_eq!(sent(&source, r#"{"id":"e","data":{"touch":7}}"#).unusable(&source).code, "resource-not-an-array");
}

#[test]
fn a_form_is_read_by_its_fields_and_by_the_json_inside() {
    let source = plain(
        "key = 'form:payload:/id'\ntype = 'form:kind'\nresource = { type = 'literal:item', id = 'form:payload:/data/id' }\n\
         version = [{ from = 'form:payload:/v', as = 'integer' }]",
    );
    let body =
        "kind=a+b&payload=%7B%22id%22%3A%22evt_f1%22%2C%22v%22%3A1%2C%22data%22%3A%7B%22id%22%3A%22it_1%22%7D%7D";
    let form = Sent::new(&[("content-type", "application/x-www-form-urlencoded; charset=utf-8")], body);
    let event = form.signed(&source, "", "").event(&source);
    assert_eq!((event.key.text.as_str(), event.kind.as_str()), ("evt_f1", "a b"));
    assert_eq!(event.guards[0].resource.id, "it_1");
}

#[test]
fn honest_retries_have_one_digest_and_conflicts_another() {
    let stripe = preset("stripe");
    let digest = |pending: &str, status: &str| {
        let body = format!(
            r#"{{"id":"evt_1","created":1,"pending_webhooks":{pending},"type":"a.b","data":{{"object":{{"id":"i","object":"o","status":"{status}"}}}}}}"#
        );
        Sent::new(&[], body).signed(&stripe, "", "").event(&stripe).digest
    };
    assert_eq!(digest("1", "paid"), digest("20", "paid"));
    assert_ne!(digest("1", "paid"), digest("1", "open"));
}

#[test]
fn kept_headers_hold_what_the_rules_read_and_never_a_signature_or_a_credential() {
    let github = preset("github");
    let pairs =
        [("content-type", "application/json"), ("authorization", "Bearer x"), ("cookie", "a=b"), ("x-other", "y")];
    let event = Sent::new(&pairs, r#"{"action":"opened"}"#).signed(&github, "d-1", "issues.opened").event(&github);
    let kept: serde_json::Value = serde_json::from_slice(&event.headers).expect("JSON");
    let expected =
        serde_json::json!({"content-type": "application/json", "x-github-delivery": "d-1", "x-github-event": "issues"});
    assert_eq!(kept, expected);
}

#[test]
fn a_header_of_the_key_that_comes_twice_is_unusable() {
    let github = preset("github");
    let mut sent = Sent::new(&[], "{}").signed(&github, "d-1", "push");
    sent.headers.append("x-github-delivery".parse().expect("a name"), "d-2".parse().expect("a value"));
    assert_eq!(sent.unusable(&github).code, "key-duplicate");
}
