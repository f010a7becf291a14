//! `tidegate send` for every preset, over HTTP into rows: what comes of it follows from the preset's policy, and
//! from whether its signature can be made with what the settings hold.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tidegate::source::{SignError, Signing, SourceSpec, presets};

use crate::support::fault::Outsider;
use crate::support::place::Place;
use crate::support::presets::{Entry, Sent};
use crate::support::process::Process;

const COUNT: i64 = 20;
const RESOURCES: i64 = 4;
const REPEATS: i64 = COUNT / 2;

fn spec(entry: &Entry) -> SourceSpec {
    let own: SourceSpec = toml::from_str(&entry.settings()).expect("a source");
    own.with_preset().expect("a preset")
}

fn settings(entries: &[Entry]) -> String {
    let one = |entry: &Entry| {
        let secret = Value::String(format!("demo:{}", entry.secret().trim()));
        let secrets = if entry.fetched { String::new() } else { format!("secrets = [{secret}]\n") };
        format!("[[source]]\n{}{secrets}", entry.settings())
    };
    entries.iter().map(one).collect()
}

/// Whether the settings hold what signs, and not only what checks.
fn can_be_signed(entry: &Entry) -> bool {
    let sent = Sent { target: "/in/test".to_owned(), headers: Default::default(), body: "{}".into(), now_ms: 0 };
    let signed = entry.source().signed(&Signing { request: sent.request(), id: "id", kind: "" });
    !matches!(signed, Err(SignError::NoSecret | SignError::SendersKey))
}

fn send(entry: &Entry, folder: &std::path::Path, url: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["send", &entry.name, "--count", "20", "--resources", "4", "--duplicate", "0.5", "--shuffle"]);
    command.args(["--seed", "7", "--json", "--config", "config.toml", "--url", url]).current_dir(folder);
    command.stdin(Stdio::null()).output().expect("the program starts")
}

/// How many resources events of the preset's sample are about.
fn resources(entry: &Entry, spec: &SourceSpec) -> i64 {
    let own = presets::about(&entry.name).and_then(|about| about.sample.as_ref()).expect("a sample");
    let sample = entry.samples.iter().find(|sample| sample.file == own.file);
    let about_one = sample.is_some_and(|sample| sample.events[0].resource.is_some());
    let is_fixed = |part: &String| part.starts_with("config:") || part.starts_with("literal:");
    let fixed = spec.resource.as_ref().is_some_and(|resource| resource.id.all().iter().all(is_fixed));
    match (about_one, fixed) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => RESOURCES,
    }
}

/// What is wrong with the rows and the answers of one sender.
fn wrong(entry: &Entry, told: &Value, rows: &mut Outsider) -> Vec<String> {
    let spec = spec(entry);
    let of = format!("source = '{}'", entry.name);
    let mut wrong = Vec::new();
    let mut same = |what: &str, found: i64, wanted: i64| {
        if found != wanted {
            wrong.push(format!("{}: {found} {what} in place of {wanted}: {told}", entry.name));
        }
    };
    same("sent", told["sent"].as_i64().unwrap_or(0), COUNT + REPEATS);
    same("refused", told["refused"].as_i64().unwrap_or(-1), 0);
    // without an id of its own, every delivery is an event
    let unique = spec.key.as_ref().is_some_and(|key| key.all().iter().any(|part| part == "unique"));
    let kinds = rows.number(&format!("SELECT count(DISTINCT kind) FROM events WHERE {of}"));
    let keys = rows.number(&format!("SELECT count(DISTINCT key) FROM events WHERE {of}"));
    // where the key says which resource and what happened to it, each thing happens once
    let once = kinds * RESOURCES;
    let events = if unique {
        COUNT + REPEATS
    } else if keys == once {
        once
    } else {
        COUNT
    };
    same("events", rows.number(&format!("SELECT count(*) FROM events WHERE {of}")), events);
    same("keys", keys, events);
    same(
        "resources",
        rows.number(&format!("SELECT count(DISTINCT resource_hash) FROM events WHERE {of}")),
        resources(entry, &spec),
    );
    same("conflicts", told["conflicts"].as_i64().unwrap_or(-1), 0);
    // a receipt says what became of the event; a batch and a fixed answer do not
    if spec.answer.is_none() && spec.batch.is_none() && !unique {
        let repeats = told["answers"]["duplicate"].as_i64().unwrap_or(0);
        // what was asked to come again is one more
        same("repeats that were not known", (REPEATS - repeats).max(0), 0);
    }
    let judged = !spec.policies().iter().any(|policy| matches!(*policy, "arrival" | "refetch"));
    let stale = rows.number(&format!("SELECT count(*) FROM events WHERE {of} AND verdict = 'stale'"));
    if judged || stale > 0 {
        let behind = rows.number(&format!(
            "SELECT count(*) FROM resources r WHERE {of} AND EXISTS
             (SELECT 1 FROM events e WHERE e.resource_hash = r.hash AND e.version > r.version)"
        ));
        same("resources behind their newest version", behind, 0);
        let held = rows.number(&format!("SELECT count(*) FROM resources WHERE {of} AND held > 0"));
        same("resources with events that wait", held, 0);
    }
    wrong
}

fn every_sender_is_played(place: &Place) {
    let entries = Entry::all();
    let settings = settings(&entries);
    let node = Process::start(place, &settings, &[]);
    let url = format!("http://{}", node.public);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("config.toml"), settings).expect("a settings file");
    let (mut all, mut reports) = (Vec::new(), Vec::new());
    for entry in &entries {
        let output = send(entry, folder.path(), &url);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match (can_be_signed(entry), output.status.code()) {
            (true, Some(0)) => {
                let told: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"));
                reports.push((entry, told));
            }
            (false, Some(2)) if err.contains("cannot be signed for: ") => {}
            (_, code) => all.push(format!("{}: exit {code:?}: {err}{out}", entry.name)),
        }
    }
    drop(node);
    let mut rows = Outsider::connect(place);
    for (entry, told) in &reports {
        all.extend(wrong(entry, told, &mut rows));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn every_sender_is_played_into_sqlite() {
    every_sender_is_played(&Place::sqlite());
}

#[test]
fn every_sender_is_played_into_postgres() {
    every_sender_is_played(&Place::postgres());
}
