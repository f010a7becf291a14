//! What a person may do over the admin listener: end the waiting of a resource.
//!
//! Promises that no page in a browser can do it for them: only JSON is taken, and a request that says where
//! it comes from must come from this very address, by number or as localhost. Knows what the engine says, and
//! nothing of the store.

use actix_web::http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use tidegate_actors::ports::{StoreError, Waits};
use tidegate_actors::rules::key::ResourceHash;
use tracing::info;

use super::admin::AdminParts;
use super::problem::{self, Document};
use crate::telemetry::{Happening, emit};

/// The path of [`release`].
pub(crate) const RELEASE: &str = "/api/resources/release";
/// The most bytes of a request.
const BODY_BYTES_MAX: usize = 4096;

/// A resource by its name.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// Its source.
    pub(crate) source: String,
    /// Its tenant; `""` when unused.
    #[serde(default)]
    pub(crate) tenant: String,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Its id.
    pub(crate) id: String,
}

/// What became of the events that waited.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Released {
    /// How many applied.
    pub(crate) applied: u32,
    /// How many turned out older than the state.
    pub(crate) stale: u32,
    /// How many expired.
    pub(crate) expired: u32,
}

/// `POST /api/resources/release`: gaps are given up, parked events begin a new epoch.
pub(super) async fn release(parts: Data<AdminParts>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let named: Named = match asked(&request, payload, &problem::NOT_A_RESOURCE).await {
        Ok(named) => named,
        Err(document) => return document.answer(),
    };
    let hash = ResourceHash::of(&named.source, &named.tenant, &named.kind, &named.id);
    match parts.gate.engine.release(hash).await {
        Ok(Some(Waits { released: applied, stale, expired, .. })) => {
            let released = Released { applied, stale, expired };
            emit(WaitingEnded { named: &named, released: &released });
            HttpResponse::Ok().json(released)
        }
        Ok(None) => problem::NOTHING_WAITS.answer(),
        Err(StoreError::Unknown(_)) => problem::COMMIT_UNKNOWN.answer(),
        Err(_) => problem::STORE_UNAVAILABLE.answer(),
    }
}

/// What a request asks for, as JSON from here; `unread` where it is something else.
pub(super) async fn asked<T: for<'a> Deserialize<'a>>(
    request: &HttpRequest,
    payload: Payload,
    unread: &'static Document,
) -> Result<T, &'static Document> {
    if !from_here(request.headers()) {
        return Err(&problem::ORIGIN_FOREIGN);
    }
    if !is_json(request.headers()) {
        return Err(&problem::JSON_ONLY);
    }
    let body = match payload.to_bytes_limited(BODY_BYTES_MAX).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Err(&problem::BODY_INCOMPLETE),
        Err(_) => return Err(&problem::TOO_LARGE),
    };
    serde_json::from_slice(&body).map_err(|_| unread)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Whether a request says of itself nothing else than that it comes from this address. A name could be
/// anybody's who points it here, so only numbers and localhost count.
fn from_here(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN);
    let Some(origin) = origins.next() else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let of_origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map_or("", |(_, host)| host);
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_number = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    origins.next().is_none() && !host.is_empty() && of_origin == host && (is_number || name == "localhost")
}

/// A person ended the waiting of a resource.
struct WaitingEnded<'a> {
    named: &'a Named,
    released: &'a Released,
}

impl Happening for WaitingEnded<'_> {
    fn emit(self) {
        let Named { source, tenant, kind, id } = self.named;
        let Released { applied, stale, expired } = self.released;
        info!(source, tenant, kind, id, applied, stale, expired, "the waiting of a resource was ended by hand");
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn only_this_address_by_number_or_as_localhost_may_be_an_origin() {
        let from = |host: &'static str, origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            for origin in origins {
                headers.append(ORIGIN, HeaderValue::from_static(origin));
            }
            from_here(&headers)
        };
        assert!(from("127.0.0.1:9090", &[]), "a program says nothing");
        assert!(from("127.0.0.1:9090", &["http://127.0.0.1:9090"]));
        assert!(from("[::1]:9090", &["http://[::1]:9090"]));
        assert!(from("localhost:9090", &["http://localhost:9090"]));
        for (host, origins) in [
            ("127.0.0.1:9090", &["https://evil.example"][..]),
            ("127.0.0.1:9090", &["null"]),
            ("127.0.0.1:9090", &["http://127.0.0.1:9091"]),
            ("evil.example:9090", &["http://evil.example:9090"]),
            ("127.0.0.1:9090", &["http://127.0.0.1:9090", "http://127.0.0.1:9090"]),
            ("", &["http://"]),
        ] {
            assert!(!from(host, origins), "{host} {origins:?}");
        }
    }
}
