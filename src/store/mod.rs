//! Which store stands behind the engine: chosen by the scheme of `store.url`, opened, checked and migrated.
//!
//! Owns the settings, the choice and the adapters. Promises that what [`open`] hands out is migrated and
//! safe to answer 2xx from, and that no text it makes shows the password of the URL. Knows nothing of
//! HTTP, sources or actors; nothing outside this module sees a transaction, a row or sqlx.
//! On failure [`open`] says which setting is wrong, what it is, and what to do.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tidegate_actors::ports::{Reader, Store};

use crate::effect::Effects;

mod effects;
pub mod postgres;
pub mod sql;
pub mod sqlite;

/// How the store is opened and how long it remembers.
#[derive(Clone)]
pub struct StoreSettings {
    /// `postgres://user:password@host:port/database` or `sqlite:path`. May hold a password: never shown.
    pub url: String,
    /// The password for a URL without one.
    pub password: Option<SecretString>,
    /// Time for opening a connection.
    pub connect_timeout: Duration,
    /// Time for one statement.
    pub statement_timeout: Duration,
    /// Largest difference between this clock and the store's that passes without a word.
    pub clock_tolerance: Duration,
    /// How long a key stays claimed, at least (`keys.window`).
    pub keys_window: Duration,
    /// How long events stay readable, at least (`events.retention`).
    pub events_retention: Duration,
    /// What applied events do to the user's own tables.
    pub effects: Arc<Effects>,
}

impl StoreSettings {
    /// The settings for a URL, all else as in the compiled-in `config.toml`.
    #[must_use]
    pub fn of(url: impl Into<String>) -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        Self {
            url: url.into(),
            password: None,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            clock_tolerance: Duration::from_secs(10),
            keys_window: DAY * 35,
            events_retention: DAY * 35,
            effects: Arc::default(),
        }
    }
}

/// A store that is migrated, checked and ready.
pub struct Opened {
    /// What writers commit to.
    pub store: Arc<dyn Store>,
    /// What people and the API read from.
    pub reader: Arc<dyn Reader>,
    /// What is not wrong enough to refuse, each with setting, value and what to do.
    pub warnings: Vec<String>,
    /// Where events are stored, for people and without secrets.
    pub describe: String,
}

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not one of a known store.
    #[error("`store.url`: {0}")]
    Url(String),
    /// The store cannot be reached or does not answer.
    #[error("the store cannot be opened: {0}")]
    Unavailable(String),
    /// There is nothing to read yet.
    #[error("nothing is stored yet: there is {0}: start `tidegate serve` once, or set `store.url`")]
    Empty(String),
    /// The store would lose or refuse what was answered 2xx.
    #[error("the store is not safe to use: {}", .0.join("; "))]
    Unsafe(Vec<String>),
    /// The database cannot run statements of effects, each with its place.
    #[error("the database cannot run these effects: {}", .0.join("; "))]
    Effects(Vec<String>),
    /// The tables could not be brought to this binary's version.
    #[error("the tables cannot be migrated: {0}")]
    Migration(String),
}

/// Opens the store that `settings.url` names, brings its tables up to date and checks that it is safe.
pub async fn open(settings: &StoreSettings) -> Result<Opened, OpenError> {
    match scheme(&settings.url) {
        Some("postgres" | "postgresql") => postgres::open(settings).await,
        Some("sqlite") => sqlite::open(settings).await,
        Some(other) => Err(OpenError::Url(format!("{other:?} is no known store; use `postgres://` or `sqlite:`"))),
        None => Err(OpenError::Url("it has no scheme; use `postgres://` or `sqlite:`".to_owned())),
    }
}

/// Opens the store only to read it, beside a process that serves: makes, migrates and locks nothing.
pub async fn open_reader(settings: &StoreSettings) -> Result<Arc<dyn Reader>, OpenError> {
    match scheme(&settings.url) {
        Some("postgres" | "postgresql") => postgres::open_reader(settings).await,
        Some("sqlite") => Ok(Arc::new(sqlite::open_reader(settings).await?)),
        Some(other) => Err(OpenError::Url(format!("{other:?} is no known store; use `postgres://` or `sqlite:`"))),
        None => Err(OpenError::Url("it has no scheme; use `postgres://` or `sqlite:`".to_owned())),
    }
}

/// Asks the database that `settings.url` names whether it can run the effects; makes and changes nothing.
pub async fn check_effects(settings: &StoreSettings) -> Result<(), OpenError> {
    match scheme(&settings.url) {
        Some("sqlite") => sqlite::check_effects(settings).await,
        _ => postgres::check_effects(settings).await,
    }
}

fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let plain = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unknown_store_is_refused_without_showing_the_url() {
        for url in ["mysql://root:hunter2@db/x", "hunter2", "://hunter2"] {
            let error = open(&StoreSettings::of(url)).await.err().expect("an error").to_string();
            assert!(error.starts_with("`store.url`"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
