//! The public listener: what all its workers share, and where a request goes.
//!
//! Owns the table of entrances (one per source, and one for names that are none), and the switch that
//! says "draining". Promises that a panic in a handler ends as a 500 and that the process lives. Each worker
//! thread has one `Ingress` of its own. Knows nothing of what an event is.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_http::Response;
use actix_server::Server;
use actix_web::body::BoxBody;
use actix_web::dev::RequestHead;
use actix_web::http::Method;
use actix_web::web::{self, Payload};
use actix_web::{App, HttpRequest, HttpResponse};
use futures_util::FutureExt as _;
use prometheus_client::registry::Registry;
use tidegate_actors::ports::Clock;
use tidegate_actors::{Engine, Ingress, Status};
use tokio::time::Instant;

use super::body::BodyLimits;
use super::figures::{Figures, SourceFigures, UNKNOWN};
use super::rate::Rate;
use super::route::Door;
use super::{ListenSettings, health, ingest, listen, problem};
use crate::source::{Confirm, KeyPort, MAX_BODY_DEFAULT, Source};
use crate::telemetry::emit;

/// Limits that hold for every request.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The largest body, where the source states none.
    pub body_bytes: usize,
    /// The longest time for a body.
    pub body_within: Duration,
    /// The fewest bytes a second of a body.
    pub body_bytes_per_second: u64,
    /// The largest believable difference between this clock and the store's.
    pub clock_tolerance: Duration,
    /// The longest time until the answer to a batch.
    pub answer_within: Duration,
}

/// What a gate is made of.
pub struct GateParts {
    /// The engine behind it.
    pub engine: Engine,
    /// Wall time and ids.
    pub clock: Arc<dyn Clock>,
    /// Asks the owners of keys.
    pub keys: Arc<dyn KeyPort>,
    /// The configured sources.
    pub sources: Vec<Arc<Source>>,
    /// Fetches the addresses that handshakes name.
    pub confirm: Arc<dyn Confirm>,
    /// Limits of requests.
    pub limits: RequestLimits,
}

/// One source, as the listener sees it.
pub(super) struct Entrance {
    /// Verification and extraction; `None` where there is no such source.
    pub(super) source: Option<Arc<Source>>,
    /// Its figures.
    pub(super) figures: SourceFigures,
    /// Its rate limit, if it has one.
    pub(super) rate: Option<Rate>,
    /// Limits of its bodies.
    pub(super) body: BodyLimits,
}

/// What all workers share.
pub struct Gate {
    entrances: HashMap<Arc<str>, Entrance>,
    nowhere: Entrance,
    /// What all entrances count together.
    pub(super) figures: Figures,
    started: Instant,
    draining: AtomicBool,
    clock_tolerance_ms: i64,
    /// The longest time until the answer to a batch.
    pub(super) answer_within: Duration,
    /// Fetches the addresses that handshakes name.
    pub(super) confirm: Arc<dyn Confirm>,
    /// The engine behind it.
    pub(super) engine: Engine,
    /// Wall time and ids.
    pub(super) clock: Arc<dyn Clock>,
    /// Asks the owners of keys.
    pub(super) keys: Arc<dyn KeyPort>,
}

impl Gate {
    /// Puts a gate together and registers its figures.
    #[must_use]
    pub fn new(parts: GateParts, registry: &mut Registry) -> Self {
        let figures = Figures::new(registry);
        let limits = parts.limits;
        let body = |bytes: usize| BodyLimits {
            bytes: bytes.min(limits.body_bytes),
            within: limits.body_within,
            bytes_per_second: limits.body_bytes_per_second,
        };
        let nowhere = Entrance { source: None, figures: figures.of(UNKNOWN), rate: None, body: body(MAX_BODY_DEFAULT) };
        let entrance = |source: Arc<Source>| Entrance {
            figures: figures.of(source.name()),
            rate: source.rate().map(|rate| Rate::new(rate.per_second, rate.burst.unwrap_or(rate.per_second))),
            body: body(source.max_body()),
            source: Some(source),
        };
        let entrances = parts.sources.into_iter().map(|source| (Arc::clone(source.name()), entrance(source))).collect();
        Self {
            entrances,
            nowhere,
            figures,
            started: Instant::now(),
            draining: AtomicBool::new(false),
            clock_tolerance_ms: i64::try_from(limits.clock_tolerance.as_millis()).unwrap_or(i64::MAX),
            answer_within: limits.answer_within,
            confirm: parts.confirm,
            engine: parts.engine,
            clock: parts.clock,
            keys: parts.keys,
        }
    }

