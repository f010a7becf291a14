//! What `signed` makes of a body, its own source takes: headers, pairs, lists, bodies, forms and addresses.

use std::collections::BTreeSet;

use actix_web::http::header::HeaderMap;
use tidegate::source::{Request, SignError, Signing};

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
            Err(SignError::NoSecret | SignError::NotMade | SignError::MissingHeader) => continue,
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
    ] {
        assert!(schemes.contains(&scheme), "{scheme} of {schemes:?}");
    }
    assert!(made.len() > 60, "{}", made.len());
}
