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
use tidegate::cache::{CacheSettings, open};
use tidegate_actors::ports::{Fact, KeyCache};
use tidegate_actors::rules::event::{EventId, Incarnation};
use tidegate_actors::rules::key::{BodyDigest, KeyHash};
use uuid::Uuid;

const ERA: Incarnation = Incarnation(Uuid::from_u128(0xe4a));

fn settings(url: &str, namespace: &str) -> CacheSettings {
    CacheSettings {
        url: Some(SecretString::from(url.to_owned())),
        namespace: namespace.into(),
        secret: SecretString::from("the secret of these tests"),
        // Longer than by default: a test machine may be busy, and these tests are not about the deadline.
        deadline: Duration::from_secs(5),
        ..CacheSettings::default()
    }
}

fn cache(url: &str, namespace: &str) -> Arc<dyn KeyCache> {
    open(&settings(url, namespace)).unwrap()
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
