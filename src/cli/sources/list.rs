//! `sources list`: the configured sources, and the presets there are.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use tidegate_actors::ports::Clock as _;

use super::super::output::{self, cell};
use super::super::{Exit, Failure, load};
use super::args::ListArgs;
use super::{markdown, rules};
use crate::clock::SystemClock;
use crate::config::{Config, SourceEntry};
use crate::source::SourceSpec;
use crate::source::presets;

#[derive(Serialize)]
struct ListJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Vec<SourceJson>>,
    presets: Vec<PresetJson>,
}

#[derive(Serialize)]
struct SourceJson {
    name: String,
    preset: Option<String>,
    scheme: String,
    enabled: bool,
    path: String,
    order: Vec<&'static str>,
    tenants: usize,
    /// How many there are, and how many of them no longer count.
    secrets: usize,
    secrets_ended: usize,
}

#[derive(Serialize)]
struct PresetJson {
    name: &'static str,
    title: &'static str,
    scheme: String,
    order: Vec<&'static str>,
    documents: &'static [String],
}

/// Lists them.
pub(super) fn run(args: &ListArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    if args.markdown {
        out.write_all(markdown::providers().as_bytes())?;
        return Ok(Exit::Good);
    }
    let word = args.presets.as_deref().unwrap_or_default();
    let presets = presets_with(word);
    let sources = match args.presets {
        Some(_) => None,
        None => {
            let config = load(file).ok_or(Failure::Settings)?;
            Some(sources(&config))
        }
    };
    if sources.is_none() && presets.is_empty() {
        let hint = "`tidegate sources list --presets` lists all";
        return Err(Failure::NotFound(format!("no preset's name or sender holds {word:?}; {hint}")));
    }
    if args.json {
        output::json(&mut out, &ListJson { sources, presets })?;
        return Ok(Exit::Good);
    }
    if let Some(sources) = &sources {
        print_sources(&mut out, sources)?;
        writeln!(out)?;
    }
    print_presets(&mut out, &presets)?;
    Ok(Exit::Good)
}

fn presets_with(word: &str) -> Vec<PresetJson> {
    let word = word.to_lowercase();
    let all = presets::names().filter_map(|name| {
        let about = presets::about(name)?;
        let spec = SourceSpec { preset: Some(name.to_owned()), ..SourceSpec::default() }.with_preset().ok()?;
        let (scheme, order) = (rules::scheme(&spec), spec.policies());
        Some(PresetJson { name, title: &about.title, scheme, order, documents: &about.docs })
    });
    all.filter(|preset| preset.name.contains(&word) || preset.title.to_lowercase().contains(&word)).collect()
}

fn sources(config: &Config) -> Vec<SourceJson> {
    let now_ms = SystemClock::new().now_ms();
    let one = |entry: &SourceEntry| {
        let whole = entry.spec.with_preset().unwrap_or_else(|_| entry.spec.clone());
        let ended = entry.secrets.iter().filter(|secret| secret.until_ms.is_some_and(|until_ms| until_ms <= now_ms));
        let stated = |entry: &SourceEntry| {
            let own = entry.spec.tenants.iter().map(|tenant| tenant.secrets().len()).sum::<usize>();
            entry.spec.secrets.len() + own
        };
        SourceJson {
            name: entry.spec.name.clone(),
            preset: entry.spec.preset.clone(),
            scheme: rules::scheme(&whole),
            enabled: entry.enabled,
            path: format!("/in/{}", entry.spec.name),
            order: whole.policies(),
            tenants: entry.spec.tenants.len(),
            secrets: if entry.enabled { entry.secrets.len() } else { stated(entry) },
            secrets_ended: ended.count(),
        }
    };
    config.sources.iter().map(one).collect()
}

fn print_sources(out: &mut impl Write, sources: &[SourceJson]) -> io::Result<()> {
    let row = |source: &SourceJson| {
        let secrets = match (source.enabled, source.secrets_ended) {
            (false, _) => format!("{} (not read)", source.secrets),
            (true, 0) => source.secrets.to_string(),
            (true, ended) => format!("{} ({ended} ended)", source.secrets),
        };
        let tenants = if source.tenants == 0 { String::new() } else { source.tenants.to_string() };
        [
            cell(&source.name),
            cell(source.preset.as_deref().unwrap_or_default()),
            source.scheme.clone(),
            if source.enabled { "on" } else { "off" }.to_owned(),
            source.order.join(", "),
            cell(&tenants),
            secrets,
            cell(&source.path),
        ]
    };
    let rows: Vec<[String; 8]> = sources.iter().map(row).collect();
    output::table(out, ["SOURCE", "PRESET", "SCHEME", "STATE", "ORDER", "TENANTS", "SECRETS", "PATH"], &rows)
}

fn print_presets(out: &mut impl Write, presets: &[PresetJson]) -> io::Result<()> {
    let row = |preset: &PresetJson| {
        [preset.name.to_owned(), cell(preset.title), preset.scheme.clone(), preset.order.join(", ")]
    };
    let rows: Vec<[String; 4]> = presets.iter().map(row).collect();
    output::table(out, ["PRESET", "SENDER", "SCHEME", "ORDER"], &rows)
}
