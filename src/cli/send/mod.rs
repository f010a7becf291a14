//! `send SOURCE`: plays the source's sender.
//!
//! Owns the run: what to send, in which order, how fast, and the count of answers. Promises that a seed
//! makes the same events again. Signs through the source's own rules, so it needs the source's secret, or the
//! private partner of its public key.
//! A server that cannot be reached ends the run; a refusal is counted and the run goes on.

mod deliver;
mod event;
mod like;
mod made;
mod nested;
mod place;
mod plan;
mod report;
mod steps;
mod times;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use actix_web::http::header::{HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::args::SendArgs;
use super::{Exit, Failure};
use crate::config::suggest::closest;
use crate::config::{Config, SourceEntry};
use crate::source::spec::{Scheme, SecretForm};
use crate::source::{ResolvedSecret, SignError, Source, SourceSpec};
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
    let spec = entry.spec.with_preset().map_err(|problem| Failure::Usage(problem.to_string()))?;
    let source = source(args, entry, &spec)?;
    let in_path = args.tenant.as_deref().filter(|_| spec.tenant.as_deref().is_none_or(|place| place == "path"));
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let plan = plan(args, entry, in_path, seed)?;
    let sender = Sender::new(args, config, source, in_path)?;
    if args.dry_run {
        return show(args, &plan, &sender);
    }
    let report = deliver_all(args, &plan, &sender).await?;
    let run = Run { source: &args.source, url: sender.url(), seed: args.file.is_none().then_some(seed) };
    report.print(&mut io::stdout().lock(), args.json, &run)?;
    Ok(report.exit())
}

/// The source as its sender knows it.
fn source(args: &SendArgs, entry: &SourceEntry, spec: &SourceSpec) -> Result<Source, Failure> {
    let compiled = match &args.sign_with {
        None => Source::compile_with(spec, &entry.secrets, &entry.config),
        Some(path) => {
            let unreadable =
                |error| Failure::Usage(format!("--sign-with {}: it cannot be read: {error}", path.display()));
            let text = read_file(path).map_err(unreadable)?;
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            let secret =
                ResolvedSecret { key: "--sign-with".to_owned(), tenant: None, value: text.into(), until_ms: None };
            Source::compile_with(&signing(spec), &[secret], &entry.config)
        }
    };
    compiled.map_err(|problems| Failure::Usage(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
}

/// The rules under which a private key signs what they check.
fn signing(spec: &SourceSpec) -> SourceSpec {
    let mut spec = SourceSpec { preset: None, secrets_file: None, ..spec.clone() };
    if let Some(verify) = &mut spec.verify {
        let scheme = verify.algorithm.or(verify.scheme);
        // a key of the Standard Webhooks is no PEM
        if scheme.is_some_and(Scheme::has_public_keys) {
            verify.secret = Some(SecretForm::Pem);
            (verify.secret_prefix, verify.key_prefix) = (None, None);
        }
        (verify.keys, verify.certificate) = (None, None);
    }
    spec
}

/// Prints the requests in place of sending them.
fn show(args: &SendArgs, plan: &Plan, sender: &Sender) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    for &event in &plan.order {
        let text = sender.text(&plan.events[event]).map_err(|error| unsigned(args, &error))?;
        out.write_all(&text)?;
    }
    out.flush()?;
    Ok(Exit::Good)
}

fn unsigned(args: &SendArgs, error: &SignError) -> Failure {
    Failure::Usage(format!("{} cannot be signed for: {error}", args.source))
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

fn plan(args: &SendArgs, entry: &SourceEntry, in_path: Option<&str>, seed: u64) -> Result<Plan, Failure> {
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
            let tenant = args.tenant.as_deref().filter(|_| in_path.is_none());
            let (shuffle, duplicate) = (args.shuffle, args.duplicate);
            let shape = Shape { count: args.count, resources, shuffle, duplicate, tenant };
            Plan::generate(&entry.spec, &shape, seed).map_err(Failure::Usage)?
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
        report.count(outcome.map_err(|error| unsigned(args, &error))?);
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
