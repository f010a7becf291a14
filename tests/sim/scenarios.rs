//! The scenarios that come with the program hold what they promise, on each store, and the same seed is the
//! same run.

use std::collections::BTreeSet;

use toml::{Table, Value as Toml};

use super::{SHIPPED, folder, passed, simulate, stdout};

#[test]
fn every_scenario_passes_in_memory() {
    let folder = folder();
    for scenario in SHIPPED {
        let told = passed(folder.path(), &[scenario, "--seeds", "1..40"]);
        assert_eq!((&told["verdict"], &told["seeds"]), (&"pass".into(), &40.into()), "{scenario}");
        assert!(told["events"].as_u64() >= Some(40 * 200), "{scenario}: {}", told["events"]);
        assert!(told["faults"].as_u64() >= Some(40 * 5), "{scenario}: {}", told["faults"]);
    }
}

#[test]
fn every_scenario_passes_on_sqlite_and_leaves_no_file_behind() {
    let folder = folder();
    for scenario in SHIPPED {
        for seed in ["1", "2"] {
            let told = passed(folder.path(), &[scenario, "--seed", seed, "--store", "sqlite"]);
            assert_eq!(told["store"], "sqlite");
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_same_seed_tells_the_same_twice_and_another_seed_another_thing() {
    let folder = folder();
    for store in ["memory", "sqlite"] {
        let told = |seed: &str| {
            stdout(&simulate(folder.path(), &["reorder-storm", "--seed", seed, "--trace", "--store", store]))
        };
        let (once, again, other) = (told("5"), told("5"), told("6"));
        assert!(once.lines().count() > 200, "{once}");
        assert_eq!(once, again, "{store}");
        assert_ne!(once, other, "{store}");
    }
}

#[test]
fn many_seeds_are_the_same_in_any_number_of_threads() {
    let folder = folder();
    let told = |_| passed(folder.path(), &["retry-storm", "--seeds", "1..24"])["trace_hash"].clone();
    assert_eq!(told(0), told(1));
}

#[test]
fn gentle_explains_every_dial_and_every_line_of_the_others_is_explained() {
    let folder = folder();
    let text = |scenario| stdout(&simulate(folder.path(), &["--print", scenario]));
    let known = leaves(&text("gentle"));
    for scenario in SHIPPED {
        let text = text(scenario);
        let unknown: Vec<_> = leaves(&text).difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{scenario} turns {unknown:?}, which gentle does not explain");
        let mut explained = false;
        for line in text.lines() {
            if line.starts_with('#') {
                explained = true;
            } else if line.is_empty() || line.starts_with('[') {
                explained = false;
            } else if line.contains(" = ") && !line.starts_with(' ') {
                assert!(explained || line.starts_with("about"), "{scenario}: {line}");
                explained = false;
            }
        }
    }
}

#[test]
fn gentle_names_every_dial_there_is() {
    let folder = folder();
    let gentle = leaves(&stdout(&simulate(folder.path(), &["--print", "gentle"])));
    // A section that is unknown answers with the dials it has.
    for section in ["world", "sender", "network", "clock", "order", "faults", "gate"] {
        let told = super::stderr(&simulate(folder.path(), &["gentle", "--set", &format!("{section}.zzzzzzzz=1")]));
        let (_, names) = told.split_once("there are ").unwrap_or_else(|| panic!("{told}"));
        for name in names.trim().split(", ") {
            assert!(gentle.contains(&format!("{section}.{name}")), "gentle.toml does not explain {section}.{name}");
        }
    }
}

#[test]
fn gentle_names_every_fault_there_is() {
    let folder = folder();
    let gentle = stdout(&simulate(folder.path(), &["--print", "gentle"]));
    let told = super::stderr(&simulate(folder.path(), &["gentle", "--set", "faults.only=[\"zzzzzzzzzzzz\"]"]));
    let (_, names) = told.split_once("there are ").unwrap_or_else(|| panic!("{told}"));
    for name in names.trim().split(", ") {
        assert!(gentle.contains(&format!("{name},")) || gentle.contains(&format!("{name}.")), "{name}");
    }
}

/// Every dial that a scenario's text turns.
fn leaves(text: &str) -> BTreeSet<String> {
    fn gather(table: &Table, section: &str, found: &mut BTreeSet<String>) {
        for (name, value) in table {
            let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            match value {
                Toml::Table(inner) => gather(inner, &key, found),
                _ => drop(found.insert(key)),
            }
        }
    }
    let mut found = BTreeSet::new();
    gather(&text.parse().expect("TOML"), "", &mut found);
    found
}
