//! What it costs to verify and read one event of about 1 KB.

use std::hint::black_box;

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
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

fn body() -> Bytes {
    let lines: Vec<String> = (0..9)
        .map(|n| format!(r#"{{"sku":"sku_{n:06}","name":"a thing with a name","quantity":{n},"price":{n}99.50}}"#))
        .collect();
    let text = format!(
        r#"{{"id":"evt_000001","type":"order.updated","created":1772452800,"timestamp":"2026-03-02T12:00:00.123Z","data":{{"object":{{"id":"ord_1","object":"order","status":"paid"}},"id":"ord_1","type":"order","lines":[{}]}}}}"#,
        lines.join(",")
    );
    Bytes::from(text)
}

fn verify_and_read(c: &mut Criterion) {
    let declared = "verify = { scheme = 'hmac-sha256', header = 'x-signature', signed = '{header:x-time}.{body}', window = '5m' }\n\
                    key = 'body:/id'\ntype = 'body:/type'\nresource = { type = 'body:/data/type', id = 'body:/data/id' }\n\
                    version = [{ from = 'body:/created', as = 'integer' }]";
    let cases = [
        ("declared", declared),
        ("standard-webhooks", "preset = 'standard-webhooks'"),
        ("stripe", "preset = 'stripe'"),
        ("github", "preset = 'github'"),
    ];
    let body = body();
    let mut group = c.benchmark_group("source");
    group.throughput(Throughput::Bytes(body.len() as u64));
    for (name, text) in cases {
        let source = source(text);
        let bare = HeaderMap::new();
        let of = |headers| Request {
            method: &Method::POST,
            target: "/in/bench",
            path_tenant: None,
            headers,
            body: &body,
            now_ms: NOW_MS,
        };
        let headers = source.sign(&Signing { request: of(&bare), id: "evt_000001", kind: "order.updated" });
        let headers = headers.expect("signed headers");
        let request = of(&headers);
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
