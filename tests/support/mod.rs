//! Servers that a test starts, stops and kills by itself. Shared by test binaries with
//! `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, reason = "each test binary uses a part of this")]

pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod place;
pub(crate) mod postgres;
pub(crate) mod presets;
pub(crate) mod process;
pub(crate) mod provider;
pub(crate) mod redis;
pub(crate) mod signing;

use std::time::{Duration, Instant};

/// A setting that `scripts/test` hands to the tests.
pub(crate) fn setting(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => value,
        _ => panic!("{name} is not set: run the tests with scripts/test, which starts the servers they need"),
    }
}

/// Looks until a condition holds; says what it waited for when that does not come about in time.
pub(crate) async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut holds: F) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < Duration::from_secs(20), "waited 20s in vain until {what}");
        pause(Duration::from_millis(5)).await;
    }
}

/// Between two looks at a condition. Nothing else in the tests waits for time to pass.
async fn pause(time: Duration) {
    tokio::time::interval_at(tokio::time::Instant::now() + time, time).tick().await;
}
