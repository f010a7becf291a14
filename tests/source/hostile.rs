//! Requests of strangers: any bytes, and any single change to a signed request.

use actix_web::http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;
use tidegate::source::{Item, Reading, Reason, Source};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::common::{SECRET, Sent, plain, preset, secret, source, try_source};

const BODY: &str =
    r#"{"id":"evt_1","type":"thing.updated","created":1772452800,"data":{"object":{"id":"a","object":"b"}}}"#;

fn sources() -> Vec<Source> {
    let six = ["standard-webhooks", "svix", "stripe", "github", "shopify", "slack"];
    let mut all: Vec<Source> = six.into_iter().map(preset).collect();
    all.push(source("verify = { scheme = 'hmac-sha512', header = 'x-signature', signed = '{header:x-time}.{body}', window = '5m', encoding = 'base64url' }\nkey = 'body:/id'"));
    all
}

fn signed(source: &Source) -> Sent {
    Sent::new(&[], BODY).signed(source, "id-1", "thing.updated")
}

/// The headers that hold the signature, and for each the part that is one.
const SIGNATURES: [&str; 7] = [
    "webhook-signature",
    "svix-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-shopify-hmac-sha256",
    "x-slack-signature",
    "x-signature",
];

const TIMES: [&str; 4] = ["webhook-timestamp", "svix-timestamp", "x-slack-request-timestamp", "x-time"];

fn flip(sent: &Sent, names: &[&str], place: usize, bit: u8) -> Option<Sent> {
    let name = names.iter().find(|name| sent.headers.contains_key(**name))?;
    let mut value = sent.headers.get(*name)?.as_bytes().to_vec();
    let place = place % value.len();
    let (old, new) = (value[place], value[place] ^ (1 << bit));
    // hex counts in either case; blanks around a value belong to the transport
    if old.eq_ignore_ascii_case(&new) || new == b' ' || new == b'\t' {
        return None;
    }
    value[place] = new;
    let mut flipped = sent.clone();
    flipped.headers.insert(name.parse::<HeaderName>().ok()?, HeaderValue::from_bytes(&value).ok()?);
    Some(flipped)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_single_flipped_bit_in_the_body_is_refused(which in 0usize..7, place in 0usize..BODY.len(), bit in 0u8..8) {
        let source = &sources()[which];
        let mut sent = signed(source);
        prop_assert!(sent.verify(source).is_ok());
        let mut body = sent.body.to_vec();
        body[place] ^= 1 << bit;
        sent.body = body.into();
        prop_assert_eq!(sent.verify(source).map(drop).map_err(|refusal| refusal.reason), Err(Reason::WrongSignature));
    }

    #[test]
    fn a_single_flipped_bit_in_signature_or_time_is_refused(
        which in 0usize..7, place in 0usize..100, bit in 0u8..8, time in any::<bool>(),
    ) {
        let source = &sources()[which];
        if let Some(flipped) = flip(&signed(source), if time { &TIMES } else { &SIGNATURES }, place, bit) {
            prop_assert!(flipped.verify(source).is_err(), "{:?}", flipped.headers);
        }
    }

    #[test]
    fn any_headers_are_refused_and_never_a_panic(
        which in 0usize..7,
        signature in prop::collection::vec(any::<u8>(), 0..120),
        time in prop_oneof!["[-+0-9 ]{0,22}", Just(i64::MIN.to_string()), Just(i64::MAX.to_string())],
        body in prop::collection::vec(any::<u8>(), 0..60),
        now_ms in any::<i64>(),
    ) {
        let source = &sources()[which];
        let mut sent = signed(source);
        sent.now_ms = now_ms;
        sent.body = body.into();
        for name in SIGNATURES.iter().filter(|name| sent.headers.contains_key(**name)).copied().collect::<Vec<_>>() {
            if let Ok(value) = HeaderValue::from_bytes(&signature) {
                sent.headers.insert(name.parse::<HeaderName>().expect("a name"), value);
            }
        }
        for name in TIMES.iter().filter(|name| sent.headers.contains_key(**name)).copied().collect::<Vec<_>>() {
            if let Ok(value) = HeaderValue::from_str(&time) {
                sent.headers.insert(name.parse::<HeaderName>().expect("a name"), value);
            }
        }
        prop_assert!(sent.verify(source).is_err());
    }

    #[test]
    fn any_signed_body_is_read_or_unusable_and_never_a_panic(
        which in 0usize..7,
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 1..200),
            r#"[\[\]{}:,"a-z0-9.\\u]{1,60}"#.prop_map(String::into_bytes),
        ],
        form in any::<bool>(),
    ) {
        let source = &sources()[which];
        let kind = if form { "application/x-www-form-urlencoded" } else { "application/json" };
        let sent = Sent::new(&[("content-type", kind)], body).signed(source, "id-1", "thing.updated");
        let verified = sent.verify(source).expect("a signed request");
        let _ = source.read(&sent.request(), &verified, &|| EventId(Uuid::nil()));
    }
}

