//! The `[[effect]]` list: each item read, its statements checked, every fault told with its place.

use std::sync::Arc;

use toml::Value;

use super::Config;
use super::reader::Reader;
use super::spec_faults;
use crate::effect::{Dialect, EFFECTS_MAX, EffectSpec, Effects};

/// Reads the list for the database that the settings name.
pub(super) fn read(reader: &mut Reader<'_>, config: &Config) -> Arc<Effects> {
    let Some(Value::Array(items)) = reader.list("effect") else {
        reader.problem("effect", "must be a list: write [[effect]] with double brackets");
        return Arc::default();
    };
    if items.len() > EFFECTS_MAX {
        reader.problem("effect", format!("must have at most {EFFECTS_MAX} items, got {}", items.len()));
        return Arc::default();
    }
    let mut specs = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let key = format!("effect[{index}]");
        match item {
            Value::Table(table) => {
                let spec = spec_faults::read::<EffectSpec>(&key, table.clone(), &mut reader.problems);
                specs.extend(spec.map(|spec| (key, spec)));
            }
            _ => reader.problem(&key, "must be a table: write [[effect]] with double brackets"),
        }
    }
    let dialect = if config.store.is_sqlite() { Dialect::Sqlite } else { Dialect::Postgres };
    match Effects::compile(&specs, dialect, config.store.effect_timeout) {
        Ok(effects) => Arc::new(effects),
        Err(mut problems) => {
            reader.problems.append(&mut problems);
            Arc::default()
        }
    }
}

/// Effects of sources that are not there.
pub(super) fn check(config: &Config, reader: &mut Reader<'_>) {
    let known = |name: &str| config.sources.iter().any(|entry| entry.spec.name == name);
    for (key, name) in config.effects.sources() {
        if !known(name) {
            let names: Vec<&str> = config.sources.iter().map(|entry| entry.spec.name.as_str()).collect();
            let message = format!("names {name:?}, and there is no such source: correct it, or add it to {names:?}");
            reader.problem(&format!("{key}.on.source"), message);
        }
    }
}
