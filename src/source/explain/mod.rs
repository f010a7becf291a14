//! What becomes of a captured request and why, step by step, and on failure which mistake it likely was.
//!
//! Owns the words for people; every verdict is the one that [`Source::verify`] and [`Source::read`] give. A mistake is
//! looked for by changing one thing, such as the secret's form or the body's blanks, and asking `verify` again: nothing
//! here lets a request in, and the public entrance does not know this module. Promises: no secret and no signature
//! that would have held is in any text; the work is bounded. Touches no store and no network.

mod mistakes;
mod reading;
mod verifying;

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::watch::Watch;
use super::{Greeting, Reading, Reason, Request, ResolvedConfig, ResolvedSecret, Source, SourceSpec, UnpackFault};

pub use super::verify::layout;
pub use mistakes::Mistake;

/// A request with what it borrows elsewhere.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The tenant the path names.
    pub path_tenant: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Bytes,
    /// When it is judged: milliseconds since 1970.
    pub now_ms: i64,
}

/// A source as it is configured.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// Its rules.
    pub spec: &'a SourceSpec,
    /// Its secrets.
    pub secrets: &'a [ResolvedSecret],
    /// The values of its `config`.
    pub config: &'a ResolvedConfig,
}

/// What is to be explained.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The source that the request is for.
    pub source: &'a Source,
    /// The same as it is configured.
    pub configured: Configured<'a>,
    /// The other sources of the settings.
    pub others: &'a [Configured<'a>],
    /// The request.
    pub sent: &'a Sent,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Well.
    Good,
    /// Here the request fails.
    Bad,
    /// Neither: something to know.
    Note,
}

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is looked at.
    pub what: String,
    /// How it went.
    pub mark: Mark,
    /// What was found.
    pub says: String,
    /// More of it, line by line.
    pub details: Vec<String>,
}

/// Where the way ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The content encoding is not taken.
    Encoding,
    /// The body is larger than the source takes.
    TooLarge,
    /// The body could not be unpacked.
    NotUnpacked,
    /// It is not authentic.
    Refused(Reason),
    /// Its content type is not taken.
    ContentType,
    /// Authentic and empty.
    Empty,
    /// A handshake, answered with this status.
    Greeted(u16),
    /// A handshake that is refused with this status.
    GreetingRefused(u16, &'static str),
    /// No event by its method: someone looks whether the source is there.
    Probe,
    /// One event.
    Event,
    /// Several, and how many of them go to quarantine.
    Batch {
        /// All items.
        items: usize,
        /// Those that cannot be used.
        unusable: usize,
    },
    /// Authentic and not usable: the code of quarantine.
    Unusable(&'static str),
}

/// The whole way, and what went wrong on it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The steps.
    pub steps: Vec<Step>,
    /// Where it ends.
    pub end: End,
    /// What was likely done wrong, the surest first.
    pub mistakes: Vec<Mistake>,
}

impl Sent {
    /// The request, to be judged.
    #[must_use]
    pub fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.target,
            path_tenant: self.path_tenant.as_deref(),
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
        }
    }
}

impl Step {
    /// A step.
    pub fn new(what: impl Into<String>, mark: Mark, says: impl Into<String>) -> Self {
        Self { what: what.into(), mark, says: says.into(), details: Vec::new() }
    }

    /// The same with more to say.
    #[must_use]
    pub fn with(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }
}

/// Explains what becomes of a request.
#[must_use]
pub fn explain(case: &Case<'_>) -> Explanation {
    let mut steps = Vec::new();
    let end = way(case, &mut steps);
    let mistakes = mistakes::likely(case, &end);
    Explanation { steps, end, mistakes }
}

/// The same for a request that is no event by its method.
#[must_use]
pub fn look(case: &Case<'_>) -> Explanation {
    let mut steps = Vec::new();
    let end = match case.source.greet(&case.sent.request()) {
        Some(greeting) => greeted(&greeting, "without a signature", &mut steps),
        None => {
            let says = format!("{}: no handshake of this source, so it is answered that it is there", case.sent.method);
            steps.push(Step::new("method", Mark::Note, says));
            End::Probe
        }
    };
    Explanation { steps, end, mistakes: Vec::new() }
}

