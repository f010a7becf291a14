//! The documentation does what it says: every command in it is run, every link leads somewhere, and the files
//! for containers agree with the settings.
//!
//! A fenced block that holds commands says in its first line what is to be done with it:
//!
//! ```text
//! ```console run            each line after `$ ` is run; the other lines are what it prints, `…` for anything
//! ```console run=server     started, waited for, and left running until the next server of the same document
//! ```console skip=reason    not run, for a reason named in `blocks::REASONS`
//! ```toml file=name         written to that file, for the commands behind it
//! ```
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "in a test a failed unwrap is the report")]

#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod containers;
mod links;
mod shell;
mod sources;

use std::fs;
use std::path::PathBuf;

use blocks::{Action, blocks};
use shell::Shell;

/// Every document, from the project's root.
fn documents() -> Vec<String> {
    let mut found: Vec<String> =
        names("").into_iter().chain(names("docs/")).filter(|name| name.ends_with(".md")).collect();
    found.sort();
    assert!(found.iter().any(|name| name == "README.md"));
    found
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
    entries.map(|entry| format!("{folder}{}", entry.unwrap().file_name().to_string_lossy())).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let mut bare = Vec::new();
    for document in documents() {
        for block in blocks(&read(&document)) {
            if let Err(fault) = block.action() {
                bare.push(format!("{document}:{}: {fault}", block.line));
            }
        }
    }
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

#[test]
fn every_command_of_the_documentation_works() {
    let mut outdated = Vec::new();
    for document in documents() {
        let text = read(&document);
        let mut shell = Shell::default();
        for block in blocks(&text) {
            let place = format!("{document}:{}", block.line);
            match block.action().unwrap() {
                Action::Run => shell.run(&place, &block.text),
                Action::Serve => shell.serve(&place, &block.text),
                Action::Write(name) => shell.write(&name, &block.text),
                Action::Nothing => {}
            }
        }
        outdated.extend(pictures(&document, &shell.drawn()));
    }
    assert!(outdated.is_empty(), "{}\nto draw them anew: {DRAW}=1 scripts/test --test docs", outdated.join("\n"));
}

/// Set to write the pictures instead of comparing them.
const DRAW: &str = "TIDEGATE_TEST_DRAW";

/// What a document's commands draw is what docs/pictures keeps, and what the document shows.
fn pictures(document: &str, drawn: &[(String, String)]) -> Vec<String> {
    let mut outdated = Vec::new();
    for (name, svg) in drawn {
        let kept = root().join("docs/pictures").join(name);
        if std::env::var_os(DRAW).is_some() {
            fs::write(&kept, svg).unwrap();
        } else if fs::read_to_string(&kept).ok().as_deref() != Some(svg) {
            outdated.push(format!("{document} draws {name}, and docs/pictures/{name} is another one"));
        }
    }
    outdated
}
