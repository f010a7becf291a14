//! Senseless and unsafe `verify` tables: each is refused with the key it stands at.

use super::super::common::{secret, try_source};

/// The problems of a table, or nothing.
fn problems(verify: &str) -> String {
    let secrets = [secret("a-secret-of-more-than-16-bytes")];
    match try_source(&format!("key = 'raw:sha256'\nverify = {{ {verify} }}"), &secrets) {
        Ok(_) => String::new(),
        Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
    }
}

const HMAC: &str = "scheme = 'hmac-sha256', header = 'x-signature'";

#[test]
fn every_senseless_setting_is_named_by_its_key() {
    let cases = [
        ("scheme = 'hmac-sha256'", "verify.header"),
        ("scheme = 'hmac-sha256', header = 'x', from = 'body:/x'", "verify.from"),
        ("scheme = 'hmac-sha256', header = 'a b'", "verify.header"),
        ("scheme = 'hmac-sha256', from = 'nowhere'", "verify.from"),
        ("HMAC, signed = '{timestamp}'", "verify.timestamp"),
        ("HMAC, signed = 'fixed'", "verify.signed"),
        ("HMAC, partial = true", "verify.partial"),
        ("HMAC, signed = '{id}{body}'", "verify.id"),
        ("HMAC, id = 'x-id'", "verify.id"),
        ("HMAC, signed = '{secret}{body}'", "verify.signed"),
        ("scheme = 'digest-sha256', header = 'x'", "verify.signed"),
        ("HMAC, window = '5m'", "verify.window"),
        ("HMAC, timestamp = 'header:x-time', window = '5m'", "verify.signed"),
        ("HMAC, timestamp = 'header:x-time', signed = '{timestamp}{body}'", "verify.window"),
        ("HMAC, timestamp = 'header:x-time', signed = '{timestamp}{body}', window = '25h'", "verify.window"),
        ("HMAC, timestamp = 'pair:t', signed = '{timestamp}{body}', window = '5m'", "verify.timestamp"),
        ("HMAC, timestamp = 'first', signed = '{timestamp}{body}', window = '5m'", "verify.timestamp"),
        ("HMAC, unit = 'ms'", "verify.unit"),
        ("HMAC, sides = 'past'", "verify.sides"),
        ("HMAC, signed = '{url}{body}'", "verify.origin"),
        ("HMAC, signed = '{url}{body}', origin = 'https://a.example/'", "verify.origin"),
        ("HMAC, signed = '{url}{body}', origin = 'a.example'", "verify.origin"),
        ("HMAC, any_port = true", "verify.any_port"),
        ("HMAC, signed = '{config:account}{body}'", "verify.signed"),
        ("HMAC, require = [{ from = 'header:x', is = [] }]", "verify.require[0].is"),
        ("HMAC, require = [{ from = 'x', is = 'y' }]", "verify.require[0].from"),
        ("HMAC, format = { prefix = '' }", "verify.format"),
        ("HMAC, format = { pairs = { names = [] } }", "verify.format"),
        ("HMAC, format = { entries = { parts = '/', layout = ['a', 'b'] } }", "verify.format.entries"),
        ("HMAC, format = { entries = { parts = ',', layout = ['{signature}'] } }", "verify.format.entries"),
        ("HMAC, signed = '{item:/a}{body}'", "verify.each"),
        ("HMAC, each = 'body:/items'", "verify.each"),
        ("HMAC, each = 'body:/items/*'", "verify.from"),
        ("scheme = 'hmac-sha256', from = 'item:/s', each = 'body:/items/*'", "verify.signed"),
        ("HMAC, methods = { from = 'prefix', allow = {} }", "verify.methods.allow"),
        ("HMAC, methods = { from = 'prefix', allow = { 'sha1=' = 'hmac-sha1' } }", "verify.methods.allow"),
        ("HMAC, certificate = { from = 'header:x', hosts = ['a.example'] }", "verify.certificate"),
        ("HMAC, components = []", "verify.components"),
        ("HMAC, algorithm = 'ed25519'", "verify.algorithm"),
        ("HMAC, keys = { url = 'https://a.example', ask = 'jwks' }", "verify.keys"),
        ("scheme = 'token', header = 'x', signed = '{body}'", "verify.signed"),
        ("scheme = 'token', header = 'x', window = '5m'", "verify.window"),
        ("scheme = 'token', header = 'x', encoding = 'hex'", "verify.encoding"),
        ("scheme = 'token', header = 'x', partial = true", "verify.partial"),
        ("scheme = 'basic'", "secrets[0]"),
        ("scheme = 'ed25519', header = 'x'", "secrets[0]"),
        ("scheme = 'ed25519', header = 'x-*', secret = 'hex'", "verify.header"),
        ("HMAC, secret = 'pem'", "secrets[0]"),
        (
            "scheme = 'rsa-pkcs1-sha256', header = 'x', certificate = { from = 'header:u', hosts = ['*.com'] }",
            "verify.certificate.hosts",
        ),
        (
            "scheme = 'rsa-pkcs1-sha256', header = 'x', certificate = { from = 'header:u', hosts = ['a.example'] }",
            "verify.require",
        ),
        ("scheme = 'jwt-es256', header = 'x', window = '5m'", "verify.body_hash"),
        ("scheme = 'jwt-es256', header = 'x', body_hash = 'claim:h'", "verify.window"),
        (
            "scheme = 'jwt-es256', header = 'x', body_hash = 'claim:h', window = '5m', keys = { url = 'http://a', ask = 'jwks' }",
            "verify.keys.url",
        ),
        (
            "scheme = 'http-signature', algorithm = 'hmac-sha256', window = '5m', origin = 'https://a'",
            "verify.components",
        ),
        (
            "scheme = 'http-signature', algorithm = 'token', components = ['content-digest'], window = '5m'",
            "verify.algorithm",
        ),
        (
            "scheme = 'http-signature', algorithm = 'hmac-sha256', components = ['content-digest'], window = '5m'",
            "verify.origin",
        ),
    ];
    for (verify, key) in cases {
        let found = problems(&verify.replace("HMAC", HMAC));
        assert!(found.contains(&format!("`{key}`")), "{verify}: {found:?} in place of {key}");
    }
}

#[test]
fn plain_tables_have_no_problems() {
    for verify in [
        "HMAC",
        "HMAC, signed = '{header:x-time}.{body}', window = '5m'",
        "HMAC, timestamp = 'body:/time', window = '5m'",
        "HMAC, origin = 'https://hooks.example.com/in-front', signed = '{url}{body}'",
        "scheme = 'token', from = ['header:x-token', 'query:token']",
    ] {
        assert_eq!(problems(&verify.replace("HMAC", HMAC)), "", "{verify}");
    }
}
