//! `send SOURCE`: plays the source's sender.
//!
//! Owns the run: what to send, in which order, how fast, and the count of answers. Promises that a seed
//! makes the same events again. Signs through the source's own rules, so it needs the source's secret.
//! A server that cannot be reached ends the run; a refusal is counted and the run goes on.

mod deliver;
mod generic;
mod plan;
mod report;
mod templates;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::args::SendArgs;
use super::{Exit, Failure};
use crate::config::suggest::closest;
use crate::config::{Config, SourceEntry};
use crate::source::Source;
use deliver::Sender;
use plan::{Plan, Prepared, Shape};
use report::{Report, Run};

/// The most bytes of a body from a file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How often a run without a terminal says how far it is.
const SAY_EVERY: Duration = Duration::from_secs(2);

/// Sends events and counts the answers.
pub(super) async fn run(args: &SendArgs, config: &Config) -> Result<Exit, Failure> {
    let entry = entry(&args.source, config)?;
    let source = Source::compile(&entry.spec, &entry.secrets)
        .map_err(|problems| Failure::Usage(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let plan = plan(args, entry, seed)?;
    let sender = Sender::new(args, config, source)?;
    let report = deliver_all(args, &plan, &sender).await?;
    let run = Run { source: &args.source, url: sender.url(), seed: args.file.is_none().then_some(seed) };
    report.print(&mut io::stdout().lock(), args.json, &run)?;
    Ok(report.exit())
}

#[expect(clippy::disallowed_methods, reason = "a run without --seed is meant to differ; the seed is printed")]
fn fresh_seed() -> u64 {
    // readers of JSON keep 53 bits of a number
    rand::random::<u64>() >> 11
}

fn entry<'a>(name: &str, config: &'a Config) -> Result<&'a SourceEntry, Failure> {
    let on: Vec<&str> =
        config.sources.iter().filter(|entry| entry.enabled).map(|entry| entry.spec.name.as_str()).collect();
    let on = if on.is_empty() { "none is on".to_owned() } else { format!("on: {}", on.join(", ")) };
    match config.sources.iter().find(|entry| entry.spec.name == name) {
        Some(entry) if entry.enabled => Ok(entry),
        Some(_) => {
            let hint = "so its secret was not read: set enabled = true in a settings file";
            Err(Failure::Usage(format!("the source {name} is off, {hint} ({on})")))
        }
        None => {
            let meant = closest(name, config.sources.iter().map(|entry| entry.spec.name.as_str()));
            let hint = meant.map_or_else(
                || "`tidegate check` lists what there is".to_owned(),
                |meant| format!("did you mean {meant}?"),
            );
            Err(Failure::Usage(format!("no source is named {name} in the settings ({on}); {hint}")))
        }
    }
}

fn plan(args: &SendArgs, entry: &SourceEntry, seed: u64) -> Result<Plan, Failure> {
    let extra = args.headers.iter().map(|line| header(line)).collect::<Result<Vec<_>, _>>()?;
    let mut plan = match &args.file {
        Some(path) => {
            let unreadable = |error| Failure::Usage(format!("--file {}: it cannot be read: {error}", path.display()));
            Plan::of_file(&read_file(path).map_err(unreadable)?, args.count, seed)
        }
        None => {
            let resources = match (args.resources, args.versions) {
                (Some(resources), _) => resources,
                (None, Some(versions)) => args.count.div_ceil(versions),
                (None, None) => args.count.div_ceil(10),
            };
            let shape = Shape { count: args.count, resources, shuffle: args.shuffle, duplicate: args.duplicate };
            let spec = entry.spec.with_preset().map_err(|problem| Failure::Usage(problem.to_string()))?;
            Plan::generate(&spec, &shape, seed).map_err(Failure::Usage)?
        }
    };
    for event in &mut plan.events {
        for (name, value) in &extra {
            event.headers.insert(name.clone(), value.clone());
        }
    }
    Ok(plan)
}

fn read_file(path: &Path) -> io::Result<Bytes> {
    use std::io::Read as _;
    let mut body = Vec::new();
    let length = std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut body)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is longer than 64 MiB"));
    }
    Ok(body.into())
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let parsed = line.split_once(':').and_then(|(name, value)| {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.trim()).ok()?))
    });
    parsed.ok_or_else(|| Failure::Usage("--header must be \"NAME: VALUE\" in plain characters".to_owned()))
}

/// The headers of a JSON body.
fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

async fn deliver_all(args: &SendArgs, plan: &Plan, sender: &Sender) -> Result<Report, Failure> {
    let total = plan.order.len() as u64;
    let bar = bar(total, args.json);
    let started = Instant::now();
    let mut report = Report::new(total);
    let mut said = started;
    let gap = args.rate.map(|rate| Duration::from_secs(1) / rate);
    let deliveries = futures_util::stream::iter(plan.order.iter().enumerate()).map(|(number, &event)| {
        let due = gap.map(|gap| started + gap.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX)));
        let event: &Prepared = &plan.events[event];
        async move {
            if let Some(due) = due {
                tokio::time::sleep_until(due).await;
            }
            sender.deliver(event).await
        }
    });
    let mut answers = std::pin::pin!(deliveries.buffer_unordered(usize::from(args.concurrency)));
    loop {
        let outcome = tokio::select! {
            outcome = answers.next() => outcome,
            _ = tokio::signal::ctrl_c() => break,
        };
        let Some(outcome) = outcome else { break };
        report.count(outcome.map_err(|error| Failure::Usage(error.to_string()))?);
        bar.inc(1);
        if bar.is_hidden() && said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(io::stderr().lock(), "{} of {total} sent", report.done());
        }
        // Nobody there at all: more of the same tells nothing new.
        if report.nobody_there() {
            break;
        }
    }
    bar.finish_and_clear();
    report.took(started.elapsed());
    Ok(report)
}

fn bar(total: u64, json: bool) -> ProgressBar {
    if json || total < 2 || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
