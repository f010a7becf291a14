//! Asks providers for the current state of a resource.
//!
//! Owns the HTTP client for it. Promises: only addresses that the settings name are asked, by GET, over TLS
//! or on this machine; redirects are not followed; an answer is bounded in time and size; no secret of a
//! header is in an error's text. Knows nothing of when to ask and how often: that is the engine's. Whatever
//! comes back, also nothing at all, is an outcome.

mod confirm;
mod keys;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header as web;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use tidegate_actors::ports::{Clock, FetchClaim, FetchOutcome, Fetcher, NoFetcher};

pub use confirm::Confirmer;

use crate::source::{Answered, FetchLimits, Source};
pub use keys::open_keys;

/// How long a connection may take to open; the whole question has its own limit.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Idle connections kept for each provider.
const IDLE_MAX: usize = 4;

/// The adapter cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot ask providers (`source.{source_name}.refetch`): {why}")]
pub struct OpenError {
    /// The source.
    pub source_name: String,
    /// What is wrong.
    pub why: String,
}

/// A source that may ask, and what it sends along.
pub struct Provider {
    /// The source, with its `refetch` settings.
    pub source: Arc<Source>,
    /// Headers by name, their secrets fetched.
    pub headers: Vec<(String, SecretString)>,
    /// Headers for the owner of its keys.
    pub key_headers: Vec<(String, SecretString)>,
}

/// Makes the adapter; sources without `refetch` settings are left out.
pub fn open(providers: Vec<Provider>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Fetcher>, OpenError> {
    let mut targets = HashMap::new();
    for Provider { source, headers, .. } in providers {
        let Some(limits) = source.fetch_limits() else { continue };
        let failed = |why: String| OpenError { source_name: source.name().to_string(), why };
        let headers = header_map(headers).map_err(failed)?;
        targets.insert(Arc::clone(source.name()), Target { limits, headers, source });
    }
    let Some(any) = targets.keys().next() else { return Ok(Arc::new(NoFetcher)) };
    // An error: the process has a provider of TLS already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |error: reqwest::Error| OpenError { source_name: any.to_string(), why: error.to_string() };
    let builder = || {
        Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(IDLE_MAX)
    };
    let (outside, here) = (builder().build().map_err(failed)?, builder().no_proxy().build().map_err(failed)?);
    Ok(Arc::new(HttpFetcher { outside, here, targets, clock }))
}

fn header_map(headers: Vec<(String, SecretString)>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("application/json"));
    map.insert(USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in headers {
        let known: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header name"))?;
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| format!("the value of {name} cannot be a header's (it is not shown)"))?;
        value.set_sensitive(true);
        map.insert(known, value);
    }
    Ok(map)
}

struct HttpFetcher {
    /// By way of a proxy, where the environment names one.
    outside: Client,
    /// For this machine's own addresses.
    here: Client,
    targets: HashMap<Arc<str>, Target>,
    clock: Arc<dyn Clock>,
}

struct Target {
    source: Arc<Source>,
    headers: HeaderMap,
    limits: FetchLimits,
}

/// What is wrong with an answer.
struct Failed {
    why: String,
    retry_after: Option<Duration>,
    last: bool,
}

impl Failed {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), retry_after: None, last: false }
    }

    fn last(why: impl Into<String>) -> Self {
        Self { last: true, ..Self::new(why) }
    }
}

#[async_trait(?Send)]
impl Fetcher for HttpFetcher {
    async fn fetch(&self, claim: &FetchClaim) -> FetchOutcome {
        match self.ask(claim).await {
            Ok(event) => FetchOutcome::State(Box::new(event)),
            Err(Failed { why, retry_after, last }) => FetchOutcome::Failed { why, retry_after, last },
        }
    }
}

impl HttpFetcher {
    async fn ask(&self, claim: &FetchClaim) -> Result<tidegate_actors::rules::event::Event, Failed> {
        let target = self.targets.get(claim.source.as_str());
        let target =
            target.ok_or_else(|| Failed::last(format!("source {} has no `refetch` settings", claim.source)))?;
        let url = target.source.fetch_url(claim).map_err(Failed::last)?;
        let url = Url::parse(&url).map_err(|error| Failed::last(format!("the address cannot be made: {error}")))?;
        let client = if is_here(&url) { &self.here } else { &self.outside };
        let request = client.get(url).headers(target.headers.clone()).timeout(target.limits.timeout);
        let response = request.send().await.map_err(|error| broken(&error, target.limits))?;
        let status = response.status();
        let gone = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) && target.limits.gone_deletes;
        if !status.is_success() && !gone {
            return Err(self.refused(&response));
        }
        let headers = web_headers(response.headers());
        let body = if gone { Bytes::new() } else { read(response, target.limits).await? };
        if body.is_empty() && !gone {
            return Err(Failed::new(format!("{status} without a body")));
        }
        let answer = Answered { headers: &headers, body: &body, gone, now_ms: self.clock.now_ms() };
        target.source.fetched(claim, &answer, self.clock.event_id()).map_err(Failed::new)
    }

    fn refused(&self, response: &Response) -> Failed {
        let status = response.status();
        let hint = match status {
            status if status.is_redirection() => ": redirects are not followed, correct `refetch.url`",
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ": see `refetch.headers`",
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                ": there is no such resource; on_gone = \"delete\" would take that for its deletion"
            }
            _ => "",
        };
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| self.wait(value.to_str().ok()?));
        Failed { why: format!("{status}{hint}"), retry_after, last: false }
    }

    /// `Retry-After` as a number of seconds or as a date.
    fn wait(&self, text: &str) -> Option<Duration> {
        if let Ok(seconds) = text.trim().parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
        let ms = date.as_millisecond().saturating_sub(self.clock.now_ms());
        Some(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    }
}

/// Reads all of an answer, up to its bound.
async fn read(mut response: Response, limits: FetchLimits) -> Result<Bytes, Failed> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error, limits))? {
        if body.len() + chunk.len() > limits.answer_max {
            return Err(Failed::new(format!(
                "the answer is longer than `refetch.max_answer` ({} bytes): raise it",
                limits.answer_max
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn broken(error: &reqwest::Error, limits: FetchLimits) -> Failed {
    if error.is_timeout() {
        return Failed::new(format!("no answer within {} ms", limits.timeout.as_millis()));
    }
    // the innermost cause says it without the address
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failed::new(format!("no answer: {cause}"))
}

fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The same headers in the form that sources read.
fn web_headers(headers: &HeaderMap) -> web::HeaderMap {
    let mut same = web::HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = web::HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, web::HeaderValue::from_bytes(value.as_bytes())) {
            same.append(name, value);
        }
    }
    same
}
