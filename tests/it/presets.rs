//! One request of every sender, through its preset as it is: taken once, known again, refused when altered; and
//! what only one sender does.

use std::collections::BTreeMap;

use tidegate::source::Source;
use tidegate_actors::ports::EventRow;
use tidegate_actors::rules::event::Verdict;

use crate::support::fault::rows_of_every_table;
use crate::support::gate::Gate;
use crate::support::http::{Request, Response};
use crate::support::place::Place;
use crate::support::presets::{Covers, Entry, Expected, Sample, Sent};
use crate::support::signing::now_s;

on_each_store! {
    every_payload_is_in_once_with_its_key_type_resource_and_version;
    one_flipped_byte_anywhere_in_a_signed_body_is_401_and_leaves_no_row_in_any_table;
    a_handshake_of_slack_is_echoed_when_signed_and_refused_when_not;
    the_first_ping_of_github_is_recorded_as_ignored;
    a_form_of_github_is_verified_as_sent_and_read_inside;
    late_events_of_one_github_issue_are_stale_and_its_deletion_stands;
}

/// A preset with the source that signs for it.
struct Sender {
    entry: Entry,
    source: Source,
}

impl Sender {
    fn of(entry: Entry) -> Self {
        Self { source: entry.source(), entry }
    }

    fn named(name: &str) -> Self {
        Self::of(Entry::named(name))
    }

    /// A source of this preset, in the settings of a gate.
    fn settings(&self, name: &str) -> String {
        let secret = serde_json::Value::String(format!("demo:{}", self.entry.secret().trim()));
        format!("[[source]]\n{}secrets = [{secret}]\n", self.entry.settings_as(name))
    }

    fn gate(&self, place: Place) -> Gate {
        Gate::start_at(place, &self.settings(&self.entry.name))
    }

    fn sample(&self, file: &str) -> &Sample {
        let mut samples = self.entry.samples.iter();
        samples.find(|sample| sample.file == file).unwrap_or_else(|| panic!("no {file}"))
    }

    /// A request to the source `name`, signed now.
    fn request(&self, name: &str, sample: &Sample, body: Vec<u8>) -> Request {
        self.request_at(name, sample, body, now_s() * 1000)
    }

    /// The same, signed at a time.
    fn request_at(&self, name: &str, sample: &Sample, body: Vec<u8>, now_ms: i64) -> Request {
        let sent: Sent = sample.sent(&self.source, &format!("/in/{name}"), body, now_ms);
        let mut request = Request::post(&sent.target, sent.body.to_vec());
        for (name, value) in &sent.headers {
            request = request.header(name.as_str(), value.to_str().expect("a text"));
        }
        request
    }

    /// The request of a payload to the source of the preset's name.
    fn payload(&self, file: &str) -> Request {
        let sample = self.sample(file);
        self.request(&self.entry.name, sample, sample.body())
    }
}

/// Those whose secret stands in the settings.
fn senders() -> Vec<Sender> {
    Entry::all().into_iter().filter(|entry| !entry.fetched).map(Sender::of).collect()
}

/// Each payload with its sender and a source of its own, so that none is late because of another.
fn payloads(senders: &[Sender]) -> Vec<(String, &Sender, &Sample)> {
    let all = senders.iter().flat_map(|sender| sender.entry.samples.iter().map(move |sample| (sender, sample)));
    all.enumerate().map(|(number, (sender, sample))| (format!("s{number}"), sender, sample)).collect()
}

fn settings(payloads: &[(String, &Sender, &Sample)]) -> String {
    payloads.iter().map(|(name, sender, _)| sender.settings(name)).collect()
}

/// Sends as a sender does: a 503 is tried again.
fn delivered(gate: &Gate, request: &Request) -> Response {
    let mut answer = gate.call(request);
    for _ in 0..4 {
        if answer.status != 503 {
            break;
        }
        answer = gate.call(request);
    }
    answer
}

fn assert_taken(answer: &Response, sample: &Sample) {
    assert!(matches!(answer.status, 200 | 202 | 204), "{}: {} {}", sample.file, answer.status, answer.text());
}

fn assert_row(row: &EventRow, expected: &Expected, file: &str) {
    assert_eq!((&row.key, &row.kind), (&expected.key, &expected.kind), "{file}");
    let ignored = expected.ignored.is_some();
    assert_eq!(row.verdict == Verdict::Ignored, ignored, "{file}: {}", row.verdict.word());
    if !ignored {
        assert_eq!(row.resource, expected.resource, "{file}");
        assert_eq!(row.version, expected.version, "{file}");
    }
}

