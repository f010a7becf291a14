//! Writes signed requests: 1 KB of JSON as a payment provider sends it, with only the changing fields patched in.
//!
//! Owns the bytes of one request: every one has the same length, so it is a copy of a template, four patched fields
//! and one HMAC (1–2 us). Promises: ids are random and never blank, versions grow, the signature is over the exact
//! body. Knows nothing of connections or time.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const ID_LEN: usize = 26;
const NUMBER_LEN: usize = 16;
const SIGNATURE_LEN: usize = 64;
const BODY_LEN: usize = 1_046;

/// Splitmix64: chance that is cheap and can be repeated.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform below `bound`, with a bias far too small to matter here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub(super) fn happens(&mut self, share: f64) -> bool {
        (self.next() as f64) < share * (u64::MAX as f64)
    }
}

/// The request that all others are patched from.
pub(super) struct Template {
    bytes: Vec<u8>,
    signature_at: usize,
    body_at: usize,
    id_at: usize,
    resource_at: usize,
    version_at: usize,
    mac: Hmac<Sha256>,
}

impl Template {
    pub(super) fn new(host: &str, path: &str, secret: &str) -> Result<Self, String> {
        let body = body();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: tidegate-bench\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nx-signature: {}\r\n\r\n",
            body.len(),
            "0".repeat(SIGNATURE_LEN)
        );
        let body_at = head.len();
        let text = head + &body;
        let place = |mark: &str| text.find(mark).map(|at| at + mark.len()).ok_or(format!("no {mark} in the template"));
        Ok(Self {
            signature_at: place("x-signature: ")?,
            body_at,
            id_at: place("\"id\":\"evt_")?,
            resource_at: place("\"id\":\"sub_")?,
            version_at: place("\"sequence\":")?,
            mac: Hmac::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?,
            bytes: text.into_bytes(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the request of a new event into `slot`, which has the template's length.
    pub(super) fn write(&self, slot: &mut [u8], chance: &mut Chance, resource: u64, version: u64) {
        slot.copy_from_slice(&self.bytes);
        write_id(&mut slot[self.id_at..self.id_at + ID_LEN], chance);
        write_number(&mut slot[self.resource_at..self.resource_at + NUMBER_LEN], resource);
        write_number(&mut slot[self.version_at..self.version_at + NUMBER_LEN], version);
        let mut mac = self.mac.clone();
        mac.update(&slot[self.body_at..]);
        write_hex(&mut slot[self.signature_at..self.signature_at + SIGNATURE_LEN], &mac.finalize().into_bytes());
    }
}

/// Looks like a subscription event: nested objects, strings, numbers, nulls, and padding up to the length.
fn body() -> String {
    let before = format!(
        r#"{{"id":"evt_{}","object":"event","api_version":"2026-10-28","created":1790000000,"livemode":true,"pending_webhooks":1,"type":"customer.subscription.updated","sequence":{},"request":{{"id":null,"idempotency_key":"5f0c2bb1-6f7e-4a8e-9a34-0b5a2f0a7c11"}},"data":{{"object":{{"object":"subscription","id":"sub_{}","customer":"cus_9s6XKzkNRiz8i3","status":"active","currency":"eur","cancel_at_period_end":false,"current_period_start":1789990000,"current_period_end":1792582000,"collection_method":"charge_automatically","items":{{"object":"list","has_more":false,"data":[{{"id":"si_QXhXjGqz0kYx0y","object":"subscription_item","quantity":3,"price":{{"id":"price_1MoBy5LkdIwHu7ix","unit_amount":1999,"currency":"eur","recurring":{{"interval":"month","interval_count":1}}}}}}]}},"discount":null,"default_tax_rates":[],"metadata":{{"note":""#,
        "0".repeat(ID_LEN),
        "1".repeat(NUMBER_LEN),
        "0".repeat(NUMBER_LEN),
    );
    let after = r#""}}}}"#;
    let padding = BODY_LEN.saturating_sub(before.len() + after.len());
    format!("{before}{}{after}", "The quick brown fox jumps over the lazy dog. ".repeat(24).split_at(padding).0)
}

fn write_id(place: &mut [u8], chance: &mut Chance) {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghijkmnpqrstvwxy";
    for chunk in place.chunks_mut(12) {
        let mut bits = chance.next();
        for letter in chunk {
            *letter = LETTERS[(bits & 31) as usize];
            bits >>= 5;
        }
    }
}

/// Decimal, filled up with zeros; versions start with a digit that is not zero, so they stay valid JSON numbers.
fn write_number(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn write_hex(place: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in place.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_carries_its_fields_and_a_signature_over_its_body() {
        let template = Template::new("127.0.0.1", "/in/bench", "secret").expect("a template");
        let mut slot = vec![0; template.len()];
        template.write(&mut slot, &mut Chance::new(1), 42, 1_790_000_000_000_123);
        let text = String::from_utf8(slot).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
        assert_eq!(body.len(), BODY_LEN);
        let event: serde_json::Value = serde_json::from_str(body).expect("valid JSON");
        assert_eq!(event["sequence"], 1_790_000_000_000_123_u64);
        assert_eq!(event["data"]["object"]["id"], "sub_0000000000000042");
        let mut mac = Hmac::<Sha256>::new_from_slice(b"secret").expect("any length");
        mac.update(body.as_bytes());
        assert!(head.contains(&format!("x-signature: {}", hex::encode(mac.finalize().into_bytes()))));
    }
}
