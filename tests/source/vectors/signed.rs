//! What `signed` makes of a body, its own source takes: headers, pairs, lists, bodies, forms and addresses.

use std::collections::BTreeSet;

use actix_web::http::header::HeaderMap;
use tidegate::source::{Request, SignError, Signing};

use super::super::common::{Sent, secret, sent, try_source};
use super::vector;

#[test]
fn what_is_signed_by_a_source_is_taken_by_it() {
    let mut made = BTreeSet::new();
    for vector in vector::all().iter().filter(|vector| super::wanted(vector) == Some(Ok(()))) {
        let (source, taken) = (vector.source().expect("a source"), vector.taken());
        // its own signature must not be what is found
        let mut headers = HeaderMap::new();
        let kept = ["content-type", "link", "box-signature-version", "x-hubspot-signature-version"];
        for (name, value) in &taken.headers {
            let text = name.as_str();
            if kept.contains(&text) || ["settings", "topic", "signed-headers"].iter().any(|part| text.contains(part)) {
                headers.insert(name.clone(), value.clone());
            }
        }
        let request = Request { headers: &headers, ..taken.request() };
        let draft = match source.signed(&Signing { request, id: "id-1", kind: "" }) {
            Ok(draft) => draft,
            // public keys only check
            Err(SignError::NoSecret | SignError::SendersKey | SignError::NotMade | SignError::MissingHeader) => {
                continue;
            }
            Err(error) => panic!("{}: {error}", vector.id),
        };
        let again = Request { headers: &draft.headers, body: &draft.body, target: &draft.target, ..taken.request() };
        let found = source.verify(&again).map_err(|refusal| refusal.reason);
        assert!(found.is_ok(), "{}: {found:?} for {draft:?}", vector.id);
        made.insert(vector.scheme.clone());
    }
    let schemes = made.iter().map(String::as_str).collect::<Vec<_>>();
    for scheme in [
        "mailgun",
        "adyen-item",
        "braintree",
        "twilio-json",
        "recurly",
        "worldpay",
        "websub",
        "basic-auth",
        "query-token",
        "rfc9421",
    ] {
        assert!(schemes.contains(&scheme), "{scheme} of {schemes:?}");
    }
    assert!(made.len() > 60, "{}", made.len());
}

/// A key pair for tests alone: what signs, and what checks.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRHeoUDHGDAiH5pQb
9H2AtZ9iflkGgDHHpnv9isBl7yGhRANCAARvk9VxepiiP9i2C7xQbTdLemj/Bn9N
Lt17XfEluzsuqNvmg0DSu7X9DEegef5wXnMEbySsuZnJ3TtXPQPocCi8
-----END PRIVATE KEY-----";
const JWKS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"b5PVcXqYoj_Ytgu8UG03S3po_wZ_TS7de13xJbs7Lqg","y":"2-aDQNK7tf0MR6B5_nBecwRvJKy5mcndO1c9A-hwKLw"}]}"#;

#[test]
fn a_jwt_that_a_private_key_made_is_taken_by_its_public_partner() {
    let rules = "key = 'body:/id'\ntype = 'body:/type'\nverify = { scheme = 'jwt-es256', header = 'x-verification', \
                 body_hash = 'claim:request_body_sha256', window = '5m', secret = ";
    let signs = try_source(&format!("{rules}'pem' }}"), &[secret(PRIVATE)]).expect("a source");
    let checks = try_source(&format!("{rules}'jwks' }}"), &[secret(JWKS)]).expect("a source");
    let good = sent(&signs, r#"{"id":"e"}"#);
    assert!(good.verify(&checks).is_ok());
    let altered = Sent { body: r#"{"id":"f"}"#.into(), ..good };
    assert!(altered.verify(&checks).is_err());
    let request = altered.request();
    assert_eq!(checks.signed(&Signing { request, id: "id", kind: "" }).err(), Some(SignError::NoSecret));
}
