//! The settings: compiled-in `config.toml`, then a file, then the environment.
//!
//! Owns what a setting may be. Promises that a [`Config`] has passed every check, and that when one fails,
//! all problems are reported at once, each with its key, value, bound and what to do, and none with a secret.
//! Knows nothing of whether the store or the cache can be reached.

mod cross;
mod effects;
mod hints;
mod layers;
mod lone;
mod reader;
pub mod redact;
mod secret;
mod secrets_file;
mod settings;
mod sources;
mod spec_faults;
pub(crate) mod suggest;
pub(crate) mod units;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use toml::Table;

pub use crate::source::Problem;
pub use lone::{config_values, secret_at, source_named, source_rules};
pub use secret::Environment;
pub use settings::{Admin, Cache, Events, Fetch, Keys, Limits, Log, LogFormat, Lookup, Pools, Server, Store};
pub use sources::SourceEntry;

use crate::effect::Effects;
use crate::store::StoreSettings;
use layers::Layers;
use reader::Reader;
use sources::Sources;

/// The documentation of every setting, and its default.
pub const DEFAULTS: &str = include_str!("../../config.toml");

/// The most bytes a settings file may have.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// All settings, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The public entrance.
    pub server: Server,
    /// The operator's entrance.
    pub admin: Admin,
    /// Where the truth is kept.
    pub store: Store,
    /// How long a repeat is known as one.
    pub keys: Keys,
    /// The log of events.
    pub events: Events,
    /// Asking providers for states.
    pub fetch: Fetch,
    /// The shared key cache.
    pub cache: Cache,
    /// What may be in flight at once.
    pub limits: Limits,
    /// The actors and their mailboxes.
    pub pools: Pools,
    /// What is logged.
    pub log: Log,
    /// Who may send; those that are off too.
    pub sources: Vec<SourceEntry>,
    /// What applied events do to the user's own tables.
    pub effects: Arc<Effects>,
    /// What is allowed, but should be known: to be shown at start.
    pub warnings: Vec<Problem>,
}

impl Config {
    /// Loads the settings; on failure, everything that is wrong with them.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut layers = Layers::new(defaults());
        if let Some(path) = file {
            match read_file(path) {
                Ok(text) => layers.add_file(path, &text, &mut problems),
                Err(error) => problems.push(Problem::new(
                    path.display().to_string(),
                    format!(
                        "cannot be read: {error}; name a settings file with --config, or leave it out for the defaults"
                    ),
                )),
            }
        }
        layers.add_environment(environment, &mut problems);
        let mut reader = Reader::new(&layers, environment);
        let config = Self::read(&mut reader);
        problems.append(&mut reader.problems);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// What the store's opener wants to know.
    #[must_use]
    pub fn store_settings(&self) -> StoreSettings {
        let Store { url, password, connect_timeout, statement_timeout, clock_tolerance, .. } = self.store.clone();
        StoreSettings {
            url,
            password,
            connect_timeout,
            statement_timeout,
            clock_tolerance,
            keys_window: self.keys.window,
            events_retention: self.events.retention,
            effects: Arc::clone(&self.effects),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let mut config = Self {
            server: Server::read(reader),
            admin: Admin::read(reader),
            store: Store::read(reader),
            keys: Keys::read(reader),
            events: Events::read(reader),
            fetch: Fetch::read(reader),
            cache: Cache::read(reader),
            limits: Limits::read(reader),
            pools: Pools::read(reader),
            log: Log::read(reader),
            sources: Vec::new(),
            effects: Arc::default(),
            warnings: Vec::new(),
        };
        cross::check(&config, reader);
        config.warnings = cross::warnings(&config);
        let mut sources = Sources::read(reader.list("source"), &config, reader.environment);
        reader.problems.append(&mut sources.problems);
        config.warnings.append(&mut sources.warnings);
        config.sources = sources.entries;
        config.effects = effects::read(reader, &config);
        effects::check(&config, reader);
        config
    }

    /// Every setting that `config.toml` documents, and every setting that is read: the same, says a test.
    #[must_use]
    pub fn documented_and_read() -> (BTreeSet<String>, BTreeSet<String>) {
        let (layers, environment) = (Layers::new(defaults()), Environment::new());
        let mut reader = Reader::new(&layers, &environment);
        Self::read(&mut reader);
        (layers.known(), reader.asked)
    }
}

/// This process's environment. A variable that is not Unicode is no setting and no secret of ours.
#[must_use]
pub fn environment() -> Environment {
    let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(unicode).collect()
}

fn defaults() -> Table {
    DEFAULTS.parse().unwrap_or_else(|error| panic!("the compiled-in config.toml is not valid TOML: {error}"))
}

fn read_file(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let length = std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if length as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}
