//! The answers to requests that were taken: receipts, quarantine under `accept`, handshakes.
//!
//! Promises that a receipt is built from what the engine said and nothing else (I1). Cannot fail.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;
use tidegate_actors::rules::event::{EventId, Receipt, Verdict};
use uuid::fmt::Hyphenated;

use crate::source::{Answer, ChallengeAnswer};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What the sender of an event is told, or what its preset wants it to be told.
pub(super) fn receipt(wanted: &Answer, receipt: &Receipt) -> HttpResponse {
    let status = StatusCode::from_u16(wanted.status).unwrap_or(StatusCode::OK);
    match &wanted.body {
        Some((content_type, body)) => {
            HttpResponse::build(status).insert_header((CONTENT_TYPE, content_type.as_str())).body(body.clone())
        }
        None => json(status, receipt_body(receipt)),
    }
}

/// What a sender is told whose preset takes unusable events too.
pub(super) fn quarantined(id: EventId) -> HttpResponse {
    let receipt = Receipt { verdict: Verdict::Quarantined, id, tie: false, conflict: false };
    json(StatusCode::ACCEPTED, receipt_body(&receipt))
}

/// The answer to a handshake: text, and never read as anything else.
pub(super) fn handshake(answer: ChallengeAnswer) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")))
        .insert_header((X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .body(answer.body)
}

fn json(status: StatusCode, body: Bytes) -> HttpResponse {
    HttpResponse::build(status).insert_header((CONTENT_TYPE, JSON)).body(body)
}

fn receipt_body(receipt: &Receipt) -> Bytes {
    let mut id = [0; Hyphenated::LENGTH];
    let id = receipt.id.0.as_hyphenated().encode_lower(&mut id);
    let mut body = String::with_capacity(112);
    body.push_str(r#"{"status":""#);
    body.push_str(receipt.verdict.word());
    body.push_str(r#"","id":""#);
    body.push_str(id);
    body.push('"');
    if receipt.tie {
        body.push_str(r#","tie":true"#);
    }
    if receipt.conflict {
        body.push_str(r#","conflict":true"#);
    }
    body.push('}');
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_json_with_the_marks_that_are_set() {
        let id = EventId(uuid::Uuid::from_u128(7));
        for (tie, conflict) in [(false, false), (true, false), (false, true), (true, true)] {
            let body = receipt_body(&Receipt { verdict: Verdict::Stale, id, tie, conflict });
            let read: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(read["status"], "stale");
            assert_eq!(read["id"], id.to_string());
            assert_eq!(read.get("tie").is_some(), tie);
            assert_eq!(read.get("conflict").is_some(), conflict);
        }
    }
}
