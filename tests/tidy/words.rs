//! What must not stand in code or prose.

use crate::{files, none, rust};

#[test]
fn nothing_is_left_open() {
    // Put together here, so that this file does not find itself.
    let open = ["todo", "unimplemented"].map(|name| format!("{name}!("));
    let marks = ["TO", "FIX", "XX"].map(|start| format!("{start}{}", ["DO", "ME", "X"][start.len() % 3]));
    let texts = rust();
    let findings = texts.iter().flat_map(|text| {
        let lines = text.text.lines().enumerate();
        let found = lines.filter(|(_, line)| open.iter().chain(&marks).any(|word| line.contains(word.as_str())));
        found.map(|(index, line)| format!("{}:{}: {}", text.path, index + 1, line.trim())).collect::<Vec<_>>()
    });
    none("code that waits for someone", findings);
}

#[test]
fn tests_neither_sleep_nor_look_away() {
    let sleep = format!("{}(", "sleep");
    let ignore = format!("#[{}", "ignore");
    let texts = rust();
    let findings = texts.iter().flat_map(|text| {
        // Outside of tests, only tests at a file's end may not sleep; adapters may.
        let tests_from = text.text.lines().position(|line| line.contains("#[cfg(test)]"));
        let from = if text.is_test() { 0 } else { tests_from.unwrap_or(usize::MAX) };
        // The engine's tests run on paused time, where tokio's sleep drives the clock.
        let driven = |line: &str| text.path.starts_with("actors/") && line.contains(&format!("tokio::time::{sleep}"));
        let naps = |number: usize, line: &str| number > from && line.contains(&sleep) && !driven(line);
        let found = text.code().filter(|(number, line)| line.contains(&ignore) || naps(*number, line));
        found.map(|(number, line)| format!("{}:{number}: {}", text.path, line.trim())).collect::<Vec<_>>()
    });
    none("wait for a condition with a deadline, or drive the clock", findings);
}

#[test]
fn no_thread_sleeps_but_where_there_is_nothing_else_to_wait_for() {
    let places =
        [("bench/src/run/contender.rs", "a process of any contender, which says nothing when it is ready or gone")];
    let nap = format!("thread::{}(", "sleep");
    let texts = rust();
    let sleeping = texts.iter().filter(|text| text.code().any(|(_, line)| line.contains(&nap)));
    let found: Vec<&str> = sleeping.map(|text| text.path.as_str()).collect();
    assert_eq!(found, places.map(|(path, _)| path), "a thread that sleeps holds up every actor on it");
}

#[test]
fn every_claim_to_happen_once_names_the_key_that_makes_it_so() {
    let claim = ["exactly", "once"];
    let mut texts = rust();
    texts.extend(files(
        &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "config.toml"],
        &[".md", ".toml"],
    ));
    let findings = texts.iter().flat_map(|text| {
        let lines: Vec<String> = text.text.lines().map(str::to_lowercase).collect();
        let bare = (0..lines.len()).filter(|at| {
            let claims = [claim.join(" "), claim.join("-")].iter().any(|words| lines[*at].contains(words.as_str()));
            let near = &lines[at.saturating_sub(1)..(at + 2).min(lines.len())];
            claims && !near.iter().any(|line| line.contains("key"))
        });
        bare.map(|at| format!("{}:{}", text.path, at + 1)).collect::<Vec<_>>()
    });
    none("a promise without its key", findings);
}
