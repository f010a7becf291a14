//! Plays a case and judges what came of it.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tidegate::config::Config;
use tidegate_actors::ports::{EventRow, QuarantineRow, ResourceRow};
use tidegate_actors::rules::event::Verdict;

use crate::case::{Arrival, Case, FinalState, What};
use crate::support::fault;
use crate::support::gate::{Gate, until};
use crate::support::http::{Request, Response};
use crate::support::place::Place;
use crate::support::provider::Provider;
use crate::support::redis::RedisServer;
use crate::world::World;

/// Where a case is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// One node on SQLite.
    Sqlite,
    /// Two nodes on one Postgres, with Redis.
    Postgres,
}

impl Stage {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

/// What came of it.
pub(crate) struct Played {
    pub(crate) answers: Vec<Response>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) resources: Vec<ResourceRow>,
    pub(crate) quarantined: Vec<QuarantineRow>,
    /// Keys in the order they were applied; those of one group in one transaction.
    applied: Vec<Vec<String>>,
    regressions: i64,
    bodies: BTreeMap<String, Vec<u8>>,
}

/// The gates of a stage: arrivals are spread over them, one after the other.
struct Gates {
    gates: Vec<Gate>,
    redis: Option<RedisServer>,
    _provider: Option<Provider>,
    world: World,
}

impl Gates {
    fn open(case: &Case, stage: Stage) -> Self {
        let world = World::default();
        world.set_now_ms(case.starts_at_ms());
        let redis = (stage == Stage::Postgres).then(|| RedisServer::start(&[]));
        let cache = redis
            .as_ref()
            .map_or_else(String::new, |redis| format!("[cache]\nurl = \"{}\"\nlookup = \"always\"\n", redis.url()));
        let mut case = case.clone();
        let asks = case.sources[0].get("refetch").is_some();
        let provider = asks.then(|| {
            let answers = case.provider.iter().map(|(id, answer)| (format!("/{id}"), answer.clone()));
            Provider::knowing(answers.collect())
        });
        if let Some(provider) = &provider {
            case.sources[0]["refetch"]["url"] = format!("http://{}/{{id}}", provider.address).into();
        }
        let settings = format!("{cache}{}", case.settings());
        let place = match stage {
            Stage::Sqlite => Place::sqlite(),
            Stage::Postgres => Place::postgres(),
        };
        let open = |place: Place| {
            let world = world.clone();
            Gate::start_with(place, &settings, move |backends| world.around(backends))
        };
        let second = (stage == Stage::Postgres).then(|| place.clone());
        let mut gates = vec![open(place)];
        gates.extend(second.map(open));
        Self { gates, redis, _provider: provider, world }
    }

    /// Starts and ends the faults of this moment.
    fn fault(&self, case: &Case, at_ms: i64) {
        for fault in &case.faults {
            let lasts = fault.at_ms <= at_ms && fault.until_ms.is_none_or(|until| at_ms < until);
            match fault.what {
                What::PostgresDown => {
                    self.world.set_away(lasts);
                    if !lasts {
                        let ready = || self.gates[0].call(&Request::new("GET", "/readyz")).status == 200;
                        until("the engine finds the store again", ready);
                    }
                }
                What::HandlerError => fault::refuse_events(&self.gates[0], lasts),
                What::RedisFlush if lasts => {
                    if let Some(redis) = &self.redis {
                        redis.flush();
                    }
                }
                What::RedisFlush | What::HandlerDelay | What::Sigterm | What::StartProcess => {}
            }
        }
    }
}

