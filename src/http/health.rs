//! Whether the process lives, whether it takes events, and whether a source is there.
//!
//! Promises that `/readyz` reflects the pipeline and not the port: it is 200 only while an event that came in
//! now would be taken and stored. Reasons are named, and name nothing of the inside. Cannot fail.

use actix_web::HttpResponse;
use actix_web::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use bytes::Bytes;

use super::problem;
use super::public::Gate;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The process lives.
pub(super) fn alive() -> HttpResponse {
    said(r#"{"status":"alive"}"#)
}

/// Events would be taken. What an outsider may know of a reason ends at its colon.
pub(super) fn ready(gate: &Gate) -> HttpResponse {
    let mut reasons = gate.not_ready(&gate.engine.status());
    for reason in &mut reasons {
        reason.truncate(reason.find(':').unwrap_or(reason.len()));
    }
    if reasons.is_empty() { said(r#"{"status":"ready"}"#) } else { problem::not_ready(&reasons) }
}

/// A sender, or a person, looks whether a source's address is right. Nothing is kept.
pub(super) fn probe(known: bool) -> HttpResponse {
    if !known {
        return problem::NOT_FOUND.answer();
    }
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, JSON))
        .insert_header((ALLOW, problem::INGEST_METHODS))
        .body(Bytes::from_static(br#"{"status":"listening"}"#))
}

fn said(body: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, JSON))
        .insert_header((CACHE_CONTROL, NO_STORE))
        .body(Bytes::from_static(body.as_bytes()))
}
