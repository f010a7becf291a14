//! Which way dependencies point: main, then app, then adapters, then actors and ports, then rules.

use std::fs;

use crate::{Text, existing, files, none, root};

/// Mentions of a crate or module, as code.
fn mentions(text: &Text, what: &str) -> Vec<String> {
    let found = text.code().filter(|(_, line)| {
        line.match_indices(what).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|before| before.is_alphanumeric() || "_\"`-".contains(before))
        })
    });
    found.map(|(number, line)| format!("{}:{number}: {}", text.path, line.trim())).collect()
}

/// No file of `places` but those under `except` mentions any of `banned`.
#[track_caller]
fn keep_out(rule: &str, places: &[&str], except: &[&str], banned: &[&str]) {
    let texts = files(places, &[".rs"]);
    assert!(!texts.is_empty(), "nothing to check in {places:?}");
    except.iter().for_each(|place| drop(existing(place)));
    let checked = texts.iter().filter(|text| !except.iter().any(|place| text.path.starts_with(place)));
    none(rule, checked.flat_map(|text| banned.iter().flat_map(|what| mentions(text, what))));
}

#[test]
fn the_engine_has_no_web_server_no_sql_and_no_redis() {
    let manifest: toml::Table = fs::read_to_string(root().join("actors/Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["dependencies"].as_table().unwrap();
    let outside = ["actix-web", "actix-http", "sqlx", "redis", "reqwest", "hyper", "rand", "tidegate"];
    none(
        "crates that the engine must not know",
        outside.into_iter().filter(|name| dependencies.contains_key(*name)).map(String::from),
    );
}

#[test]
fn rules_are_plain_functions_without_actors_time_or_input_and_output() {
    let banned =
        ["async ", "actix", "tokio", "crate::ports", "std::time", "std::fs", "std::env", "std::net", "tracing::"];
    keep_out("rules decide, and do nothing else", &["actors/src/rules"], &[], &banned);
}

#[test]
fn only_the_store_sees_sqlx() {
    keep_out("sqlx stays under src/store", &["src", "actors/src"], &["src/store/"], &["sqlx::"]);
}

#[test]
fn only_the_cache_sees_redis() {
    keep_out("redis stays under src/cache", &["src", "actors/src"], &["src/cache/"], &["redis::", "use redis"]);
}

#[test]
fn the_http_layer_does_not_know_the_store() {
    keep_out("http talks to the engine, not to the store", &["src/http"], &[], &["crate::store", "crate::cache"]);
}

#[test]
fn adapters_do_not_know_the_web_server_nor_each_other() {
    keep_out(
        "store and cache answer the engine only",
        &["src/store", "src/cache"],
        &[],
        &["actix_web", "crate::http", "crate::source"],
    );
    keep_out("the cache does not know the store", &["src/cache"], &[], &["crate::store"]);
    keep_out("the store does not know the cache", &["src/store"], &[], &["crate::cache"]);
    keep_out(
        "asking a provider needs a source and nothing else",
        &["src/fetch"],
        &[],
        &["crate::http", "crate::store", "crate::cache", "crate::app", "crate::config"],
    );
    keep_out(
        "sources only read requests",
        &["src/source"],
        &[],
        &["crate::http", "crate::store", "crate::cache", "crate::fetch", "crate::app"],
    );
    keep_out(
        "settings open no adapter",
        &["src/config"],
        &[],
        &["crate::http", "store::open", "cache::open", "crate::app"],
    );
}

#[test]
fn only_the_command_line_explains() {
    let except = ["src/source/explain/", "src/source/mod.rs", "src/cli/sources/"];
    keep_out("what lets requests in does not try other rules", &["src"], &except, &["explain::"]);
}

#[test]
fn only_the_simulator_reads_requests_that_nobody_verified() {
    let except = ["src/source/", "src/cli/simulate/"];
    keep_out("whoever stores or answers verifies first", &["src"], &except, &["read_recorded", "compile_to_read"]);
}
