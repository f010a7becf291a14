//! `check`: what the settings mean, or everything that is wrong with them.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tidegate_actors::rules::event::Incarnation;
use tidegate_actors::rules::key::KeyHash;
use uuid::Uuid;

use super::args::CheckArgs;
use super::output;
use super::{Exit, Failure};
use crate::config::{self, Config, Problem};
use crate::store::OpenError;
use crate::{cache, store};

/// How long the cache may take to answer `--connect`.
const CACHE_WITHIN: Duration = Duration::from_secs(3);

#[derive(Serialize)]
struct CheckJson {
    ok: bool,
    problems: Vec<ProblemJson>,
    warnings: Vec<ProblemJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
}

#[derive(Serialize)]
struct ProblemJson {
    key: String,
    message: String,
}

impl From<&Problem> for ProblemJson {
    fn from(problem: &Problem) -> Self {
        Self { key: problem.key.clone(), message: problem.message.clone() }
    }
}

#[derive(Serialize)]
struct Summary {
    listen: String,
    admin: String,
    store: String,
    cache: String,
    sources: Vec<SourceJson>,
}

#[derive(Serialize)]
struct SourceJson {
    name: String,
    preset: Option<String>,
    enabled: bool,
    secrets: usize,
    /// Policies of order: the source's, and those of narrowed types that differ.
    order: Vec<&'static str>,
    path: String,
}

/// Checks the settings, and on request what they lead to.
pub(super) async fn run(args: &CheckArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    let (config, problems) = match Config::load(file, &config::environment()) {
        Ok(config) => (Some(config), Vec::new()),
        Err(problems) => (None, problems),
    };
    let mut warnings = config.as_ref().map_or_else(Vec::new, |config| config.warnings.clone());
    let mut unreachable = Vec::new();
    if let (Some(config), true) = (&config, args.connect) {
        connect(config, &mut warnings, &mut unreachable).await;
    }
    let summary = config.as_ref().map(summary);
    let exit = match (problems.is_empty(), unreachable.is_empty()) {
        (false, _) => Exit::No,
        (true, false) => Exit::Unreachable,
        (true, true) => Exit::Good,
    };
    let found: Vec<&Problem> = problems.iter().chain(&unreachable).collect();
    let mut out = io::stdout().lock();
    if args.json {
        let problems = found.into_iter().map(ProblemJson::from).collect();
        let warnings = warnings.iter().map(ProblemJson::from).collect();
        output::json(&mut out, &CheckJson { ok: exit == Exit::Good, problems, warnings, summary })?;
        return Ok(exit);
    }
    output::warnings(&warnings);
    if let Some(summary) = summary {
        print(&mut out, &summary)?;
    }
    let found: Vec<Problem> = found.into_iter().cloned().collect();
    if found.is_empty() {
        writeln!(out, "\nno problems{}", if args.connect { "; store and cache answer" } else { "" })?;
    } else {
        output::problems(&found);
    }
    Ok(exit)
}

fn summary(config: &Config) -> Summary {
    let source = |entry: &config::SourceEntry| SourceJson {
        name: entry.spec.name.clone(),
        preset: entry.spec.preset.clone(),
        enabled: entry.enabled,
        secrets: entry.spec.secrets.len(),
        order: entry.spec.with_preset().map_or_else(|_| Vec::new(), |spec| spec.policies()),
        path: format!("/in/{}", entry.spec.name),
    };
    Summary {
        listen: config.server.listen.to_string(),
        admin: config.admin.listen.to_string(),
        store: config.store.shown(),
        cache: config.cache.shown().unwrap_or_else(|| "in this process only".to_owned()),
        sources: config.sources.iter().map(source).collect(),
    }
}

fn print(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let fields = [
        ("listen", format!("http://{}", summary.listen)),
        ("admin", format!("http://{}", summary.admin)),
        ("store", summary.store.clone()),
        ("cache", summary.cache.clone()),
    ];
    output::fields(out, &fields)?;
    writeln!(out)?;
    let rows: Vec<[String; 5]> = summary
        .sources
        .iter()
        .map(|source| {
            let preset = output::cell(source.preset.as_deref().unwrap_or_default());
            let state = if source.enabled { "on" } else { "off" };
            [output::cell(&source.name), preset, state.to_owned(), source.order.join(", "), output::cell(&source.path)]
        })
        .collect();
    output::table(out, ["SOURCE", "PRESET", "STATE", "ORDER", "PATH"], &rows)
}

/// Opens the store and asks the cache. Opening the store for reading changes nothing in it.
async fn connect(config: &Config, warnings: &mut Vec<Problem>, unreachable: &mut Vec<Problem>) {
    let settings = config.store_settings();
    match store::open_reader(&settings).await {
        Ok(reader) => {
            if let Err(error) = reader.quarantine(None, 1).await {
                unreachable.push(Problem::new("store.url", format!("({}): {error}", config.store.shown())));
            } else if let Err(error) = store::check_effects(&settings).await {
                unreachable.push(Problem::new("effect", format!("(on {}): {error}", config.store.shown())));
            }
        }
        Err(OpenError::Empty(what)) => {
            let message = format!("({}): there is {what} yet; the first start makes it", config.store.shown());
            warnings.push(Problem::new("store.url", message));
        }
        Err(error) => unreachable.push(Problem::new("store.url", format!("({}): {error}", config.store.shown()))),
    }
    let Some(shown) = config.cache.shown() else { return };
    let asked = async {
        let cache = cache::open(&config.cache).map_err(|error| error.to_string())?;
        let until = tokio::time::Instant::now() + CACHE_WITHIN;
        // It connects by itself in the background: the first questions may come too early.
        loop {
            match cache.get(Incarnation(Uuid::nil()), &[KeyHash([0; 16])]).await {
                Ok(_) => return Ok(()),
                Err(error) if tokio::time::Instant::now() > until => return Err(error.to_string()),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    if let Err(error) = asked.await {
        unreachable.push(Problem::new("cache.url", format!("({shown}): {error}")));
    }
}
