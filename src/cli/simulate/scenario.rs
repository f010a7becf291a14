//! Scenarios: those that come with the program, files, and dials turned over them.
//!
//! Owns the way from TOML to a [`Scenario`]. Promises that everything wrong with a file or a dial is told at
//! once, each with its key, its bound and what was found. A scenario file states only what differs from the
//! defaults; spans may be written as one number or as `"a..b"`, policies by name.

use std::path::Path;

use tidegate_actors::sim::{FaultName, PolicyChoice, Scenario, Span};
use toml::{Table, Value};

use super::args::{Dials, SimulateArgs, span};
use crate::config::Problem;
use crate::config::suggest::closest;

/// Name and text of every scenario that comes with the program.
pub(super) const SHIPPED: [(&str, &str); 5] = [
    ("gentle", include_str!("../../../scenarios/gentle.toml")),
    ("retry-storm", include_str!("../../../scenarios/retry-storm.toml")),
    ("reorder-storm", include_str!("../../../scenarios/reorder-storm.toml")),
    ("flaky-store", include_str!("../../../scenarios/flaky-store.toml")),
    ("lossy-sequence", include_str!("../../../scenarios/lossy-sequence.toml")),
];

/// The most bytes of a scenario file.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The share of requests that come late under `--reorder`.
const REORDER_SHARE: f64 = 0.5;

/// The text of a scenario that comes with the program.
pub(super) fn shipped(name: &str) -> Result<&'static str, Problem> {
    let names = || SHIPPED.map(|(name, _)| name);
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).ok_or_else(|| {
        let meant = closest(name, names()).map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let known = names().join(", ");
        Problem::new("scenario", format!("{name:?} is none of {known}, nor a file that ends in .toml{meant}"))
    })
}

/// The scenario that was asked for, with all dials turned.
pub(super) fn read(args: &SimulateArgs) -> Result<Scenario, Vec<Problem>> {
    let (name, text) = text_of(&args.scenario).map_err(|problem| vec![problem])?;
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        let place = error.span().map_or_else(String::new, |span| format!(", line {}", line_of(&text, span.start)));
        vec![Problem::new(format!("{name}{place}"), format!("is not TOML: {}", error.message()))]
    })?;
    table.entry("name").or_insert_with(|| Value::String(name));
    let mut problems = Vec::new();
    turn(&mut table, &args.dials, &mut problems);
    let scenario = understand(table, &mut problems);
    match scenario {
        Some(scenario) if problems.is_empty() => {
            problems.extend(scenario.faults().iter().map(|text| problem_of(text)));
            if problems.is_empty() { Ok(scenario) } else { Err(problems) }
        }
        _ => Err(problems),
    }
}

