//! The problem documents (RFC 9457) that senders get: one table of every refusal, each with a stable `code`.
//!
//! Owns status, code, text and `Retry-After` of every refusal. Promises that the answer to one code is the
//! same bytes every time, whoever asks, and that it names no secret, no address and nothing about the inside.
//! Knows nothing of why a request got its code. Cannot fail: the documents are constants.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use serde::Serialize;
use tidegate_actors::rules::event::EventId;

/// The content type of every problem document.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What a path under `/in/` allows.
pub(super) const INGEST_METHODS: HeaderValue = HeaderValue::from_static("POST, GET, HEAD, OPTIONS");
/// What every other path allows.
const READ_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// One kind of refusal, complete but for the headers that depend on the path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The stable code, for machines.
    pub(crate) code: &'static str,
    /// The whole document.
    body: &'static str,
    /// Seconds after which another try makes sense.
    retry_after_s: Option<&'static str>,
    /// The rest of the request may still be on its way: the connection cannot be used again.
    closes: bool,
}

impl Document {
    /// The answer.
    pub(super) fn answer(&self) -> HttpResponse {
        self.builder().body(Bytes::from_static(self.body.as_bytes()))
    }

    fn builder(&self) -> HttpResponseBuilder {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut builder = HttpResponse::build(status);
        builder.insert_header((CONTENT_TYPE, PROBLEM_JSON));
        if let Some(seconds) = self.retry_after_s {
            builder.insert_header((RETRY_AFTER, HeaderValue::from_static(seconds)));
        }
        if status == StatusCode::UNAUTHORIZED {
            builder.insert_header((WWW_AUTHENTICATE, HeaderValue::from_static("Webhook-Signature")));
        }
        if self.closes {
            builder.force_close();
        }
        builder
    }
}

/// The answer to a method that the path does not take.
pub(super) fn method_not_allowed(under_ingest: bool) -> HttpResponse {
    let allowed = if under_ingest { INGEST_METHODS } else { READ_METHODS };
    let mut builder = METHOD_NOT_ALLOWED.builder();
    builder.insert_header((ALLOW, allowed));
    builder.body(Bytes::from_static(METHOD_NOT_ALLOWED.body.as_bytes()))
}

/// The answer to a method that is not POST where only POST is taken.
pub(super) fn only_post() -> HttpResponse {
    let mut builder = METHOD_NOT_ALLOWED.builder();
    builder.insert_header((ALLOW, HeaderValue::from_static("POST")));
    builder.body(Bytes::from_static(METHOD_NOT_ALLOWED.body.as_bytes()))
}

/// The answer to an authentic request that could not be used and is kept in quarantine under `id`.
pub(super) fn unusable(code: &str, reason: &str, id: EventId) -> HttpResponse {
    #[derive(Serialize)]
    struct Unusable<'a> {
        title: &'static str,
        status: u16,
        code: &'a str,
        detail: &'a str,
        id: String,
    }
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let document =
        Unusable { title: "Unprocessable Content", status: status.as_u16(), code, detail: reason, id: id.to_string() };
    problem(status, &document)
}

/// The answer of `/readyz` while requests would be refused.
pub(super) fn not_ready(reasons: &[String]) -> HttpResponse {
    #[derive(Serialize)]
    struct NotReady<'a> {
        title: &'static str,
        status: u16,
        code: &'static str,
        detail: &'static str,
        reasons: &'a [String],
    }
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let document = NotReady {
        title: "Service Unavailable",
        status: status.as_u16(),
        code: "not-ready",
        detail: "events would be refused now; `reasons` says why, /status on the admin listener says more",
        reasons,
    };
    problem(status, &document)
}

fn problem(status: StatusCode, document: &impl Serialize) -> HttpResponse {
    let mut builder = HttpResponse::build(status);
    builder.insert_header((CONTENT_TYPE, PROBLEM_JSON));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        builder.insert_header((RETRY_AFTER, HeaderValue::from_static("1")));
    }
    match serde_json::to_vec(document) {
        Ok(body) => builder.body(body),
        Err(_) => INTERNAL.answer(),
    }
}

