//! Authentic events: what each verdict's answer looks like, and which rows stand behind it.

use tidegate_actors::rules::event::Verdict;

use crate::support::gate::{Gate, SOURCES};
use crate::support::place::Place;
use crate::support::signing::{KEY, OTHER_KEY, now_s, signed, signed_by, thing};

on_each_store! {
    a_new_event_is_applied_and_its_raw_bytes_and_resource_are_kept;
    an_older_version_is_stale_recorded_and_changes_nothing;
    an_equal_version_under_another_key_is_a_tie_and_says_so;
    a_repeat_is_a_duplicate_named_by_the_first_id_and_kept_once;
    the_same_key_with_other_bytes_is_a_conflict_kept_aside_and_the_first_stands;
    an_unwanted_type_is_ignored_recorded_and_changes_nothing;
    digits_beyond_every_machine_integer_decide_exactly;
    two_sources_and_two_tenants_never_share_a_key;
    one_connection_carries_many_events_in_a_row_and_pipelined;
    a_large_body_is_verified_off_the_worker_thread_with_the_same_verdicts;
    figures_tell_verdicts_and_refusals_by_source;
}

fn a_new_event_is_applied_and_its_raw_bytes_and_resource_are_kept(place: Place) {
    let gate = Gate::start_at(place, "");
    let body = thing("t1", 5);
    let answer = gate.post("evt_1", &body);

    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["status"], "applied");
    let id = answer.json()["id"].as_str().expect("an id").to_owned();

    let events = gate.events();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].id.to_string(), events[0].key.as_str()), (id.clone(), "evt_1"));
    assert_eq!((events[0].kind.as_str(), events[0].verdict), ("thing.updated", Verdict::Applied));
    assert_eq!(events[0].resource, Some(("thing".to_owned(), "t1".to_owned())));
    let kept = gate.ask({
        let id = events[0].id;
        move |reader| async move { reader.event(id).await.expect("a reader").expect("the event") }
    });
    assert_eq!(kept.body.as_deref(), Some(body.as_bytes()), "the bytes verified are the bytes kept");

    let resources = gate.resources();
    assert_eq!(resources.len(), 1);
    assert_eq!(
        (resources[0].version.as_deref(), resources[0].event.map(|event| event.to_string())),
        (Some("5"), Some(id))
    );
}

fn an_older_version_is_stale_recorded_and_changes_nothing(place: Place) {
    let gate = Gate::start_at(place, "");
    assert_eq!(gate.post("evt_1", &thing("t1", 5)).verdict(), "applied");
    assert_eq!(gate.post("evt_2", &thing("t1", 4)).verdict(), "stale");
    assert_eq!(gate.events().len(), 2);
    assert_eq!(gate.resources()[0].version.as_deref(), Some("5"));
}

fn an_equal_version_under_another_key_is_a_tie_and_says_so(place: Place) {
    let gate = Gate::start_at(place, "");
    gate.post("evt_1", &thing("t1", 5));
    let answer = gate.post("evt_2", &thing("t1", 5));
    assert_eq!(answer.json()["status"], "stale", "integers keep what is there");
    assert_eq!(answer.json()["tie"], true);
    assert!(gate.events()[1].tie);
}

fn a_repeat_is_a_duplicate_named_by_the_first_id_and_kept_once(place: Place) {
    let gate = Gate::start_at(place, "");
    let body = thing("t1", 5);
    let first = gate.post("evt_1", &body).json();
    for _ in 0..3 {
        let again = gate.post("evt_1", &body);
        assert_eq!(again.verdict(), "duplicate");
        assert_eq!(again.json()["id"], first["id"]);
        assert!(again.json().get("conflict").is_none());
    }
    assert_eq!(gate.events().len(), 1);
    assert_eq!(gate.counts().keys, 1);
}

fn the_same_key_with_other_bytes_is_a_conflict_kept_aside_and_the_first_stands(place: Place) {
    let gate = Gate::start_at(place, "");
    let first = gate.post("evt_1", &thing("t1", 5)).json();
    let other = gate.post("evt_1", &thing("t1", 9));
    assert_eq!(other.status, 200);
    assert_eq!((&other.json()["status"], &other.json()["conflict"]), (&"duplicate".into(), &true.into()));
    assert_eq!(other.json()["id"], first["id"]);

    assert_eq!(gate.resources()[0].version.as_deref(), Some("5"));
    let events = gate.events();
    assert_eq!(events.len(), 2, "the other bytes are kept aside");
    assert_eq!(events[1].verdict, Verdict::Duplicate);
    assert_eq!(events[1].conflicts_with, Some(events[0].id));
}

