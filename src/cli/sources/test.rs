//! `sources test NAME --file request.http`: what the gate would do with a captured request, step by step.

use std::io::{self, Write};
use std::path::Path;

use secrecy::SecretString;
use serde::Serialize;
use tidegate_actors::ports::Clock as _;

use super::super::output;
use super::super::{Exit, Failure, load};
use super::answer::Answer;
use super::args::TestArgs;
use super::capture::{self, Capture};
use super::wrap;
use crate::clock::SystemClock;
use crate::config;
use crate::fetch::{self, Provider};
use crate::http::problem;
use crate::http::route::Door;
use crate::source::explain::{Case, Configured, End, Explanation, Mark, Mistake, Sent, Step, explain, look};
use crate::source::presets;
use crate::source::{ResolvedConfig, ResolvedSecret, Source, SourceSpec};

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 65 << 20;
const LABEL: usize = 20;

#[derive(Serialize)]
struct TestJson<'a> {
    source: &'a str,
    judged_at: String,
    steps: Vec<StepJson<'a>>,
    mistakes: Vec<MistakeJson<'a>>,
    answer: AnswerJson<'a>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    step: &'a str,
    /// `null`: neither good nor bad.
    good: Option<bool>,
    says: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
}

#[derive(Serialize)]
struct MistakeJson<'a> {
    code: &'a str,
    certain: bool,
    says: &'a str,
    fix: &'a str,
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    status: u16,
    code: &'a str,
    says: &'a str,
}

/// A source with everything it is judged by.
struct Subject {
    spec: SourceSpec,
    secrets: Vec<ResolvedSecret>,
    config: ResolvedConfig,
    key_headers: Vec<(String, SecretString)>,
}

impl Subject {
    fn configured(&self) -> Configured<'_> {
        Configured { spec: &self.spec, secrets: &self.secrets, config: &self.config }
    }
}

/// Explains a request.
pub(super) async fn run(args: &TestArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    let capture = capture(&args.file)?;
    let (subject, others) = subjects(args, file)?;
    let wrong = |problems: Vec<crate::source::Problem>| {
        output::problems(&problems);
        Failure::Settings
    };
    let source = Source::compile_with(&subject.spec, &subject.secrets, &subject.config).map_err(wrong)?;
    let now_ms = args.at.unwrap_or_else(|| SystemClock::new().now_ms());
    let mut steps = Vec::new();
    let elsewhere = road(&source, &capture, &mut steps);
    let path = capture.target.split('?').next().unwrap_or_default();
    let path_tenant = match Door::of(path) {
        Door::Ingest { tenant, .. } => tenant.map(str::to_owned),
        _ => None,
    };
    let Capture { method, target, headers, body, is_cut, .. } = capture;
    let sent = Sent { method, target, path_tenant, headers, body, now_ms };
    let source = if args.fetch { fetched(source, &subject, &sent).await? } else { source };
    let neighbours: Vec<Configured<'_>> = others.iter().map(Subject::configured).collect();
    let case = Case { source: &source, configured: subject.configured(), others: &neighbours, sent: &sent };
    let (explained, answer) = judged(&case);
    steps.extend(explained.steps);
    let answer = match elsewhere {
        Some(answer) => answer,
        None if is_cut => Answer::document(&problem::BODY_INCOMPLETE),
        None => answer,
    };
    let mut out = io::stdout().lock();
    if args.json {
        json(&mut out, source.name(), now_ms, &steps, &explained.mistakes, &answer)?;
    } else {
        print(&mut out, now_ms, &steps, &explained.mistakes, &answer)?;
    }
    Ok(if answer.is_good() { Exit::Good } else { Exit::No })
}

