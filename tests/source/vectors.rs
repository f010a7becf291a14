//! Signatures published by senders, or computed after their documents.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tidegate::source::{Greeting, Reading, Reason, Source};

use super::common::{Sent, secret, try_source};

const VECTORS: &str = include_str!("../data/signatures.json");

fn source_of(vector: &Value) -> Source {
    let scheme = vector["scheme"].as_str().expect("a scheme");
    let text = match scheme {
        "standard-webhooks-v1" | "standard-webhooks-v1a" => "preset = 'standard-webhooks'",
        "svix-v1" => "preset = 'svix'",
        "stripe-v1" => "preset = 'stripe'",
        "github-sha256" => "preset = 'github'",
        "shopify" | "shopify-events" => "preset = 'shopify'",
        "slack-v0" | "handshake/slack-url-verification" => "preset = 'slack'",
        "github-sha1" => {
            "verify = { scheme = 'hmac-sha1', header = 'x-hub-signature', format = { prefix = 'sha1=' } }\nkey = 'raw:sha256'"
        }
        "hmac-sha256-raw" => {
            "verify = { scheme = 'hmac-sha256', header = 'x-signature', secret = 'hex' }\nkey = 'raw:sha256'"
        }
        other => panic!("no source for {other}"),
    };
    let secrets: Vec<_> = match vector.get("secrets").and_then(Value::as_array) {
        Some(several) => several.iter().map(|text| secret(text.as_str().expect("a secret"))).collect(),
        None => vec![secret(vector["secret"].as_str().expect("a secret"))],
    };
    try_source(&format!("allow_weak_secret = true\n{text}"), &secrets)
        .unwrap_or_else(|problems| panic!("{}: {problems:?}", vector["id"]))
}

fn request_of(vector: &Value) -> Sent {
    let mut headers = HeaderMap::new();
    for (name, values) in vector["headers"].as_object().expect("headers") {
        let name: HeaderName = name.parse().expect("a header name");
        let values = values.as_array().map_or_else(|| vec![values.clone()], Clone::clone);
        for value in values {
            let value = HeaderValue::from_bytes(value.as_str().expect("a value").as_bytes()).expect("a header value");
            headers.append(name.clone(), value);
        }
    }
    let body = match vector.get("body_base64").and_then(Value::as_str) {
        Some(text) => STANDARD.decode(text).expect("base64"),
        None => vector["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    let now_ms = vector["now"].as_i64().expect("a time") * 1000;
    Sent { headers, body: body.into(), now_ms, path_tenant: None }
}

fn reason_of(word: &str) -> Reason {
    match word {
        "signature-mismatch" => Reason::WrongSignature,
        "timestamp-too-old" => Reason::OutsideWindowPast,
        "timestamp-in-future" => Reason::OutsideWindowFuture,
        other => {
            *Reason::ALL.iter().find(|reason| reason.label() == other).unwrap_or_else(|| panic!("no reason {other}"))
        }
    }
}

#[test]
fn every_vector_is_taken_or_refused_for_its_own_reason() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).expect("vectors");
    assert!(vectors.len() > 100);
    let mut wrong = Vec::new();
    for vector in &vectors {
        let expect = vector["expect"].as_str().expect("an expectation");
        let unsigned_handshake = vector["expect_response"]["status"] == 401;
        let found = request_of(vector).verify(&source_of(vector)).map(drop).map_err(|refusal| refusal.reason);
        let wanted = match expect.strip_prefix("invalid:") {
            None if unsigned_handshake => Err(Reason::MissingSignature),
            None => Ok(()),
            Some(word) => Err(reason_of(word)),
        };
        if found != wanted {
            wrong.push(format!("{}: {found:?} in place of {wanted:?}", vector["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_signed_handshake_is_answered_with_its_token() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).expect("vectors");
    let handshakes = vectors.iter().filter(|vector| vector["expect_response"]["status"] == 200);
    for vector in handshakes {
        let Reading::Greeting(Greeting::Answer(answer)) = request_of(vector).read(&source_of(vector)) else {
            panic!("{} is no handshake", vector["id"]);
        };
        let expected = vector["expect_response"]["body"].as_str().expect("a body").as_bytes();
        assert_eq!(answer.body.expect("a body").1, expected);
    }
}
