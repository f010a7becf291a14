//! The `serve` command: opens the gate, says so, waits for a signal, closes it.
//!
//! Owns the process's signals and exit code. Promises that SIGTERM and SIGINT finish what was accepted
//! within `server.drain_within`, that a second signal ends at once, and that both work as process 1 of a
//! container, where the system supplies no default for them. What is answered 2xx is in the store by then,
//! however the process ends. Knows nothing of adapters.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::app::{self, Backends, Running, StartError};
use crate::config::{Config, LogFormat};
use crate::telemetry::{
    self, Serving, SettingWarned, ShutdownBegan, ShutdownEnded, ShutdownForced, StartFailed, StoreWarned, emit,
};

/// The gate did not open; the message says why.
pub const EXIT_NOT_STARTED: u8 = 3;
/// The gate closed, and accepted events were left without an answer. None of them was answered 2xx.
pub const EXIT_LEFT: u8 = 1;
/// A second signal ended the process (the number a shell gives to one ended by SIGINT).
pub const EXIT_FORCED: u8 = 130;

/// Serves until a signal comes. The exit code is 0 when nothing was left.
#[must_use]
pub fn serve(config: Config) -> ExitCode {
    telemetry::start(&config.log);
    ExitCode::from(actix_rt::System::new().block_on(run(config)))
}

async fn run(config: Config) -> u8 {
    let drain_within = config.server.drain_within;
    // Before anything else: a signal during a slow start ends it.
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return not_started(&StartError::System(error)),
    };
    let running = tokio::select! {
        running = open(config) => running,
        _ = signals.next() => return 0,
    };
    let running = match running {
        Ok(running) => running,
        Err(error) => return not_started(&error),
    };
    let signal = signals.next().await;
    emit(ShutdownBegan { signal, within: drain_within });
    let began = Instant::now();
    let drained = tokio::select! {
        drained = running.stop(drain_within) => drained,
        _ = signals.next() => {
            emit(ShutdownForced);
            return EXIT_FORCED;
        }
    };
    emit(ShutdownEnded { left: drained.left, took: began.elapsed() });
    if drained.left == 0 { 0 } else { EXIT_LEFT }
}

async fn open(config: Config) -> Result<Running, StartError> {
    for warning in &config.warnings {
        emit(SettingWarned(warning));
    }
    let json = config.log.format == LogFormat::Json;
    let sources: Vec<String> =
        config.sources.iter().filter(|source| source.enabled).map(|source| source.spec.name.clone()).collect();
    let backends = Backends::open(&config).await?;
    for warning in &backends.warnings {
        emit(StoreWarned(warning));
    }
    let (store, cache) = (backends.store_name.clone(), backends.cache_name.clone());
    let running = app::start(config, backends).await?;
    let serving =
        Serving { public: running.public, admin: running.admin, store: &store, cache: &cache, sources: &sources };
    if io::stderr().is_terminal() && !json {
        // A terminal that is gone is no reason not to serve.
        let _ = write!(io::stderr(), "{}", banner(&serving));
    } else {
        emit(serving);
    }
    Ok(running)
}

fn not_started(error: &StartError) -> u8 {
    emit(StartFailed(error));
    EXIT_NOT_STARTED
}

/// What a person sees: where it listens, what it stores to, and what to type next.
fn banner(serving: &Serving<'_>) -> String {
    let Serving { public, admin, store, cache, sources } = serving;
    let (listed, next) = match sources.first() {
        Some(first) => (sources.join(", "), format!("tidegate send {first} --count 100")),
        None => ("none is on: write a [[source]] into your settings".to_owned(), "tidegate check".to_owned()),
    };
    format!(
        "
  Tidegate {version} is open

    webhooks   http://{public}/in/{{source}}
    sources    {listed}
    store      {store}
    cache      {cache}
    figures    http://{admin}/metrics and http://{admin}/status

    next       {next}
    stop       Ctrl-C

",
        version = env!("CARGO_PKG_VERSION"),
    )
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_names_doors_store_and_the_next_command() {
        let sources = ["demo".to_owned(), "stripe".to_owned()];
        let address = "127.0.0.1:8080".parse().expect("an address");
        let serving = Serving { public: address, admin: address, store: "S", cache: "C", sources: &sources };
        let banner = banner(&serving);
        for part in ["http://127.0.0.1:8080/in/{source}", "demo, stripe", " S\n", "tidegate send demo --count 100"] {
            assert!(banner.contains(part), "{part} in {banner}");
        }
    }
}