/// Sources that read parts of what they are sent: items, members, steps, second keys.
fn reading_parts() -> [Source; 2] {
    let rules = "resource = { type = 'literal:a', id = 'body:/a' }\nversion = [{ from = 'body:/0', as = 'integer' }]\n\
                 merge = 'fields'\nstate = 'body:'\neffect_key = 'body:/b'\n\
                 order = { policy = 'transition', step = 'body:/z', ranks = ['a', '*'] }";
    [
        plain(&format!("key = 'body:/a'\n{rules}")),
        plain(
            &format!("batch = 'body:'\nkey = 'item:/a'\n{rules}")
                .replace("'body:/", "'item:/")
                .replace("state = 'body:'", "state = 'item:'"),
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_parts_are_read_or_unusable_and_never_a_panic(
        which in 0usize..2,
        body in prop_oneof![
            r#"[\[\]{}:,"ab0-9z.\\u]{1,60}"#,
            r#"\[(\{("[abz0]":("[a-z]{0,3}"|[0-9]{1,3}|null|\[\]|\{\}),?){0,4}\},?){0,4}\]"#,
            r#"\{("[abz0]":("[a-z]{0,3}"|[0-9]{1,3}|null),?){0,5}\}"#,
        ],
    ) {
        let source = &reading_parts()[which];
        let sent = Sent::new(&[], body).signed(source, "", "");
        let verified = sent.verify(source).expect("a signed request");
        let reading = source.read(&sent.request(), &verified, &|| EventId(Uuid::nil()));
        if let Reading::Batch(items) = reading {
            for item in items {
                let body = match item {
                    Item::Event(event) => event.body,
                    Item::Unusable(unusable) => unusable.body,
                };
                let within = sent.body.windows(body.len()).any(|window| window == body);
                prop_assert!(within, "an item is a piece of what was sent, byte for byte");
            }
        }
    }
}

#[test]
fn a_request_signed_for_one_source_is_refused_by_all_others() {
    let sources = sources();
    for (left, source) in sources.iter().enumerate() {
        for (right, other) in sources.iter().enumerate() {
            // svix also takes the names of the Standard Webhooks, and both test sources share a secret
            let related = [left, right].iter().all(|index| *index < 2);
            if left != right && !related {
                assert!(signed(source).verify(other).is_err(), "{source:?} passes for {other:?}");
            }
        }
    }
}

#[test]
fn a_secret_counts_until_its_end_and_any_live_one_may_sign() {
    let text = "verify = { scheme = 'hmac-sha256', header = 'x-signature' }\nkey = 'raw:sha256'";
    let (mut old, new) = (secret("the-old-secret-of-20-bytes"), secret(SECRET));
    old.until_ms = Some(super::common::NOW_MS + 1);
    let sender = try_source(text, &[secret("the-old-secret-of-20-bytes")]).expect("a source");
    let both = try_source(text, &[new, old]).expect("a source");
    let mut sent = Sent::new(&[], "{}").signed(&sender, "", "");
    assert_eq!(sent.verify(&both).expect("signed with a live secret").secret(), 1);
    sent.now_ms += 1;
    assert_eq!(sent.verify(&both).map_err(|refusal| refusal.reason).err(), Some(Reason::WrongSignature));
}

#[test]
fn a_tenant_s_secret_counts_for_that_tenant_alone() {
    let text = "tenant = 'path'\ntenants = [{ name = 'a', secrets = ['env:A'] }, { name = 'b', secrets = ['env:B'] }]\n\
                verify = { scheme = 'hmac-sha256', header = 'x-signature' }\nkey = 'body:/id'";
    let mut secrets = [secret("the-secret-of-tenant-a"), secret("the-secret-of-tenant-b")];
    secrets[0].tenant = Some("a".to_owned());
    secrets[1].tenant = Some("b".to_owned());
    let source = try_source(text, &secrets).expect("a source");
    let to = |tenant: Option<&str>| Sent { path_tenant: tenant.map(str::to_owned), ..Sent::new(&[], r#"{"id":1}"#) };
    let sent = to(Some("a")).signed(&source, "", "");
    assert_eq!(&*sent.event(&source).tenant, "a");
    let moved = Sent { path_tenant: Some("b".to_owned()), ..sent.clone() };
    assert_eq!(moved.verify(&source).map(drop).map_err(|refusal| refusal.reason), Err(Reason::WrongSignature));
    for tenant in [None, Some("c"), Some("")] {
        let moved = Sent { path_tenant: tenant.map(str::to_owned), ..sent.clone() };
        assert_eq!(moved.verify(&source).map(drop).map_err(|refusal| refusal.reason), Err(Reason::UnknownTenant));
    }
}
