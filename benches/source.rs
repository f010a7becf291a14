//! What it costs to verify and read one event of about 1 KB: of a source that is declared, of presets with every kind
//! of signature text, of a batch and of a form.

use std::hint::black_box;

use actix_web::http::Method;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use secrecy::SecretString;
use tidegate::source::{Request, ResolvedSecret, Signing, Source, SourceSpec};
use tidegate_actors::rules::event::EventId;

const NOW_MS: i64 = 1_772_452_800_000;

fn source(text: &str) -> Source {
    let spec: SourceSpec = toml::from_str(&format!("name = 'bench'\n{text}")).expect("a source");
    let value = SecretString::from("whsec_c2l4dGVlbi1ieXRlLWtleQ==");
    let secret = ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value, until_ms: None };
    Source::compile(&spec, &[secret]).expect("a source")
}

/// Things of an order, about a hundred bytes each.
fn lines(count: usize) -> String {
    let line = |n| format!(r#"{{"sku":"sku_{n:06}","name":"a thing with a name","quantity":{n},"price":{n}99.50}}"#);
    (0..count).map(line).collect::<Vec<_>>().join(",")
}

fn body() -> String {
    format!(
        r#"{{"id":"evt_000001","type":"order.updated","created":1772452800,"timestamp":"2026-03-02T12:00:00.123Z","data":{{"object":{{"id":"ord_1","object":"order","status":"paid"}},"id":"ord_1","type":"order","lines":[{}]}}}}"#,
        lines(9)
    )
}

/// Four events in one request.
fn batch() -> String {
    let event =
        |n| format!(r#"{{"id":"evt_{n}","type":"order.updated","seq":{n},"order":"ord_{n}","lines":[{}]}}"#, lines(2));
    format!(r#"{{"events":[{}]}}"#, (0..4).map(event).collect::<Vec<_>>().join(","))
}

/// The same event as JSON in a field of a form.
fn form() -> String {
    let escaped = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    format!("payload={}", body().bytes().map(escaped).collect::<String>())
}

const HMAC: &str =
    "verify = { scheme = 'hmac-sha256', header = 'x-signature', signed = '{header:x-time}.{body}', window = '5m' }";
const RULES: &str = "key = 'body:/id'\ntype = 'body:/type'\nresource = { type = 'body:/data/type', id = 'body:/data/id' }\n\
                     version = [{ from = 'body:/created', as = 'integer' }]";
const ITEMS: &str = "batch = 'body:/events'\nkey = 'item:/id'\ntype = 'item:/type'\n\
                     resource = { type = 'literal:order', id = 'item:/order' }\n\
                     version = [{ from = 'item:/seq', as = 'integer' }]";

fn verify_and_read(c: &mut Criterion) {
    let preset = |name: &'static str| (name, format!("preset = '{name}'"), body(), "application/json");
    let cases = [
        ("declared", format!("{HMAC}\n{RULES}"), body(), "application/json"),
        preset("standard-webhooks"),
        preset("stripe"),
        preset("github"),
        preset("svix"),
        preset("workos"),
        preset("mux"),
        preset("paystack"),
        ("batch of 4", format!("{HMAC}\n{ITEMS}"), batch(), "application/json"),
        ("form", format!("{HMAC}\nform_json = 'payload'\n{RULES}"), form(), "application/x-www-form-urlencoded"),
    ];
    let mut group = c.benchmark_group("source");
    for (name, text, body, content_type) in cases {
        let (source, body) = (source(&text), Bytes::from(body));
        group.throughput(Throughput::Bytes(body.len() as u64));
        let mut bare = HeaderMap::new();
        bare.insert(CONTENT_TYPE, content_type.parse().expect("a value"));
        let of = |headers, body| Request {
            method: &Method::POST,
            target: "/in/bench",
            path_tenant: None,
            headers,
            body,
            now_ms: NOW_MS,
        };
        let signing = Signing { request: of(&bare, &body), id: "evt_000001", kind: "order.updated" };
        let draft = source.signed(&signing).expect("a signed request");
        let request = of(&draft.headers, &draft.body);
        let id = || EventId(uuid::Uuid::nil());
        let verified = source.verify(&request).expect("a signed request");
        group.bench_function(format!("{name}/verify"), |b| b.iter(|| source.verify(black_box(&request)).is_ok()));
        group.bench_function(format!("{name}/read"), |b| b.iter(|| source.read(black_box(&request), &verified, &id)));
        group.bench_function(format!("{name}/verify and read"), |b| {
            b.iter(|| source.verify(black_box(&request)).map(|verified| source.read(&request, &verified, &id)).is_ok());
        });
    }
    group.finish();
}

criterion_group!(benches, verify_and_read);
criterion_main!(benches);
