//! The rules of the house that neither the compiler nor clippy holds: which way dependencies point, what may
//! stand in a file, how long it may be.
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the report")]

mod borders;
mod files;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the project's own.
struct Text {
    /// From the project's root, with `/` between its parts.
    path: String,
    text: String,
}

impl Text {
    /// Its lines with their numbers, without those that are only comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below these folders (or these files) with one of these endings, sorted.
fn files(places: &[&str], endings: &[&str]) -> Vec<Text> {
    let mut found = Vec::new();
    for place in places {
        collect(&existing(place), endings, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// A place that a rule names. One that is not there any more would leave its rule without anything to hold.
#[track_caller]
fn existing(place: &str) -> PathBuf {
    let path = root().join(place);
    assert!(path.exists(), "a rule names {place}, which does not exist: name its new place, or drop it");
    path
}

fn collect(place: &Path, endings: &[&str], found: &mut Vec<Text>) {
    if place.is_dir() {
        for entry in fs::read_dir(place).unwrap() {
            collect(&entry.unwrap().path(), endings, found);
        }
    } else if place.is_file() && endings.iter().any(|ending| place.to_string_lossy().ends_with(ending)) {
        let path = place.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        found.push(Text { path, text: fs::read_to_string(place).unwrap() });
    }
}

/// All Rust of the project.
fn rust() -> Vec<Text> {
    files(&["src", "actors", "bench", "benches", "examples", "tests"], &[".rs"])
}

/// Fails with every finding at once.
#[track_caller]
fn none(rule: &str, findings: impl IntoIterator<Item = String>) {
    let findings: Vec<String> = findings.into_iter().collect();
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

#[test]
#[should_panic(expected = "a rule names src/moved")]
fn a_rule_about_a_place_that_is_gone_fails() {
    files(&["src", "src/moved"], &[".rs"]);
}
