//! What a source says about order: what is refused at load, and what is read of each event for it.

use tidegate::source::Source;
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::fields::Patch;
use tidegate_actors::rules::order::{EpochOn, Merge, OnGap, Policy, Tie, Wait};

use super::common::{SECRET, Sent, plain, preset, secret, sent, try_source};

const VERIFY: &str = "verify = { scheme = 'hmac-sha256', header = 'x-signature' }";
const KEY: &str = "key = 'body:/id'\ntype = 'body:/type'";
const RESOURCE: &str = "resource = { type = 'literal:item', id = 'body:/data/id' }";
const VERSION: &str = "version = [{ from = 'body:/v', as = 'integer' }]";

fn with(rules: &str) -> Source {
    plain(&format!("{KEY}\n{RESOURCE}\n{VERSION}\n{rules}"))
}

fn problems(text: &str) -> Vec<String> {
    let problems = try_source(&format!("{VERIFY}\n{text}"), &[secret(SECRET)]).expect_err("problems");
    problems.iter().map(ToString::to_string).collect()
}

fn event(source: &Source, body: &str) -> Event {
    sent(source, body).event(source)
}

const BODY: &str = r#"{"id":"e","type":"item.updated","v":4,"data":{"id":"i"}}"#;

#[test]
fn each_policy_is_read_with_what_belongs_to_it() {
    let wait = |hold_for_ms, on_gap| Wait { hold_for_ms, on_gap };
    for (order, expected) in [
        ("{ policy = 'newest' }", Policy::Newest { tie: Tie::Keep }),
        ("{ policy = 'arrival' }", Policy::Arrival),
        ("{ policy = 'sequence' }", Policy::Sequence { start: 1, wait: wait(30_000, OnGap::Release) }),
        (
            "{ policy = 'sequence', start = 0, hold_for = '1m 30s', on_gap = 'expire' }",
            Policy::Sequence { start: 0, wait: wait(90_000, OnGap::Expire) },
        ),
        ("{ policy = 'window', window = '2s', tie = 'apply' }", Policy::Window { window_ms: 2_000, tie: Tie::Apply }),
    ] {
        let event = event(&with(&format!("order = {order}")), BODY);
        assert_eq!(event.order.policy, expected, "{order}");
        assert_eq!(event.is_plain(), matches!(expected, Policy::Newest { .. } | Policy::Arrival), "{order}");
    }
}

#[test]
fn one_rule_that_waits_makes_every_event_of_the_source_judged() {
    let source = with("[[narrow]]\ntypes = ['item.counted']\norder = { policy = 'sequence', hold_for = '5s' }");
    let plain = event(&source, BODY);
    assert_eq!(plain.order.policy, Policy::Newest { tie: Tie::Keep });
    assert!(!plain.is_plain(), "its resource may have held events of the other type");
    let counted = event(&source, &BODY.replace("updated", "counted"));
    assert!(matches!(counted.order.policy, Policy::Sequence { .. }));
}

#[test]
fn a_step_is_the_longest_pattern_of_the_machine_that_matches() {
    let source = with("order = { policy = 'transition', ranks = ['*.created', '*', '*.deleted'] }");
    let step = |kind: &str| event(&source, &BODY.replace("item.updated", kind)).step;
    assert_eq!(step("item.created").as_deref(), Some("*.created"));
    assert_eq!(step("item.renamed").as_deref(), Some("*"));
    assert_eq!(step("item.deleted").as_deref(), Some("*.deleted"));
}