/// Sends every arrival at its time and reads the rows.
pub(crate) fn play(case: &Case, stage: Stage) -> Played {
    let gates = Gates::open(case, stage);
    let (mut answers, mut applied) = (Vec::new(), Vec::new());
    let at_once = case.expect.order_is_free();
    for instant in case.arrivals.chunk_by(|left, right| at_once && left.at_ms == right.at_ms) {
        let at_ms = instant[0].at_ms;
        gates.world.set_now_ms(case.starts_at_ms() + at_ms);
        gates.fault(case, at_ms);
        answers.extend(send_at_once(&gates.gates, case, instant, answers.len()));
        note_applied(&mut applied, &gates.gates[0].events());
    }
    let gate = &gates.gates[0];
    if case.settles {
        until("nothing waits any more", || gate.counts().held == 0);
        note_applied(&mut applied, &gate.events());
    }
    let events = gate.events();
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    let bodies = gate.ask(move |reader| async move {
        let mut bodies = BTreeMap::new();
        for id in ids {
            let event = reader.event(id).await.expect("events").expect("a listed event");
            bodies.insert(id.to_string(), event.body.expect("a body"));
        }
        bodies
    });
    let regressions = gates.gates.iter().map(|gate| {
        let figures = gate.admin_get("/metrics").text();
        let line = figures.lines().find_map(|line| line.strip_prefix("tidegate_version_regressions_total "));
        line.expect("the figure").parse::<i64>().expect("a number")
    });
    let regressions = regressions.sum();
    let (resources, quarantined) = (gate.resources(), gate.quarantined());
    Played { answers, events, resources, quarantined, applied, regressions, bodies }
}

/// Adds what was applied since: what came and applied at once, then what was held before.
fn note_applied(applied: &mut Vec<Vec<String>>, events: &[EventRow]) {
    let known: Vec<String> = applied.iter().flatten().cloned().collect();
    let is_new = |event: &&EventRow| {
        event.verdict == Verdict::Applied && event.kind != "tidegate.fetched" && !known.contains(&event.key)
    };
    let (waited, fresh): (Vec<_>, Vec<_>) =
        events.iter().filter(is_new).partition(|event| event.settled_at_ms.is_some());
    applied.extend(fresh.into_iter().map(|event| vec![event.key.clone()]));
    if !waited.is_empty() {
        applied.push(waited.into_iter().map(|event| event.key.clone()).collect());
    }
}

