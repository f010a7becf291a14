//! Recorded events: a file of JSON lines, read by the rules of the source they came from.
//!
//! Owns the forms of a line. Promises the same events as the gate would read, but for signatures, which are not
//! checked; and the order of truth: by version where events of a resource have versions, else as they stand in
//! the file. Repeats in the file are left out, since the simulator makes its own.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use actix_web::http::Method;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::sim::{EPOCH_MS, Scenario, StreamEvent};
use uuid::Uuid;

use super::{bad_file, read_file};
use crate::config::{Problem, source_rules};
use crate::source::{Item, Reading, Request, Source};

/// The most bytes of a file, and events of it.
const FILE_BYTES_MAX: u64 = 256 << 20;
const EVENTS_MAX: usize = 100_000;
/// Lines that cannot be used are told one by one up to here.
const TOLD_MAX: usize = 10;

/// A stream, and what should be known about it.
pub(super) struct Stream {
    pub(super) events: Vec<StreamEvent>,
    pub(super) notes: Vec<String>,
}

/// A line that is more than a body: a row of `events --export`, or headers with a body.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    body: &'a RawValue,
    #[serde(default)]
    received_at: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
}

/// A body as rows write it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Written {
    Text(String),
    Hex(String),
}

/// A request as it was recorded.
struct Recorded {
    headers: HeaderMap,
    tenant: Option<String>,
    body: Bytes,
    /// When it was received, where that is known.
    at: Option<jiff::Timestamp>,
}

/// Reads a file of recorded events by the rules of a source.
pub(super) fn read(
    file: &Path,
    name: &str,
    settings: Option<&Path>,
    scenario: &Scenario,
) -> Result<Stream, Vec<Problem>> {
    let spec = source_rules(settings, name)?;
    let below = |problem: Problem| Problem::new(format!("source.{name}.{}", problem.key), problem.message);
    let source =
        Source::compile_to_read(&spec).map_err(|problems| problems.into_iter().map(below).collect::<Vec<Problem>>())?;
    let text = read_file(file, FILE_BYTES_MAX).map_err(|why| vec![bad_file("--from", file, &why)])?;
    let mut reader = Reader { source: &source, name, gathered: Gathered::default(), ids: Cell::new(0) };
    for (line, text) in (1..).zip(text.lines()) {
        reader.line(line, text.trim());
    }
    let Gathered { mut events, unusable, foreign, repeats, .. } = reader.gathered;
    if events.is_empty() {
        let mut problems = vec![bad_file("--from", file, &format!("holds no event that {name} can read"))];
        problems.extend(unusable.into_iter().take(TOLD_MAX).map(|why| Problem::new("--from", why)));
        return Err(problems);
    }
    if events.len() > EVENTS_MAX {
        return Err(vec![bad_file("--from", file, &format!("holds {} events: at most {EVENTS_MAX}", events.len()))]);
    }
    let mut notes = vec![format!("{} events read by the rules of {name}; signatures were not checked", events.len())];
    if repeats > 0 {
        notes.push(format!("{repeats} repeats in the file are left out: the simulator makes its own"));
    }
    if foreign > 0 {
        notes.push(format!("{foreign} rows of other sources are left out"));
    }
    if !unusable.is_empty() {
        notes.push(format!("{} lines cannot be used and would go to quarantine:", unusable.len()));
        notes.extend(unusable.into_iter().take(TOLD_MAX));
    }
    events.sort_by_key(|event| event.at);
    put_in_true_order(&mut events);
    Ok(Stream { events: spread(events, scenario.world.spread_ms), notes })
}

/// What the lines came to.
#[derive(Default)]
struct Gathered {
    events: Vec<Taken>,
    keys: HashSet<tidegate_actors::rules::key::KeyHash>,
    unusable: Vec<String>,
    foreign: usize,
    repeats: usize,
}

/// An event, and when it was received where that is known.
struct Taken {
    event: Event,
    at: Option<jiff::Timestamp>,
}

struct Reader<'a> {
    source: &'a Source,
    name: &'a str,
    gathered: Gathered,
    ids: Cell<u128>,
}

