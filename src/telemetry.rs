//! Logs and the events worth a log line: one struct per thing that can happen.
//!
//! Owns the log's set-up and the process's own happenings (start, stop, warnings); other parts define theirs
//! beside what they happen to and implement [`Happening`]. Promises that a happening is logged and counted
//! in one place, and that no field holds a secret. Knows nothing of who reads. If the log cannot be set up
//! twice (tests in one process), the first stands.

use std::fmt::Display;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::time::Duration;

use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat, Problem};

/// Sets up the log of this process, on stderr.
///
/// The filter was checked when the settings were read; what it cannot read is left out.
pub fn start(log: &Log) {
    let filter = EnvFilter::new(&log.filter);
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that a log is set up already: the first stands.
    let _ = match log.format {
        LogFormat::Auto => builder.with_target(false).with_ansi(terminal).try_init(),
        LogFormat::Text => builder.with_target(false).with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// One thing that can happen: what it logs and what it counts.
pub trait Happening {
    /// Logs and counts it.
    fn emit(self);
}

/// Says that something happened.
pub fn emit(happening: impl Happening) {
    happening.emit();
}

/// The node takes events.
#[derive(Debug)]
pub struct Serving<'a> {
    /// Where webhooks come in.
    pub public: SocketAddr,
    /// Where figures and status are.
    pub admin: SocketAddr,
    /// The store, without its password.
    pub store: &'a str,
    /// The cache, without its password.
    pub cache: &'a str,
    /// The names of the sources.
    pub sources: &'a [String],
    /// What to type next.
    pub next: &'a str,
}

impl Happening for Serving<'_> {
    fn emit(self) {
        let sources = self.sources.join(",");
        info!(
            public = %self.public, admin = %self.admin, store = self.store, cache = self.cache, sources,
            next = self.next,
            version = env!("CARGO_PKG_VERSION"), "serving"
        );
    }
}

/// The store works, but not as it should.
#[derive(Debug)]
pub struct StoreWarned<'a>(pub &'a str);

impl Happening for StoreWarned<'_> {
    fn emit(self) {
        warn!(warning = self.0, "the store is set up in a way that weakens a promise");
    }
}

/// A setting is allowed, but should be known.
#[derive(Debug)]
pub struct SettingWarned<'a>(pub &'a Problem);

impl Happening for SettingWarned<'_> {
    fn emit(self) {
        warn!(setting = self.0.key, "{}", self.0);
    }
}

/// The gate did not open.
#[derive(Debug)]
pub struct StartFailed<'a, E: Display>(pub &'a E);

impl<E: Display> Happening for StartFailed<'_, E> {
    fn emit(self) {
        error!("{}", self.0);
    }
}

/// Shutdown began.
#[derive(Debug)]
pub struct ShutdownBegan {
    /// What asked for it.
    pub signal: &'static str,
    /// The time it may take.
    pub within: Duration,
}

impl Happening for ShutdownBegan {
    fn emit(self) {
        info!(
            signal = self.signal,
            within_s = self.within.as_secs_f64(),
            "taking nothing new, finishing what was accepted; a second signal ends at once"
        );
    }
}

/// Shutdown is over.
#[derive(Debug)]
pub struct ShutdownEnded {
    /// Events whose senders got no verdict.
    pub left: usize,
    /// How long it took.
    pub took: Duration,
}

impl Happening for ShutdownEnded {
    fn emit(self) {
        let took_s = self.took.as_secs_f64();
        if self.left == 0 {
            info!(took_s, "stopped, nothing left");
        } else {
            warn!(left = self.left, took_s, "stopped with events unanswered; none of them was answered 2xx");
        }
    }
}

/// A second signal came while shutting down.
#[derive(Debug)]
pub struct ShutdownForced;

impl Happening for ShutdownForced {
    fn emit(self) {
        warn!("second signal: ending at once; whatever was answered 2xx is in the store");
    }
}
