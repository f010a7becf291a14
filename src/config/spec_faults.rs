//! Finds every fault in a table of a list: reads it, notes the first fault, takes that value out, and reads
//! again until nothing is wrong with what is left.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::Problem;
use super::redact::printable;
use super::suggest::closest;

/// The most faults reported of one table.
const FAULTS_MAX: usize = 32;

/// What the table says, or `None` with problems.
pub(super) fn read<T: DeserializeOwned>(key: &str, mut table: Table, problems: &mut Vec<Problem>) -> Option<T> {
    let mut faults = 0;
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(Value::Table(table.clone())) {
            Ok(spec) => return (faults == 0).then_some(spec),
            Err(error) => error,
        };
        let steps = steps(error.path());
        let shown = steps.iter().fold(key.to_owned(), |path, step| step.below(&path));
        problems.push(Problem::new(shown, explain(error.inner().message(), &steps)));
        faults += 1;
        if faults == FAULTS_MAX || !remove(&mut table, &steps) {
            return None;
        }
    }
}

/// One step of the path to a fault.
enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    fn below(&self, path: &str) -> String {
        match self {
            Self::Key(name) => format!("{path}.{}", printable(name, 64)),
            Self::Index(index) => format!("{path}[{index}]"),
        }
    }
}

fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    use serde_path_to_error::Segment;
    let step = |segment: &Segment| match segment {
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Enum { variant } => Some(Step::Key(variant.clone())),
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Unknown => None,
    };
    path.iter().map_while(step).collect()
}

/// Takes out what the path names, or the nearest thing above it; `false` when there is nothing to take.
fn remove(table: &mut Table, steps: &[Step]) -> bool {
    let Some(Step::Key(first)) = steps.first() else { return false };
    match table.get_mut(first) {
        None => false,
        Some(value) => {
            if steps.len() == 1 || !remove_in(value, &steps[1..]) {
                table.remove(first);
            }
            true
        }
    }
}

fn remove_in(value: &mut Value, steps: &[Step]) -> bool {
    match (value, steps) {
        (Value::Table(table), _) => remove(table, steps),
        (Value::Array(items), [Step::Index(index), rest @ ..]) if *index < items.len() => {
            // An item may be faulty only by what it lacks: then the whole item goes.
            if rest.is_empty() || !remove_in(&mut items[*index], rest) {
                items.remove(*index);
            }
            true
        }
        _ => false,
    }
}

/// Says in the words of this file what the reader found; a value that may be a secret is left out.
fn explain(message: &str, steps: &[Step]) -> String {
    let hides = |name: &str| name.contains("secret") || name == "headers";
    let secret = steps.iter().any(|step| matches!(step, Step::Key(name) if hides(name)));
    let message = printable(message.lines().next().unwrap_or(message), 400);
    if message.contains("untagged enum Texts") {
        return "must be a text or a list of texts".to_owned();
    }
    if message.contains("untagged enum SecretSpec") {
        return "must be \"env:NAME\", \"file:/path\" or { value = \"env:NAME\", until = \"2030-01-31T00:00:00Z\" }"
            .to_owned();
    }
    if message.contains("untagged enum TenantSpec") {
        return "must be a tenant's name or { name = \"…\", secrets = [\"env:NAME\"] }".to_owned();
    }
    if message.contains("untagged enum StartSpec") {
        return "must be a whole number (`sequence`), or a step or a list of steps (`transition`)".to_owned();
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((wrong, known)) if message.starts_with("unknown field") => unknown_field(wrong, known),
        Some((_, known)) if message.starts_with("unknown variant") && secret => {
            format!("must be one of {}, got something else (not shown)", list(known))
        }
        Some((wrong, known)) if message.starts_with("unknown variant") => {
            format!("must be one of {}, got \"{wrong}\"", list(known))
        }
        Some((missing, _)) if message.starts_with("missing field") => format!("lacks `{missing}`: add it"),
        _ if secret => "is not of the right kind (the value is not shown)".to_owned(),
        _ => format!("is not right: {message}"),
    }
}

fn unknown_field(wrong: &str, known: &[&str]) -> String {
    match closest(wrong, known.iter().copied()) {
        Some(meant) => format!("is not a setting here: did you mean `{meant}`?"),
        None => format!("is not a setting here: take it out; known are {}", known.join(", ")),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
