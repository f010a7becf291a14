//! One webhook's way from its head to its answer.
//!
//! Owns the order of the checks, cheapest first: state and headers, rate, room, body, signature, content.
//! Promises that an unknown source costs the same work and gets the same 401 as a wrong signature, that
//! nothing of a request is kept before its signature holds, and that the future may be dropped at any await
//! (a sender that goes away) without harm: what was handed to the engine is finished there. Every way out
//! that keeps nothing is a [`TurnedAway`], counted under a reason of ours and answered by a document.

use std::sync::Arc;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tidegate_actors::Refused;
use tidegate_actors::ports::Clock;
use tokio::time::Instant;

use super::body::{self, BodyFault};
use super::figures::{EventNotTaken, EventQuarantined, RequestRefused};
use super::problem::{self, Document};
use super::public::{Edge, Entrance, Gate};
use super::{answer, batch, handshake, health};
use crate::source::spec::OnUnusable;
use crate::source::{Reading, Reason, Refusal, Request, Source, UnpackFault};
use crate::telemetry::emit;

/// Bodies above this are verified and read on a thread of their own, so that other connections go on.
const OFFLOAD_ABOVE_BYTES: usize = 64 * 1024;

/// A request that is answered before anything of it is kept.
#[derive(Debug)]
pub(super) struct TurnedAway {
    /// Label for figures and log.
    pub(super) reason: &'static str,
    /// What the sender gets.
    pub(super) document: &'static Document,
    /// What the engine said, where it was asked.
    refused: Option<Refused>,
}

pub(super) const fn away(reason: &'static str, document: &'static Document) -> TurnedAway {
    TurnedAway { reason, document, refused: None }
}

/// Takes one request in.
pub(super) async fn take(
    edge: &Edge,
    request: &HttpRequest,
    payload: Payload,
    source: &str,
    tenant: Option<&str>,
) -> HttpResponse {
    let started = Instant::now();
    let entrance = edge.gate.entrance(source);
    let answered = enter(edge, entrance, request, payload, tenant).await;
    entrance.figures.seconds.observe(started.elapsed().as_secs_f64());
    answered.unwrap_or_else(|away| turn_away(&edge.gate, entrance, &away))
}

/// Answers what is no event by its method: a handshake of the source, or someone who looks whether it is there.
pub(super) async fn look(edge: &Edge, request: &HttpRequest, source: &str, tenant: Option<&str>) -> HttpResponse {
    let gate = &*edge.gate;
    let entrance = gate.entrance(source);
    let Some(known) = &entrance.source else { return health::probe(false) };
    let Some(greeting) = known.greet(&asked(gate, request, tenant, &Bytes::new())) else { return health::probe(true) };
    let answered = if within_rate(gate, entrance) {
        handshake::answer(edge, entrance, known, greeting).await
    } else {
        Err(away("rate-limited", &problem::RATE_LIMITED))
    };
    answered.unwrap_or_else(|away| turn_away(gate, entrance, &away))
}

fn within_rate(gate: &Gate, entrance: &Entrance) -> bool {
    let now_ns = u64::try_from(gate.up().as_nanos()).unwrap_or(u64::MAX);
    entrance.rate.as_ref().is_none_or(|rate| rate.allows(now_ns))
}

fn turn_away(gate: &Gate, entrance: &Entrance, away: &TurnedAway) -> HttpResponse {
    let figures = &entrance.figures;
    let now_ms = u64::try_from(gate.up().as_millis()).unwrap_or(u64::MAX);
    let reason = away.reason;
    match &away.refused {
        Some(refused) => emit(EventNotTaken { figures, reason, refused, now_ms }),
        None => emit(RequestRefused { figures, reason, now_ms }),
    }
    away.document.answer()
}

