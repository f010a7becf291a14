//! The rules of one source, read without the rest of the settings and without any secret: for commands that
//! open nothing.

use std::path::Path;

use toml::Value;

use super::layers::Layers;
use super::suggest::closest;
use super::{Problem, defaults, read_file, spec_faults};
use crate::source::SourceSpec;

/// What the settings say about a source of this name, whether it is on or off.
pub fn source_rules(file: Option<&Path>, name: &str) -> Result<SourceSpec, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut layers = Layers::new(defaults());
    if let Some(path) = file {
        match read_file(path) {
            Ok(text) => layers.add_file(path, &text, &mut problems),
            Err(error) => {
                return Err(vec![Problem::new(path.display().to_string(), format!("cannot be read: {error}"))]);
            }
        }
    }
    let sources = layers.value("source").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name_of = |source: &Value| source.get("name").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Table(source)) = sources.iter().find(|source| name_of(source).as_deref() == Some(name)) else {
        let names: Vec<String> = sources.iter().filter_map(name_of).collect();
        let meant = closest(name, names.iter().map(String::as_str));
        let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let message = format!("no source is named {name} in the settings (there are {}){hint}", names.join(", "));
        problems.push(Problem::new("--source", message));
        return Err(problems);
    };
    let mut table = source.clone();
    table.remove("enabled");
    let spec = spec_faults::read(&format!("source.{name}"), table, &mut problems);
    match spec {
        Some(spec) if problems.is_empty() => Ok(spec),
        _ => Err(problems),
    }
}