impl Reader<'_> {
    fn line(&mut self, line: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        let recorded = match recorded(text, self.name) {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return self.gathered.foreign += 1,
            Err(why) => return self.unusable(line, &why),
        };
        let request = Request {
            method: &Method::POST,
            target: "/in",
            path_tenant: recorded.tenant.as_deref().filter(|tenant| !tenant.is_empty()),
            headers: &recorded.headers,
            body: &recorded.body,
            now_ms: EPOCH_MS,
        };
        let id = || {
            self.ids.set(self.ids.get() + 1);
            EventId(Uuid::from_u128(self.ids.get()))
        };
        // A source whose tenant stands in the body knows no tenant in the path.
        let read = self.source.read_recorded(&request, &id);
        let read = read.or_else(|_| self.source.read_recorded(&Request { path_tenant: None, ..request }, &id));
        match read {
            Ok(Reading::Event(event)) => self.take(event, recorded.at),
            Ok(Reading::Batch(items)) => {
                for item in items {
                    match item {
                        Item::Event(event) => self.take(event, recorded.at),
                        Item::Unusable(unusable) => self.unusable(line, &unusable.reason),
                    }
                }
            }
            Ok(Reading::Unusable(unusable)) => self.unusable(line, &unusable.reason),
            Ok(Reading::Greeting(_)) => self.unusable(line, "it is a handshake"),
            Ok(Reading::Empty) => self.unusable(line, "it has no body"),
            Err(_) => self.unusable(line, "it names no tenant that the source knows"),
        }
    }

    fn take(&mut self, event: Event, at: Option<jiff::Timestamp>) {
        if self.gathered.keys.insert(event.key.hash) {
            self.gathered.events.push(Taken { event, at });
        } else {
            self.gathered.repeats += 1;
        }
    }

    fn unusable(&mut self, line: usize, why: &str) {
        self.gathered.unusable.push(format!("line {line}: {why}"));
    }
}

/// The request that a line holds; `None` where it is a row of another source.
fn recorded(text: &str, source: &str) -> Result<Option<Recorded>, String> {
    let Some(row) = row(text) else {
        let headers = headers(&BTreeMap::new())?;
        return Ok(Some(Recorded { headers, tenant: None, body: Bytes::copy_from_slice(text.as_bytes()), at: None }));
    };
    if row.source.as_deref().is_some_and(|own| own != source) {
        return Ok(None);
    }
    let raw = row.body.get();
    let body = match (serde_json::from_str::<Written>(raw), serde_json::from_str::<String>(raw)) {
        (Ok(Written::Text(text)), _) | (_, Ok(text)) => Bytes::from(text),
        (Ok(Written::Hex(text)), _) => hex::decode(&text).map_err(|_| "its body is not hexadecimal")?.into(),
        _ => Bytes::copy_from_slice(raw.as_bytes()),
    };
    let at = row.received_at.as_deref().map(str::parse).transpose();
    let at = at.map_err(|_| "its `received_at` is no time with a zone".to_owned())?;
    Ok(Some(Recorded { headers: headers(&row.headers.unwrap_or_default())?, tenant: row.tenant, body, at }))
}

/// Headers with a body, or a row of an export; anything else is a body itself.
fn row(text: &str) -> Option<Row<'_>> {
    let row: Row<'_> = serde_json::from_str(text).ok()?;
    (row.headers.is_some() || row.received_at.is_some()).then_some(row)
}

fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in given {
        let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no name of a header"))?;
        let value = HeaderValue::try_from(value).map_err(|_| format!("the header {name} has no fit value"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Events of one resource change places among themselves until their versions rise.
fn put_in_true_order(events: &mut [Taken]) {
    let mut places: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, taken) in events.iter().enumerate() {
        if let Some(guard) = taken.event.guards.first().filter(|guard| guard.version.is_some()) {
            places.entry(guard.resource.hash).or_default().push(place);
        }
    }
    for places in places.into_values() {
        let mut order = places.clone();
        let version = |place: usize| events[place].event.guards.first().and_then(|guard| guard.version.as_ref());
        order.sort_by(|one, other| match (version(*one), version(*other)) {
            (Some(one), Some(other)) => one.bytes().cmp(other.bytes()),
            _ => std::cmp::Ordering::Equal,
        });
        let sorted: Vec<Event> = order.iter().map(|place| events[*place].event.clone()).collect();
        for (place, event) in places.into_iter().zip(sorted) {
            events[place].event = event;
        }
    }
}

/// Events happen evenly over the time that the scenario gives them.
fn spread(events: Vec<Taken>, spread_ms: u64) -> Vec<StreamEvent> {
    let last = (events.len() as u64).saturating_sub(1).max(1);
    let at = |place: u64| u64::try_from(u128::from(spread_ms) * u128::from(place) / u128::from(last)).unwrap_or(0);
    (0..).zip(events).map(|(place, taken)| StreamEvent { event: taken.event, at_ms: at(place) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(line: &str) -> String {
        let recorded = recorded(line, "shop").expect("a line").expect("of this source");
        String::from_utf8(recorded.body.to_vec()).expect("text")
    }

    #[test]
    fn a_line_is_a_body_or_headers_with_a_body_or_an_exported_row() {
        assert_eq!(body(r#"{"id": 1,  "body": 2}"#), r#"{"id": 1,  "body": 2}"#);
        assert_eq!(body(r#"{"headers": {"x-a": "b"}, "body": {"id":  1}}"#), r#"{"id":  1}"#);
        assert_eq!(body(r#"{"headers": {}, "body": "a=1&b=2"}"#), "a=1&b=2");
        assert_eq!(body(r#"{"received_at": "2026-01-01T00:00:00Z", "source": "shop", "body": {"hex": "6869"}}"#), "hi");
        assert!(
            recorded(r#"{"received_at": "2026-01-01T00:00:00Z", "source": "x", "body": {"text": ""}}"#, "shop")
                .expect("a line")
                .is_none()
        );
    }
}
