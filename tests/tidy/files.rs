//! What a file looks like from outside.

use std::fs;

use crate::{files, none, root, rust};

const LINES_MAX: usize = 500;

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let mut texts = rust();
    texts.extend(
        files(&["scripts", "src", "bench", ".ci"], &[""]).into_iter().filter(|text| !text.path.ends_with(".rs")),
    );
    let long = texts.iter().map(|text| (text, text.text.lines().count())).filter(|(_, lines)| *lines > LINES_MAX);
    none("files of more than 500 lines", long.map(|(text, lines)| format!("{}: {lines}", text.path)));
}

#[test]
fn every_module_says_what_it_owns() {
    let texts = rust();
    let silent = texts.iter().filter(|text| !text.text.starts_with("//! "));
    none("modules that do not open with `//!`", silent.map(|text| text.path.clone()));
}

#[test]
fn every_setting_is_explained_where_its_default_stands() {
    let text = fs::read_to_string(root().join("config.toml")).unwrap();
    // The sources below are examples; what a source may say is told in the documentation.
    let settings = text.split("\n[[source]]").next().unwrap();
    let mut explained = false;
    let mut bare = Vec::new();
    for line in settings.lines() {
        if line.starts_with('#') {
            explained = true;
        } else if line.is_empty() || line.starts_with('[') {
            // A comment above a section is about the section.
            explained = false;
        } else if line.contains(" = ") {
            if !explained {
                bare.push(line.to_owned());
            }
            explained = false;
        }
    }
    none("settings without a comment above them", bare);
}

#[test]
fn every_preset_says_whom_it_is_for() {
    let texts = files(&["src/source/presets"], &[".toml"]);
    none(
        "presets without a comment at the top",
        texts.iter().filter(|text| !text.text.starts_with('#')).map(|text| text.path.clone()),
    );
}

#[test]
fn every_text_ends_with_one_line_feed_and_has_no_trailing_blanks() {
    let mut texts = rust();
    texts.extend(files(
        &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "config.toml", "scripts", ".ci"],
        &[""],
    ));
    let untidy = texts.iter().filter(|text| {
        !text.text.ends_with('\n')
            || text.text.ends_with("\n\n")
            || text.text.lines().any(|line| line.ends_with([' ', '\t', '\r']))
    });
    none("texts with untidy ends", untidy.map(|text| text.path.clone()));
}
