//! `check`: a summary or every problem, without secrets.

use super::{ended, folder, stderr, stdout, tidegate};

const CANARY: &str = "canary-41c7-secret";

#[test]
fn the_defaults_have_no_problems() {
    let output = tidegate(folder().path(), &["check"], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    let expected = "\
listen  http://127.0.0.1:8080
admin   http://127.0.0.1:9090
store   sqlite:tidegate.db
cache   in this process only

SOURCE   PRESET             STATE  ORDER            PATH
demo     standard-webhooks  on     newest           /in/demo
stripe   stripe             off    newest           /in/stripe
github   github             off    arrival, newest  /in/github
shopify  shopify            off    newest           /in/shopify
slack    slack              off    arrival          /in/slack

no problems
";
    assert_eq!(stdout(&output), expected);
}

#[test]
fn problems_are_told_all_at_once_and_end_with_1() {
    let variables = [("TIDEGATE_SERVER__LISTEN", "nowhere"), ("TIDEGATE_LIMITS__BODY_BYTES", "1GiB")];
    let output = tidegate(folder().path(), &["check"], &variables);
    let expected = "\
error: the settings have 2 problems
  `server.listen` must be an IP address with a port, such as \"127.0.0.1:8080\" or \"[::]:8080\", got \"nowhere\" (in TIDEGATE_SERVER__LISTEN)
  `limits.body_bytes` must be a size such as \"512B\", \"64KiB\" or \"4MiB\", 1KiB to 64MiB, got \"1GiB\" (in TIDEGATE_LIMITS__BODY_BYTES)
";
    assert_eq!(ended(&output), (Some(1), expected.to_owned()));
    assert_eq!(stdout(&output), "");
}

#[test]
fn problems_come_as_json_too() {
    let output = tidegate(folder().path(), &["check", "--json"], &[("TIDEGATE_CACHE__LOOKUP", "maybe")]);
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["ok"], false);
    assert_eq!(told["problems"][0]["key"], "cache.lookup");
}

#[test]
fn no_secret_is_printed_whether_the_settings_are_right_or_wrong() {
    let folder = folder();
    let long = format!("{CANARY}-{CANARY}");
    let source = "[[source]]\nname = \"shop\"\npreset = \"shopify\"\nsecrets = [\"env:SHOP\"]\n";
    let url = format!("postgres://bob:{CANARY}@127.0.0.1:1/x");
    std::fs::write(folder.path().join("good.toml"), source).expect("written");
    std::fs::write(folder.path().join("bad.toml"), format!("{source}[server]\nlisten = 7\n")).expect("written");
    let variables = [("SHOP", long.as_str()), ("TIDEGATE_STORE__URL", url.as_str())];
    for (arguments, exit) in [
        (["check", "--config", "good.toml", "--json"], 0),
        (["check", "--config", "good.toml", "--connect"], 3),
        (["check", "--config", "bad.toml", "--json"], 1),
        (["events", "--config", "good.toml", "--json"], 3),
    ] {
        let output = tidegate(folder.path(), &arguments, &variables);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {}", stderr(&output));
        assert!(!stdout(&output).contains(CANARY), "{}", stdout(&output));
        assert!(!stderr(&output).contains(CANARY), "{}", stderr(&output));
    }
}

#[test]
fn a_short_secret_is_a_problem() {
    let folder = folder();
    let source = "[[source]]\nname = \"shop\"\npreset = \"shopify\"\nsecrets = [\"env:SHOP\"]\n";
    std::fs::write(folder.path().join("my.toml"), source).expect("written");
    let output = tidegate(folder.path(), &["check", "--config", "my.toml"], &[("SHOP", "short")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("`source.shop.secrets[0]`"), "{}", stderr(&output));
}

#[test]
fn connecting_to_a_new_sqlite_file_makes_none() {
    let folder = folder();
    let output = tidegate(folder.path(), &["check", "--connect"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!folder.path().join("tidegate.db").exists());
}