fn send_at_once(gates: &[Gate], case: &Case, arrivals: &[Arrival], before: usize) -> Vec<Response> {
    let together = std::sync::Barrier::new(arrivals.len());
    std::thread::scope(|scope| {
        let senders: Vec<_> = arrivals
            .iter()
            .enumerate()
            .map(|(index, arrival)| {
                let (gate, together) = (&gates[(before + index) % gates.len()], &together);
                let request = request(case, arrival);
                scope.spawn(move || {
                    let mut client = gate.client();
                    together.wait();
                    client.call(&request).expect("an answer")
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    })
}

fn request(case: &Case, arrival: &Arrival) -> Request {
    let source = arrival.source.as_deref().or_else(|| case.sources[0]["name"].as_str()).expect("a source");
    let query = if arrival.query.is_empty() { String::new() } else { format!("?{}", arrival.query) };
    let mut request = Request::new(&arrival.method, &format!("/in/{source}{query}"));
    let own_host = arrival.headers.contains_key("host");
    request.headers.retain(|(name, _)| !own_host || name != "host");
    request.headers.extend(arrival.header_bytes());
    request.body = arrival.body.clone().into_bytes();
    request
}

/// Plays a case and asserts the right result.
pub(crate) fn right_on(case: &Case, stage: Stage) {
    let what = format!("{} on {stage:?}: {}", case.id, case.title);
    for settings in case.refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, settings).expect("a settings file");
        assert!(Config::load(Some(&file), &BTreeMap::new()).is_err(), "{what}: the settings must be refused");
    }
    let played = play(case, stage);
    judge_answers(case, &played, &what);
    judge_events(case, &played, &what);
    for (name, expected) in &case.expect.final_state {
        judge_resource(name, expected, &played, &what);
    }
}

fn judge_answers(case: &Case, played: &Played, what: &str) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (index, answer) in played.answers.iter().enumerate() {
        let what = format!("{what}: arrival {index}: {} {}", answer.status, answer.text());
        assert!(fits(&case.expect.statuses[index], answer.status), "{what}; expected {}", case.expect.statuses[index]);
        if answer.status == 503 {
            assert!(answer.header("retry-after").is_some(), "{what}: a 503 says when to try again");
        }
        if answer.status == 200 && case.arrivals[index].method == "POST" {
            *counts.entry(answer.verdict()).or_default() += 1;
        }
        if let Some(Some(expected)) = case.expect.verdicts.get(index) {
            let (verdict, tie) = match expected.as_str() {
                "tie_applied" => ("applied", true),
                "tie_kept" => ("stale", true),
                plain => (plain, false),
            };
            assert_eq!(answer.verdict(), verdict, "{what}");
            assert_eq!(answer.json()["tie"] == true, tie, "{what}: ties are said");
        }
    }
    for (answer, expected) in played.answers.iter().zip(&case.expect.items) {
        let answer = answer.json();
        let items = answer["items"].as_array().expect("the items of a batch");
        let verdicts: Vec<_> = items.iter().map(|item| item["status"].as_str().unwrap_or_default()).collect();
        assert_eq!(&verdicts, expected, "{what}");
    }
    if !case.expect.verdict_counts.is_empty() {
        assert_eq!(counts, case.expect.verdict_counts, "{what}");
    }
}

fn fits(expected: &Value, status: u16) -> bool {
    match expected {
        Value::Array(any) => any.iter().any(|one| fits(one, status)),
        Value::String(text) => match text.strip_suffix("xx") {
            Some(class) => (status / 100).to_string() == class,
            None => status.to_string() == *text,
        },
        other => panic!("{other} is no status"),
    }
}

fn judge_events(case: &Case, played: &Played, what: &str) {
    let applied: Vec<_> = played.applied.iter().flatten().cloned().collect();
    if let Some(expected) = &case.expect.applied {
        // what one transaction released has no order to be seen in the rows
        let mut in_order = Vec::new();
        for group in &played.applied {
            let place = |key: &String| expected.iter().position(|other| other == key);
            let mut group = group.clone();
            group.sort_by_key(place);
            in_order.extend(group);
        }
        assert_eq!(&in_order, expected, "{what}: keys applied, in order");
    }
    if let Some(expected) = case.expect.regressions {
        assert_eq!(played.regressions, expected, "{what}: counters that fell are alerted");
    }
    if let Some(expected) = case.expect.applied_count {
        assert_eq!(applied.len(), expected, "{what}: {applied:?}");
    }
    for key in &case.expect.applied_includes {
        assert!(applied.contains(key), "{what}: {key} among {applied:?}");
    }
    if let Some(expected) = &case.expect.quarantined_times {
        let times: Vec<_> = played.quarantined.iter().map(|row| row.times).collect();
        assert_eq!(&times, expected, "{what}: counted, and not kept twice");
    }
    let kept: Vec<_> =
        played.events.iter().map(|event| hex::encode(Sha256::digest(&played.bodies[&event.id.to_string()]))).collect();
    let expected: Vec<_> = case.expect.raw_sha256.iter().flatten().cloned().collect();
    if !case.expect.raw_sha256.is_empty() {
        assert_eq!(kept, expected, "{what}: the bytes are kept as they came");
    }
}

fn judge_resource(name: &str, expected: &FinalState, played: &Played, what: &str) {
    let (kind, id) = name.split_once('/').expect("type/id");
    let row = played.resources.iter().find(|row| row.kind == kind && row.id == id);
    let row = row.unwrap_or_else(|| panic!("{what}: no {name} among {:?}", played.resources));
    assert_eq!(row.deleted, expected.deleted, "{what}: {name}");
    if let Some(version) = &expected.version {
        assert_eq!(row.version.as_deref().map(plain_version), Some(plain_version(&text(version))), "{what}: {name}");
    }
    if let Some(epoch) = expected.epoch {
        assert_eq!(row.epoch, epoch, "{what}: {name}");
    }
    if expected.step.is_some() {
        assert_eq!(row.step, expected.step, "{what}: {name}");
    }
    let body: Value =
        serde_json::from_slice(&played.bodies[&row.event.expect("a state").to_string()]).unwrap_or_default();
    let data = match &row.fields {
        Some(fields) => serde_json::from_str(fields).expect("an object"),
        None => body["data"].clone(),
    };
    for (field, value) in &expected.data {
        assert_eq!(&data[field], value, "{what}: {name}: {field}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Seconds since 1970 for times, so that a case may give either form.
fn plain_version(text: &str) -> String {
    text.parse::<jiff::Timestamp>().map_or_else(|_| text.to_owned(), |time| time.as_second().to_string())
}
