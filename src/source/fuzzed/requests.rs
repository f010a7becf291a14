//! Properties of whole requests, and of the settings that say what is made of them.
//!
//! A request of a fuzzer: a byte that chooses the source, the target in the first line, a header in each line after
//! it, an empty line, and the body.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::SecretString;
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::super::handshake::{Greeted, Greeting, Template};
use super::super::spec::SourceSpec;
use super::super::wants::Wants;
use super::super::{Item, Reading, Request, ResolvedSecret, Signing, Source, presets};
use super::{choice, text};

const NOW_MS: i64 = 1_772_452_800_000;
const SECRET: &str = "whsec_c2l4dGVlbi1ieXRlLWtleXMhIQ==";
/// The most bytes of an answer to a handshake.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

fn compiled(spec: &SourceSpec) -> Option<Source> {
    // most kinds of secrets; public keys are read by a property of their own
    let secrets =
        [SECRET, "user:password-of-some-length", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"];
    let of = |text: &str| ResolvedSecret {
        key: "secrets[0]".to_owned(),
        tenant: None,
        value: SecretString::from(text),
        until_ms: None,
    };
    let config: BTreeMap<_, _> =
        ["verify_token", "webhook_id", "public_key", "topic", "topic_arn", "token", "verification_token"]
            .into_iter()
            .map(|name| (name.to_owned(), vec![SecretString::from("a-value")]))
            .collect();
    let compile = |secrets: &[ResolvedSecret]| Source::compile_with(spec, secrets, &config).ok();
    secrets.iter().find_map(|text| compile(&[of(text)])).or_else(|| compile(&[]))
}

/// Every preset that can be had without its sender's public key.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let origin = "\n[verify]\norigin = 'https://hooks.example.com'";
    let of = |name: &str, more: &str| {
        let text = format!("name = 'fuzzed'\npreset = '{name}'\nallow_weak_secret = true{more}");
        toml::from_str::<SourceSpec>(&text).ok().and_then(|spec| compiled(&spec))
    };
    presets::names().filter_map(|name| of(name, origin).or_else(|| of(name, ""))).collect()
});

struct Sent<'a> {
    target: &'a str,
    headers: HeaderMap,
    body: Bytes,
}

impl<'a> Sent<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
        let mut lines = text(&bytes[..end])?.lines();
        let target = lines.next().filter(|target| target.starts_with('/')).unwrap_or("/in/fuzzed");
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = HeaderValue::from_str(value.trim()).ok()?;
            headers.append(name.parse::<HeaderName>().ok()?, value);
        }
        let body = Bytes::copy_from_slice(bytes.get(end + 2..).unwrap_or_default());
        Some(Self { target, headers, body })
    }

    fn request<'s>(&'s self, method: &'s Method) -> Request<'s> {
        Request {
            method,
            target: self.target,
            path_tenant: None,
            headers: &self.headers,
            body: &self.body,
            now_ms: NOW_MS,
        }
    }
}

/// A request has one verdict; what its sender signs is taken, read the same twice, and in pieces of the body.
pub(super) fn requests(bytes: &[u8]) {
    let Some((source, rest)) = choice(&SOURCES, bytes) else { return };
    let Some(sent) = Sent::read(rest) else { return };
    let request = sent.request(&Method::POST);
    let verdict = source.verify(&request).map(|verified| verified.secret());
    assert_eq!(source.verify(&request).map(|verified| verified.secret()), verdict, "two verdicts");
    let Ok(draft) = source.signed(&Signing { request, id: "id-1", kind: "a.b" }) else { return };
    let signed = Request { headers: &draft.headers, body: &draft.body, target: &draft.target, ..request };
    let Ok(verified) = source.verify(&signed) else { return };
    let ids = || EventId(Uuid::nil());
    let first = source.read(&signed, &verified, &ids);
    assert_eq!(format!("{first:?}"), format!("{:?}", source.read(&signed, &verified, &ids)), "read in two ways");
    if let Reading::Event(event) = &first {
        assert!(!event.key.text.trim().is_empty() && event.body == draft.body);
    }
    if let Reading::Batch(items) = &first {
        for item in items {
            let (Item::Event(tidegate_actors::rules::event::Event { body, .. })
            | Item::Unusable(tidegate_actors::rules::event::Unusable { body, .. })) = item;
            assert!(body.len() <= draft.body.len().saturating_mul(20).max(16 * 1024));
        }
    }
}

/// An answer to a stranger is short and says no secret.
pub(super) fn handshakes(bytes: &[u8]) {
    const METHODS: [Method; 4] = [Method::POST, Method::GET, Method::HEAD, Method::OPTIONS];
    if let Some(text) = text(bytes) {
        let mut wants = Wants::default();
        if let Ok(template) = Template::parse(text, &mut wants) {
            assert!(
                !template.needs_secret() || template.is_keyed() || !text.contains("{secret}"),
                "it says the secret"
            );
        }
    }
    let Some((source, rest)) = choice(&SOURCES, bytes) else { return };
    let Some((method, rest)) = choice(&METHODS, rest) else { return };
    let Some(sent) = Sent::read(rest) else { return };
    if knows_secret(bytes) {
        return;
    }
    if let Some(Greeting::Answer(greeted)) = source.greet(&sent.request(method)) {
        let Greeted { status, headers, body, .. } = *greeted;
        assert!((200..300).contains(&status), "{status}");
        let said = body.map(|(_, body)| body).unwrap_or_default();
        let all = headers.iter().map(|(_, value)| value.as_bytes()).chain([&said[..]]);
        for text in all {
            assert!(text.len() <= ANSWER_BYTES_MAX, "{} bytes", text.len());
            assert!(!text.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "it says the secret");
        }
    }
}

/// Whether an input holds a piece of the secret: a fuzzer finds it in the comparisons of these properties, and who
/// knows it may be told it.
fn knows_secret(bytes: &[u8]) -> bool {
    let pieces = || SECRET.as_bytes()[6..].windows(6);
    bytes.windows(6).any(|window| pieces().any(|piece| piece == window))
}

/// Settings are read or refused; written and read again they are the same; no problem says a secret.
pub(super) fn settings(bytes: &[u8]) {
    let Some(text) = text(bytes).filter(|_| !knows_secret(bytes)) else { return };
    let Ok(spec) = toml::from_str::<SourceSpec>(text) else { return };
    if let Ok(written) = toml::to_string(&spec) {
        let again: SourceSpec = toml::from_str(&written).unwrap_or_else(|error| panic!("{error} in\n{written}"));
        assert_eq!(again, spec, "as written:\n{written}");
    }
    let secret = ResolvedSecret {
        key: "secrets[0]".to_owned(),
        tenant: None,
        value: SecretString::from(SECRET),
        until_ms: None,
    };
    if let Err(problems) = Source::compile(&spec, &[secret]) {
        assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.to_string().contains(&SECRET[6..])));
    }
}