#[test]
fn a_step_is_read_where_the_source_says_and_an_unknown_one_is_unusable() {
    let source = with(
        "order = { policy = 'transition', step = 'body:/data/status', graph = { open = ['paid', 'void'], paid = ['sent'] } }",
    );
    let body = |status: &str| format!(r#"{{"id":"e","type":"t","v":4,"data":{{"id":"i"{status}}}}}"#);
    assert_eq!(event(&source, &body(r#","status":"paid""#)).step.as_deref(), Some("paid"));
    assert_eq!(sent(&source, &body(r#","status":"lost""#)).unusable(&source).code, "step-unknown");
    assert_eq!(sent(&source, &body(r#","status":{}"#)).unusable(&source).code, "step-not-scalar");
    assert_eq!(sent(&source, &body("")).unusable(&source).code, "step-missing");
    let without_a_resource = event(&source, r#"{"id":"e","type":"t","v":4,"data":{"status":"lost"}}"#);
    assert_eq!(without_a_resource.step, None, "what passes unguarded takes no step");
}

#[test]
fn members_are_read_with_their_exact_bytes() {
    let source = with("merge = 'fields'\nstate = 'body:/data'\ndelete = { types = ['*.deleted'] }");
    let merged = event(&source, r#"{"id":"e","v":4,"data":{"id":"i", "plan": null,"price": 1.50,"a":{"b": [ ]}}}"#);
    assert_eq!(merged.order.merge, Merge::Fields);
    let members = [("id", "\"i\""), ("plan", "null"), ("price", "1.50"), ("a", r#"{"b": [ ]}"#)];
    let members = members.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(merged.patch, Some(Patch(members.to_vec())));
    let deleted = event(&source, r#"{"id":"e","type":"item.deleted","v":4,"data":{"id":"i"}}"#);
    assert_eq!((deleted.deletes, deleted.patch), (true, None));
    let strict = plain(&format!(
        "{KEY}\nresource = {{ type = 'literal:item', id = 'body:/item' }}\n{VERSION}\nmerge = 'fields'\nstate = 'body:/data'"
    ));
    let many = (0..=1000).map(|n| format!("\"{n}\":1")).collect::<Vec<_>>().join(",");
    for (data, code) in [
        ("", "state-missing"),
        (r#","data":null"#, "state-not-an-object"),
        (r#","data":[1]"#, "state-not-an-object"),
        (r#","data":{"a":1,"a":2}"#, "body-duplicate-key"),
        (r#","data":{"\ud800":1}"#, "state-not-text"),
        (&format!(r#","data":{{{many}}}"#), "state-too-large"),
    ] {
        let body = format!(r#"{{"id":"e","v":4,"item":"i"{data}}}"#);
        assert_eq!(sent(&strict, &body).unusable(&strict).code, code);
    }
}

#[test]
fn the_whole_body_is_the_state_where_none_is_named() {
    let source = plain(
        "key = 'header:x-id'\nresource = { type = 'literal:item', id = 'body:/id' }\n\
         version = [{ from = 'body:/v', as = 'integer' }]\nmerge = 'fields'",
    );
    let event = event(&source, r#"{"id":"i","v":4}"#);
    let names: Vec<_> =
        event.patch.as_ref().map(|patch| patch.0.iter().map(|(name, _)| name.as_str()).collect()).unwrap();
    assert_eq!(names, ["id", "v"]);
}

#[test]
fn an_effect_key_has_a_space_of_its_own_and_an_event_without_a_part_of_it_has_none() {
    let source = with("effect_key = ['body:/type', 'body:/data/id']");
    let first = event(&source, BODY);
    let again = event(&source, &BODY.replace(r#""e""#, r#""other id""#));
    assert_eq!(first.effect_key, again.effect_key);
    assert_ne!(first.key, again.key);
    let (key, effect) = (first.key, first.effect_key.expect("an effect key"));
    assert_ne!(key.hash, effect.hash);
    let without = event(&source, r#"{"id":"e","v":4,"data":{"id":"i"}}"#);
    assert_eq!(without.effect_key, None);
    assert_eq!(sent(&source, &BODY.replace("item.updated", "a\\u0000b")).unusable(&source).code, "type-not-text");
}

#[test]
fn a_counter_that_starts_again_is_known_by_its_fall_and_by_its_rest() {
    let source = with("epoch_on = { falls_by = 1000, after_idle = '7d' }");
    let expected = EpochOn { falls_by: 1000, after_idle_ms: Some(7 * 86_400_000) };
    assert_eq!(event(&source, BODY).order.epoch_on, Some(expected));
}

#[test]
fn under_sequence_and_window_an_event_without_a_version_is_unusable_unless_the_source_says_otherwise() {
    let body = r#"{"id":"e","data":{"id":"i"}}"#;
    for order in ["{ policy = 'sequence' }", "{ policy = 'window', window = '1s' }"] {
        let source = with(&format!("order = {order}"));
        assert_eq!(sent(&source, body).unusable(&source).code, "version-missing");
        let lenient = with(&format!("on_missing_version = 'arrival'\norder = {order}"));
        assert_eq!(event(&lenient, body).guards[0].version, None);
    }
}

#[test]
fn items_of_a_batch_bring_their_own_step_state_and_effect_key() {
    let source = plain(
        "batch = 'body:'\nkey = 'item:/id'\nresource = { type = 'literal:item', id = 'item:/of' }\n\
         version = [{ from = 'item:/v', as = 'integer' }]\nmerge = 'fields'\neffect_key = 'item:/effect'\n\
         order = { policy = 'transition', step = 'item:/step', ranks = ['a', 'b'] }",
    );
    let body = r#"[{"id":"1","of":"i","v":1,"step":"a","effect":"x"},{"id":"2","of":"i","v":2,"step":"b"}]"#;
    let tidegate::source::Reading::Batch(items) = sent(&source, body).read(&source) else { panic!("no batch") };
    let tidegate::source::Item::Event(event) = &items[1] else { panic!("no event") };
    assert_eq!((event.step.as_deref(), &event.effect_key), (Some("b"), &None));
    assert_eq!(event.patch.as_ref().map(|patch| patch.0.len()), Some(4), "the item is the state");
}

#[test]
fn each_contradiction_names_its_key_and_says_what_to_do() {
    let base = format!("{KEY}\n{RESOURCE}\n{VERSION}\n");
    let time = "version = [{ from = 'body:/at', as = 'rfc3339' }]";
    let tuple = "version = [{ from = 'body:/v', as = 'integer' }, { from = 'type', as = 'rank', ranks = ['*'] }]";
    for (text, expected) in [
        (
            format!("{KEY}\n{RESOURCE}\n{tuple}\norder = {{ policy = 'sequence' }}"),
            "`version` must be one part `as = \"integer\"`",
        ),
        (format!("{KEY}\n{RESOURCE}\n{time}\norder = {{ policy = 'sequence' }}"), "`version` must be one part"),
        (format!("{KEY}\n{RESOURCE}\norder = {{ policy = 'sequence' }}"), "`order` is `sequence` without a version"),
        (
            format!("{KEY}\n{VERSION}\norder = {{ policy = 'sequence' }}"),
            "`order` is `sequence`, and there is no `resource`",
        ),
        (format!("{base}order = {{ policy = 'sequence', start = 'created' }}"), "`order.start` must be a whole number"),
        (
            format!("{base}order = {{ policy = 'sequence', hold_for = '0s' }}"),
            "`order.hold_for` must be a duration, 100ms to 30d, got 0s",
        ),
        (
            format!("{base}order = {{ policy = 'sequence', hold_for = '40d' }}"),
            "`order.hold_for` must be a duration, 100ms to 30d, got 40d",
        ),
        (
            format!("{base}order = {{ policy = 'sequence', on_gap = 'refetch' }}"),
            "`order.on_gap` asks the provider, and nothing says where",
        ),
        (format!("{base}order = {{ policy = 'refetch' }}"), "`order` asks the provider, and nothing says where"),
        (
            format!("{base}order = {{ policy = 'newest', hold_for = '5s' }}"),
            "`order.hold_for` belongs to the policy `sequence`, `transition`, and this one is `newest`",
        ),
        (
            format!("{base}order = {{ window = '5s' }}"),
            "`order.window` belongs to the policy `window`, and this one is `newest`",
        ),
        (
            format!("{base}order = {{ policy = 'arrival', tie = 'keep' }}"),
            "`order.tie` belongs to the policy `newest`, `transition`, `window`",
        ),
        (format!("{base}order = {{ policy = 'window' }}"), "`order.window` is missing"),
        (
            format!("{base}order = {{ policy = 'window', window = '2d' }}"),
            "`order.window` must be a duration, 10ms to 1d, got 2d",
        ),
        (
            format!("{KEY}\n{RESOURCE}\norder = {{ policy = 'window', window = '1s' }}"),
            "`order` is `window` without a version",
        ),
        (format!("{base}order = {{ policy = 'transition' }}"), "`order` is `transition` without steps"),
        (
            format!("{base}order = {{ policy = 'transition', graph = {{ a = ['b'] }}, ranks = ['a'] }}"),
            "`order` is `transition` with a `graph` and with `ranks`",
        ),
        (
            format!("{base}order = {{ policy = 'transition', ranks = ['a', 'a'] }}"),
            "`order.ranks` cannot be used: step \"a\" comes twice",
        ),
        (
            format!("{base}order = {{ policy = 'transition', ranks = ['a', 'b'], start = 'a' }}"),
            "`order.start` belongs to `graph`",
        ),
        (
            format!("{base}order = {{ policy = 'transition', graph = {{ a = ['b'], c = ['d'] }}, start = 'a' }}"),
            "`order.graph` cannot be used: step \"c\" cannot be reached",
        ),
        (
            format!("{base}order = {{ policy = 'transition', graph = {{ a = ['b'] }}, start = 'x' }}"),
            "`order.start` names \"x\", which is no step of `graph`",
        ),
        (
            format!("{base}order = {{ policy = 'transition', graph = {{ a = ['b'] }}, start = 3 }}"),
            "`order.start` must name steps",
        ),
        (
            format!("{base}order = {{ policy = 'transition', graph = {{ a = ['b'], b = ['a'] }} }}"),
            "`order.graph` cannot be used: no step is a start",
        ),
        (
            format!(
                "{KEY}\n{RESOURCE}\norder = {{ policy = 'transition', graph = {{ a = ['b'], b = ['a'] }}, start = 'a' }}"
            ),
            "`order.graph` has a cycle",
        ),
        (
            format!("key = 'body:/id'\n{RESOURCE}\n{VERSION}\norder = {{ policy = 'transition', ranks = ['a', 'b'] }}"),
            "`order.step` is missing, and so is `type`",
        ),
        (format!("{base}state = 'body:/data'"), "`state` belongs to `merge = \"fields\"`"),
        (
            format!("{base}merge = 'fields'\nstate = 'header:x-data'"),
            "`state` is \"header:x-data\", which is no JSON object",
        ),
        (format!("{KEY}\n{VERSION}\nmerge = 'fields'"), "`merge` is `fields`, and there is no `resource`"),
        (format!("{KEY}\n{RESOURCE}\nmerge = 'fields'"), "`merge` is `fields`, which keeps a version for each member"),
        (
            format!("{base}merge = 'fields'\norder = {{ policy = 'arrival' }}"),
            "`merge` is `fields`, which needs a policy that looks at versions",
        ),
        (format!("{KEY}\n{RESOURCE}\n{time}\nepoch_on = {{ falls_by = 10 }}"), "`epoch_on` is about a counter"),
        (format!("{base}epoch_on = {{ falls_by = 0 }}"), "`epoch_on.falls_by` must be at least 1, got 0"),
        (
            format!("{base}epoch_on = {{ falls_by = 9, after_idle = '1ms' }}"),
            "`epoch_on.after_idle` must be a duration, 1s to 400d, got 1ms",
        ),
        (
            format!("{base}epoch_on = {{ falls_by = 9 }}\norder = {{ policy = 'arrival' }}"),
            "`epoch_on` goes with the policies",
        ),
        (format!("{base}effect_key = 'literal:x'"), "`effect_key` is the same for every event"),
        (format!("{base}effect_key = 'body:/id'"), "`effect_key` is the same as `key`"),
        (
            format!("{base}[[narrow]]\ntypes = ['a']\norder = {{ policy = 'window' }}"),
            "`narrow[0].order.window` is missing",
        ),
        (
            format!("{base}order = {{ policy = 'sequence' }}\n[[narrow]]\ntypes = ['a']\nversion = []"),
            "`narrow[0].version` is empty, and the policy is `sequence`",
        ),
    ] {
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{text}\n{found:#?}");
    }
}

#[test]
fn all_contradictions_come_at_once_and_each_once() {
    let found = problems(&format!(
        "{KEY}\norder = {{ policy = 'sequence', hold_for = '0s', on_gap = 'refetch', window = '1s', ranks = ['a'] }}\n\
         state = 'body:/data'\nepoch_on = {{ falls_by = 0 }}\neffect_key = 'literal:x'\n\
         [[narrow]]\ntypes = ['a']\ndelete = {{ types = ['b'] }}"
    ));
    let keys: Vec<&str> = found.iter().map(|problem| problem.split('`').nth(1).unwrap_or_default()).collect();
    let expected = [
        "order.ranks",
        "order.window",
        "order",
        "order",
        "order.hold_for",
        "order.on_gap",
        "state",
        "epoch_on",
        "epoch_on.falls_by",
        "effect_key",
    ];
    assert_eq!(keys, expected, "{found:#?}");
}

#[test]
fn two_stripe_events_of_one_second_are_ordered_by_their_types() {
    let stripe = preset("stripe");
    let version = |kind: &str| {
        let body = format!(
            r#"{{"id":"evt_{kind}","type":"{kind}","created":1767225600,"data":{{"object":{{"id":"a","object":"b"}}}}}}"#
        );
        let event = Sent::new(&[], body).signed(&stripe, "", "").event(&stripe);
        event.guards[0].version.clone().expect("a version")
    };
    assert!(version("customer.created") < version("customer.updated"));
    assert!(version("customer.updated") < version("customer.deleted"));
    assert_eq!(version("invoice.paid"), version("invoice.finalized"));
}
