//! `sources list|show`: what is configured, what is known, and no secret in any of it.

use std::path::Path;

use serde_json::Value;
use tidegate::source::presets;

use super::{ended, folder, stderr, stdout, tidegate};

const CANARY: &str = "canary-93b1-secret-text";
const MINE: &str = r#"
[[source]]
name = "shop"
preset = "shopify"
secrets = ["env:SHOP", { value = "env:OLD", until = "2020-01-01T00:00:00Z" }]

[[source]]
name = "sms"
preset = "braintree"
secrets = ["env:SHOP"]
config = { public_key = "canary-93b1-secret-text" }
"#;

fn mine(arguments: &[&str]) -> std::process::Output {
    let folder = folder();
    std::fs::write(folder.path().join("my.toml"), MINE).expect("written");
    let all: Vec<&str> = ["--config", "my.toml", "sources"].iter().chain(arguments).copied().collect();
    let old = format!("{CANARY}-old");
    tidegate(folder.path(), &all, &[("SHOP", CANARY), ("OLD", &old)])
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

#[test]
fn configured_sources_are_listed_with_the_state_of_their_secrets() {
    let output = mine(&["list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let line = text.lines().find(|line| line.starts_with("shop ")).expect("the source");
    assert!(line.contains("hmac-sha256") && line.contains("2 (1 ended)") && line.ends_with("/in/shop"), "{line}");
    let told = json(&mine(&["list", "--json"]));
    assert_eq!(told["sources"][0]["secrets_ended"], 1);
    assert_eq!(told["presets"].as_array().map(Vec::len), Some(presets::names().count()));
}

#[test]
fn presets_are_found_by_name_and_sender_without_any_settings() {
    let list =
        |word: &str| tidegate(folder().path(), &["--config", "gone.toml", "sources", "list", "--presets", word], &[]);
    let found = list("PAY");
    assert_eq!(ended(&found), (Some(0), String::new()));
    assert!(stdout(&found).contains("\npaystack") && !stdout(&found).contains("\nstripe"), "{}", stdout(&found));
    let none = list("no-such-sender");
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("`tidegate sources list --presets` lists all"), "{}", stderr(&none));
}

#[test]
fn every_preset_is_shown_within_100_columns_with_its_documents_and_what_to_paste() {
    for name in presets::names() {
        let output = tidegate(folder().path(), &["sources", "show", name], &[]);
        assert_eq!(ended(&output), (Some(0), String::new()), "{name}");
        let text = stdout(&output);
        // addresses and what is to be pasted stay in one piece
        let (shown, _) = text.split_once("\nto use it\n").expect("what to paste");
        let wide: Vec<&str> =
            shown.lines().filter(|line| line.chars().count() > 100 && !line.contains("https://")).collect();
        assert!(wide.is_empty(), "{name}: {wide:?}");
        let about = presets::about(name).expect("a preset");
        for expected in [about.title.as_str(), "verification", "  scheme", "  key", "  order", "[[source]]"] {
            assert!(text.contains(expected), "{name} lacks {expected}: {text}");
        }
        assert!(about.docs.iter().all(|address| text.contains(address)), "{name}: {text}");
    }
}

#[test]
fn a_presets_own_text_and_its_rules_as_json_are_to_be_had() {
    let text = tidegate(folder().path(), &["sources", "show", "zoom", "--toml"], &[]);
    assert_eq!(Some(stdout(&text).as_str()), presets::text("zoom"));
    let told = json(&tidegate(folder().path(), &["sources", "show", "zoom", "--json"], &[]));
    assert_eq!(told["kind"], "preset");
    assert_eq!(told["rules"]["verify"]["header"], "x-zm-signature");
    assert!(told["snippet"].as_str().is_some_and(|text| text.contains("preset = \"zoom\"")), "{told}");
}

#[test]
fn no_secret_is_shown_of_any_source() {
    for arguments in [
        vec!["list"],
        vec!["list", "--json"],
        vec!["show", "shop"],
        vec!["show", "shop", "--json"],
        vec!["show", "sms", "--json"],
        vec!["show", "sms"],
    ] {
        let output = mine(&arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert!(!stdout(&output).contains(CANARY) && !stderr(&output).contains(CANARY), "{arguments:?}");
    }
}

#[test]
fn a_name_that_is_none_is_told_with_the_closest_and_ends_with_1() {
    let output = tidegate(folder().path(), &["sources", "show", "strpie"], &[]);
    let expected = "error: neither a source nor a preset is named strpie (did you mean stripe?): `tidegate sources list` lists \
                    what there is\n";
    assert_eq!(ended(&output), (Some(1), expected.to_owned()));
}

#[test]
fn the_table_of_providers_is_what_the_presets_say() {
    let output = tidegate(folder().path(), &["sources", "list", "--markdown"], &[]);
    let kept =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/providers.md")).unwrap_or_default();
    assert!(
        kept == stdout(&output),
        "docs/providers.md is not what the presets say: cargo run -q -- sources list --markdown > docs/providers.md"
    );
}