fn capture(path: &Path) -> Result<Capture, Failure> {
    use std::io::Read as _;
    let wrong = |why: String| Failure::Usage(format!("--file {}: {why}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(wrong("it is longer than any body that is taken".to_owned()));
    }
    capture::read(&bytes).map_err(wrong)
}

/// The source, and its neighbours where the settings are read.
fn subjects(args: &TestArgs, file: Option<&Path>) -> Result<(Subject, Vec<Subject>), Failure> {
    if let Some(place) = &args.secret_from {
        return Ok((with_secret(&args.name, place, file)?, Vec::new()));
    }
    let config = load(file).ok_or(Failure::Settings)?;
    let (mut subject, mut others) = (None, Vec::new());
    for entry in config.sources {
        let is_it = entry.spec.name == args.name;
        if is_it && !entry.enabled {
            return Err(Failure::Usage(format!(
                "the source {} is off, so its secrets were not read: set enabled = true, or name one with --secret-from",
                args.name
            )));
        }
        let found =
            Subject { spec: entry.spec, secrets: entry.secrets, config: entry.config, key_headers: entry.key_headers };
        match (is_it, entry.enabled) {
            (true, _) => subject = Some(found),
            (false, true) => others.push(found),
            (false, false) => {}
        }
    }
    let hint = if presets::about(&args.name).is_some() {
        "it is a preset: name its secret with --secret-from"
    } else {
        "`tidegate sources list` lists what there is"
    };
    let subject = subject.ok_or_else(|| Failure::NotFound(format!("no source is named {}; {hint}", args.name)))?;
    Ok((subject, others))
}

/// A source of the settings, or a preset, under another secret; no other secret is read.
fn with_secret(name: &str, place: &str, file: Option<&Path>) -> Result<Subject, Failure> {
    let wrong = |why: String| Failure::Usage(format!("--secret-from {why}"));
    let spec = match config::source_named(file, name) {
        Ok(Some(spec)) => spec,
        Ok(None) if presets::about(name).is_some() => {
            SourceSpec { name: name.to_owned(), preset: Some(name.to_owned()), ..SourceSpec::default() }
        }
        Ok(None) => {
            let hint = "`tidegate sources list` lists what there is";
            return Err(Failure::NotFound(format!("neither a source nor a preset is named {name}; {hint}")));
        }
        Err(problems) => {
            output::problems(&problems);
            return Err(Failure::Settings);
        }
    };
    let environment = config::environment();
    let value = config::secret_at(place, &environment).map_err(wrong)?;
    let config = config::config_values(&spec, &environment).map_err(Failure::Usage)?;
    let secret = |tenant: Option<String>| ResolvedSecret {
        key: "--secret-from".to_owned(),
        tenant,
        value: value.clone(),
        until_ms: None,
    };
    // where tenants have secrets of their own, each is judged by this one
    let tenants: Vec<String> = spec.tenants.iter().map(|tenant| tenant.name().to_owned()).collect();
    let secrets = if tenants.is_empty() {
        vec![secret(None)]
    } else {
        tenants.into_iter().map(|tenant| secret(Some(tenant))).collect()
    };
    Ok(Subject { spec, secrets, config, key_headers: Vec::new() })
}

async fn fetched(source: Source, subject: &Subject, sent: &Sent) -> Result<Source, Failure> {
    let source = std::sync::Arc::new(source);
    let provider = Provider { source: source.clone(), headers: Vec::new(), key_headers: subject.key_headers.clone() };
    let port = fetch::open_keys(&[provider]).map_err(|error| Failure::Usage(error.to_string()))?;
    source.fetch_key(&sent.request(), &*port).await;
    std::sync::Arc::into_inner(source).ok_or_else(|| Failure::Usage("the source is in use".to_owned()))
}

/// Path and method; an answer where the way ends there.
fn road(source: &Source, capture: &Capture, steps: &mut Vec<Step>) -> Option<Answer> {
    for note in &capture.notes {
        steps.push(Step::new("file", Mark::Note, note.clone()));
    }
    let path = capture.target.split('?').next().unwrap_or_default();
    let name = source.name();
    let mut answer = None;
    match Door::of(path) {
        Door::Ingest { source: named, .. } if named == &**name => {
            steps.push(Step::new("path", Mark::Good, format!("{path} leads to the source {name}")));
        }
        Door::Ingest { source: named, .. } => {
            let says = format!("{path} leads to the source {named}; below is what {name} would make of it");
            steps.push(Step::new("path", Mark::Bad, says));
            answer = Some(Answer::document(&problem::UNAUTHORIZED));
        }
        _ => {
            let says = format!("{path} leads to no source: /in/{name} does; below is what {name} would make of it");
            steps.push(Step::new("path", Mark::Bad, says));
            answer = Some(Answer::document(&problem::NOT_FOUND));
        }
    }
    answer
}

/// What becomes of the request, by its method.
fn judged(case: &Case<'_>) -> (Explanation, Answer) {
    let method = case.sent.method.as_str();
    match method {
        "POST" => {
            let explained = explain(case);
            let answer = Answer::of(&explained.end, case.source);
            (explained, answer)
        }
        "GET" | "HEAD" | "OPTIONS" => {
            let explained = look(case);
            let answer = Answer::of(&explained.end, case.source);
            (explained, answer)
        }
        _ => {
            let says = format!("{method} is not taken: events come by POST");
            let steps = vec![Step::new("method", Mark::Bad, says)];
            let explained = Explanation { steps, end: End::Probe, mistakes: Vec::new() };
            (explained, Answer::document(&problem::METHOD_NOT_ALLOWED))
        }
    }
}

fn json(
    out: &mut impl Write,
    source: &str,
    now_ms: i64,
    steps: &[Step],
    mistakes: &[Mistake],
    answer: &Answer,
) -> io::Result<()> {
    let step = |step: &'_ Step| match step.mark {
        Mark::Good => Some(true),
        Mark::Bad => Some(false),
        Mark::Note => None,
    };
    let steps =
        steps.iter().map(|one| StepJson { step: &one.what, good: step(one), says: &one.says, details: &one.details });
    let mistakes =
        mistakes.iter().map(|one| MistakeJson { code: one.code, certain: one.certain, says: &one.says, fix: &one.fix });
    let told = TestJson {
        source,
        judged_at: output::time(now_ms),
        steps: steps.collect(),
        mistakes: mistakes.collect(),
        answer: AnswerJson { status: answer.status, code: &answer.code, says: &answer.says },
    };
    output::json(out, &told)
}

fn print(out: &mut impl Write, now_ms: i64, steps: &[Step], mistakes: &[Mistake], answer: &Answer) -> io::Result<()> {
    wrap::labelled(out, "judged at", LABEL, &output::time(now_ms))?;
    for step in steps {
        let mark = match step.mark {
            Mark::Good => "ok",
            Mark::Bad => "NO",
            Mark::Note => "",
        };
        wrap::labelled(out, &format!("{:<15} {mark}", step.what), LABEL, &step.says)?;
        for line in &step.details {
            wrap::labelled(out, "", LABEL + 2, line)?;
        }
    }
    if !mistakes.is_empty() {
        let heading = if mistakes.iter().any(|one| one.certain) { "what is wrong" } else { "what it may be" };
        writeln!(out, "\n{heading}")?;
        for mistake in mistakes {
            wrap::labelled(out, &format!("  {}", mistake.code), LABEL, &mistake.says)?;
            wrap::labelled(out, "", LABEL, &format!("→ {}", mistake.fix))?;
        }
    }
    writeln!(out)?;
    let says = format!("the gate would answer {} {}: {}", answer.status, answer.code, answer.says);
    wrap::labelled(out, "", 0, &says)
}
