//! One mistake after the other, made for several senders, and what is told of it.

use std::collections::BTreeMap;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::SecretString;

use super::super::super::{ResolvedSecret, Signing, Source, SourceSpec};
use super::super::{Case, Configured, End, Mistake, Sent, explain};

const NOW_MS: i64 = 1_772_452_800_000;
const SECRET: &str = "a-secret-of-more-than-16-bytes";
const WHSEC: &str = "whsec_c2l4dGVlbi1ieXRlLWtleQ==";
const BODY: &str = "{\"id\":\"evt_1\",\"type\":\"a.b\",\"data\":{\"id\":\"x/1\",\"name\":\"é\",\"sum\":2.50}}";

/// A sender and a receiver of it.
#[derive(Clone)]
struct Pair {
    /// The sender's rules, and its secret.
    theirs: (String, String),
    /// Ours.
    ours: (String, String),
    body: Vec<u8>,
    target: String,
}

impl Pair {
    fn of(rules: &str, secret: &str) -> Self {
        let side = (format!("name = 'x'\nallow_weak_secret = true\n{rules}"), secret.to_owned());
        Self { theirs: side.clone(), ours: side, body: BODY.into(), target: "/in/x?b=1&a=2".to_owned() }
    }

    fn sent(&self) -> Sent {
        let source = compiled(&self.theirs.0, &self.theirs.1);
        let mut headers = HeaderMap::new();
        headers.insert(name("content-type"), HeaderValue::from_static("application/json"));
        let body = Bytes::from(self.body.clone());
        let mut sent = Sent {
            method: Method::POST,
            target: self.target.clone(),
            path_tenant: None,
            headers,
            body,
            now_ms: NOW_MS,
        };
        let signed = source.signed(&Signing { request: sent.request(), id: "msg_1", kind: "a.b" }).expect("signed");
        (sent.headers, sent.body, sent.target) = (signed.headers, signed.body, signed.target);
        sent
    }

    fn told(&self, sent: &Sent) -> Vec<Mistake> {
        let (spec, secrets) = (spec(&self.ours.0), [secret(&self.ours.1)]);
        told(&spec, &secrets, &[], sent)
    }
}

fn told(spec: &SourceSpec, secrets: &[ResolvedSecret], others: &[Configured<'_>], sent: &Sent) -> Vec<Mistake> {
    let config = BTreeMap::new();
    let source = Source::compile(spec, secrets).unwrap_or_else(|problems| panic!("{problems:?}"));
    let configured = Configured { spec, secrets, config: &config };
    let explained = explain(&Case { source: &source, configured, others, sent });
    assert!(matches!(explained.end, End::Refused(_) | End::NotUnpacked), "{:?}", explained.end);
    let all = format!("{explained:?}");
    for secret in [SECRET, WHSEC, "c2l4dGVlbi1ieXRlLWtleQ", "sixteen-byte-key"] {
        assert!(!all.contains(secret), "a secret is told: {all}");
    }
    explained.mistakes
}

fn spec(rules: &str) -> SourceSpec {
    toml::from_str(rules).unwrap_or_else(|error| panic!("{error}: {rules}"))
}

fn compiled(rules: &str, text: &str) -> Source {
    Source::compile(&spec(rules), &[secret(text)]).unwrap_or_else(|problems| panic!("{problems:?}: {rules}"))
}

fn secret(text: &str) -> ResolvedSecret {
    ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value: SecretString::from(text), until_ms: None }
}

fn name(text: &str) -> HeaderName {
    text.parse().expect("a header's name")
}

