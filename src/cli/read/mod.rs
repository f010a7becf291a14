//! `events`, `resources`, `quarantine`: what is stored, listed or one by one.
//!
//! Owns the way from a row to text or JSON. Only reads: works beside a running server, makes no tables and
//! takes no lock that a writer waits for.

mod events;
mod failed;
mod held;
mod quarantine;
mod resources;
mod timeline;

use std::sync::Arc;

use serde::Serialize;
use tidegate_actors::ports::{Reader, StoreError};
use uuid::Uuid;

use super::Failure;
use crate::config::Config;
use crate::store;

pub(super) use events::run as events;
pub(super) use quarantine::{page as quarantine_page, run as quarantine};
pub(super) use resources::run as resources;

/// A page as JSON.
#[derive(Serialize)]
struct PageJson<T> {
    rows: Vec<T>,
    /// Hand this in as `--after` for the next page.
    next: Option<String>,
}

/// A body as JSON: text where it is text, else hexadecimal.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum BodyJson {
    Text(String),
    Hex(String),
}

impl BodyJson {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex(hex::encode(bytes)),
        }
    }
}

async fn open(config: &Config) -> Result<Arc<dyn Reader>, Failure> {
    store::open_reader(&config.store_settings()).await.map_err(|error| Failure::Unreachable(error.to_string()))
}

fn unread(error: &StoreError) -> Failure {
    Failure::Unreachable(error.to_string())
}

/// Where the next page starts, for people.
fn say_next(out: &mut impl std::io::Write, next: Option<Uuid>) -> std::io::Result<()> {
    match next {
        Some(next) => writeln!(out, "\nmore: --after {next}"),
        None => Ok(()),
    }
}