async fn enter(
    edge: &Edge,
    entrance: &Entrance,
    request: &HttpRequest,
    mut payload: Payload,
    tenant: Option<&str>,
) -> Result<HttpResponse, TurnedAway> {
    let gate = &*edge.gate;
    let declared = check_head(gate, entrance, request.headers())?;
    if !within_rate(gate, entrance) {
        return Err(away("rate-limited", &problem::RATE_LIMITED));
    }
    let mut permit = edge.ingress.reserve(declared.unwrap_or(0)).map_err(not_taken)?;
    let body =
        body::read(&mut payload, declared, entrance.body, &mut permit, gate.draining()).await.map_err(no_body)?;
    entrance.figures.body_bytes.inc_by(body.len() as u64);
    let Some(source) = &entrance.source else {
        Source::dummy_work(&body);
        return Err(away(Reason::UnknownSource.label(), &problem::UNAUTHORIZED));
    };
    let room = source.unpacked_bytes_max(request.headers(), body.len());
    permit.grow(room).map_err(not_taken)?;
    if source.greets_unsigned()
        && let Some(greeting) = source.greet(&asked(gate, request, tenant, &body))
    {
        return handshake::answer(edge, entrance, source, greeting).await;
    }
    match judge(gate, source, request, tenant, body).await? {
        Reading::Event(event) => {
            let receipt = edge.ingress.take(event, permit).await.map_err(not_taken)?;
            entrance.figures.answered(&receipt);
            Ok(answer::receipt(source.answer(), &receipt))
        }
        Reading::Batch(items) => {
            let taken = batch::take(edge, entrance, items, permit).await.map_err(not_taken)?;
            Ok(answer::batch(source.answer(), &taken))
        }
        Reading::Greeting(greeting) => handshake::answer(edge, entrance, source, greeting).await,
        Reading::Empty => Err(away("body-empty", &problem::BODY_EMPTY)),
        Reading::Unusable(unusable) => {
            let (code, reason) = (unusable.code, unusable.reason.clone());
            let id = edge.ingress.quarantine(unusable, permit).await.map_err(not_taken)?;
            emit(EventQuarantined { figures: &entrance.figures, code, id });
            Ok(match source.on_unusable() {
                OnUnusable::Accept => answer::quarantined(id),
                OnUnusable::Refuse => problem::unusable(code, &reason, id),
            })
        }
    }
}

/// The checks that need nothing but the head. Gives the declared length of the body, if there is one.
pub(super) fn check_head(gate: &Gate, entrance: &Entrance, headers: &HeaderMap) -> Result<Option<usize>, TurnedAway> {
    if gate.is_draining() {
        return Err(away("draining", &problem::DRAINING));
    }
    let plain = || {
        headers.get_all(CONTENT_ENCODING).all(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"))
    };
    if !entrance.source.as_ref().map_or_else(plain, |source| source.takes_encoding(headers)) {
        return Err(away("content-encoding", &problem::ENCODING_UNSUPPORTED));
    }
    let Some(length) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let length = length.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok());
    match length {
        Some(length) if length <= entrance.body.bytes => Ok(Some(length)),
        _ => Err(away("too-large", &problem::TOO_LARGE)),
    }
}

/// What a request is found to be.
type Judged = Result<Reading, Unfit>;

/// Why a request got no further than its signature and its content type.
enum Unfit {
    NotUnpacked(UnpackFault),
    NotAuthentic(Refusal),
    ContentType,
}

/// Verifies and reads; on a thread of its own where that would hold up other connections.
async fn judge(
    gate: &Gate,
    source: &Arc<Source>,
    request: &HttpRequest,
    tenant: Option<&str>,
    body: Bytes,
) -> Result<Reading, TurnedAway> {
    let mut judged = judge_once(gate, source, request, tenant, &body).await?;
    if matches!(&judged, Err(Unfit::NotAuthentic(refusal)) if refusal.wants_key()) {
        source.fetch_key(&asked(gate, request, tenant, &body), &*gate.keys).await;
        judged = judge_once(gate, source, request, tenant, &body).await?;
    }
    judged.map_err(|reason| match reason {
        Unfit::NotAuthentic(refusal) => not_authentic(gate, refusal),
        Unfit::NotUnpacked(UnpackFault::TooLarge) => away("too-large", &problem::TOO_LARGE),
        Unfit::NotUnpacked(_) => away("not-unpacked", &problem::UNAUTHORIZED),
        Unfit::ContentType => away("content-type", &problem::CONTENT_TYPE_UNSUPPORTED),
    })
}

async fn judge_once(
    gate: &Gate,
    source: &Arc<Source>,
    request: &HttpRequest,
    tenant: Option<&str>,
    body: &Bytes,
) -> Result<Judged, TurnedAway> {
    if body.len() <= OFFLOAD_ABOVE_BYTES {
        return Ok(unpack_and_read(source, asked(gate, request, tenant, body), &*gate.clock));
    }
    judge_apart(gate, source, request, tenant, body.clone()).await
}

