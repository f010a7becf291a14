//! One changed byte anywhere in a body that is signed: never taken. What else may be changed is up to the campaign.

use bytes::Bytes;

use super::vector::{self, Taken, Vector};

/// Vectors whose sender does not sign the whole body, by its own documents.
fn signs_the_body(vector: &Vector) -> bool {
    let partly = [
        "mailgun",
        "mailgun-form",
        "adyen-item",
        "aws-sns",
        "handshake/sns-confirm",
        "braintree",
        "rfc9421",
        "gitlab-token",
        "telegram",
        "flutterwave-v3",
        "auth-header",
        "figma-passcode",
        "query-token",
        "basic-auth",
        "msgraph-clientstate",
    ];
    !partly.contains(&vector.scheme.as_str())
}

fn good() -> Vec<Vector> {
    let good = vector::all().into_iter().filter(|vector| super::wanted(vector) == Some(Ok(())));
    good.collect()
}

#[test]
fn every_good_vector_is_refused_with_any_byte_of_its_body_changed() {
    for vector in good().iter().filter(|vector| signs_the_body(vector)) {
        let (source, taken, key) = (vector.source().expect("a source"), vector.taken(), vector.key());
        assert_eq!(taken.verdict(&source, &key), Ok(()), "{}", vector.id);
        let by_fields =
            matches!(vector.scheme.as_str(), "twilio-form" | "twilio-form-sha256" | "mandrill" | "paddle-classic");
        for at in 0..taken.body.len() {
            for mask in [0x01, 0x80] {
                let mut body = taken.body.to_vec();
                body[at] ^= mask;
                let changed = Taken { body: Bytes::from(body.clone()), ..taken.clone() };
                let found = changed.verdict(&source, &key);
                // another spelling of the same fields, such as `%2b` for `%2B`, means the same
                let same = by_fields && same_fields(&body, &taken.body);
                assert!(found.is_err() || same, "{} byte {at} mask {mask}", vector.id);
            }
        }
    }
}

fn same_fields(one: &[u8], other: &[u8]) -> bool {
    let fields = |body: &[u8]| {
        let mut fields: Vec<String> = String::from_utf8_lossy(body).split('&').map(str::to_ascii_lowercase).collect();
        fields.sort();
        fields
    };
    fields(one) == fields(other)
}
