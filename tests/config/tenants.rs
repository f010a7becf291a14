//! Tenants: where nobody signs a tenant's name, the signature has to show it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use secrecy::ExposeSecret as _;

use super::{load, problems};

const ONE: &str = "0123456789abcdef-one";
const TWO: &str = "0123456789abcdef-two";
const VARIABLES: [(&str, &str); 2] = [("ONE", ONE), ("TWO", TWO)];

fn source(rules: &str) -> String {
    format!(
        "[[source]]\nname = \"shop\"\nkey = \"body:/id\"\nverify = {{ scheme = \"hmac-sha256\", header = \"x-signature\" }}\n{rules}\n"
    )
}

#[test]
fn a_tenant_that_nobody_signs_needs_secrets_of_its_own() {
    for place in ["path", "header:x-shop", "query:shop"] {
        let found = problems(
            &source(&format!("tenant = \"{place}\"\ntenants = [\"a\", \"b\"]\nsecrets = [\"env:ONE\"]")),
            &VARIABLES,
        );
        let own = |tenant: usize| format!("`source.shop.tenants[{tenant}]` has no secret of its own");
        assert!(found.iter().any(|problem| problem.starts_with(&own(0))), "{place}: {found:#?}");
        assert!(found.iter().any(|problem| problem.starts_with(&own(1))), "{place}: {found:#?}");
        assert!(found.concat().contains("`source.shop.secrets[0]` is shared by all tenants"), "{place}: {found:#?}");
        assert!(found.concat().contains("a request signed for one tenant would pass for another"), "{found:#?}");

        let good = format!(
            "tenant = \"{place}\"\ntenants = [{{ name = \"a\", secrets = [\"env:ONE\"] }}, {{ name = \"b\", secrets = [\"env:TWO\"] }}]"
        );
        assert_eq!(problems(&source(&good), &VARIABLES), Vec::<String>::new(), "{place}");
        let same = good.replace("env:TWO", "env:ONE");
        assert!(problems(&source(&same), &VARIABLES).concat().contains("is the same secret as"), "{place}");
    }
}

#[test]
fn a_tenant_in_the_signed_body_is_free() {
    for rules in ["tenant = \"body:/account\"", "tenant = \"body:/account\"\ntenants = [\"a\"]"] {
        assert_eq!(problems(&source(&format!("{rules}\nsecrets = [\"env:ONE\"]")), &VARIABLES), Vec::<String>::new());
    }
    let signed = source("tenant = \"header:x-shop\"\nsecrets = [\"env:ONE\"]")
        .replace("header = \"x-signature\"", "header = \"x-signature\", signed = \"{header:x-shop}.{body}\"");
    assert_eq!(problems(&signed, &VARIABLES), Vec::<String>::new(), "and so is one in a header that is signed");
}

#[test]
fn many_tenants_stand_in_a_file_that_only_its_owner_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tenants.toml");
    let write = |text: &str, mode: u32| {
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("permissions");
    };
    let settings = source(&format!("tenant = \"path\"\nsecrets_file = {file:?}"));
    write(
        &format!(
            "a = \"{ONE}\"\nb = [\"env:TWO\", {{ value = \"0123456789abcdef-old\", until = \"2020-01-01T00:00:00Z\" }}]\n"
        ),
        0o600,
    );
    let config = load(&settings, &VARIABLES).expect("good settings");
    let entry = config.sources.iter().find(|entry| entry.spec.name == "shop").expect("the source");
    let secrets: Vec<_> =
        entry.secrets.iter().map(|secret| (secret.tenant.as_deref(), secret.value.expose_secret())).collect();
    assert_eq!(secrets, [(Some("a"), ONE), (Some("b"), TWO), (Some("b"), "0123456789abcdef-old")]);
    assert!(!format!("{config:?}").contains(ONE));

    for (text, mode, message) in [
        (format!("a = \"{ONE}\""), 0o644, "others than its owner may read or change (mode 644): chmod 600"),
        (format!("a = \"{ONE}"), 0o600, "is not TOML at line 1"),
        (format!("a = {{ b = \"{ONE}\" }}"), 0o600, "`source.shop.secrets_file.a` must be a secret"),
        ("a = 7".to_owned(), 0o600, "`source.shop.secrets_file.a` must be a secret"),
        ("a = \"env:GONE\"".to_owned(), 0o600, "names the environment variable GONE, which is not set"),
        (format!("a = \"{ONE}\"\nb = \"{ONE}\""), 0o600, "is the same secret as `secrets_file.a`"),
        ("a = \"short\"".to_owned(), 0o600, "fewer than 16"),
    ] {
        write(&text, mode);
        let found = problems(&settings, &VARIABLES).concat();
        assert!(found.contains(message), "{text}: {found}");
        assert!(!found.contains(ONE), "{found}");
    }
    fs::remove_file(&file).expect("removed");
    assert!(problems(&settings, &VARIABLES).concat().contains("cannot be read"));
    assert!(
        problems(&source("tenant = \"path\"\nsecrets_file = \"tenants.toml\""), &[]).concat().contains("whole path")
    );
}
