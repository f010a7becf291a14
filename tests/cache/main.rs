//! The key cache against real Redis servers: well, lying, full, slow, dead and back (I8).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a failed unwrap is the report, and deadlines are real time; tidy watches for sleeps"
)]

#[path = "../support/mod.rs"]
mod support;

mod log;
mod outages;
mod values;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tidegate::cache::open;
use tidegate::config::{Cache, Lookup};
use tidegate_actors::ports::{Fact, KeyCache};
use tidegate_actors::rules::event::{EventId, Incarnation};
use tidegate_actors::rules::key::{BodyDigest, KeyHash};
use uuid::Uuid;

/// A database history of a test's own, since tests share a server.
fn era(number: u128) -> Incarnation {
    Incarnation(Uuid::from_u128(number))
}

fn settings(url: &str) -> Cache {
    Cache {
        url: Some(url.to_owned()),
        password: None,
        secret: Some(SecretString::from("the secret of these tests")),
        lookup: Lookup::Always,
        // Longer than the settings allow: a test machine may be busy, and most tests are not about the deadline.
        deadline: Duration::from_secs(5),
        keep: Duration::from_hours(48),
    }
}

fn cache(url: &str) -> Arc<dyn KeyCache> {
    open(&settings(url)).unwrap()
}

fn key(number: u64) -> KeyHash {
    KeyHash(u128::from(number).to_be_bytes())
}

fn fact(number: u64) -> Fact {
    Fact {
        key: key(number),
        first: EventId(Uuid::from_u128(u128::from(number) << 64)),
        digest: BodyDigest(u128::from(!number).to_le_bytes()),
    }
}

/// Runs a test on one thread that drives the connections too, as an arbiter does.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
