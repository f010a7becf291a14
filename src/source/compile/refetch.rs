//! Where a resource's current state is asked for, and how the answer is read.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use tidegate_actors::rules::order::{Merge, OnGap, Policy};

use super::Compiler;
use crate::source::Problem;
use crate::source::reference::Reference;
use crate::source::refetch::{Piece, RefetchRule};
use crate::source::rules::{StateRule, VersionPart};
use crate::source::spec::{ByteSize, OnGoneSpec, RefetchSpec, SourceSpec, Span};
use crate::source::wants::Wants;

const MS: Duration = Duration::from_millis(1);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_DEFAULT: usize = 1024 * 1024;
const ANSWER_BYTES_MIN: usize = 1024;
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Headers that the client decides.
const NOT_OURS: [&str; 6] = ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade"];

impl Compiler {
    /// The settings of `refetch`; `rules` are the source's, some of which may ask for a fetch.
    pub(super) fn refetch(&mut self, spec: &SourceSpec, rules: &[&StateRule]) -> Option<RefetchRule> {
        let refetch = spec.refetch.as_ref()?;
        let asking = rules.iter().find(|rule| asks(rule));
        if asking.is_none() {
            let message = "is stated, and nothing asks: use the policy `refetch`, or `on_gap = \"refetch\"`";
            self.problem("refetch", message.to_owned());
        }
        let url = self.url(&refetch.url);
        for name in refetch.headers.keys() {
            let known = name.parse::<actix_web::http::header::HeaderName>();
            if known.is_err() || NOT_OURS.contains(&name.to_ascii_lowercase().as_str()) {
                let message = "is no header that can be sent: correct its name, or take it out";
                self.problem(&format!("refetch.headers.{name}"), message.to_owned());
            }
        }
        // well within the lease of a fetch
        let timeout = refetch.timeout.unwrap_or(Span(TIMEOUT_DEFAULT));
        self.span("refetch.timeout", timeout, 100 * MS, 20_000 * MS, "100ms to 20s");
        let answer_max = refetch.max_answer.unwrap_or(ByteSize(ANSWER_BYTES_DEFAULT));
        if !(ANSWER_BYTES_MIN..=ANSWER_BYTES_MAX).contains(&answer_max.0) {
            let message = format!("must be a size, 1KiB to 16MiB, got {answer_max}");
            self.problem("refetch.max_answer", message);
        }
        // what is read of an answer is read of nothing else
        let wants = Wants { config: self.wants.config.clone(), ..Wants::default() };
        let mut answer = Self { wants, problems: Vec::new(), items: false };
        let version = answer.answer_version(refetch, spec);
        let merge = asking.map_or(Merge::Replace, |rule| rule.order.merge);
        let state = answer.answer_state(refetch, spec, merge);
        self.problems.append(&mut answer.problems);
        for rule in rules.iter().filter(|rule| asks(rule) && rule.order.policy != Policy::Refetch) {
            self.comparable(&rule.version, &version);
        }
        Some(RefetchRule {
            url: url?,
            wants: answer.wants,
            version,
            state,
            merge,
            timeout: timeout.0,
            answer_max: answer_max.0,
            gone_deletes: refetch.on_gone == Some(OnGoneSpec::Delete),
        })
    }

    fn url(&mut self, text: &str) -> Option<Vec<Piece>> {
        let pieces = pieces(text).map_err(|message| self.problem("refetch.url", message)).ok()?;
        let example: String = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                _ => "x",
            })
            .collect();
        let mut wrong = |message: &str| {
            self.problem("refetch.url", message.to_owned());
            None
        };
        let Ok(url) = Url::parse(&example) else {
            return wrong("must be a whole address such as \"https://api.example.com/things/{id}\"");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("holds a user or a password: send them in a header, from env:NAME or file:/path");
        }
        let of_host = text.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        if of_host.is_none_or(|host| host.contains(['{', '}'])) {
            return wrong("has a part of an event in its host: only path and query may depend on the resource");
        }
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return wrong(
                "must begin with https:// (http:// only for a loopback address): the answer becomes the state",
            );
        }
        if !pieces.contains(&Piece::Id) {
            return wrong("names no {id}: every resource would be asked for at one address");
        }
        Some(pieces)
    }

    fn answer_version(&mut self, refetch: &RefetchSpec, spec: &SourceSpec) -> Vec<VersionPart> {
        let stated = refetch.version.as_ref().or(spec.version.as_ref());
        let version = stated.map_or_else(Vec::new, |parts| self.version("refetch.version", parts));
        if version.is_empty() && self.problems.is_empty() {
            let message = "is missing, and so is `version`: say where the answer states its version";
            self.problem("refetch.version", message.to_owned());
        }
        version
    }

    fn answer_state(&mut self, refetch: &RefetchSpec, spec: &SourceSpec, merge: Merge) -> Option<Reference> {
        if merge == Merge::Replace {
            if refetch.state.is_some() {
                let message = "belongs to `merge = \"fields\"`: state that too, or take it out";
                self.problem("refetch.state", message.to_owned());
            }
            return None;
        }
        let of_events = spec.state.as_ref().filter(|_| spec.batch.is_none());
        let text = refetch.state.as_ref().or(of_events).map_or("body:", String::as_str);
        self.reference("refetch.state", text)
    }

    /// The answer's version is compared with the versions of events, so they must be of one kind.
    fn comparable(&mut self, events: &[VersionPart], answer: &[VersionPart]) {
        let kinds = |parts: &[VersionPart]| parts.iter().map(VersionPart::kind).collect::<Vec<_>>();
        let (events, answer) = (kinds(events), kinds(answer));
        if events != answer && !answer.is_empty() {
            let message = format!(
                "has parts of {}, and the events' version has {}: they are compared, so they must be alike",
                answer.join(", "),
                events.join(", ")
            );
            self.problems.push(Problem::new("refetch.version", message));
        }
    }
}

/// Whether a rule may ask for a fetch.
fn asks(rule: &StateRule) -> bool {
    rule.order.policy == Policy::Refetch || rule.order.wait().is_some_and(|wait| wait.on_gap == OnGap::Refetch)
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err("has a `{` without its `}`: close it".to_owned());
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(match name {
            "id" => Piece::Id,
            "type" => Piece::Kind,
            "tenant" => Piece::Tenant,
            other => return Err(format!("names {{{other}}}, which is none of {{id}}, {{type}} and {{tenant}}")),
        });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