/// Senders whose signature covers the body: rules, secret, header of the signature, window in seconds.
fn senders() -> Vec<(Pair, &'static str, Option<i64>)> {
    let origin = "verify = { origin = 'https://hooks.example.com' }";
    vec![
        (Pair::of("preset = 'stripe'", SECRET), "stripe-signature", Some(300)),
        (Pair::of("preset = 'github'", SECRET), "x-hub-signature-256", None),
        (Pair::of("preset = 'shopify'", SECRET), "x-shopify-hmac-sha256", None),
        (Pair::of("preset = 'slack'", SECRET), "x-slack-signature", Some(300)),
        (Pair::of("preset = 'standard-webhooks'", WHSEC), "webhook-signature", Some(300)),
        (Pair::of("preset = 'zendesk'", SECRET), "x-zendesk-webhook-signature", Some(300)),
        (Pair::of(&format!("preset = 'square'\n{origin}"), SECRET), "x-square-hmacsha256-signature", None),
        (Pair::of(&format!("preset = 'hubspot'\n{origin}"), SECRET), "x-hubspot-signature-v3", Some(300)),
        (Pair::of("preset = 'paystack'", SECRET), "x-paystack-signature", None),
    ]
}

#[track_caller]
fn first(mistakes: &[Mistake], code: &str, certain: bool, of: &Pair) {
    let found = mistakes.first().map(|mistake| (mistake.code, mistake.certain));
    assert_eq!(found, Some((code, certain)), "{}: {mistakes:?}", of.ours.0);
}

