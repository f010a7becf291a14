//! Properties of the parsers of signatures and keys, for any bytes.

use std::borrow::Cow;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::fuzzed::{choice, text};
use super::super::spec::{Encoding, Entries, Format, List, Pairs, Scheme, SecretForm};
use super::der;
use super::header::{Coding, Layout, SIGNATURES_MAX, decode, encode};
use super::key::read_jwks;
use super::place::Texts;
use super::public::PublicKey;

const CODINGS: [(Encoding, usize); 5] = [
    (Encoding::Hex, 32),
    (Encoding::HexLower, 20),
    (Encoding::Base64, 32),
    (Encoding::Base64url, 32),
    (Encoding::Base64Hex, 32),
];

fn formats() -> [Format; 7] {
    let names = || vec!["v1".to_owned(), "h1".to_owned()];
    let layout = ["*", "SHA256", "{signature}"].map(str::to_owned).to_vec();
    [
        Format::Bare,
        Format::Prefix("sha256=".to_owned()),
        Format::Versions(names()),
        Format::Pairs(Pairs { separator: ',', names: names(), groups: None }),
        Format::Pairs(Pairs { separator: ';', names: names(), groups: Some(' ') }),
        Format::List(List { separator: ',' }),
        Format::Entries(Entries { separator: ',', parts: '/', layout }),
    ]
}

/// Signatures are few, as long as they must be, and stand in the text as they are written.
pub(in super::super) fn signatures(bytes: &[u8]) {
    let formats = formats();
    let Some((format, rest)) = choice(&formats, bytes) else { return };
    let Some((&(encoding, length), rest)) = choice(&CODINGS, rest) else { return };
    let coding = Some(Coding::Exact(encoding, length));
    let layout = Layout { format, coding, ed25519: true, time_pair: Some("t"), methods: &[] };
    let texts: Texts<'_> = rest.split(|byte| *byte == b'\n').take(3).map(Cow::Borrowed).collect();
    let Ok(groups) = layout.read(&texts) else { return };
    let tags: Vec<_> = groups.iter().flat_map(|found| &found.tags).collect();
    assert!(tags.len() <= SIGNATURES_MAX * texts.len(), "{} signatures", tags.len());
    let written = String::from_utf8_lossy(rest).to_ascii_lowercase();
    for tag in tags {
        assert_eq!(tag.len(), length);
        let again = encode(tag, encoding);
        assert_eq!(decode(&again, encoding, length).as_ref(), Some(tag), "{again}");
        if encoding != Encoding::Base64Hex {
            assert!(written.contains(&again.to_ascii_lowercase()), "{again} is not in {written}");
        }
    }
    for time in groups.iter().filter_map(|found| found.time) {
        assert!(written.contains(&time.to_ascii_lowercase()));
    }
}

/// DER, PEM and JWK sets give keys or none, and a key holds for no signature of nothing.
pub(in super::super) fn keys(bytes: &[u8]) {
    const SCHEMES: [Scheme; 5] =
        [Scheme::Ed25519, Scheme::EcdsaP256Sha256, Scheme::RsaPkcs1Sha256, Scheme::RsaPssSha512, Scheme::JwtEs256];
    const FORMS: [SecretForm; 4] = [SecretForm::Hex, SecretForm::Base64, SecretForm::Spki, SecretForm::Pem];
    let refuses = |key: &PublicKey| assert!(!key.holds(b"nobody signed this", &[0; 64]), "a forgery");
    if let Some((_, key)) = der::public_key(bytes) {
        assert!(key.len() < bytes.len());
        let _ = der::rsa_bits(key);
    }
    if let Some(certificate) = der::certificate(bytes) {
        assert!(certificate.key.len() < bytes.len());
    }
    let Some(text) = text(bytes) else { return };
    for jwk in read_jwks(text).unwrap_or_default() {
        PublicKey::jwk(&jwk).iter().for_each(refuses);
    }
    for scheme in SCHEMES {
        FORMS.iter().filter_map(|form| PublicKey::read(text, scheme, *form).ok()).for_each(|key| refuses(&key));
    }
}

/// A JWT or a signed message that nobody signed is refused.
pub(in super::super) fn tokens(bytes: &[u8]) {
    use super::super::{Request, ResolvedSecret, Source, SourceSpec};
    use std::sync::LazyLock;
    static SOURCES: LazyLock<Vec<(Source, bool)>> = LazyLock::new(|| {
        let jwks = r#"{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
        let verify = [
            (
                "scheme = 'jwt-es256', header = 'x-token', secret = 'jwks', timestamp = 'claim:iat', body_hash = 'claim:hash', window = '5m'",
                jwks,
                true,
            ),
            (
                "scheme = 'http-signature', algorithm = 'hmac-sha256', components = ['@method', 'content-digest'], window = '5m', origin = 'https://a.example'",
                "a-secret-of-more-than-16-bytes",
                false,
            ),
        ];
        let of = |(verify, secret, jwt): (&str, &str, bool)| {
            let spec = format!("name = 'fuzzed'\nkey = 'raw:sha256'\nverify = {{ {verify} }}");
            let spec: SourceSpec = toml::from_str(&spec).expect("settings");
            let value = secrecy::SecretString::from(secret);
            let secret = ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value, until_ms: None };
            (Source::compile(&spec, &[secret]).expect("a source"), jwt)
        };
        verify.into_iter().map(of).collect()
    });
    let Some(((source, jwt), rest)) = choice(&SOURCES, bytes) else { return };
    let lines: Vec<&[u8]> = rest.splitn(4, |byte| *byte == b'\n').collect();
    let names = if *jwt { ["x-token", "x-b", "x-c"] } else { ["signature-input", "signature", "content-digest"] };
    let mut headers = HeaderMap::new();
    for (name, line) in names.iter().zip(&lines) {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append(HeaderName::from_static(name), value);
    }
    let body = bytes::Bytes::copy_from_slice(lines.get(3).copied().unwrap_or_default());
    let method = actix_web::http::Method::POST;
    let request = Request {
        method: &method,
        target: "/in/fuzzed?a=b",
        path_tenant: None,
        headers: &headers,
        body: &body,
        now_ms: 1_772_452_800_000,
    };
    assert!(source.verify(&request).is_err(), "a forgery");
}
