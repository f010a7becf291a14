//! Real payloads, signed as their senders do, by hand: what is tested does not vouch for itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::http::Request;
use super::signing::{KEY, now_s, secret, signature};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/payloads");
const TEXT_SECRET: &str = "a-secret-of-more-than-16-bytes";

/// One request that a sender sent, with what is to come of it.
pub(crate) struct Sample {
    pub(crate) file: String,
    pub(crate) preset: String,
    pub(crate) expect: Value,
    content_type: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Sample {
    /// All there are.
    pub(crate) fn all() -> Vec<Self> {
        let index = std::fs::read_to_string(format!("{FILES}/index.json")).expect("the index");
        let samples: Vec<Value> = serde_json::from_str(&index).expect("samples");
        samples.iter().map(Self::of).collect()
    }

    /// The one in this file.
    pub(crate) fn named(file: &str) -> Self {
        Self::all().into_iter().find(|sample| sample.file == file).unwrap_or_else(|| panic!("no {file}"))
    }

    fn of(entry: &Value) -> Self {
        let text = |field: &str| entry[field].as_str().unwrap_or_else(|| panic!("{field} in {entry}")).to_owned();
        let headers = entry["headers"].as_object().expect("headers").iter();
        let file = text("file");
        Self {
            body: std::fs::read(format!("{FILES}/{file}")).unwrap_or_else(|error| panic!("{file}: {error}")),
            preset: text("preset"),
            expect: entry["expect"].clone(),
            content_type: text("content_type"),
            headers: headers.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect(),
            file,
        }
    }

    /// Its request to the source `name`, signed now.
    pub(crate) fn signed(&self, name: &str) -> Request {
        let mut request = Request::post(&format!("/in/{name}"), self.body.clone());
        request = request.header("content-type", &self.content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        sign(request, &self.preset)
    }
}

/// The settings of a source made of a preset.
pub(crate) fn source(name: &str, preset: &str) -> String {
    let secret = match preset {
        "standard-webhooks" | "svix" => secret(KEY),
        _ => TEXT_SECRET.to_owned(),
    };
    format!("[[source]]\nname = \"{name}\"\npreset = \"{preset}\"\nsecrets = [\"demo:{secret}\"]\n")
}

/// Adds what the sender of this preset adds.
fn sign(request: Request, preset: &str) -> Request {
    let now = now_s().to_string();
    let body = request.body.clone();
    let over = |before: &str| mac(TEXT_SECRET.as_bytes(), before.as_bytes(), &body);
    match preset {
        "github" => request.header("x-hub-signature-256", format!("sha256={}", hex::encode(over("")))),
        "shopify" => request.header("x-shopify-hmac-sha256", STANDARD.encode(over(""))),
        "stripe" => {
            let tag = hex::encode(over(&format!("{now}.")));
            request.header("stripe-signature", format!("t={now},v1={tag},v0={}", "0".repeat(64)))
        }
        "slack" => {
            let tag = hex::encode(over(&format!("v0:{now}:")));
            request.header("x-slack-request-timestamp", &now).header("x-slack-signature", format!("v0={tag}"))
        }
        "standard-webhooks" | "svix" => {
            let prefix = if preset == "svix" { "svix" } else { "webhook" };
            let id_header = format!("{prefix}-id");
            let id = request.headers.iter().find(|(name, _)| *name == id_header).expect("an id").1.clone();
            let tag = signature(KEY, &String::from_utf8(id).expect("a text"), &now, &body);
            let time = format!("{prefix}-timestamp");
            request.without(&time).header(&time, &now).header(&format!("{prefix}-signature"), tag)
        }
        other => panic!("nobody knows how {other} signs"),
    }
}

fn mac(key: &[u8], before: &[u8], body: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(before);
    mac.update(body);
    mac.finalize().into_bytes().to_vec()
}