fn every_payload_is_in_once_with_its_key_type_resource_and_version(place: Place) {
    let senders = senders();
    let payloads = payloads(&senders);
    let gate = Gate::start_at(place, &settings(&payloads));
    for (name, sender, sample) in &payloads {
        // where the time stands in a form, another one would make it another body
        let now_ms = now_s() * 1000;
        let first = sender.request_at(name, sample, sample.body(), now_ms);
        let again = sender.request_at(name, sample, sample.body_again(), now_ms);
        let answers = [&first, &first, &again].map(|sent| delivered(&gate, sent));
        for answer in &answers {
            assert_taken(answer, sample);
        }
        // those whose answer is the receipt
        let json = answers[1].header("content-type") == Some("application/json") && !answers[1].body.is_empty();
        let receipt = json && answers[1].json().get("status").is_some_and(|status| status != "batch");
        if receipt && sample.events.len() == 1 && !sender.entry.signals {
            assert_eq!(answers[1].verdict(), "duplicate", "{}", sample.file);
            assert_eq!(answers[1].json()["id"], answers[0].json()["id"], "{}", sample.file);
            assert_eq!(answers[2].json().get("conflict"), None, "{}", sample.file);
        }
    }
    let (rows, resources) = (gate.events(), gate.resources());
    for (name, sender, sample) in &payloads {
        let mut of_source: Vec<&EventRow> = rows.iter().filter(|row| row.source == *name).collect();
        if sender.entry.signals {
            assert_eq!(of_source.len(), 3 * sample.events.len(), "{}: each signal is one more", sample.file);
            continue;
        }
        // a request may hold one event twice
        let events: BTreeMap<&str, &Expected> = sample.events.iter().map(|event| (event.key.as_str(), event)).collect();
        assert_eq!(of_source.len(), events.len(), "{}: each event is in once", sample.file);
        for expected in events.into_values() {
            let row = of_source.iter().position(|row| row.key == expected.key);
            let row = row.unwrap_or_else(|| panic!("{}: no {}", sample.file, expected.key));
            let row = of_source.swap_remove(row);
            assert_row(row, expected, &sample.file);
            let resource = resources.iter().find(|resource| resource.event == Some(row.id));
            if row.verdict == Verdict::Applied
                && let Some(resource) = resource
            {
                let others = sample.events.iter().filter(|other| other.resource == expected.resource);
                assert_eq!(resource.deleted, expected.deletes, "{}", sample.file);
                assert!((1..=others.count() as i64).contains(&resource.applied), "{}", sample.file);
            }
        }
    }
    assert!(gate.quarantined().is_empty());
}

fn one_flipped_byte_anywhere_in_a_signed_body_is_401_and_leaves_no_row_in_any_table(place: Place) {
    let senders: Vec<Sender> = senders();
    let payloads: Vec<_> = payloads(&senders);
    let gate = Gate::start_at(place, &settings(&payloads));
    let mut client = gate.client();
    for (name, sender, sample) in payloads.iter().filter(|(_, sender, _)| sender.entry.covers == Covers::Body) {
        let good = sender.request(name, sample, sample.body());
        let last = good.body.len() - 1;
        for at in [0, last / 3, last / 2, last] {
            let mut flipped = good.clone();
            flipped.body[at] ^= 1;
            let answer = client.call(&flipped).expect("an answer");
            assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{} at {at}", sample.file);
        }
    }
    gate.assert_empty();
    assert!(gate.quarantined().is_empty());
    for (table, rows) in rows_of_every_table(gate.place()) {
        assert_eq!(rows, 0, "{table}");
    }
}

fn a_handshake_of_slack_is_echoed_when_signed_and_refused_when_not(place: Place) {
    let slack = Sender::named("slack");
    let gate = slack.gate(place);
    let challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P";
    let body =
        serde_json::json!({ "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl", "challenge": challenge, "type": "url_verification" });
    let signed = slack.request("slack", &slack.entry.samples[0], body.to_string().into());
    let answer = gate.call(&signed);
    assert_eq!((answer.status, answer.text().as_str()), (200, challenge));
    let strangers: [Request; 2] = [
        signed.clone().without("x-slack-signature"),
        signed.without("x-slack-signature").header("x-slack-signature", format!("v0={}", "0".repeat(64))),
    ];
    for stranger in strangers {
        let answer = gate.call(&stranger);
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"));
        assert!(!answer.text().contains(challenge), "nothing is echoed to a stranger");
    }
    for (table, rows) in rows_of_every_table(gate.place()) {
        assert_eq!(rows, 0, "{table}: a handshake leaves nothing behind");
    }
}

fn the_first_ping_of_github_is_recorded_as_ignored(place: Place) {
    let github = Sender::named("github");
    let gate = github.gate(place);
    let ping = github.payload("github-ping.json");
    assert_eq!(gate.call(&ping).verdict(), "ignored");
    assert_eq!(gate.call(&ping).verdict(), "duplicate");
    let events = gate.events();
    assert_eq!((events.len(), events[0].kind.as_str(), events[0].verdict), (1, "ping", Verdict::Ignored));
    assert!(gate.resources().is_empty(), "a ping changes nothing");
}

fn a_form_of_github_is_verified_as_sent_and_read_inside(place: Place) {
    let github = Sender::named("github");
    let gate = github.gate(place);
    let form = github.sample("github-issues.edited.form");
    let request = github.payload("github-issues.edited.form");
    assert!(request.body.starts_with(b"payload=%7B"), "the signature is over the form and not over the JSON inside");
    assert_eq!(gate.call(&request).verdict(), "applied");
    let events = gate.events();
    assert_row(&events[0], &form.events[0], &form.file);
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
    let github = Sender::named("github");
    let gate = github.gate(place);
    let verdicts = ["edited", "deleted", "opened"]
        .map(|action| gate.call(&github.payload(&format!("github-issues.{action}.json"))).verdict());
    assert_eq!(verdicts, ["applied", "applied", "stale"], "an issue opened after its deletion is late");
    let resources = gate.resources();
    assert_eq!(resources.len(), 1);
    assert!(resources[0].deleted);
    assert_eq!(resources[0].applied, 2);
}
