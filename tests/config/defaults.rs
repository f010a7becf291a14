//! `config.toml` is what it says: the defaults, and the list of all settings.

use std::time::Duration;

use tidegate::config::{Config, DEFAULTS, Lookup};

#[test]
fn the_defaults_load_without_a_problem_or_a_warning() {
    let config = Config::load(None, &super::environment(&[])).expect("the defaults");
    assert_eq!(config.warnings, []);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:9090");
    assert_eq!(config.store.shown(), "sqlite:tidegate.db");
    assert_eq!(config.keys.window, Duration::from_secs(35 * 86_400));
    assert_eq!(config.cache.shown(), None);
    assert_eq!(config.cache.lookup, Lookup::Auto);
    assert_eq!(config.cache.deadline, Duration::from_millis(50));
    assert_eq!(config.pools.shards, 1);
    assert_eq!(config.pools.batch_events, 500);
    assert!(config.server.workers >= 1);
}

#[test]
fn the_default_sources_are_a_demo_that_is_on_and_four_examples_that_are_off() {
    let config = Config::load(None, &super::environment(&[])).expect("the defaults");
    let sources: Vec<_> = config.sources.iter().map(|source| (source.spec.name.as_str(), source.enabled)).collect();
    let expected = [("demo", true), ("stripe", false), ("github", false), ("shopify", false), ("slack", false)];
    assert_eq!(sources, expected);
}

#[test]
fn every_documented_setting_is_read_and_every_setting_that_is_read_is_documented() {
    let (documented, read) = Config::documented_and_read();
    assert_eq!(documented, read);
}

#[test]
fn every_setting_has_a_comment_above_it() {
    let lines: Vec<&str> = DEFAULTS.lines().collect();
    let settings = || lines.iter().enumerate().take_while(|(_, line)| !line.starts_with("[[source]]"));
    for (number, line) in settings().filter(|(_, line)| line.contains(" = ") && !line.starts_with('#')) {
        assert!(
            number > 0 && lines[number - 1].starts_with('#'),
            "line {}: {line} has no comment above it",
            number + 1
        );
    }
}

#[test]
fn every_number_duration_and_size_states_its_bounds() {
    let mut comment = String::new();
    for line in DEFAULTS.lines().take_while(|line| !line.starts_with("[[source]]")) {
        if line.starts_with('#') {
            comment.push_str(line);
            continue;
        }
        let value = line.split_once(" = ").map_or("", |(_, value)| value.trim_matches('"'));
        if value.starts_with(|first: char| first.is_ascii_digit()) && !value.contains(':') {
            assert!(comment.contains(" to "), "{line} does not say from what to what");
        }
        comment.clear();
    }
}