/// A mistake that is made with the request on its way.
type Made = (&'static str, fn(&mut Sent, &HeaderName));

#[test]
fn what_happens_to_a_request_on_its_way_is_told_for_every_sender() {
    let made: [Made; 13] = [
        ("body-end", |sent, _| sent.body = [&sent.body[..], b"\n"].concat().into()),
        ("byte-order-mark", |sent, _| sent.body = ["\u{feff}".as_bytes(), &sent.body].concat().into()),
        ("charset", |sent, _| sent.body = recoded(&sent.body)),
        ("body-written-anew", |sent, _| sent.body = replaced(sent, "\":", "\": ")),
        ("body-written-anew", |sent, _| sent.body = replaced(sent, "é", "\\u00e9")),
        ("body-written-anew", |sent, _| sent.body = replaced(sent, "\"id\":\"x/1\"", "\"id\":\"x\\/1\"")),
        ("header-renamed", |sent, name| rename(sent, name, &format!("x-original-{name}"))),
        ("header-renamed", |sent, name| rename(sent, name, "x-something-else")),
        ("header-quoted", |sent, name| rewrite(sent, name, |text| format!("\"{text}\""))),
        ("header-twice", |sent, name| {
            let value = sent.headers.get(name).cloned().expect("a signature");
            sent.headers.append(name.clone(), value);
        }),
        ("header-named", |sent, name| rewrite(sent, name, |text| format!("X-Signature: {text}"))),
        ("header-stripped", |sent, name| drop(sent.headers.remove(name))),
        ("body-missing", |sent, _| sent.body = Bytes::new()),
    ];
    for (pair, header, _) in senders() {
        for (code, make) in made {
            let mut sent = pair.sent();
            make(&mut sent, &name(header));
            if code == "header-named" && header == "webhook-signature" {
                // whose unknown entries are skipped, so that it holds all the same
                continue;
            }
            let certain = !matches!(code, "header-stripped" | "body-missing");
            let told = pair.told(&sent);
            if code == "header-stripped" && told.first().is_some_and(|mistake| mistake.code == "header-other") {
                // another header of this sender is called like a signature
                continue;
            }
            first(&told, code, certain, &pair);
        }
    }
}

fn replaced(sent: &Sent, from: &str, to: &str) -> Bytes {
    let text = String::from_utf8(sent.body.to_vec()).expect("a text");
    // a renamed letter is found again only where the sender wrote it plainly
    text.replace(from, to).into_bytes().into()
}

fn recoded(body: &[u8]) -> Bytes {
    let text: String = body.iter().map(|&byte| char::from(byte)).collect();
    // what was read as Latin-1 and written as UTF-8 is read back
    text.into_bytes().into()
}

fn rename(sent: &mut Sent, name: &HeaderName, other: &str) {
    let value = sent.headers.get(name).cloned().expect("a signature");
    sent.headers.remove(name);
    sent.headers.insert(self::name(other), value);
}

fn rewrite(sent: &mut Sent, name: &HeaderName, change: impl Fn(&str) -> String) {
    let text = change(sent.headers.get(name).and_then(|value| value.to_str().ok()).expect("a signature"));
    sent.headers.insert(name.clone(), HeaderValue::from_str(&text).expect("a value"));
}

#[test]
fn line_ends_that_were_changed_are_told() {
    let mut pair = Pair::of("preset = 'github'", SECRET);
    pair.body = b"{\r\n\"id\": 1\r\n}\r\n".to_vec();
    let mut sent = pair.sent();
    sent.body = b"{\n\"id\": 1\n}\n"[..].into();
    first(&pair.told(&sent), "line-ends", true, &pair);
    pair.body = b"{\n\"id\": 1\n}".to_vec();
    let mut sent = pair.sent();
    sent.body = b"{\r\n\"id\": 1\r\n}"[..].into();
    first(&pair.told(&sent), "line-ends", true, &pair);
}

#[test]
fn members_that_were_sorted_and_lines_that_were_joined_are_told() {
    let mut pair = Pair::of("preset = 'shopify'", SECRET);
    pair.body = b"{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}".to_vec();
    let mut sent = pair.sent();
    sent.body = b"{\"b\":{},\"a\":[1]}"[..].into();
    let told = pair.told(&sent);
    first(&told, "body-written-anew", true, &pair);
    assert!(told[0].says.contains("in lines, indented by two blanks, its members sorted"), "{told:?}");
}

#[test]
fn a_clock_a_time_zone_and_an_old_capture_are_told_apart() {
    const HOUR_MS: i64 = 3_600_000;
    for (pair, _, window) in senders() {
        if window.is_none() {
            continue;
        }
        for (off_ms, code) in [
            (5 * HOUR_MS + 2_000, "clock-zone"),
            (-(5 * HOUR_MS + HOUR_MS / 2), "clock-zone"),
            (40 * 24 * HOUR_MS, "capture-old"),
            (20 * 60_000 + 7_000, "capture-old"),
            (-24 * 60_000, "clock"),
        ] {
            let mut sent = pair.sent();
            sent.now_ms += off_ms;
            first(&pair.told(&sent), code, false, &pair);
        }
    }
}

#[test]
fn rules_that_are_not_the_senders_are_told() {
    let base = "key = 'body:/id'\ntype = 'body:/type'\n";
    let theirs = "verify = { scheme = 'hmac-sha256', header = 'x-sig', timestamp = 'header:x-time', signed = '{timestamp}.{body}', window = '5m' }";
    let with = |from: &str, to: &str| theirs.replace(from, to);
    let hidden = "verify = { scheme = 'hmac-sha256', header = 'x-sig' }".to_owned();
    for (ours, code) in [
        (with("hmac-sha256", "hmac-sha512"), "algorithm"),
        (with("header = 'x-sig'", "header = 'x-sig', encoding = 'base64'"), "encoding"),
        (with("{timestamp}.{body}", "{timestamp}{body}"), "signed"),
        (with("window", "unit = 'ms', window"), "unit"),
        (with("window", "unit = 'iso', window"), "unit"),
        (with("'x-sig'", "'x-signature'"), "header-renamed"),
        (with("'header:x-time'", "'header:x-date'"), "header-renamed"),
        (with("header = 'x-sig'", "header = 'x-sig', format = { prefix = 'sha256=' }"), "format"),
        (hidden, "signed"),
        (with("hmac-sha256", "hmac-sha1").replace("}.{body", "}{body"), "several"),
    ] {
        let mut pair = Pair::of(&format!("{base}{theirs}"), SECRET);
        pair.ours.0 = format!("name = 'x'\n{base}{ours}");
        let told = pair.told(&pair.sent());
        first(&told, code, true, &pair);
    }
}

#[test]
fn a_secret_that_is_read_or_copied_wrongly_is_told() {
    let base = "key = 'body:/id'\ntype = 'body:/type'\n";
    let verify =
        |form: &str| format!("{base}verify = {{ scheme = 'hmac-sha256', header = 'x-sig', secret = '{form}' }}");
    let hex = "73697874656e2d627974652d6b65792d68657265";
    for (theirs, ours, secret) in [
        ("base64", "utf8", "c2l4dGVlbi1ieXRlLWtleQ=="),
        ("utf8", "base64", "c2l4dGVlbi1ieXRlLWtleQ=="),
        ("hex", "utf8", hex),
        ("utf8", "whsec-base64", WHSEC),
        ("whsec-base64", "utf8", WHSEC),
        ("sha1-utf8", "utf8", SECRET),
    ] {
        let mut pair = Pair::of(&verify(theirs), secret);
        pair.ours.0 = format!("name = 'x'\n{}", verify(ours));
        first(&pair.told(&pair.sent()), "secret-form", true, &pair);
    }
    // `c2l…` below: the secret with a line end, a blank, quotes
    use base64::Engine as _;
    let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    for theirs in [format!("{SECRET}\n"), format!("{SECRET} "), format!("\"{SECRET}\""), SECRET.to_uppercase()] {
        let mut pair = Pair::of(&verify("base64"), &encode(theirs));
        pair.ours = (format!("name = 'x'\n{}", verify("utf8")), SECRET.to_owned());
        first(&pair.told(&pair.sent()), "secret-text", true, &pair);
    }
}

#[test]
fn the_secret_of_a_neighbour_is_told_by_its_place() {
    let github = |name: &str| spec(&format!("name = '{name}'\npreset = 'github'"));
    let config = BTreeMap::new();
    let (ours, theirs) = (github("x"), github("staging"));
    let their_secrets = [secret("the-secret-of-another-environment")];
    let sent = Pair::of("preset = 'github'", "the-secret-of-another-environment").sent();
    let others = [Configured { spec: &theirs, secrets: &their_secrets, config: &config }];
    let found = told(&ours, &[secret(SECRET)], &others, &sent);
    let codes: Vec<&str> = found.iter().map(|mistake| mistake.code).collect();
    assert_eq!(codes, ["secret-of-source", "source"], "{found:?}");
    assert!(found[0].says.contains("`secrets[0]` of the source \"staging\""), "{found:?}");

    let ended = ResolvedSecret { until_ms: Some(NOW_MS - 1), ..secret("the-secret-of-another-environment") };
    let live = ResolvedSecret { key: "secrets[1]".to_owned(), ..secret(SECRET) };
    let found = told(&ours, &[ended, live], &[], &sent);
    assert_eq!(found[0].code, "secret-ended", "{found:?}");

    let tenants = spec("name = 'x'\npreset = 'github'\ntenant = 'path'\ntenants = ['a', 'b']");
    let of = |tenant: &str, text: &str| ResolvedSecret { tenant: Some(tenant.to_owned()), ..secret(text) };
    let secrets = [of("a", SECRET), of("b", "the-secret-of-another-environment")];
    let found = told(&tenants, &secrets, &[], &Sent { path_tenant: Some("a".to_owned()), ..sent.clone() });
    assert_eq!(found[0].code, "secret-of-tenant", "{found:?}");
    let found = told(&tenants, &secrets, &[], &Sent { path_tenant: Some("c".to_owned()), ..sent });
    assert_eq!(found[0].code, "tenant-unknown", "{found:?}");
}

#[test]
fn the_rules_of_another_preset_are_told() {
    let mut pair = Pair::of("preset = 'woocommerce'", SECRET);
    pair.ours.0 = "name = 'x'\npreset = 'stripe'".to_owned();
    let told = pair.told(&pair.sent());
    assert!(told.iter().any(|mistake| mistake.code == "preset"), "{told:?}");
}

#[test]
fn an_address_that_a_proxy_changed_is_told() {
    let with = |preset: &str, origin: &str| format!("preset = '{preset}'\nverify = {{ origin = '{origin}' }}");
    for preset in ["square", "hubspot"] {
        for (origin, code) in [
            ("http://hooks.example.com", "address-scheme"),
            ("https://hooks.example.com:8443", "address-port"),
            ("https://hooks.example.com/api", "address-path"),
        ] {
            let mut pair = Pair::of(&with(preset, "https://hooks.example.com"), SECRET);
            pair.ours.0 = format!("name = 'x'\n{}", with(preset, origin));
            first(&pair.told(&pair.sent()), code, true, &pair);
        }
        let mut pair = Pair::of(&with(preset, "https://hooks.example.com"), SECRET);
        pair.ours.0 = format!("name = 'x'\n{}", with(preset, "https://internal"));
        let mut sent = pair.sent();
        sent.headers.insert(name("x-forwarded-host"), HeaderValue::from_static("hooks.example.com"));
        first(&pair.told(&sent), "address-host", true, &pair);

        let pair = Pair::of(&with(preset, "https://hooks.example.com"), SECRET);
        for (target, code) in [("/in/x?a=2&b=1", "address-query"), ("/in/x/?b=1&a=2", "address-path")] {
            let sent = Sent { target: target.to_owned(), ..pair.sent() };
            first(&pair.told(&sent), code, true, &pair);
        }
    }
}

#[test]
fn a_body_that_was_packed_or_unpacked_is_told() {
    use std::io::Write as _;
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(BODY.as_bytes()).expect("written");
    let packed = writer.finish().expect("packed");
    let gzip = HeaderValue::from_static("gzip");

    let plain = Pair::of("preset = 'github'", SECRET);
    let mut sent = plain.sent();
    sent.body = packed.into();
    first(&plain.told(&sent), "packing", true, &plain);

    let mut encoded = plain.clone();
    encoded.ours.0.push_str("\ncontent_encoding = { gzip = 'signed-encoded' }");
    sent.headers.insert(name("content-encoding"), gzip.clone());
    first(&encoded.told(&sent), "packing", true, &encoded);

    let mut decoded = plain.clone();
    decoded.ours.0.push_str("\ncontent_encoding = { gzip = 'signed-decoded' }");
    let mut sent = plain.sent();
    sent.headers.insert(name("content-encoding"), gzip);
    first(&decoded.told(&sent), "body-unpacked", true, &decoded);
}

#[test]
fn what_nobody_made_is_called_a_guess() {
    for (pair, _, _) in senders() {
        let mut other = pair.clone();
        other.theirs.1 =
            if pair.ours.1 == WHSEC { "whsec_YW5vdGhlci1zaXh0ZWVuLWI=" } else { "nobody-knows-this-secret" }.to_owned();
        first(&pair.told(&other.sent()), "secret-other", false, &pair);
    }
}

#[test]
fn where_the_secret_is_sent_or_hashed_neither_it_nor_its_hash_is_told() {
    use sha2::{Digest as _, Sha256};
    let base = "key = 'body:/id'\ntype = 'body:/type'\n";
    let hashed =
        format!("{base}verify = {{ scheme = 'digest-sha256', header = 'x-sig', signed = '{{secret}}{{body}}' }}");
    let token = format!("{base}verify = {{ scheme = 'token', header = 'x-token' }}");
    for rules in [hashed, token] {
        let mut pair = Pair::of(&rules, SECRET);
        let good = pair.sent();
        pair.ours.1 = "another-secret-of-more-than-16".to_owned();
        let source = compiled(&pair.ours.0, &pair.ours.1);
        let (spec, secrets, config) = (spec(&pair.ours.0), [secret(&pair.ours.1)], BTreeMap::new());
        let configured = Configured { spec: &spec, secrets: &secrets, config: &config };
        let all = format!("{:?}", explain(&Case { source: &source, configured, others: &[], sent: &good }));
        let would_hold = hex::encode(Sha256::digest(format!("{}{BODY}", pair.ours.1)));
        for hidden in [SECRET, &pair.ours.1, &would_hold] {
            assert!(!all.contains(hidden), "{all}");
        }
    }
}
