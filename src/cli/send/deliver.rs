//! One delivery as a sender makes it: signed anew for each attempt, tried again when asked to come back.

use std::cell::Cell;
use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::Method;
use serde::Deserialize;
use tidegate_actors::ports::Clock as _;
use tokio::time::Instant;

use super::super::args::SendArgs;
use super::super::{Failure, innermost, reachable};
use super::plan::Prepared;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::config::redact::printable;
use crate::source::{Draft, Request, SignError, Signing, Source};

/// How long one attempt may take.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The longest wait that an answer may ask for.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The least wait before the first new attempt; doubled each time.
const WAIT_FIRST: Duration = Duration::from_millis(200);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How a delivery ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) end: End,
    /// Attempts after the first.
    pub(super) retries: u32,
    /// What the last attempt took.
    pub(super) took: Duration,
}

/// The end of a delivery.
#[derive(Debug)]
pub(super) enum End {
    /// An answer.
    Answered {
        status: u16,
        /// The verdict, or the code of a refusal, or `-`.
        word: String,
        tie: bool,
        conflict: bool,
    },
    /// No answer.
    Unreachable(String),
}

/// What is read of an answer; a body that is something else says nothing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    status: serde_json::Value,
    code: Option<String>,
    tie: bool,
    conflict: bool,
}

/// Delivers to one source of one server.
pub(super) struct Sender {
    client: reqwest::Client,
    url: reqwest::Url,
    tenant: Option<String>,
    source: Source,
    clock: SystemClock,
    retries: u32,
    answered: Cell<bool>,
}

impl Sender {
    /// `tenant` is the one that stands in the path.
    pub(super) fn new(args: &SendArgs, config: &Config, source: Source, tenant: Option<&str>) -> Result<Self, Failure> {
        let base = args.url.clone().unwrap_or_else(|| format!("http://{}", reachable(config.server.listen)));
        let path = tenant.map_or_else(String::new, |tenant| format!("/{tenant}"));
        let text = format!("{}/in/{}{path}", base.trim_end_matches('/'), args.source);
        let url = reqwest::Url::parse(&text).ok().filter(reqwest::Url::has_host);
        let url = url.ok_or_else(|| Failure::Usage("--url must be such as http://127.0.0.1:8080".to_owned()))?;
        let mut client = reqwest::Client::builder()
            .timeout(ATTEMPT_WITHIN)
            .connect_timeout(CONNECT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::from(args.concurrency));
        if is_local(&url) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| Failure::Usage(format!("no HTTP client: {error}")))?;
        Ok(Self {
            client,
            url,
            tenant: tenant.map(str::to_owned),
            source,
            clock: SystemClock::new(),
            retries: args.retries.into(),
            answered: Cell::new(false),
        })
    }

    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Delivers one event. An error means it cannot be signed at all.
    pub(super) async fn deliver(&self, event: &Prepared) -> Result<Outcome, SignError> {
        let mut retries = 0;
        loop {
            let request = self.signed(event)?;
            let began = Instant::now();
            let answer = self.attempt(request).await;
            let took = began.elapsed();
            let (end, wait) = match answer {
                Ok((end, wait)) => {
                    self.answered.set(true);
                    (end, wait)
                }
                // A server that never answered is not there; one that did is on its way back.
                Err(error) => (End::Unreachable(innermost(&error)), self.answered.get().then_some(Duration::ZERO)),
            };
            match wait {
                Some(asked) if retries < self.retries => {
                    let own = WAIT_FIRST.saturating_mul(1 << retries.min(16));
                    tokio::time::sleep(asked.max(own).min(WAIT_MAX)).await;
                    retries += 1;
                }
                _ => return Ok(Outcome { end, retries, took }),
            }
        }
    }

    fn draft(&self, event: &Prepared) -> Result<(reqwest::Url, Draft), SignError> {
        // what the server sees as the request's target is what is signed
        let mut url = self.url.clone();
        url.set_query(Some(event.query.as_str()).filter(|query| !query.is_empty()));
        let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let request = Request {
            method: &Method::POST,
            target: &target,
            path_tenant: self.tenant.as_deref(),
            headers: &event.headers,
            body: &event.body,
            now_ms: self.clock.now_ms(),
        };
        let draft = self.source.signed(&Signing { request, id: &event.id, kind: "" })?;
        url.set_query(draft.target.split_once('?').map(|(_, query)| query));
        Ok((url, draft))
    }

    fn signed(&self, event: &Prepared) -> Result<reqwest::RequestBuilder, SignError> {
        let (url, draft) = self.draft(event)?;
        let mut builder = self.client.post(url).body(draft.body);
        for (name, value) in &draft.headers {
            builder = builder.header(name.as_str(), value.as_bytes());
        }
        Ok(builder)
    }

    /// The request as HTTP/1.1 has it, signed now.
    pub(super) fn text(&self, event: &Prepared) -> Result<Vec<u8>, SignError> {
        let (url, draft) = self.draft(event)?;
        let mut headers: Vec<(&str, &[u8])> =
            draft.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        headers.sort_unstable();
        let length = draft.body.len().to_string();
        let host = url.authority();
        headers.splice(0..0, [("host", host.as_bytes()), ("content-length", length.as_bytes())]);
        let mut text = format!("POST {} HTTP/1.1\r\n", draft.target).into_bytes();
        for (name, value) in headers {
            text.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&draft.body);
        Ok(text)
    }

    /// One attempt: how it ended, and how long to wait when it is to be tried again.
    async fn attempt(&self, request: reqwest::RequestBuilder) -> Result<(End, Option<Duration>), reqwest::Error> {
        let mut response = request.send().await?;
        let status = response.status().as_u16();
        let wait = matches!(status, 429 | 503).then(|| retry_after(response.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            let room = ANSWER_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == ANSWER_BYTES_MAX {
                break;
            }
        }
        let answer: Answer = serde_json::from_slice(&body).unwrap_or_default();
        let word = answer.code.as_deref().or(answer.status.as_str()).unwrap_or("-");
        let end = End::Answered { status, word: printable(word, 40), tie: answer.tie, conflict: answer.conflict };
        Ok((end, wait))
    }
}

fn retry_after(headers: &reqwest::header::HeaderMap) -> Duration {
    let seconds = headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

fn is_local(url: &reqwest::Url) -> bool {
    let is_loopback = |host: &str| host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    url.host_str().is_some_and(|host| host == "localhost" || is_loopback(host))
}
