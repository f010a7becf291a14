//! Signs requests as senders do, by hand, so that what is tested does not vouch for itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::http::Request;

/// The bytes of every test source's secret.
pub(crate) const KEY: &[u8] = b"a secret of tests, 32 bytes long";
pub(crate) const OTHER_KEY: &[u8] = b"another secret of tests, as long";

/// The same as senders' consoles show it.
pub(crate) fn secret(key: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(key))
}

/// Seconds since 1970.
#[allow(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("a time")
}

/// A POST signed by the Standard Webhooks scheme, now.
pub(crate) fn signed(target: &str, id: &str, body: impl Into<Vec<u8>>) -> Request {
    signed_at(target, id, now_s(), body)
}

/// The same with another time.
pub(crate) fn signed_at(target: &str, id: &str, at_s: i64, body: impl Into<Vec<u8>>) -> Request {
    signed_by(KEY, target, id, at_s, body)
}

/// The same with another secret.
pub(crate) fn signed_by(key: &[u8], target: &str, id: &str, at_s: i64, body: impl Into<Vec<u8>>) -> Request {
    let body = body.into();
    let signature = signature(key, id, &at_s.to_string(), &body);
    Request::post(target, body)
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", at_s.to_string())
        .header("webhook-signature", signature)
}

/// `v1,…` over id, time and body.
pub(crate) fn signature(key: &[u8], id: &str, at_s: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(format!("{id}.{at_s}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// The state of a thing, as a sender would describe it.
pub(crate) fn thing(id: &str, sequence: impl std::fmt::Display) -> String {
    format!(r#"{{"type":"thing.updated","object":"thing","id":"{id}","sequence":{sequence},"data":{{"note":"ä"}}}}"#)
}
