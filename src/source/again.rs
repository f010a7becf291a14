//! Requests that could not be used, read again under the settings of now.
//!
//! Owns what is kept of them beside their bytes, and the way back from that to a request. Promises: no credential
//! and no signature is kept; the request is read under the time it came first. Of an item of a batch the item is
//! kept and not what stood around it: rules that read `body:` or `outer:` find nothing there.

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_actors::ports::QuarantineRow;
use tidegate_actors::rules::event::EventId;

use super::batch::Place;
use super::read::Part;
use super::reference::Found;
use super::{Item, Reading, Request, Source, Verified};

/// The most bytes of what is kept.
const BYTES_MAX: usize = 8 * 1024;
const VALUE_BYTES_MAX: usize = 1024;
/// What a header's name holds that may be a credential.
const CREDENTIALS: [&str; 9] =
    ["auth", "cookie", "token", "secret", "signature", "password", "api-key", "apikey", "hmac"];
/// Names that no header can have: the place of an item in its batch, and the query.
const ITEM: &str = ":item";
const QUERY: &str = ":query";

impl Source {
    /// Headers as a JSON object, also those that no rule reads now: which ones will be needed is not known yet.
    pub(super) fn kept_to_read_again(&self, part: &Part<'_>) -> Bytes {
        let mut kept = Map::new();
        let mut length = 0;
        let mut keep = |name: &str, value: &str| {
            length += name.len() + value.len() + 6;
            if value.len() <= VALUE_BYTES_MAX && length <= BYTES_MAX {
                kept.insert(name.to_owned(), Value::from(value));
            }
        };
        if let Some(index) = part.item {
            keep(ITEM, &index.to_string());
        }
        let query = part.request.target.split_once('?').map_or("", |(_, query)| query);
        if !self.rules.wants.query.is_empty() && !query.is_empty() {
            keep(QUERY, query);
        }
        let headers = part.request.headers;
        let read = self.rules.kept.iter();
        let other = headers.keys().filter(|name| !self.rules.kept.contains(name) && !self.may_be_secret(name));
        for name in read.chain(other) {
            if let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) {
                keep(name.as_str(), value);
            }
        }
        Bytes::from(Value::from(kept).to_string())
    }

    fn may_be_secret(&self, name: &HeaderName) -> bool {
        CREDENTIALS.iter().any(|word| name.as_str().contains(word))
            || self.verifier.signature_headers().any(|header| header == name)
    }

    /// Reads a request out of quarantine by the rules of now, as of the time it came first. A single event keeps the
    /// name it had there.
    #[must_use]
    pub fn read_again(&self, row: &QuarantineRow, ids: &dyn Fn() -> EventId) -> Reading {
        let kept: Map<String, Value> =
            row.headers.as_deref().and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default();
        let text = |name: &str| kept.get(name).and_then(Value::as_str);
        let mut headers = HeaderMap::new();
        for (name, value) in &kept {
            let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
            if let (Ok(name), Some(value)) = (name.parse::<HeaderName>(), value) {
                headers.insert(name, value);
            }
        }
        let body = Bytes::from(row.body.clone().unwrap_or_default());
        let target =
            text(QUERY).map_or_else(|| format!("/in/{}", self.name), |query| format!("/in/{}?{query}", self.name));
        let tenant = Some(row.tenant.as_str()).filter(|tenant| !tenant.is_empty());
        let request = Request {
            method: &Method::POST,
            target: &target,
            path_tenant: tenant,
            headers: &headers,
            body: &body,
            now_ms: row.received_at_ms,
        };
        let verified = Verified { tenant: tenant.map(Into::into), secret: 0 };
        match text(ITEM).and_then(|index| index.parse().ok()) {
            Some(index) if self.rules.batch.is_some() => match self.item_again(index, &request, &verified, row.id) {
                Item::Event(event) => Reading::Event(event),
                Item::Unusable(unusable) => Reading::Unusable(unusable),
            },
            _ => match self.read(&request, &verified, ids) {
                Reading::Event(event) => Reading::Event(tidegate_actors::rules::event::Event { id: row.id, ..event }),
                other => other,
            },
        }
    }

    fn item_again(&self, index: usize, request: &Request<'_>, verified: &Verified, id: EventId) -> Item {
        let tenant = verified.tenant.clone().unwrap_or_else(|| std::sync::Arc::from(""));
        let headers = self.kept(request.headers);
        let (body, item) = (request.body, Some(index));
        let whole = Part { request, tenant: &tenant, headers: &headers, body, item, content: body, watch: None };
        let found = Found { without: &self.rules.without, ..Found::empty(request.headers, body) };
        let read = super::wants::body_text(body).and_then(|text| {
            let query = self.rules.wants.query_only(request.target)?.query;
            let found = Found { query: &query, ..found };
            self.read_item(&Place { index, text, outer: &[] }, &whole, &found, id)
        });
        read.map_or_else(|flaw| Item::Unusable(self.unusable(&whole, flaw, id)), Item::Event)
    }
}
