//! The `serve` command: opens the gate, says so, waits for a signal, closes it.
//!
//! Owns the process's signals and exit code. Promises that SIGTERM and SIGINT finish what was accepted
//! within `server.drain_within`, that a second signal ends at once, and that both work as process 1 of a
//! container, where the system supplies no default for them. What is answered 2xx is in the store by then,
//! however the process ends. Knows nothing of adapters.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tidegate_actors::rules::event::Incarnation;
use tidegate_actors::rules::key::KeyHash;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use uuid::Uuid;

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

/// Overrides `server.listen`; another terminal does not have it.
const LISTEN_VARIABLE: &str = "TIDEGATE_SERVER__LISTEN";

/// Serves until a signal comes. The exit code is 0 when nothing was left. `file` is where the settings came from.
#[must_use]
pub fn serve(config: Config, file: Option<&Path>) -> ExitCode {
    telemetry::start(&config.log);
    ExitCode::from(actix_rt::System::new().block_on(run(config, file)))
}

async fn run(config: Config, file: Option<&Path>) -> u8 {
    let drain_within = config.server.drain_within;
    // Before anything else: a signal during a slow start ends it.
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return not_started(&StartError::System(error)),
    };
    let running = tokio::select! {
        running = open(config, file) => running,
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

async fn open(config: Config, file: Option<&Path>) -> Result<Running, StartError> {
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
    let (listen, key_cache) = (config.server.listen, Arc::clone(&backends.cache));
    let running = app::start(config, backends).await?;
    // A cache that is away does not keep the gate shut; asked now, it says so now, not with the first event.
    actix_rt::spawn(async move { key_cache.get(Incarnation(Uuid::nil()), &[KeyHash([0; 16])]).await });
    let (public, admin) = (running.public, running.admin);
    // `send` looks into the settings for the address: it needs to be told what is not there.
    let told = std::env::var_os(LISTEN_VARIABLE).is_some() || listen != public;
    let program = std::env::args().next().unwrap_or_default();
    let next = next_command(&program, file, sources.first().map(String::as_str), told.then_some(public));
    let serving = Serving { public, admin, store: &store, cache: &cache, sources: &sources, next: &next };
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
    let Serving { public, admin, store, cache, sources, next } = serving;
    let listed = match sources {
        [] => "none is on: write a [[source]] into your settings".to_owned(),
        _ => sources.join(", "),
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

/// What to type next in another terminal, as this program was called.
fn next_command(program: &str, file: Option<&Path>, source: Option<&str>, url: Option<SocketAddr>) -> String {
    // What was found by its name alone is found by it again.
    let mut words = vec![if program.contains('/') { program.to_owned() } else { "tidegate".to_owned() }];
    words.extend(file.map(|file| format!("--config={}", file.display())));
    match source {
        Some(source) => words.extend(["send".to_owned(), source.to_owned()]),
        None => words.push("check".to_owned()),
    }
    if let (Some(url), Some(_)) = (url, source) {
        words.push(format!("--url=http://{url}"));
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_./:@%+=,-".contains(char);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
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
        let serving = Serving { public: address, admin: address, store: "S", cache: "C", sources: &sources, next: "N" };
        let banner = banner(&serving);
        for part in ["http://127.0.0.1:8080/in/{source}", "demo, stripe", " S\n", " C\n", " N\n"] {
            assert!(banner.contains(part), "{part} in {banner}");
        }
    }

    #[test]
    fn the_next_command_works_as_it_stands_in_another_terminal() {
        let url = "127.0.0.1:8081".parse().ok();
        let file = Some(Path::new("my settings.toml"));
        assert_eq!(next_command("tidegate", None, Some("demo"), None), "tidegate send demo");
        assert_eq!(next_command("target/release/tidegate", None, None, url), "target/release/tidegate check");
        assert_eq!(
            next_command("./tidegate", file, Some("demo"), url),
            "./tidegate '--config=my settings.toml' send demo --url=http://127.0.0.1:8081"
        );
    }
}
