//! What is refused when settings are loaded.

use tidegate::source::SourceSpec;

use super::common::{SECRET, secret, source, try_source};

const VERIFY: &str = "verify = { scheme = 'hmac-sha256', header = 'x-signature' }";

fn problems(text: &str) -> String {
    let problems = try_source(text, &[secret(SECRET)]).expect_err("problems");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_source_that_anyone_could_write_to_is_refused() {
    assert!(problems("key = 'body:/id'").contains("`verify` is missing"));
    let none = toml::from_str::<SourceSpec>("name = 'a'\nverify = { scheme = 'none' }");
    assert!(none.is_err(), "there is no scheme without a signature");
    let found = try_source(&format!("{VERIFY}\nkey = 'body:/id'"), &[]).expect_err("problems");
    assert!(found[0].to_string().contains("`secrets` is empty"));
}

#[test]
fn unknown_keys_are_refused() {
    for text in ["surprise = 1", "verify = { schema = 'x' }", "resource = { type = 'a', id = 'b', x = 1 }"] {
        assert!(toml::from_str::<SourceSpec>(text).is_err(), "{text}");
    }
}

#[test]
fn each_mistake_names_its_key() {
    for (text, key) in [
        ("", "`key` is missing"),
        ("key = 'literal:x'", "`key` is the same for every event"),
        ("key = 'body/id'", "`key` has \"body/id\""),
        ("key = 'body:id'", "must begin with `/`"),
        ("key = 'body:/id'\nresource = { type = 'literal:a', id = 'header:x-id' }", "`resource` comes from the header"),
        ("key = 'body:/id'\ntenant = 'header:x-tenant'", "`tenants` is empty although `tenant = \"header:x-tenant\"`"),
        ("key = 'body:/id'\ntenant = 'header:x-tenant'\ntenants = ['a']", "`tenants[0]` has no secret of its own"),
        ("key = 'body:/id'\ntenant = 'query:t'\ntenants = ['a']", "`secrets[0]` is shared by all tenants"),
        (
            "key = 'body:/id'\ntenant = 'body:/t | header:x-tenant'\ntenants = ['a']",
            "`tenant` has alternatives in the body",
        ),
        ("key = 'body:/id'\ntenants = ['a']", "`tenant` is missing"),
        ("key = 'body:/id'\ntenant = 'path'\ntenants = ['a']", "`tenants[0]` has no secret of its own"),
        ("key = 'body:/id'\norder = { policy = 'newest' }", "`order` is `newest` without a version"),
        ("key = 'body:/id'\nversion = [{ from = 'body:/v', as = 'rank' }]", "`version[0].ranks`"),
        ("key = 'body:/id'\nanswer = { status = 302 }", "`answer.status`"),
        (
            "key = 'body:/id'\nalso = [{ each = 'body:/a', resource = { type = 'literal:a', id = 'body:/b' } }]",
            "`also[0]`",
        ),
        ("key = 'body:/id'\nresource = { type = 'literal:a', id = 'literal:b' }", "`resource.id` is the same"),
        ("key = 'body:/id'\nresource = { type = 'literal:a', id = 'unique' }", "`resource.id` reads `unique`"),
        ("key = 'body:/id'\ntype = 'unique'", "`type` reads `unique`"),
        ("key = 'item:/id'\nbatch = 'body:/a | /b'", "`batch` must be"),
        ("key = 'item:/id'\nbatch = 'body:/a/*/b | body:/c'", "`batch` has"),
        ("key = 'item:/id'\nbatch = 'body:/a/*/b | body:/c/*/b'", "`batch` has"),
        ("key = 'body:/id'\nmax_body = '65MiB'", "`max_body`"),
        ("key = 'body:/id'\npreset = 'nobody'", "`preset` is \"nobody\""),
    ] {
        let found = problems(&format!("{VERIFY}\n{text}"));
        assert!(found.contains(key), "{text}: {found}");
    }
}

#[test]
fn a_time_that_is_not_signed_is_no_guard() {
    let verify =
        |rest: &str| format!("verify = {{ scheme = 'hmac-sha256', header = 'x-signature', {rest} }}\nkey = 'body:/id'");
    assert!(problems(&verify("window = '5m', timestamp = 'header:x-time'")).contains("`verify.signed`"));
    assert!(problems(&verify("window = '5m'")).contains("`verify.window` needs a time"));
    assert!(
        problems(&verify("signed = '{timestamp}.{body}', timestamp = 'header:x-time'")).contains("`verify.window`")
    );
    assert!(problems(&verify("signed = '{url}{body}'")).contains("`verify.origin`"));
    assert!(problems(&verify("signed = '{timestamp}'")).contains("`{body}`"));
    source(&verify("signed = '{header:x-time}.{body}', window = '5m'"));
}

#[test]
fn all_problems_come_at_once_and_none_holds_a_secret() {
    let text = "preset = 'standard-webhooks'\nkey = 'nonsense'\nanswer = { status = 500 }";
    let found = try_source(text, &[secret("v1,whsec_dG9wc2VjcmV0")]).expect_err("problems");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(!format!("{found:?}").contains("dG9wc2VjcmV0"));
}