async fn judge_apart(
    gate: &Gate,
    source: &Arc<Source>,
    request: &HttpRequest,
    tenant: Option<&str>,
    body: Bytes,
) -> Result<Judged, TurnedAway> {
    let (source, clock) = (Arc::clone(source), Arc::clone(&gate.clock));
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let (target, tenant) = (target(request).to_owned(), tenant.map(str::to_owned));
    let work = move || {
        let request = Request {
            method: &method,
            target: &target,
            path_tenant: tenant.as_deref(),
            headers: &headers,
            body: &body,
            now_ms: clock.now_ms(),
        };
        unpack_and_read(&source, request, &*clock)
    };
    // An error means that the work panicked, or that the pool of threads is going down: a fault either way.
    actix_web::web::block(work).await.map_err(|_| {
        emit(gate.figures.panicked());
        away("internal", &problem::INTERNAL)
    })
}

fn asked<'r>(gate: &Gate, request: &'r HttpRequest, tenant: Option<&'r str>, body: &'r Bytes) -> Request<'r> {
    Request {
        method: request.method(),
        target: target(request),
        path_tenant: tenant,
        headers: request.headers(),
        body,
        now_ms: gate.clock.now_ms(),
    }
}

fn target(request: &HttpRequest) -> &str {
    request.uri().path_and_query().map_or("/", |target| target.as_str())
}

/// Where the sender signs what it then packs, the signature is over what comes out; what does not come out was
/// signed by nobody.
fn unpack_and_read(source: &Source, request: Request<'_>, clock: &dyn Clock) -> Judged {
    let signed = source.signed_bytes(request.headers, request.body.clone()).map_err(|fault| {
        Source::dummy_work(request.body);
        Unfit::NotUnpacked(fault)
    })?;
    verify_and_read(source, &Request { body: &signed, ..request }, clock)
}

/// The content type is judged after the signature: a stranger learns nothing from it.
fn verify_and_read(source: &Source, request: &Request<'_>, clock: &dyn Clock) -> Judged {
    let verified = source.verify(request).map_err(Unfit::NotAuthentic)?;
    if !source.takes_content_type(request.headers) {
        return Err(Unfit::ContentType);
    }
    Ok(source.read(request, &verified, &|| clock.event_id()))
}

/// One answer outside, whatever the reason; but where only the time is off and our own clock is in doubt, the
/// sender may be right (I13).
fn not_authentic(gate: &Gate, refusal: Refusal) -> TurnedAway {
    if refusal.only_window() && gate.clock_is_suspect() {
        return away("clock-suspect", &problem::CLOCK_SUSPECT);
    }
    if refusal.wants_key() {
        return away(refusal.reason.label(), &problem::KEY_UNAVAILABLE);
    }
    away(refusal.reason.label(), &problem::UNAUTHORIZED)
}

fn no_body(fault: BodyFault) -> TurnedAway {
    match fault {
        BodyFault::TooLarge => away("too-large", &problem::TOO_LARGE),
        BodyFault::Slow => away("body-slow", &problem::BODY_SLOW),
        BodyFault::Incomplete => away("body-incomplete", &problem::BODY_INCOMPLETE),
        BodyFault::NoRoom(refused) => not_taken(refused),
        BodyFault::Draining => away("draining", &problem::DRAINING),
    }
}

fn not_taken(refused: Refused) -> TurnedAway {
    let (reason, document) = match refused {
        Refused::Overloaded => ("overloaded", &problem::OVERLOADED),
        Refused::Draining => ("draining", &problem::DRAINING),
        Refused::Unavailable(_) => ("store-unavailable", &problem::STORE_UNAVAILABLE),
        Refused::Unknown(_) => ("commit-unknown", &problem::COMMIT_UNKNOWN),
        Refused::TooLate => ("too-late", &problem::TOO_LATE),
        Refused::EffectFailed => ("effect-failed", &problem::EFFECT_FAILED),
        Refused::Rejected(_) => ("store-rejected", &problem::REJECTED),
    };
    TurnedAway { reason, document, refused: Some(refused) }
}
