//! Defaults, then the file, then the environment.

use std::time::Duration;

use super::{load, problems};

#[test]
fn a_file_changes_only_what_it_states() {
    let config = load("[server]\nbody_timeout = \"20s\"", &[]).expect("a good file");
    assert_eq!(config.server.body_timeout, Duration::from_secs(20));
    assert_eq!(config.server.header_timeout, Duration::from_secs(5));
}

#[test]
fn the_environment_wins_over_the_file() {
    let variables = [("TIDEGATE_STORE__URL", "postgres://db/tidegate"), ("TIDEGATE_POOLS__WRITER__SHARDS", "4")];
    let config = load("[store]\nurl = \"sqlite:other.db\"", &variables).expect("good settings");
    assert_eq!(config.store.shown(), "postgres://db/tidegate");
    assert_eq!(config.pools.shards, 4);
}

#[test]
fn auto_can_be_replaced_by_a_number_from_the_environment() {
    let config = load("", &[("TIDEGATE_SERVER__WORKERS", "3")]).expect("good settings");
    assert_eq!(config.server.workers, 3);
}

#[test]
fn variables_that_orchestrators_set_are_none_of_ours() {
    let variables = [("TIDEGATE_PORT", "tcp://10.0.0.1:80"), ("TIDEGATE_SERVICE_HOST", "10.0.0.1")];
    assert_eq!(problems("", &variables), Vec::<String>::new());
}

#[test]
fn a_files_sources_replace_the_compiled_in_ones_whole() {
    let file = "[[source]]\nname = \"shop\"\npreset = \"shopify\"\nsecrets = [\"env:SHOP\"]";
    let config = load(file, &[("SHOP", "0123456789abcdef0123456789abcdef")]).expect("a good file");
    let names: Vec<_> = config.sources.iter().map(|source| source.spec.name.as_str()).collect();
    assert_eq!(names, ["shop"]);
}