    /// From now on every new event is refused, and `/readyz` says so.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether new events are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The switch itself, for whoever waits.
    pub(super) fn draining(&self) -> &AtomicBool {
        &self.draining
    }

    /// The entrance of this name; where there is none, one that leads nowhere and costs as much.
    pub(super) fn entrance(&self, name: &str) -> &Entrance {
        self.entrances.get(name).unwrap_or(&self.nowhere)
    }

    /// Whether our own clock is in doubt (I13).
    pub(super) fn clock_is_suspect(&self) -> bool {
        self.engine.status().clock_difference_ms.abs() > self.clock_tolerance_ms
    }

    /// Why an event would not be taken now, with what the engine says of `status`; empty when it would.
    pub(super) fn not_ready(&self, status: &Status) -> Vec<String> {
        let mut reasons = status.reasons.clone();
        if self.is_draining() && reasons.is_empty() {
            reasons.push("shutting down".to_owned());
        }
        let difference_ms = status.clock_difference_ms;
        if difference_ms.abs() > self.clock_tolerance_ms {
            reasons.push(format!(
                "the clock is in doubt: the store's is {difference_ms} ms ahead of this node's, and {} ms are tolerated",
                self.clock_tolerance_ms
            ));
        }
        reasons
    }

    /// Time since this gate was made.
    pub(super) fn up(&self) -> Duration {
        self.started.elapsed()
    }
}

/// What one worker thread has.
pub(super) struct Edge {
    /// Shared by all workers.
    pub(super) gate: Arc<Gate>,
    /// This thread's own way into the engine.
    pub(super) ingress: Ingress,
}

/// Serves webhooks and health.
pub(super) fn serve(settings: ListenSettings, listener: TcpListener, gate: Arc<Gate>) -> io::Result<Server> {
    let for_early = Arc::clone(&gate);
    let app = move || {
        let edge = Rc::new(Edge { ingress: gate.engine.ingress(), gate: Arc::clone(&gate) });
        App::new().default_service(web::to(move |request: HttpRequest, payload: Payload| {
            let edge = Rc::clone(&edge);
            async move { unharmed(&edge, &request, payload).await }
        }))
    };
    let early = move || {
        let gate = Arc::clone(&for_early);
        move |head: &RequestHead| before_continue(&gate, head)
    };
    listen::serve(settings, listener, app, early)
}

/// Answers, whatever happens inside.
async fn unharmed(edge: &Edge, request: &HttpRequest, payload: Payload) -> HttpResponse {
    match AssertUnwindSafe(answer(edge, request, payload)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            emit(edge.gate.figures.panicked());
            problem::INTERNAL.answer()
        }
    }
}

async fn answer(edge: &Edge, request: &HttpRequest, payload: Payload) -> HttpResponse {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match Door::of(request.path()) {
        Door::Ingest { source, tenant } => match *request.method() {
            Method::POST => ingest::take(edge, request, payload, source, tenant).await,
            Method::GET | Method::HEAD | Method::OPTIONS => ingest::look(edge, request, source, tenant).await,
            _ => problem::method_not_allowed(true),
        },
        Door::Health if reads => health::alive(),
        Door::Ready if reads => health::ready(&edge.gate),
        Door::Health | Door::Ready => problem::method_not_allowed(false),
        Door::Nowhere => problem::NOT_FOUND.answer(),
    }
}

/// The checks that need no body, for a sender that waits for `100 Continue` before sending one.
fn before_continue(gate: &Gate, head: &RequestHead) -> Result<(), Response<BoxBody>> {
    if let (Door::Ingest { source, .. }, &Method::POST) = (Door::of(head.uri.path()), &head.method) {
        let entrance = gate.entrance(source);
        ingest::check_head(gate, entrance, &head.headers).map_err(|away| Response::from(away.document.answer()))?;
    }
    Ok(())
}
