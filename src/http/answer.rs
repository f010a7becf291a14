//! The answers to requests that were taken: receipts, quarantine under `accept`, handshakes.
//!
//! Promises that a receipt is built from what the engine said and nothing else (I1). Cannot fail.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use tidegate_actors::rules::event::{EventId, Receipt, Verdict};
use uuid::fmt::Hyphenated;

use super::batch::Taken;
use crate::source::{Answer, Greeted};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// About the length of a receipt.
const RECEIPT_BYTES: usize = 112;

/// What the sender of an event is told, or what its preset wants it to be told.
pub(super) fn receipt(wanted: &Answer, receipt: &Receipt) -> HttpResponse {
    taken(wanted, || {
        let mut body = String::with_capacity(RECEIPT_BYTES);
        write_receipt(&mut body, receipt, None);
        body
    })
}

/// What the sender of a batch is told: one receipt for each item, in their order. At most 10,000 of them, the
/// most items a source may take, each of a bounded length.
pub(super) fn batch(wanted: &Answer, items: &[Taken]) -> HttpResponse {
    taken(wanted, || batch_body(items))
}

fn taken(wanted: &Answer, body: impl FnOnce() -> String) -> HttpResponse {
    let status = StatusCode::from_u16(wanted.status).unwrap_or(StatusCode::OK);
    let mut builder = HttpResponse::build(status);
    for (name, value) in &wanted.headers {
        builder.insert_header((name.clone(), value.clone()));
    }
    match &wanted.body {
        Some((content_type, body)) => builder.insert_header((CONTENT_TYPE, content_type.as_str())).body(body.clone()),
        None => builder.insert_header((CONTENT_TYPE, JSON)).body(body()),
    }
}

/// What a sender is told whose preset takes unusable events too.
pub(super) fn quarantined(id: EventId) -> HttpResponse {
    let mut body = String::with_capacity(RECEIPT_BYTES);
    write_receipt(&mut body, &in_quarantine(id), None);
    json(StatusCode::ACCEPTED, body)
}

/// The answer to a handshake, never read as anything else than what it is.
pub(super) fn handshake(greeted: Greeted) -> HttpResponse {
    let mut builder = HttpResponse::build(StatusCode::from_u16(greeted.status).unwrap_or(StatusCode::OK));
    builder.insert_header((X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")));
    for header in greeted.headers {
        builder.insert_header(header);
    }
    match greeted.body {
        Some((content_type, body)) => {
            builder.insert_header((CONTENT_TYPE, HeaderValue::from_static(content_type))).body(body)
        }
        None => builder.finish(),
    }
}

fn in_quarantine(id: EventId) -> Receipt {
    Receipt { verdict: Verdict::Quarantined, id, tie: false, conflict: false }
}

fn json(status: StatusCode, body: String) -> HttpResponse {
    HttpResponse::build(status).insert_header((CONTENT_TYPE, JSON)).body(body)
}

fn batch_body(items: &[Taken]) -> String {
    let mut body = String::with_capacity(32 + items.len() * RECEIPT_BYTES);
    body.push_str(r#"{"status":"batch","items":["#);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        match item {
            Taken::Receipt(receipt) => write_receipt(&mut body, receipt, None),
            Taken::Quarantined { id, code } => write_receipt(&mut body, &in_quarantine(*id), Some(code)),
        }
    }
    body.push_str("]}");
    body
}

/// `code` is one of this program's own words, and needs no escape.
fn write_receipt(body: &mut String, receipt: &Receipt, code: Option<&str>) {
    let mut id = [0; Hyphenated::LENGTH];
    let id = receipt.id.0.as_hyphenated().encode_lower(&mut id);
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
    if let Some(code) = code {
        body.push_str(r#","code":""#);
        body.push_str(code);
        body.push('"');
    }
    body.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_json_with_the_marks_that_are_set() {
        let id = EventId(uuid::Uuid::from_u128(7));
        for (tie, conflict) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut body = String::new();
            write_receipt(&mut body, &Receipt { verdict: Verdict::Stale, id, tie, conflict }, None);
            let read: serde_json::Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(read["status"], "stale");
            assert_eq!(read["id"], id.to_string());
            assert_eq!(read.get("tie").is_some(), tie);
            assert_eq!(read.get("conflict").is_some(), conflict);
        }
    }

    #[test]
    fn a_batch_is_answered_item_by_item_in_their_order() {
        let id = |number| EventId(uuid::Uuid::from_u128(number));
        let applied = Receipt { verdict: Verdict::Applied, id: id(1), tie: true, conflict: false };
        let items = [Taken::Receipt(applied), Taken::Quarantined { id: id(2), code: "key-missing" }];
        let read: serde_json::Value = serde_json::from_str(&batch_body(&items)).expect("JSON");
        let expected = serde_json::json!({ "status": "batch", "items": [
            { "status": "applied", "id": id(1).to_string(), "tie": true },
            { "status": "quarantined", "id": id(2).to_string(), "code": "key-missing" },
        ]});
        assert_eq!(read, expected);
        assert_eq!(batch_body(&[]), r#"{"status":"batch","items":[]}"#);
    }
}
