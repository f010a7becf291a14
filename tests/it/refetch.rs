//! Events that only say that something changed: the provider is asked, and its answer is the state.

use tidegate_actors::ports::FetchRow;
use tidegate_actors::rules::event::Verdict;
use tidegate_actors::rules::key::ResourceHash;

use crate::support::gate::{Gate, until};
use crate::support::place::Place;
use crate::support::provider::Provider;
use crate::support::signing::signed;

on_each_store! {
    a_signal_is_answered_at_once_and_the_state_is_what_the_provider_says;
    many_signals_for_one_resource_ask_once_or_twice_and_all_are_settled;
    a_failed_fetch_is_told_tried_again_and_heals;
    when_the_tries_are_used_up_the_signal_expires_with_a_record;
    a_gap_is_closed_by_the_provider_s_state;
}

fn open(place: Place, provider: &Provider, order: &str, fetch: &str) -> Gate {
    let settings = format!(
        "[fetch]\n{fetch}\n[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n\
         resource = {{ type = \"literal:thing\", id = \"body:/id\" }}\n\
         version = [{{ from = \"body:/n\", as = \"integer\" }}]\norder = {order}\n\
         [source.refetch]\nurl = \"http://{}/things/{{id}}\"\n",
        provider.address
    );
    Gate::start_at(place, &settings)
}

fn signal(gate: &Gate, key: &str, body: &str) -> String {
    gate.call(&signed("/in/things", key, body)).verdict()
}

fn fetch(gate: &Gate) -> Option<FetchRow> {
    let hash = ResourceHash::of("things", "", "thing", "t/1");
    gate.ask(move |reader| async move { reader.fetch(hash).await.expect("the fetch") })
}

fn verdict_of(gate: &Gate, key: &str) -> Verdict {
    gate.events().into_iter().find(|event| event.key == key).expect("the event").verdict
}

fn version(gate: &Gate) -> Option<String> {
    gate.resources().first().and_then(|thing| thing.version.clone())
}

fn a_signal_is_answered_at_once_and_the_state_is_what_the_provider_says(place: Place) {
    let provider = Provider::start(r#"{"id":"t/1", "n":7}"#);
    let gate = open(place, &provider, "{ policy = \"refetch\" }", "");
    assert_eq!(signal(&gate, "evt_1", r#"{"id":"t/1","n":3}"#), "held");
    until("the answer is the state", || version(&gate).as_deref() == Some("7"));
    assert_eq!(provider.asked(), ["/things/t%2F1"]);
    let thing = gate.resources().remove(0);
    let state = thing.event.expect("a state");
    let kept = gate.ask(move |reader| async move { reader.event(state).await.expect("a reader").expect("the event") });
    assert_eq!((kept.kind.as_str(), kept.body.as_deref()), ("tidegate.fetched", Some(&br#"{"id":"t/1", "n":7}"#[..])));
    assert_eq!((verdict_of(&gate, "evt_1"), thing.held), (Verdict::Applied, 0));
    // an answer that is older than the state changes nothing
    provider.says(r#"{"id":"t/1","n":6}"#);
    assert_eq!(signal(&gate, "evt_2", r#"{"id":"t/1"}"#), "held");
    until("the second signal is settled", || verdict_of(&gate, "evt_2") != Verdict::Held);
    assert_eq!((verdict_of(&gate, "evt_2"), version(&gate).as_deref()), (Verdict::Stale, Some("7")));
}

fn many_signals_for_one_resource_ask_once_or_twice_and_all_are_settled(place: Place) {
    let provider = Provider::start(r#"{"n":7}"#);
    let gate = open(place, &provider, "{ policy = \"refetch\" }", "");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let gate = &gate;
            scope.spawn(move || assert_eq!(signal(gate, &format!("evt_{number}"), r#"{"id":"t/1"}"#), "held"));
        }
    });
    until("all signals are settled", || gate.counts().held == 0);
    let asked = provider.asked().len();
    assert!((1..20).contains(&asked), "{asked} times for 20 signals");
    assert_eq!(version(&gate).as_deref(), Some("7"));
}

fn a_failed_fetch_is_told_tried_again_and_heals(place: Place) {
    let provider = Provider::start(r#"{"n":7}"#);
    provider.is_ill(true);
    let gate = open(place, &provider, "{ policy = \"refetch\" }", "pause = \"100ms\"");
    assert_eq!(signal(&gate, "evt_1", r#"{"id":"t/1"}"#), "held");
    until("the failure is told", || fetch(&gate).is_some_and(|fetch| fetch.last_error.is_some()));
    let failed = fetch(&gate).expect("a fetch");
    assert!(failed.last_error.as_deref().is_some_and(|error| error.starts_with("500")), "{failed:?}");
    assert!(failed.attempts >= 1, "{failed:?}");
    assert_eq!(verdict_of(&gate, "evt_1"), Verdict::Held, "waiting is no failure");
    provider.is_ill(false);
    until("the answer is the state", || version(&gate).as_deref() == Some("7"));
    assert_eq!(verdict_of(&gate, "evt_1"), Verdict::Applied);
}

fn when_the_tries_are_used_up_the_signal_expires_with_a_record(place: Place) {
    let provider = Provider::start("");
    provider.is_ill(true);
    let gate = open(place, &provider, "{ policy = \"refetch\" }", "attempts = 2\npause = \"100ms\"");
    assert_eq!(signal(&gate, "evt_1", r#"{"id":"t/1"}"#), "held");
    until("the signal expires", || verdict_of(&gate, "evt_1") == Verdict::Expired);
    assert_eq!(provider.asked().len(), 2);
    provider.is_ill(false);
    provider.says(r#"{"n":7}"#);
    assert_eq!(signal(&gate, "evt_2", r#"{"id":"t/1"}"#), "held");
    until("the next signal asks anew", || version(&gate).as_deref() == Some("7"));
}

fn a_gap_is_closed_by_the_provider_s_state(place: Place) {
    let provider = Provider::start(r#"{"n":5}"#);
    let order = "{ policy = \"sequence\", hold_for = \"200ms\", on_gap = \"refetch\" }";
    let gate = open(place, &provider, order, "");
    assert_eq!(signal(&gate, "evt_1", r#"{"id":"t/1","n":1}"#), "applied");
    assert_eq!(signal(&gate, "evt_4", r#"{"id":"t/1","n":4}"#), "held");
    assert_eq!(signal(&gate, "evt_6", r#"{"id":"t/1","n":6}"#), "held");
    until("the gap is closed", || version(&gate).as_deref() == Some("6"));
    assert_eq!(verdict_of(&gate, "evt_4"), Verdict::Stale, "below what was fetched");
    assert_eq!(verdict_of(&gate, "evt_6"), Verdict::Applied, "the next one after it");
}
