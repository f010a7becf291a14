//! The layers of settings: compiled-in defaults, then a file, then the environment.
//!
//! A file's tables merge into the defaults key by key; its lists replace the defaults' whole. A key that the
//! defaults do not have is unknown: the defaults are the list of all settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::Problem;
use super::suggest::closest;

/// Variables with this start are settings when a `__` follows.
const ENV_PREFIX: &str = "TIDEGATE_";

/// Lists of tables; their items are checked by whoever owns them.
const LISTS: [&str; 2] = ["source", "effect"];

/// Where a value that is no default was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the file of `--config`.
    File(PathBuf),
    /// In this environment variable.
    Env(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) => f.write_str(name),
        }
    }
}

/// All layers, merged, and where each set value came from.
pub(crate) struct Layers {
    defaults: Table,
    merged: Table,
    origins: BTreeMap<String, Origin>,
}

impl Layers {
    /// Starts from the compiled-in defaults.
    pub(crate) fn new(mut defaults: Table) -> Self {
        for list in LISTS {
            // one without items cannot be written down behind a section
            defaults.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        }
        Self { merged: defaults.clone(), defaults, origins: BTreeMap::new() }
    }

    /// Lays a file over what is there.
    pub(crate) fn add_file(&mut self, path: &Path, text: &str, problems: &mut Vec<Problem>) {
        match text.parse::<Table>() {
            Ok(table) => self.merge("", &table, &Origin::File(path.to_owned()), problems),
            Err(error) => problems.push(syntax_problem(path, text, &error)),
        }
    }

    /// Lays the environment over what is there. A variable without `__` is none of ours: orchestrators set
    /// such ones for their own ends (`TIDEGATE_PORT`, `TIDEGATE_SERVICE_HOST`).
    pub(crate) fn add_environment(&mut self, variables: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
        for (name, text) in variables {
            let Some(setting) = name.strip_prefix(ENV_PREFIX).filter(|rest| rest.contains("__")) else { continue };
            let key = setting.to_lowercase().replace("__", ".");
            self.set(&key, Value::String(text.clone()), &Origin::Env(name.clone()), problems);
        }
    }

    /// The value in force, and the default it stands in for.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        find(&self.merged, key)
    }

    pub(crate) fn default(&self, key: &str) -> Option<&Value> {
        find(&self.defaults, key)
    }

    /// Where a value was set; `None` for a default.
    pub(crate) fn origin(&self, key: &str) -> Option<&Origin> {
        self.origins.get(key)
    }

    /// Every setting there is, lists of tables left out.
    pub(crate) fn known(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        leaves("", &self.defaults, &mut keys);
        keys
    }

    fn merge(&mut self, path: &str, table: &Table, origin: &Origin, problems: &mut Vec<Problem>) {
        for (name, value) in table {
            let key = joined(path, name);
            match (self.default(&key), value) {
                (Some(Value::Table(_)), Value::Table(inner)) => self.merge(&key, inner, origin, problems),
                _ => self.set(&key, value.clone(), origin, problems),
            }
        }
    }

    fn set(&mut self, key: &str, value: Value, origin: &Origin, problems: &mut Vec<Problem>) {
        let section = key.split('.').next().unwrap_or(key);
        if matches!(origin, Origin::Env(_)) && LISTS.contains(&section) {
            let message = format!("is a list (in {origin}): set it in a file and name that with --config");
            return problems.push(Problem::new(section, message));
        }
        match self.default(key) {
            None => problems.push(self.unknown(key, origin)),
            Some(Value::Table(_)) => {
                let message = format!("is a section, not a value (in {origin}): write [{key}] and its settings below");
                problems.push(Problem::new(key, message));
            }
            Some(_) => {
                put(&mut self.merged, key, value);
                self.origins.insert(key.to_owned(), origin.clone());
            }
        }
    }

    fn unknown(&self, key: &str, origin: &Origin) -> Problem {
        let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
        let siblings =
            if parent.is_empty() { Some(&self.defaults) } else { self.default(parent).and_then(Value::as_table) };
        let Some(siblings) = siblings else {
            let sections = self.defaults.keys().map(String::as_str);
            let section = key.split('.').next().unwrap_or(key);
            return Problem::new(key, unknown_text("setting", origin, closest(section, sections)));
        };
        let what = if parent.is_empty() { "section" } else { "setting" };
        let meant = closest(name, siblings.keys().map(String::as_str)).map(|name| joined(parent, name));
        Problem::new(key, unknown_text(what, origin, meant.as_deref()))
    }
}

fn unknown_text(what: &str, origin: &Origin, meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("is not a {what} (in {origin}): did you mean `{meant}`?"),
        None => format!("is not a {what} (in {origin}): take it out, or see config.toml for all there are"),
    }
}

/// A syntax error with its place, but without the line's text, which may hold a secret.
fn syntax_problem(path: &Path, text: &str, error: &toml::de::Error) -> Problem {
    let line = error.span().map_or(1, |span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
    let key = format!("{}:{line}", path.display());
    Problem::new(key, format!("is not valid TOML: {}", error.message().replace('\n', ", ")))
}

pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn find<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let value = table.get(first)?;
    match rest {
        None => Some(value),
        Some(rest) => find(value.as_table()?, rest),
    }
}

fn put(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(first) {
                put(inner, rest, value);
            }
        }
    }
}

fn leaves(path: &str, table: &Table, keys: &mut BTreeSet<String>) {
    for (name, value) in table {
        let key = joined(path, name);
        match value {
            Value::Table(inner) => leaves(&key, inner, keys),
            _ if LISTS.contains(&key.as_str()) => {}
            _ => {
                keys.insert(key);
            }
        }
    }
}