fn text_of(scenario: &str) -> Result<(String, String), Problem> {
    let path = Path::new(scenario);
    if path.extension().is_none_or(|ending| ending != "toml") {
        return shipped(scenario).map(|text| (scenario.to_owned(), text.to_owned()));
    }
    let unreadable = |why: String| Problem::new(scenario, why);
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    if text.len() > FILE_BYTES_MAX {
        return Err(unreadable("is longer than 1 MiB: this is no scenario".to_owned()));
    }
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Ok((name, text))
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// `faults` of a scenario name their key in backticks, as problems do.
fn problem_of(text: &str) -> Problem {
    match text.strip_prefix('`').and_then(|rest| rest.split_once("` ")) {
        Some((key, message)) => Problem::new(key, message),
        None => Problem::new("scenario", text),
    }
}

/// Writes the dials of the command line over the table.
fn turn(table: &mut Table, dials: &Dials, problems: &mut Vec<Problem>) {
    let spans = [
        ("world.events", dials.events),
        ("world.resources", dials.resources),
        ("network.delay_ms", dials.delay),
        ("network.slow_ms", dials.reorder.map(|most| Span::new(0, most))),
        ("faults.count", dials.faults),
        ("gate.nodes", dials.nodes),
    ];
    for (key, span) in spans {
        if let Some(span) = span {
            put(table, key, Value::String(format!("{}..{}", span.min, span.max)), problems);
        }
    }
    let shares = [
        ("sender.duplicates", dials.duplicate),
        ("network.loss", dials.loss),
        ("world.never", dials.never),
        ("network.slow", dials.reorder.map(|_| REORDER_SHARE)),
    ];
    for (key, share) in shares {
        if let Some(share) = share {
            put(table, key, Value::Float(share), problems);
        }
    }
    if !dials.policy.is_empty() {
        let names = dials.policy.iter().map(|policy| Value::String(policy.name().to_owned())).collect();
        put(table, "order.policies", Value::Array(names), problems);
    }
    for set in &dials.set {
        let Some((key, text)) = set.split_once('=') else {
            problems.push(Problem::new("--set", format!("must be KEY=VALUE, got {set:?}")));
            continue;
        };
        let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        put(table, key.trim(), parsed.unwrap_or_else(|| Value::String(text.to_owned())), problems);
    }
}

fn put(table: &mut Table, key: &str, value: Value, problems: &mut Vec<Problem>) {
    let (sections, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut at = table;
    for section in sections.split('.').filter(|section| !section.is_empty()) {
        let entry = at.entry(section).or_insert_with(|| Value::Table(Table::new()));
        let Some(inner) = entry.as_table_mut() else {
            problems.push(Problem::new(key, format!("cannot be set: `{section}` is no section")));
            return;
        };
        at = inner;
    }
    at.insert(name.to_owned(), value);
}

/// The scenario a table describes; everything that is wrong with it goes to `problems`.
fn understand(mut table: Table, problems: &mut Vec<Problem>) -> Option<Scenario> {
    let Ok(Value::Table(known)) = Value::try_from(Scenario::default()) else {
        problems.push(Problem::new("scenario", "has no defaults"));
        return None;
    };
    fit(&mut table, &known, "", problems);
    if !problems.is_empty() {
        return None;
    }
    let read = serde_path_to_error::deserialize(Value::Table(table));
    read.map_err(|error| {
        problems.push(Problem::new(error.path().to_string(), error.inner().message()));
    })
    .ok()
}

/// Brings what may be written shorter to its full form, and tells what cannot be meant.
fn fit(table: &mut Table, known: &Table, section: &str, problems: &mut Vec<Problem>) {
    for (name, value) in table.iter_mut() {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        let Some(default) = known.get(name) else {
            let meant = closest(name, known.keys().map(String::as_str));
            let hint = meant.map_or_else(
                || format!("; there are {}", known.keys().cloned().collect::<Vec<_>>().join(", ")),
                |meant| format!("; did you mean `{meant}`?"),
            );
            problems.push(Problem::new(key, format!("is no dial{hint}")));
            continue;
        };
        match (key.as_str(), default) {
            ("order.policies", _) => policies(value, problems),
            ("faults.only", _) => fault_names(value, problems),
            (_, Value::Table(inner)) if is_span(inner) => a_span(&key, value, problems),
            (_, Value::Table(inner)) => match value {
                Value::Table(table) => fit(table, inner, &key, problems),
                _ => problems.push(Problem::new(key, format!("must be a section, got {}", shown(value)))),
            },
            (_, Value::Float(_)) => match value {
                Value::Integer(whole) => *value = Value::Float(*whole as f64),
                Value::Float(_) => {}
                _ => problems.push(Problem::new(key, format!("must be a share, 0 to 1, got {}", shown(value)))),
            },
            (_, Value::Integer(_)) if value.as_integer().is_none_or(|number| number < 0) => {
                problems.push(Problem::new(key, format!("must be a whole number from 0, got {}", shown(value))));
            }
            (_, Value::String(_)) if !value.is_str() => {
                problems.push(Problem::new(key, format!("must be a text, got {}", shown(value))));
            }
            _ => {}
        }
    }
}

fn is_span(table: &Table) -> bool {
    table.len() == 2 && table.contains_key("min") && table.contains_key("max")
}

fn a_span(key: &str, value: &mut Value, problems: &mut Vec<Problem>) {
    let read = match &*value {
        Value::Integer(number) => span(&number.to_string()),
        Value::String(text) => span(text),
        Value::Table(table) => {
            let end = |name| table.get(name).and_then(Value::as_integer).map(|end: i64| end.to_string());
            match (end("min"), end("max"), table.len()) {
                (Some(min), Some(max), 2) => span(&format!("{min}..{max}")),
                _ => Err("it must have `min` and `max` and nothing else".to_owned()),
            }
        }
        _ => Err("it must be a whole number such as 5, or a span such as \"5..9\"".to_owned()),
    };
    match read {
        Ok(span) => {
            let end = |end: u64| Value::Integer(i64::try_from(end).unwrap_or(i64::MAX));
            *value = Value::Table(
                [("min".to_owned(), end(span.min)), ("max".to_owned(), end(span.max))].into_iter().collect(),
            );
        }
        Err(why) => problems.push(Problem::new(key, format!("got {}: {why}", shown(value)))),
    }
}

fn policies(value: &mut Value, problems: &mut Vec<Problem>) {
    let Value::Array(policies) = value else {
        let message = format!("must be a list of policies, by name or as tables, got {}", shown(value));
        problems.push(Problem::new("order.policies", message));
        return;
    };
    for (index, policy) in policies.iter_mut().enumerate() {
        let key = format!("order.policies[{index}]");
        if let Value::String(name) = &*policy {
            match PolicyChoice::from_name(name).map(Value::try_from) {
                Some(Ok(whole)) => *policy = whole,
                _ => {
                    let message = "is no policy: newest, arrival, sequence, transition, window, refetch, fields";
                    problems.push(Problem::new(key, format!("{name:?} {message}")));
                }
            }
            continue;
        }
        if let Err(error) = serde_path_to_error::deserialize::<_, PolicyChoice>(policy.clone()) {
            problems.push(Problem::new(key, error.inner().message()));
        }
    }
}

fn fault_names(value: &Value, problems: &mut Vec<Problem>) {
    let Value::Array(names) = value else {
        problems.push(Problem::new("faults.only", format!("must be a list of faults, got {}", shown(value))));
        return;
    };
    for (index, name) in names.iter().enumerate() {
        let word = name.as_str().unwrap_or_default();
        let known = || FaultName::ALL.iter().map(|fault| fault.word());
        if !known().any(|known| known == word) {
            let hint = closest(word, known()).map_or_else(
                || format!("there are {}", known().collect::<Vec<_>>().join(", ")),
                |meant| format!("did you mean {meant}?"),
            );
            let message = format!("is no fault, got {}; {hint}", shown(name));
            problems.push(Problem::new(format!("faults.only[{index}]"), message));
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a section".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => crate::config::redact::printable(&other.to_string(), 60),
    }
}
