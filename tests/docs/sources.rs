//! Every source that docs/sources.md shows is one that the program takes.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tidegate::config::{Config, Environment};

use super::blocks::blocks;
use super::read;

/// Values for the names that the document's secrets have.
fn environment(text: &str) -> Environment {
    let names = text.split("env:").skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    let value = |name: &str| match name.rsplit('_').next() {
        // the public key of the first example of RFC 8032
        Some("HEX") => "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".to_owned(),
        Some("WHSEC") => format!("whsec_{}", STANDARD.encode(format!("a-secret-of-its-own-{name}"))),
        _ => format!("a-secret-of-its-own-{name}"),
    };
    names.map(|name| (name.clone(), value(&name))).collect()
}

#[test]
fn every_source_that_is_shown_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = 0;
    for block in blocks(&read("docs/sources.md")).iter().filter(|block| block.text.contains("[[source]]")) {
        let file = folder.path().join("shown.toml");
        fs::write(&file, &block.text).unwrap();
        let config = Config::load(Some(&file), &environment(&block.text));
        let config = config.unwrap_or_else(|problems| panic!("docs/sources.md:{}: {problems:?}", block.line));
        shown += config.sources.len();
    }
    assert!(shown >= 10, "only {shown} are shown");
}