macro_rules! documents {
    ($($(#[$doc:meta])* $name:ident: $status:literal $title:literal, $code:literal, $detail:literal
       $(, retry after $seconds:literal)? $(, closes $close:literal)?;)*) => {
        $($(#[$doc])*
        pub(crate) const $name: Document = Document {
            status: $status,
            code: $code,
            body: concat!(
                r#"{"title":""#, $title, r#"","status":"#, stringify!($status),
                r#","code":""#, $code, r#"","detail":""#, $detail, r#""}"#
            ),
            retry_after_s: documents!(@retry $($seconds)?),
            closes: documents!(@close $($close)?),
        };)*

        /// Every document, so that a test can look at all of them.
        #[cfg(test)]
        const ALL: &[Document] = &[$($name),*];
    };
    (@retry) => { None };
    (@retry $seconds:literal) => { Some($seconds) };
    (@close) => { false };
    (@close $close:literal) => { $close };
}

documents! {
    /// No such path.
    NOT_FOUND: 404 "Not Found", "not-found",
        "nothing is served at this path; webhooks go to /in/{source}";
    /// No such path on the admin listener.
    ADMIN_NOT_FOUND: 404 "Not Found", "no-such-page",
        "nothing is served at this path; there are /metrics, /status, /healthz, /readyz and, by POST, /api/resources/release, /api/quarantine/retry and /api/quarantine/drop";
    /// No request of this name in quarantine.
    NOT_IN_QUARANTINE: 404 "Not Found", "not-in-quarantine",
        "no request of this name is in quarantine; `tidegate quarantine` lists what is";
    /// Not what a request in quarantine is named by.
    NOT_A_REQUEST: 400 "Bad Request", "not-a-request",
        "name a request as JSON: id, and to give it up a reason of 1 to 512 bytes";
    /// The settings have no such source any more.
    SOURCE_GONE: 409 "Conflict", "source-gone",
        "the settings of this node have no source of the request's name; nothing was done";
    /// The path does not take this method; see [`method_not_allowed`].
    METHOD_NOT_ALLOWED: 405 "Method Not Allowed", "method-not-allowed",
        "this path does not take this method; the Allow header lists what it takes";
    /// A browser's page of somewhere else.
    ORIGIN_FOREIGN: 403 "Forbidden", "origin-foreign",
        "the request comes from a page of another address; ask from the command line, or from this address", closes true;
    /// Anything a form of a browser could send.
    JSON_ONLY: 415 "Unsupported Media Type", "json-only",
        "send JSON, with Content-Type: application/json", closes true;
    /// JSON that names no resource.
    NOT_A_RESOURCE: 400 "Bad Request", "not-a-resource",
        "send an object with the texts source, type, id and, where there are tenants, tenant";
    /// Nothing of this resource is held.
    NOTHING_WAITS: 404 "Not Found", "nothing-waits",
        "no event of this resource waits; events --held lists what does";
    /// Not vouched for: the one answer for every reason, known source or not.
    UNAUTHORIZED: 401 "Unauthorized", "unauthorized",
        "the request is not authentic for this address; check the address, the secret and the sender's clock, and sign the exact bytes sent";
    /// A handshake whose text is missing, or looks like something else than a token.
    HANDSHAKE_MALFORMED: 400 "Bad Request", "handshake-malformed",
        "the request is a handshake of this source, and a text that belongs in the answer is missing or no plain token";
    /// A handshake of which something does not hold.
    HANDSHAKE_REFUSED: 403 "Forbidden", "handshake-refused",
        "the request is a handshake of this source, and what it has to show does not hold; see the source's settings";
    /// The same, for senders that want to hear 404.
    HANDSHAKE_UNKNOWN: 404 "Not Found", "handshake-unknown",
        "the request is a handshake of this source about something it did not ask for";
    /// The address a handshake names did not answer well.
    HANDSHAKE_UNFINISHED: 503 "Service Unavailable", "handshake-unfinished",
        "the handshake could not be finished; send it again, the log of this node says why", retry after "5";
    /// Authentic, and empty.
    BODY_EMPTY: 400 "Bad Request", "body-empty",
        "the request is authentic but has no body, so there is nothing to keep";
    /// Fewer bytes than announced, or broken framing.
    BODY_INCOMPLETE: 400 "Bad Request", "body-incomplete",
        "the body ended early or its framing is broken; nothing was kept, send it again", closes true;
    /// More bytes than the source takes.
    TOO_LARGE: 413 "Content Too Large", "too-large",
        "the body is larger than this address takes; send less, or raise the source's max_body", closes true;
    /// A compressed body: what is verified must be what was sent.
    ENCODING_UNSUPPORTED: 415 "Unsupported Media Type", "encoding-unsupported",
        "send the body without Content-Encoding: the bytes that are signed are the bytes that are kept", closes true;
    /// Authentic, of a content type that the source does not take.
    CONTENT_TYPE_UNSUPPORTED: 415 "Unsupported Media Type", "content-type-unsupported",
        "this source does not take bodies of this content type; see its content_types";
    /// The body came too slowly.
    BODY_SLOW: 408 "Request Timeout", "body-slow",
        "the body did not arrive in time; nothing was kept, send it again", closes true;
    /// More requests than the source's rate.
    RATE_LIMITED: 429 "Too Many Requests", "rate-limited",
        "this source sends faster than its rate limit; send again later", retry after "1", closes true;
    /// A mailbox or the in-flight budget is full.
    OVERLOADED: 503 "Service Unavailable", "overloaded",
        "as much as fits is being worked on; nothing was kept, send again", retry after "1", closes true;
    /// Shutting down.
    DRAINING: 503 "Service Unavailable", "draining",
        "this node is shutting down and takes nothing new; nothing was kept, send again", retry after "2", closes true;
    /// The store cannot be reached.
    STORE_UNAVAILABLE: 503 "Service Unavailable", "store-unavailable",
        "the store is not available; nothing was kept, send again", retry after "2";
    /// A key that the signature needs could not be fetched: our trouble, not the sender's.
    KEY_UNAVAILABLE: 503 "Service Unavailable", "key-unavailable",
        "a key that the signature needs is not at hand; nothing was kept, send again", retry after "5";
    /// The commit's outcome is not known (I1).
    COMMIT_UNKNOWN: 503 "Service Unavailable", "commit-unknown",
        "whether the event was kept is not known; send again, a repeat is recognised", retry after "1";
    /// The commit took longer than an answer may.
    TOO_LATE: 503 "Service Unavailable", "too-late",
        "the event was not kept in time to say so; send again, a repeat is recognised", retry after "1";
    /// Our own clock is in doubt, so a request outside the window may be right (I13).
    CLOCK_SUSPECT: 503 "Service Unavailable", "clock-suspect",
        "this node's clock is in doubt, so the time of the request cannot be judged; send again", retry after "5";
    /// The store refuses the data of this event.
    REJECTED: 500 "Internal Server Error", "store-rejected",
        "the store refuses this event's data; nothing was kept, the log of this node says why";
    /// An effect of this event failed.
    EFFECT_FAILED: 500 "Internal Server Error", "effect-failed",
        "an effect of this event failed, so nothing of it was kept; send it again once that is repaired";
    /// A fault of this program.
    INTERNAL: 500 "Internal Server Error", "internal",
        "the request met a fault in this program; nothing was kept, its log says more";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_json_that_repeats_its_own_status_and_code() {
        for document in ALL {
            let read: serde_json::Value = serde_json::from_str(document.body).expect("JSON");
            assert_eq!(read["status"], document.status, "{}", document.code);
            assert_eq!(read["code"], document.code);
            assert!(StatusCode::from_u16(document.status).is_ok());
            let detail = read["detail"].as_str().expect("a detail");
            assert!(!detail.ends_with('.') && detail.starts_with(char::is_lowercase), "{detail}");
        }
    }

    #[test]
    fn no_two_documents_share_a_code() {
        let codes: std::collections::BTreeSet<_> = ALL.iter().map(|document| document.code).collect();
        assert_eq!(codes.len(), ALL.len());
    }

    #[test]
    fn whatever_may_be_sent_again_later_says_when() {
        for document in ALL {
            let later = matches!(document.status, 429 | 503);
            assert_eq!(document.retry_after_s.is_some(), later, "{}", document.code);
        }
    }
}