fn an_unwanted_type_is_ignored_recorded_and_changes_nothing(place: Place) {
    let gate = Gate::start_at(place, &SOURCES.replace("[[source]]", "[[source]]\ntypes = [\"other.*\"]"));
    assert_eq!(gate.post("evt_1", &thing("t1", 5)).verdict(), "ignored");
    assert_eq!(gate.events()[0].verdict, Verdict::Ignored);
    assert!(gate.resources().is_empty());
}

fn digits_beyond_every_machine_integer_decide_exactly(place: Place) {
    let gate = Gate::start_at(place, "");
    let big = "98765432109876543210987654321";
    let bigger = "98765432109876543210987654322";
    assert_eq!(gate.post("evt_1", &thing("t1", bigger)).verdict(), "applied");
    assert_eq!(gate.post("evt_2", &thing("t1", big)).verdict(), "stale");
    assert_eq!(gate.resources()[0].version.as_deref(), Some(bigger));
}

fn two_sources_and_two_tenants_never_share_a_key(place: Place) {
    let settings = format!(
        "{SOURCES}{}{}",
        SOURCES.replace("\"things\"", "\"others\""),
        SOURCES.replace("\"things\"", "\"shared\"").replace(
            "secrets = [\"env:TEST_SECRET\"]",
            "tenant = \"path\"\ntenants = [{ name = \"acme\", secrets = [\"env:TEST_SECRET\"] }, { name = \"bolt\", secrets = [\"env:OTHER_SECRET\"] }]"
        ),
    );
    let gate = Gate::start_at(place, &settings);
    let senders = [("/in/things", KEY), ("/in/others", KEY), ("/in/shared/acme", KEY), ("/in/shared/bolt", OTHER_KEY)];
    for (target, key) in senders {
        let request = signed_by(key, target, "evt_1", now_s(), thing("t1", 5));
        assert_eq!(gate.call(&request).verdict(), "applied", "{target}");
        assert_eq!(gate.call(&request).verdict(), "duplicate", "{target}");
    }
    assert_eq!(gate.counts().keys, 4);
    assert_eq!(gate.resources().len(), 4);
}

fn one_connection_carries_many_events_in_a_row_and_pipelined(place: Place) {
    let gate = Gate::start_at(place, "");
    let mut client = gate.client();
    for sequence in 0..20 {
        let request = signed("/in/things", &format!("evt_{sequence}"), thing("t1", sequence));
        assert_eq!(client.call(&request).expect("an answer").verdict(), "applied");
    }
    let pipelined: Vec<u8> = (20..30)
        .flat_map(|sequence| signed("/in/things", &format!("evt_{sequence}"), thing("t1", sequence)).bytes())
        .collect();
    client.send(&pipelined).expect("sent");
    for _ in 20..30 {
        assert_eq!(client.response().expect("an answer").verdict(), "applied");
    }
    assert_eq!(gate.resources()[0].version.as_deref(), Some("29"));
}

fn a_large_body_is_verified_off_the_worker_thread_with_the_same_verdicts(place: Place) {
    let gate = Gate::start_at(place, "");
    let body = format!(
        r#"{{"type":"thing.updated","object":"thing","id":"t1","sequence":7,"pad":"{}"}}"#,
        "x".repeat(200_000)
    );
    assert_eq!(gate.post("evt_1", &body).verdict(), "applied");
    assert_eq!(gate.post("evt_1", &body).verdict(), "duplicate");
    let flipped = body.replacen("xxx", "xyx", 1);
    let mut request = signed("/in/things", "evt_2", body);
    request.body = flipped.into_bytes();
    assert_eq!(gate.call(&request).code(), "unauthorized");
    assert_eq!(gate.events().len(), 1);
}

fn figures_tell_verdicts_and_refusals_by_source(place: Place) {
    let gate = Gate::start_at(place, "");
    gate.post("evt_1", &thing("t1", 5));
    gate.post("evt_1", &thing("t1", 5));
    gate.call(&signed("/in/things", "evt_2", thing("t1", 6)).without("webhook-signature"));
    gate.call(&signed("/in/nobody", "evt_2", thing("t1", 6)));
    let figures = gate.admin_get("/metrics");
    assert_eq!(figures.status, 200);
    let text = figures.text();
    for line in [
        r#"tidegate_http_verdicts_total{source="things",verdict="applied"} 1"#,
        r#"tidegate_http_verdicts_total{source="things",verdict="duplicate"} 1"#,
        r#"tidegate_http_refusals_total{source="things",reason="missing-signature"} 1"#,
        r#"tidegate_http_refusals_total{source="(unknown)",reason="unknown-source"} 1"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("nobody"), "what a sender chose never becomes a label");
    assert!(text.ends_with("# EOF\n"));
}
