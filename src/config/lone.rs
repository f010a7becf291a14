//! The rules of one source, read without the rest of the settings and without any secret: for commands that
//! open nothing.

use std::path::Path;

use secrecy::SecretString;
use toml::Value;

use super::layers::Layers;
use super::secret::{Environment, SecretRef};
use super::suggest::closest;
use super::{Problem, defaults, read_file, spec_faults};
use crate::source::{ResolvedConfig, SourceSpec};

/// What the settings say about a source of this name, whether it is on or off.
pub fn source_rules(file: Option<&Path>, name: &str) -> Result<SourceSpec, Vec<Problem>> {
    let mut names = Vec::new();
    if let Some(spec) = find(file, name, &mut names)? {
        return Ok(spec);
    }
    let meant = closest(name, names.iter().map(String::as_str));
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    let message = format!("no source is named {name} in the settings (there are {}){hint}", names.join(", "));
    Err(vec![Problem::new("--source", message)])
}

/// The same; `None` where there is no source of this name.
pub fn source_named(file: Option<&Path>, name: &str) -> Result<Option<SourceSpec>, Vec<Problem>> {
    find(file, name, &mut Vec::new())
}

/// A secret by its place; the error is to be read after the setting's name.
pub fn secret_at(place: &str, environment: &Environment) -> Result<SecretString, String> {
    let reference = SecretRef::parse(place).filter(|reference| !reference.is_demo());
    reference.ok_or("must be env:NAME or file:/path (the text is not shown)")?.resolve(environment)
}

/// The values of a source's own `config`, their secrets fetched.
pub fn config_values(spec: &SourceSpec, environment: &Environment) -> Result<ResolvedConfig, String> {
    let value = |text: &String| match SecretRef::parse(text).filter(|reference| !reference.is_demo()) {
        Some(reference) => reference.resolve(environment),
        None => Ok(SecretString::from(text.as_str())),
    };
    let values = spec.config.iter().map(|(name, texts)| {
        let values = texts.0.all().iter().map(value).collect::<Result<_, _>>();
        values.map(|values| (name.clone(), values)).map_err(|why| format!("`config.{name}` {why}"))
    });
    values.collect()
}

fn find(file: Option<&Path>, name: &str, names: &mut Vec<String>) -> Result<Option<SourceSpec>, Vec<Problem>> {
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
        names.extend(sources.iter().filter_map(name_of));
        return if problems.is_empty() { Ok(None) } else { Err(problems) };
    };
    let mut table = source.clone();
    table.remove("enabled");
    let spec = spec_faults::read(&format!("source.{name}"), table, &mut problems);
    match spec {
        Some(spec) if problems.is_empty() => Ok(Some(spec)),
        _ => Err(problems),
    }
}
