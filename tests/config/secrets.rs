//! Secrets are fetched, judged, and never shown.

use super::{load, problems};

const CANARY: &str = "canary-7d1f-secret";

#[test]
fn a_demo_secret_works_only_on_loopback() {
    assert_eq!(problems("[server]\nlisten = \"[::1]:8080\"", &[]), Vec::<String>::new());
    let found = problems("[server]\nlisten = \"0.0.0.0:8080\"", &[]);
    let expected = "`source.demo.secrets[0]` is a demo secret that everybody knows, allowed only while `server.listen` is a \
                    loopback address, got 0.0.0.0:8080: list your own [[source]] in a file and name that with --config, or set \
                    enabled = false";
    assert_eq!(found, [expected]);
}

#[test]
fn a_secret_that_is_missing_empty_padded_or_literal_is_refused() {
    let file = r#"
[[source]]
name = "shop"
preset = "shopify"
secrets = ["env:GONE", "env:EMPTY", "env:PADDED", "canary-7d1f-secret", { value = "env:GOOD", until = "tomorrow" }, "file:/no/such"]
"#;
    let padded = format!(" {CANARY}");
    let found = problems(file, &[("EMPTY", ""), ("PADDED", &padded), ("GOOD", "0123456789abcdef0123456789abcdef")]);
    let starts = [
        "`source.shop.secrets[0]` names the environment variable GONE, which is not set",
        "`source.shop.secrets[1]` is empty: put the secret into the environment variable EMPTY",
        "`source.shop.secrets[2]` has blanks or line ends around it: take them out of the environment variable PADDED",
        "`source.shop.secrets[3]` must be \"env:NAME\" or \"file:/path\", got something else (not shown)",
        "`source.shop.secrets[4].until` must be a time with zone",
        "`source.shop.secrets[5]` names the file /no/such, which cannot be read",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
    assert!(!found.concat().contains(CANARY), "{found:#?}");
}

#[test]
fn no_secret_is_in_any_problem_wherever_it_was_put() {
    let file = format!(
        r#"
[store]
url = "mysql://user:{CANARY}@db/x?password={CANARY}"
password = "{CANARY}"
[cache]
url = "http://:{CANARY}@cache"
secret = "demo:{CANARY}"
password = 5
[[source]]
name = "a"
secrets = "{CANARY}"
[[source]]
name = "b"
preset = "shopify"
secret = "{CANARY}"
verify = {{ secret = "{CANARY}" }}
secrets = [{{ value = "{CANARY}", till = "{CANARY}" }}]
tenants = [{{ name = "t", secrets = ["{CANARY}"] }}]
"#
    );
    let found = problems(&file, &[]);
    assert!(found.len() >= 8, "{found:#?}");
    assert!(!found.concat().contains(CANARY), "{found:#?}");
}

#[test]
fn a_password_may_stand_in_one_place_only() {
    let found = problems("[store]\nurl = \"postgres://bob:old@db/x\"\npassword = \"env:PW\"", &[("PW", CANARY)]);
    assert_eq!(found, ["`store.password` is set, but `store.url` holds one too: take that one out"]);
}

#[test]
fn no_secret_is_in_the_debug_text_of_good_settings() {
    let file = "[store]\nurl = \"postgres://bob@db/x\"\npassword = \"env:PW\"\n[cache]\nurl = \"redis://:canary-7d1f-secret@c\"\nsecret = \"env:PW\"";
    let config = load(file, &[("PW", CANARY)]).expect("good settings");
    assert!(!format!("{config:?}").contains(CANARY));
    assert_eq!(config.store.shown(), "postgres://…@db/x");
}

#[test]
fn headers_to_a_provider_take_secrets_by_place_only_and_never_show_them() {
    let file = |header: &str| {
        format!(
            r#"
[[source]]
name = "shop"
preset = "shopify"
secrets = ["env:GOOD"]
order = {{ policy = "refetch" }}
refetch = {{ url = "https://api.example.com/{{id}}", headers = {{ {header} }} }}
"#
        )
    };
    let variables = [("GOOD", "0123456789abcdef0123456789abcdef"), ("TOKEN", CANARY), ("BAD", "two\nlines")];
    for (header, expected) in [
        (
            format!(r#"authorization = "Bearer {CANARY}""#),
            "`source.shop.refetch.headers.authorization` may hold a secret",
        ),
        (format!(r#"x-api-key = "{CANARY}""#), "`source.shop.refetch.headers.x-api-key` may hold a secret"),
        (
            r#"authorization = "Bearer env:GONE""#.to_owned(),
            "`source.shop.refetch.headers.authorization` names the environment variable GONE",
        ),
        (
            r#"authorization = "env:BAD""#.to_owned(),
            "`source.shop.refetch.headers.authorization` cannot be a header's value",
        ),
        (r#"accept = """#.to_owned(), "`source.shop.refetch.headers.accept` cannot be a header's value"),
        (
            r#"accept = 7"#.to_owned(),
            "`source.shop.refetch.headers.accept` is not of the right kind (the value is not shown)",
        ),
    ] {
        let found = problems(&file(&header), &variables);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{header}: {found:#?}");
        assert!(!found[0].contains(CANARY));
    }
    let config = load(&file(r#"authorization = "Bearer env:TOKEN", accept = "application/json""#), &variables);
    let config = config.expect("settings without a problem");
    let headers = &config.sources[0].headers;
    assert_eq!(headers.len(), 2);
    assert!(!format!("{config:?}").contains(CANARY));
}

#[test]
fn what_looks_pasted_in_the_wrong_place_is_a_warning_without_the_secret() {
    let source = |name: &str, preset: &str, variable: &str| {
        format!("[[source]]\nname = \"{name}\"\npreset = \"{preset}\"\nsecrets = [\"env:{variable}\"]\n")
    };
    let warnings = |file: &str, secret: &str| -> Vec<String> {
        let other = "another-secret-of-their-own";
        let config = load(file, &[("A", secret), ("B", other)]).unwrap_or_else(|problems| panic!("{problems:?}"));
        let told: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        assert!(!told.concat().contains(secret), "{told:?}");
        told.into_iter().filter(|warning| warning.contains("secrets[0]")).collect()
    };
    let two = format!("{}{}", source("a", "github", "A"), source("b", "shopify", "A"));
    let expected = "`source.b.secrets[0]` is also a secret of the source a, which is another sender";
    let found = warnings(&two, CANARY);
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    let alike = format!("{}{}", source("a", "github", "A"), source("b", "github", "A"));
    assert_eq!(warnings(&alike, CANARY), Vec::<String>::new());
    for (secret, expected) in [
        ("<the secret goes here>", "a placeholder"),
        ("sk_test_0123456789abcdef", "test mode"),
        ("pk_live_0123456789abcdef", "a public key"),
    ] {
        let found = warnings(&source("a", "paystack", "A"), secret);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn a_secret_in_quotes_in_lines_or_behind_its_name_is_refused() {
    let file = "[[source]]\nname = \"a\"\npreset = \"clerk\"\nsecrets = [\"env:A\"]\n";
    for (secret, expected) in [
        ("\"whsec_c2l4dGVlbi1ieXRlLWtleQ==\"", "is in quotes"),
        ("SECRET=whsec_c2l4dGVlbi1ieXRlLWtleQ==", "holds `whsec_` beyond its beginning"),
        ("whsec_c2l4dGVlbi1ieXRlLWtleQ==\nwhsec_c2l4dGVlbi1ieXRlLWtleQ==", "has several lines"),
        ("whsec_c2l4dGVlbi1ieXRlLWtleQ", "is not standard base64"),
        ("v1,whsec_c2l4dGVlbi1ieXRlLWtleQ==", "begins with `v1,`"),
    ] {
        let found = problems(file, &[("A", secret)]);
        assert!(found.len() == 1 && found[0].contains(expected), "{secret}: {found:?}");
        assert!(!found[0].contains("c2l4dGVl"), "{found:?}");
    }
}
