//! Real requests of real senders, through sources made of the presets as they are.

use serde_json::Value;
use tidegate_actors::ports::EventRow;
use tidegate_actors::rules::event::Verdict;

use crate::support::fault::rows_of_every_table;
use crate::support::gate::Gate;
use crate::support::http::Request;
use crate::support::place::Place;
use crate::support::senders::{Sample, source};

on_each_store! {
    every_payload_is_applied_with_its_key_type_resource_and_version;
    every_payload_sent_again_is_a_duplicate_and_adds_no_row;
    one_flipped_byte_anywhere_in_a_body_is_401_and_leaves_no_row_in_any_table;
    a_handshake_of_slack_is_echoed_when_signed_and_refused_when_not;
    the_first_ping_of_github_is_recorded_as_ignored;
    a_form_of_github_is_verified_as_sent_and_read_inside;
    late_events_of_one_github_issue_are_stale_and_its_deletion_stands;
}

/// A gate with a source for each sample, so that none is late or a tie because of another.
struct Senders {
    gate: Gate,
    samples: Vec<(String, Sample)>,
}

impl Senders {
    fn on(place: Place) -> Self {
        let samples = Sample::all().into_iter().enumerate().map(|(number, sample)| (format!("s{number}"), sample));
        let samples: Vec<_> = samples.collect();
        let settings: String = samples.iter().map(|(name, sample)| source(name, &sample.preset)).collect();
        Self { gate: Gate::start_at(place, &settings), samples }
    }

    /// Those that are events, and not handshakes.
    fn events(&self) -> impl Iterator<Item = &(String, Sample)> {
        self.samples.iter().filter(|(_, sample)| sample.expect.get("reply").is_none())
    }

    fn row<'a>(&self, rows: &'a [EventRow], name: &str) -> &'a EventRow {
        let mut of_source = rows.iter().filter(|row| row.source == name);
        let row = of_source.next().unwrap_or_else(|| panic!("no row of {name}"));
        assert!(of_source.next().is_none(), "one row of {name}");
        row
    }
}

fn verdict(sample: &Sample) -> &'static str {
    if sample.expect["ignored"].is_string() { "ignored" } else { "applied" }
}

/// The first part of a version, which is a time in every preset.
fn micros(version: Option<&str>) -> Option<i64> {
    let first = version?.split(',').next().unwrap_or_default();
    Some(first.parse::<jiff::Timestamp>().unwrap_or_else(|error| panic!("{first}: {error}")).as_microsecond())
}

fn assert_row(row: &EventRow, sample: &Sample) {
    let (file, expect) = (&sample.file, &sample.expect);
    assert_eq!((Some(row.key.as_str()), Some(row.kind.as_str())), (expect["key"].as_str(), expect["type"].as_str()));
    assert_eq!(row.verdict.word(), verdict(sample), "{file}");
    if row.verdict == Verdict::Applied {
        let resource = row.resource.as_ref().map(|(kind, id)| serde_json::json!([kind, id]));
        assert_eq!(resource.as_ref(), Some(&expect["resource"]), "{file}");
        assert_eq!(micros(row.version.as_deref()), expect["version_us"].as_i64(), "{file}: {:?}", row.version);
    }
}

fn every_payload_is_applied_with_its_key_type_resource_and_version(place: Place) {
    let senders = Senders::on(place);
    for (name, sample) in senders.events() {
        let answer = senders.gate.call(&sample.signed(name));
        assert_eq!((answer.status, answer.verdict().as_str()), (200, verdict(sample)), "{}", sample.file);
    }
    let (rows, resources) = (senders.gate.events(), senders.gate.resources());
    assert_eq!(rows.len(), senders.events().count());
    for (name, sample) in senders.events() {
        let row = senders.row(&rows, name);
        assert_row(row, sample);
        let Some(resource) = resources.iter().find(|resource| resource.source == *name) else {
            assert_eq!(row.verdict, Verdict::Ignored, "{}: an applied event has a resource", sample.file);
            continue;
        };
        assert_eq!((&resource.kind, &resource.id), row.resource.as_ref().map(|(kind, id)| (kind, id)).unwrap());
        assert_eq!((&resource.version, resource.event, resource.applied), (&row.version, Some(row.id), 1));
        assert_eq!(Value::Bool(resource.deleted), sample.expect["deletes"], "{}", sample.file);
    }
}

