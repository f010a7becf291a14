//! All problems at once, each with key, value, bound and what to do.

use super::problems;

#[test]
fn a_file_full_of_mistakes_is_told_all_of_them() {
    let file = r#"
colour = "blue"
admin = 1
[server]
lisen = "0.0.0.0:1"
listen = "localhost:8080"
workers = "many"
body_timeout = "1h"
body_rate = "1KiB"
answer_within = "10s"
[store]
url = "mysql://root@db/x"
[cache]
deadline = "2s"
lookup = "sometimes"
[limits]
in_flight_bytes = "1MiB"
in_flight_events = -5
[pools.writer]
shards = 8
batch_events = "500"
[log]
format = 7
"#;
    let expected = [
        "`admin` is a section, not a value (in FILE): write [admin] and its settings below",
        "`colour` is not a section (in FILE): take it out, or see config.toml for all there are",
        "`server.lisen` is not a setting (in FILE): did you mean `server.listen`?",
        "`server.listen` must be an IP address with a port, such as \"127.0.0.1:8080\" or \"[::]:8080\", got \"localhost:8080\" (in FILE)",
        "`server.workers` must be \"auto\" or a whole number, 1 to 256, got \"many\" (in FILE)",
        "`server.body_timeout` must be a duration such as \"500ms\", \"10s\", \"5m\", \"2h\" or \"35d\", 100ms to 10m, got \"1h\" (in FILE)",
        "`server.body_rate` must be a rate such as \"512B/s\" or \"64KiB/s\", 1B/s to 1GiB/s, got \"1KiB\" (in FILE)",
        "`store.url` must be a URL that starts with \"sqlite:\", \"postgres://\" or \"postgresql://\", got \"mysql://…@db/x\" (in FILE)",
        "`cache.lookup` must be \"auto\", \"always\" or \"never\", got \"sometimes\" (in FILE)",
        "`cache.deadline` must be a duration such as \"500ms\", \"10s\", \"5m\", \"2h\" or \"35d\", 1ms to 50ms, got \"2s\" (in FILE)",
        "`limits.in_flight_events` must be a whole number, 1 to 1000000, got -5 (in FILE)",
        "`pools.writer.batch_events` must be a whole number, 1 to 2000, got \"500\" (in FILE)",
        "`log.format` must be \"auto\", \"text\" or \"json\", got 7 (in FILE)",
        "`server.drain_within` must be longer than `server.answer_within` (10s), got 8s: what was accepted needs that long to finish",
        "`limits.in_flight_bytes` must be at least `limits.body_bytes` (25MiB), got 1MiB: a body of the largest size would always be answered 503",
        "`pools.writer.shards` must be 1 while `store.url` is \"sqlite:tidegate.db\", got 8: SQLite has one writer; use a postgres:// URL for more",
    ];
    assert_eq!(problems(file, &[]), expected);
}

#[test]
fn a_source_full_of_mistakes_is_told_all_of_them() {
    let file = r#"
[[source]]
name = "shop"
preset = "shopify"
enabled = "yes"
secret = ["env:SHOP"]
verify = { scheme = "hmac-md5", heder = "x-signature" }
on_unusable = "panic"
key = 5
secrets = [3, "env:NOT_THERE"]
[[source]]
name = "shop"
preset = "shopify"
enabled = false
secrets = ["env:SHOP"]
[[source]]
name = "shop"
preset = "shopify"
enabled = false
secrets = ["env:SHOP"]
"#;
    let expected = [
        "`source.shop.enabled` must be true or false, without quotes",
        "`source.shop.key` must be a text or a list of texts",
        "`source.shop.on_unusable` must be one of \"refuse\", \"accept\", got \"panic\"",
        "`source.shop.secret` is not a setting here: did you mean `secrets`?",
        "`source.shop.secrets[0]` must be \"env:NAME\", \"file:/path\" or { value = \"env:NAME\", until = \"2030-01-31T00:00:00Z\" }",
        "`source.shop.verify.heder` is not a setting here: did you mean `header`?",
        "`source.shop.verify.scheme` must be one of \"standard-webhooks\", \"hmac-sha1\", \"hmac-sha256\", \"hmac-sha384\", \"hmac-sha512\", \"digest-sha1\", \"digest-sha256\", \"ed25519\", \"ecdsa-p256-sha256\", \"ecdsa-p256-sha256-raw\", \"rsa-pkcs1-sha1\", \"rsa-pkcs1-sha256\", \"rsa-pss-sha512\", \"token\", \"basic\", \"jwt-es256\", \"http-signature\", \"contentful\", got \"hmac-md5\"",
        "`source.shop` is there more than once: give each source a name of its own",
    ];
    let mut found = problems(file, &[]);
    found[1..7].sort();
    assert_eq!(found, expected);
}

#[test]
fn an_unknown_variable_is_told_with_its_name() {
    let found =
        problems("", &[("TIDEGATE_STORE__URI", "x"), ("TIDEGATE_SOURCE__NAME", "x"), ("TIDEGATE_STOR__URL", "x")]);
    let expected = [
        "`source` is a list (in TIDEGATE_SOURCE__NAME): set it in a file and name that with --config",
        "`store.uri` is not a setting (in TIDEGATE_STORE__URI): did you mean `store.url`?",
        "`stor.url` is not a setting (in TIDEGATE_STOR__URL): did you mean `store`?",
    ];
    assert_eq!(found, expected);
}

#[test]
fn addresses_that_meet_are_refused() {
    let found = problems("[admin]\nlisten = \"0.0.0.0:8080\"", &[]);
    assert_eq!(
        found,
        [
            "`admin.listen` must differ from `server.listen` (127.0.0.1:8080), got 0.0.0.0:8080: figures are not for the public"
        ]
    );
}

#[test]
fn broken_toml_is_told_with_its_line_and_without_its_text() {
    let found = problems("[server]\nlisten = \"127.0.0.1:1\"\n[store]\npassword = hunter2!\n", &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("`FILE:4` is not valid TOML: "), "{found:?}");
    assert!(!found[0].contains("hunter2"), "{found:?}");
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let found = tidegate::config::Config::load(Some("no/such.toml".as_ref()), &super::environment(&[]));
    let found = found.expect_err("no file");
    assert!(found[0].to_string().starts_with("`no/such.toml` cannot be read: "), "{found:?}");
}

#[test]
fn a_source_may_not_take_more_than_the_ceiling_for_all() {
    let file = "[[source]]\nname = \"shop\"\npreset = \"shopify\"\nmax_body = \"30MiB\"\nsecrets = [\"env:SHOP\"]";
    let found = problems(file, &[("SHOP", "0123456789abcdef0123456789abcdef")]);
    assert_eq!(found, ["`source.shop.max_body` must be at most `limits.body_bytes` (25MiB), got 30MiB"]);
}
