//! `sources show NAME`: every rule of a source or a preset, and where each is written down.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::output;
use super::super::{Exit, Failure};
use super::args::ShowArgs;
use super::{rules, snippet, wrap};
use crate::config;
use crate::config::redact::printable;
use crate::config::suggest::closest;
use crate::source::presets::{self, About};
use crate::source::{Problem, SourceSpec};

const LABEL: usize = 18;

#[derive(Serialize)]
struct ShowJson<'a> {
    name: &'a str,
    /// `source` or `preset`.
    kind: &'static str,
    preset: Option<&'a str>,
    title: &'a str,
    documents: &'a [String],
    order_because: &'a str,
    /// As a settings file has them; places of secrets and values that may be secrets are left out.
    rules: Value,
    /// What the preset's user states.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
}

/// Shows one.
pub(super) fn run(args: &ShowArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    let name = args.name.as_str();
    let found = find(name, file)?;
    let preset = found.spec.preset.as_deref();
    let nothing = About::default();
    let about = preset.and_then(presets::about).unwrap_or(&nothing);
    let mut out = io::stdout().lock();
    if args.toml {
        let text = preset.and_then(presets::text).ok_or_else(|| {
            Failure::Usage(format!("the source {name} has no preset: all of its rules stand in the settings file"))
        })?;
        out.write_all(text.as_bytes())?;
        return Ok(Exit::Good);
    }
    let whole = found.spec.with_preset().map_err(|problem| settings(&[problem]))?;
    if args.json {
        let shown = ShowJson {
            name,
            kind: if found.is_source { "source" } else { "preset" },
            preset,
            title: &about.title,
            documents: &about.docs,
            order_because: &about.order,
            rules: without_secrets(&whole),
            snippet: found.is_preset(name).then(|| snippet::snippet(name, &whole)),
        };
        output::json(&mut out, &shown)?;
        return Ok(Exit::Good);
    }
    print(&mut out, &found, about, &whole)?;
    Ok(Exit::Good)
}

/// What a name stands for.
struct Found {
    spec: SourceSpec,
    is_source: bool,
}

impl Found {
    /// A preset, or a source that has a preset's name.
    fn is_preset(&self, name: &str) -> bool {
        !self.is_source || self.spec.preset.as_deref() == Some(name)
    }
}

fn find(name: &str, file: Option<&Path>) -> Result<Found, Failure> {
    match config::source_named(file, name) {
        Ok(Some(spec)) => return Ok(Found { spec, is_source: true }),
        Ok(None) => {}
        // a preset does not depend on settings that are wrong
        Err(_) if presets::about(name).is_some() => {}
        Err(problems) => return Err(settings(&problems)),
    }
    if presets::about(name).is_some() {
        let spec = SourceSpec { name: name.to_owned(), preset: Some(name.to_owned()), ..SourceSpec::default() };
        return Ok(Found { spec, is_source: false });
    }
    let meant = closest(name, presets::names()).map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"));
    Err(Failure::NotFound(format!(
        "neither a source nor a preset is named {name}{meant}: `tidegate sources list` lists what there is"
    )))
}

fn settings(problems: &[Problem]) -> Failure {
    output::problems(problems);
    Failure::Settings
}

/// The rules without what is, or may be, a secret.
fn without_secrets(spec: &SourceSpec) -> Value {
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    if let Some(table) = value.as_object_mut() {
        for name in ["name", "preset", "secrets", "secrets_file", "setup"] {
            table.remove(name);
        }
        for name in ["config", "refetch", "verify"] {
            if let Some(table) = table.get_mut(name).and_then(Value::as_object_mut) {
                hide(name, table);
            }
        }
        for tenant in table.get_mut("tenants").and_then(Value::as_array_mut).into_iter().flatten() {
            tenant.as_object_mut().map(|tenant| tenant.remove("secrets"));
        }
    }
    value
}

fn hide(name: &str, table: &mut Map<String, Value>) {
    match name {
        "config" => table.values_mut().for_each(|value| *value = Value::from("(not shown)")),
        "verify" => drop(table.get_mut("keys").and_then(Value::as_object_mut).map(|keys| keys.remove("headers"))),
        _ => drop(table.remove("headers")),
    }
}

fn print(out: &mut impl Write, found: &Found, about: &About, whole: &SourceSpec) -> io::Result<()> {
    let mut line = |label: &str, text: &str| wrap::labelled(out, label, LABEL, text);
    let name = &whole.name;
    match (found.is_source, &found.spec.preset) {
        (true, Some(preset)) => line("source", &format!("{name}, preset {preset}"))?,
        (true, None) => line("source", name)?,
        (false, _) => line("preset", name)?,
    }
    if !about.title.is_empty() {
        line("sender", &about.title)?;
    }
    if found.is_source {
        line("path", &format!("/in/{name}"))?;
    }
    for (number, address) in about.docs.iter().enumerate() {
        // an address in two pieces leads nowhere
        writeln!(out, "{:<LABEL$}{}", if number == 0 { "documents" } else { "" }, printable(address, 512))?;
    }
    for (heading, lines) in rules::sections(whole, &about.order) {
        writeln!(out)?;
        wrap::labelled(out, "", 0, &heading)?;
        for (label, text) in lines {
            wrap::labelled(out, &format!("  {label}"), LABEL, &text)?;
        }
    }
    if found.is_preset(name) {
        writeln!(out, "\nto use it\n")?;
        for line in snippet::snippet(name, whole).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}
