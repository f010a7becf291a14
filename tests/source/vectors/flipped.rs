//! One changed byte anywhere in what is signed, in the signature, its time or its id: never taken, never a panic.

use actix_web::http::header::HeaderValue;
use bytes::Bytes;
use proptest::prelude::*;

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

/// A request with one byte changed; `None` where the result is no request, or means the same.
fn flipped(taken: &Taken, place: usize, mask: u8, with_body: bool) -> Option<Taken> {
    let mut changed = taken.clone();
    let mut places: Vec<(Option<usize>, usize)> = Vec::new();
    if with_body {
        places.extend((0..taken.body.len()).map(|at| (None, at)));
    }
    let names: Vec<_> = taken.headers.keys().cloned().collect();
    for (index, name) in names.iter().enumerate() {
        let value = taken.headers.get(name)?;
        places.extend((0..value.len()).map(|at| (Some(index), at)));
    }
    let (header, at) = *places.get(place % places.len().max(1))?;
    match header {
        None => {
            let mut body = taken.body.to_vec();
            body[at] ^= mask;
            changed.body = Bytes::from(body);
        }
        Some(index) => {
            let mut value = taken.headers.get(&names[index])?.as_bytes().to_vec();
            value[at] ^= mask;
            changed.headers.insert(names[index].clone(), HeaderValue::from_bytes(&value).ok()?);
        }
    }
    Some(changed)
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_signature_time_or_id_is_refused(which in any::<prop::sample::Index>(), place in any::<usize>(), mask in 1_u8..) {
        let good = good();
        let vector = which.get(&good);
        let (source, taken, key) = (vector.source().expect("a source"), vector.taken(), vector.key());
        let Some(changed) = flipped(&taken, place, mask, signs_the_body(vector)) else { return Ok(()) };
        let found = changed.verdict(&source, &key);
        if found.is_ok() {
            // what is not part of the signature may change: headers that are not signed, or a spelling that means the same
            prop_assert!(meant_the_same(&taken, &changed), "{}", vector.id);
        }
    }
}

/// Headers that no scheme signs, for all that their names say.
const UNSIGNED: [&str; 7] = [
    "x-authorization-digest",
    "sentry-hook-timestamp",
    "linear-timestamp",
    "x-zendesk-webhook-invocation-id",
    "x-hubspot-signature-version",
    "x-twilio-webhooks-signature-settings",
    "box-signature-algorithm",
];

/// Parts of the names of headers that hold a signature, or that are signed.
const SIGNED: [&str; 10] = [
    "signature",
    "hmac",
    "-mac",
    "timestamp",
    "transmission",
    "plaid-verification",
    "authorization",
    "-token",
    "verif-hash",
    "signed-headers",
];

/// Ids that are signed.
const IDS: [&str; 3] = ["webhook-id", "svix-id", "twitch-eventsub-message-id"];

/// Whether only a header changed that the scheme does not sign, the case of hexadecimal digits, or one signature of several.
fn meant_the_same(before: &Taken, after: &Taken) -> bool {
    if before.body != after.body {
        return false;
    }
    let changed = before.headers.keys().find(|name| before.headers.get(*name) != after.headers.get(*name));
    let Some(name) = changed else { return true };
    let (Some(old), Some(new)) = (before.headers.get(name), after.headers.get(name)) else { return false };
    let named = SIGNED.iter().any(|part| name.as_str().contains(part)) || IDS.contains(&name.as_str());
    let is_signed = named && !UNSIGNED.contains(&name.as_str());
    let text = String::from_utf8_lossy(old.as_bytes());
    let one_of_several = ["v1,", "v1=", "h1=", ",", "/SHA256/"].iter().any(|part| text.matches(*part).count() > 1)
        || name.as_str().starts_with("x-docusign-signature")
        || name.as_str().starts_with("box-signature");
    !is_signed || one_of_several || old.as_bytes().eq_ignore_ascii_case(new.as_bytes())
}