fn every_payload_sent_again_is_a_duplicate_and_adds_no_row(place: Place) {
    let senders = Senders::on(place);
    for (name, sample) in senders.events() {
        let request = sample.signed(name);
        let first = senders.gate.call(&request).json()["id"].clone();
        for again in [request, sample.signed(name)] {
            let answer = senders.gate.call(&again);
            assert_eq!((answer.status, answer.verdict().as_str()), (200, "duplicate"), "{}", sample.file);
            assert_eq!(answer.json()["id"], first, "{}", sample.file);
            assert_eq!(answer.json().get("conflict"), None, "{}", sample.file);
        }
    }
    let sent = senders.events().count();
    assert_eq!(senders.gate.events().len(), sent);
    assert_eq!(senders.gate.counts().keys, i64::try_from(sent).unwrap());
    assert!(senders.gate.resources().iter().all(|resource| resource.applied == 1), "no effect twice");
}

fn one_flipped_byte_anywhere_in_a_body_is_401_and_leaves_no_row_in_any_table(place: Place) {
    let senders = Senders::on(place);
    let mut client = senders.gate.client();
    for (name, sample) in &senders.samples {
        let good = sample.signed(name);
        let last = good.body.len() - 1;
        for at in [0, last / 3, last / 2, last] {
            let mut flipped = good.clone();
            flipped.body[at] ^= 1;
            let answer = client.call(&flipped).expect("an answer");
            assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{} at {at}", sample.file);
        }
    }
    senders.gate.assert_empty();
    assert!(senders.gate.events().is_empty() && senders.gate.resources().is_empty());
    assert!(senders.gate.quarantined().is_empty());
    for (table, rows) in rows_of_every_table(senders.gate.place()) {
        assert_eq!(rows, 0, "{table}");
    }
}

fn a_handshake_of_slack_is_echoed_when_signed_and_refused_when_not(place: Place) {
    let gate = Gate::start_at(place, &source("slack", "slack"));
    let sample = Sample::named("slack-url_verification.json");
    let signed = sample.signed("slack");
    let answer = gate.call(&signed);
    assert_eq!((answer.status, Some(answer.text().as_str())), (200, sample.expect["reply"].as_str()));
    let strangers: [Request; 2] = [
        signed.clone().without("x-slack-signature"),
        signed.without("x-slack-signature").header("x-slack-signature", format!("v0={}", "0".repeat(64))),
    ];
    for stranger in strangers {
        let answer = gate.call(&stranger);
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"));
        assert!(!answer.text().contains(sample.expect["reply"].as_str().unwrap()), "nothing is echoed to a stranger");
    }
    for (table, rows) in rows_of_every_table(gate.place()) {
        assert_eq!(rows, 0, "{table}: a handshake leaves nothing behind");
    }
}

fn the_first_ping_of_github_is_recorded_as_ignored(place: Place) {
    let gate = Gate::start_at(place, &source("github", "github"));
    let ping = Sample::named("github-ping.json").signed("github");
    assert_eq!(gate.call(&ping).verdict(), "ignored");
    assert_eq!(gate.call(&ping).verdict(), "duplicate");
    let events = gate.events();
    assert_eq!((events.len(), events[0].kind.as_str(), events[0].verdict), (1, "ping", Verdict::Ignored));
    assert!(gate.resources().is_empty(), "a ping changes nothing");
}

fn a_form_of_github_is_verified_as_sent_and_read_inside(place: Place) {
    let gate = Gate::start_at(place, &source("github", "github"));
    let form = Sample::named("github-issues.edited.form");
    let request = form.signed("github");
    assert!(request.body.starts_with(b"payload=%7B"), "the signature is over the form and not over the JSON inside");
    assert_eq!(gate.call(&request).verdict(), "applied");
    let events = gate.events();
    assert_row(&events[0], &form);
    let id = events[0].id;
    let kept = gate.ask(move |reader| async move { reader.event(id).await.expect("events").expect("the event") });
    assert_eq!(kept.body.as_deref(), Some(request.body.as_slice()), "the bytes kept are the bytes sent");

    let mut other = request;
    other.headers.retain(|(name, _)| name != "content-type");
    let answer = gate.call(&other.header("content-type", "text/plain"));
    assert_eq!(answer.status, 415, "{}", answer.text());
    assert_eq!(gate.events().len(), 1);
}

fn late_events_of_one_github_issue_are_stale_and_its_deletion_stands(place: Place) {
    let gate = Gate::start_at(place, &source("github", "github"));
    let verdicts = ["edited", "deleted", "opened"].map(|action| {
        let sample = Sample::named(&format!("github-issues.{action}.json"));
        gate.call(&sample.signed("github")).verdict()
    });
    assert_eq!(verdicts, ["applied", "applied", "stale"], "an issue opened after its deletion is late");
    let resources = gate.resources();
    assert_eq!(resources.len(), 1);
    assert!(resources[0].deleted);
    assert_eq!(resources[0].applied, 2);
}
