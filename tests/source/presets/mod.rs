//! Every preset against what is stated about it: real payloads and what is read out of them, requests that its
//! sender signed, requests that nobody did, attempts again, and the published vectors of its scheme.

mod captured;
mod explained;
mod handshakes;
mod requests;
pub(crate) mod vectors;

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::source::{Item, Reading, Source, presets};
use tidegate_actors::rules::event::{Event, EventId, Guard, Ignored, Intent};

use uuid::Uuid;

use super::common::NOW_MS;
use super::stated::{Covers, Entry, Expected, Sample, Sent};

/// What is wrong, one line each.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn add(&mut self, entry: &Entry, what: impl std::fmt::Display) {
        self.0.push(format!("{}: {what}", entry.name));
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

/// The request of a sample, signed now.
fn sent(sample: &Sample, source: &Source) -> Sent {
    sample.sent(source, "/in/test", sample.body(), NOW_MS)
}

/// Ids of events, each once.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The events of a request that its source takes.
fn events(entry: &Entry, source: &Source, sent: &Sent) -> Result<Vec<Event>, String> {
    let verified = entry.verify(source, sent).map_err(|refusal| format!("refused: {}", refusal.reason.label()))?;
    let ids = || EventId(Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()));
    match source.read(&sent.request(), &verified, &ids) {
        Reading::Event(event) => Ok(vec![event]),
        Reading::Batch(items) => items
            .into_iter()
            .map(|item| match item {
                Item::Event(event) => Ok(event),
                Item::Unusable(unusable) => Err(format!("unusable: {}", unusable.reason)),
            })
            .collect(),
        other => Err(format!("no event: {other:?}")),
    }
}

#[test]
fn every_preset_is_stated_and_every_statement_is_of_a_preset() {
    let mut known: Vec<&str> = presets::names().collect();
    known.sort_unstable();
    let entries = Entry::all();
    let stated: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(stated, known);
    for entry in &entries {
        assert!(!entry.samples.is_empty(), "{} has no payload", entry.name);
        assert!(
            entry.samples.iter().all(|sample| sample.source.ends_with(')')),
            "{}: a licence is missing",
            entry.name
        );
    }
}

#[test]
fn every_preset_says_where_its_rules_are_written_and_why_its_order_fits() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let (text, comments) = (entry.preset(), entry.comments());
        let is_address = |word: &str| word.split_once('/').is_some_and(|(host, _)| host.contains('.'));
        if !comments.split_whitespace().any(is_address) {
            wrong.add(&entry, "no document's address");
        }
        let rules: toml::Table = text.parse().expect("TOML");
        for policy in policies(&rules) {
            if !comments.contains(&format!("`{policy}`")) {
                wrong.add(&entry, format!("nothing says why `{policy}` fits"));
            }
        }
    }
    wrong.none();
}

/// The policies that a preset states, or what it has without.
fn policies(rules: &toml::Table) -> Vec<String> {
    let narrow = rules.get("narrow").and_then(|narrow| narrow.as_array()).into_iter().flatten();
    let tables = std::iter::once(Some(rules)).chain(narrow.map(toml::Value::as_table));
    let stated = |table: &toml::Table| Some(table.get("order")?.get("policy")?.as_str()?.to_owned());
    let mut policies: Vec<String> = tables.flatten().filter_map(stated).collect();
    if !rules.contains_key("order") && !rules.contains_key("preset") {
        let versions = rules.contains_key("version") || rules.to_string().contains("[[narrow.version]]");
        policies.push(if versions { "newest" } else { "arrival" }.to_owned());
    }
    policies
}

#[test]
fn every_payload_gives_its_keys_types_resources_and_versions() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        for sample in &entry.samples {
            match events(&entry, &source, &sent(sample, &source)) {
                Err(error) => wrong.add(&entry, format!("{}: {error}", sample.file)),
                Ok(found) if found.len() != sample.events.len() => {
                    wrong.add(&entry, format!("{}: {} events", sample.file, found.len()));
                }
                Ok(found) => {
                    for (event, expected) in found.iter().zip(&sample.events) {
                        for difference in differences(event, expected, entry.signals) {
                            wrong.add(&entry, format!("{}: {difference}", sample.file));
                        }
                    }
                }
            }
        }
    }
    wrong.none();
}

fn differences(event: &Event, expected: &Expected, signal: bool) -> Vec<String> {
    let mut differences = Vec::new();
    let mut same = |what: &str, found: Option<&str>, wanted: Option<&str>| {
        if found != wanted {
            differences.push(format!("{what} {found:?} in place of {wanted:?}"));
        }
    };
    let key = if signal { "unique" } else { &event.key.text };
    same("key", Some(key), Some(&expected.key));
    same("type", Some(&event.kind), Some(&expected.kind));
    let ignored = match event.intent {
        Intent::Ignore(Ignored::Ping) => Some("ping"),
        Intent::Ignore(_) => Some("unwanted"),
        Intent::Apply => None,
    };
    same("ignored", ignored, expected.ignored.as_deref());
    let guard = event.guards.first();
    let resource = expected.resource.as_ref();
    same("resource", guard.map(|guard| &*guard.resource.kind), resource.map(|(kind, _)| kind.as_str()));
    same("resource id", guard.map(|guard| &*guard.resource.id), resource.map(|(_, id)| id.as_str()));
    let version = guard.and_then(|guard| guard.version.as_ref()).map(|version| version.text());
    same("version", version, expected.version.as_deref());
    for (kind, id, version) in &expected.also {
        let same = |text: &str, guard: &Guard| guard.version.as_ref().is_some_and(|version| version.text() == text);
        let is = |guard: &&Guard| *guard.resource.kind == **kind && *guard.resource.id == **id;
        if !event.guards.iter().skip(1).find(is).is_some_and(|guard| same(version, guard)) {
            differences.push(format!("no {kind} {id} with {version} comes along"));
        }
    }
    if event.deletes != expected.deletes {
        differences.push(format!("deletes {}", event.deletes));
    }
    differences
}

#[test]
fn another_attempt_is_the_same_event_and_no_conflict_unless_its_sender_names_none() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        for sample in &entry.samples {
            let first = events(&entry, &source, &sent(sample, &source));
            // a time that is not signed with the whole body may stand in a form, which is compared as it is
            let later_ms = if entry.covers == Covers::Body { 1000 } else { 0 };
            let again = sample.sent(&source, "/in/test", sample.body_again(), NOW_MS + later_ms);
            let again = events(&entry, &source, &again);
            let (Ok(first), Ok(again)) = (first, again) else {
                wrong.add(&entry, format!("{}: refused", sample.file));
                continue;
            };
            for (first, again) in first.iter().zip(&again) {
                let same = first.key.text == again.key.text && first.digest == again.digest;
                if same == entry.signals {
                    wrong.add(&entry, format!("{}: {} is another event or a conflict", sample.file, first.key.text));
                }
            }
        }
    }
    wrong.none();
}