/// The way of a request in the order in which the public entrance looks at it.
fn way(case: &Case<'_>, steps: &mut Vec<Step>) -> End {
    let (source, sent) = (case.source, case.sent);
    if let Some(end) = packing(case, steps) {
        return end;
    }
    if let Some(greeting) = source.greet(&sent.request()) {
        return greeted(&greeting, "without a signature", steps);
    }
    let body = match source.signed_bytes(&sent.headers, sent.body.clone()) {
        Ok(body) => body,
        Err(fault) => {
            steps.push(Step::new("encoding", Mark::Bad, fault.to_string()));
            return if fault == UnpackFault::TooLarge { End::TooLarge } else { End::NotUnpacked };
        }
    };
    let request = Request { body: &body, ..sent.request() };
    let verdict = source.verify(&request);
    verifying::steps(case, &request, verdict.as_ref().err().copied(), steps);
    let verified = match verdict {
        Ok(verified) => verified,
        Err(refusal) => return End::Refused(refusal.reason),
    };
    if !source.takes_content_type(&sent.headers) {
        let taken = source.content_types.join(", ");
        steps.push(Step::new("content type", Mark::Bad, format!("this source takes {taken}: see `content_types`")));
        return End::ContentType;
    }
    let watch = Watch::default();
    let read = source.read_watched(&request, &verified, &|| EventId(Uuid::nil()), Some(&watch));
    match read {
        Reading::Greeting(greeting) => greeted(&greeting, "after the signature", steps),
        read => reading::steps(case, read, &watch.into_sights(), steps),
    }
}

/// Size and content encoding, which are judged before anything else is looked at.
fn packing(case: &Case<'_>, steps: &mut Vec<Step>) -> Option<End> {
    let (source, sent) = (case.source, case.sent);
    let most = source.max_body();
    if sent.body.len() > most {
        let says = format!("{} bytes, and this source takes {most}: raise `max_body`", sent.body.len());
        steps.push(Step::new("body", Mark::Bad, says));
        return Some(End::TooLarge);
    }
    let encoding = sent.headers.get("content-encoding").map(|value| String::from_utf8_lossy(value.as_bytes()));
    if !source.takes_encoding(&sent.headers) {
        let name = encoding.unwrap_or_default();
        let says = format!("{name:?} is not taken: state `content_encoding` if the sender cannot send plain bodies");
        steps.push(Step::new("encoding", Mark::Bad, says));
        return Some(End::Encoding);
    }
    if let Some(name) = encoding {
        let signed =
            if source.coding.signed_decoded(&name) { "the unpacked bytes are" } else { "the bytes as sent are" };
        steps.push(Step::new("encoding", Mark::Good, format!("{name}: {signed} what is signed")));
    }
    None
}

fn greeted(greeting: &Greeting, when: &str, steps: &mut Vec<Step>) -> End {
    match greeting {
        Greeting::Answer(greeted) => {
            let mut details = Vec::new();
            if let Some(url) = &greeted.get {
                let address = url.split('?').next().unwrap_or_default();
                details.push(format!("before the answer {address} is fetched; here it is not"));
            }
            if greeted.learn.is_some() {
                details.push("before the answer its secret is written to `setup.secret_to`; here it is not".to_owned());
            }
            let says = format!("the handshake {:?}, answered {when} and not kept", greeted.name);
            steps.push(Step::new("handshake", Mark::Good, says).with(details));
            End::Greeted(greeted.status)
        }
        Greeting::Refused { name, status, why } => {
            let says = format!("the handshake {name:?}, refused: {why}");
            steps.push(Step::new("handshake", Mark::Bad, says));
            End::GreetingRefused(*status, why)
        }
    }
}
