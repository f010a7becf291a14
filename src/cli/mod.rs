//! The command line: what can be typed, and what it does.
//!
//! Owns arguments, exit codes and what is printed. Promises: results go to standard output, everything else
//! to standard error; text that came from outside is printed so that it cannot steer a terminal; no secret
//! is printed. Knows nothing of how the engine works. On failure it says what, where and what to do.

mod admin;
mod args;
mod check;
mod output;
mod read;
mod release;
mod retry;
mod send;
mod simulate;
mod sources;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use crate::config::{self, Config};

pub use args::{Cli, Command};

/// How a command ended. The numbers are in the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Good = 0,
    /// The command ran, and its answer is no: problems found, events refused, nothing by that name.
    No = 1,
    /// Arguments or settings are wrong; nothing was done.
    Usage = 2,
    /// The server or the store could not be reached.
    Unreachable = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not give its answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Arguments that do not fit together or do not fit the settings.
    #[error("{0}")]
    Usage(String),
    /// The settings are wrong; everything about it was printed.
    #[error("the settings have problems")]
    Settings,
    /// The server or the store could not be reached.
    #[error("{0}")]
    Unreachable(String),
    /// Nothing by that name.
    #[error("{0}")]
    NotFound(String),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Runs every command but `serve`, inside a runtime.
pub async fn run(command: Command, file: Option<&Path>) -> Exit {
    // The HTTP client takes the process's TLS provider. An error: there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match command {
        Command::Serve => Err(Failure::Usage("serve is not run here".to_owned())),
        Command::Check(args) => check::run(&args, file).await,
        Command::Sources(args) => sources::run(&args, file).await,
        Command::Send(args) => with_settings(file, async |config| send::run(&args, &config).await).await,
        Command::Simulate(args) => simulate::run(&args, file),
        Command::Events(args) => with_settings(file, async |config| read::events(&args, &config).await).await,
        Command::Resources(args) => with_settings(file, async |config| read::resources(&args, &config).await).await,
        Command::Quarantine(args) => with_settings(file, async |config| read::quarantine(&args, &config).await).await,
    };
    done.unwrap_or_else(|failure| failed(&failure))
}

/// Loads the settings, or prints all that is wrong with them.
#[must_use]
pub fn load(file: Option<&Path>) -> Option<Config> {
    match Config::load(file, &config::environment()) {
        Ok(config) => Some(config),
        Err(problems) => {
            output::problems(&problems);
            None
        }
    }
}

async fn with_settings(
    file: Option<&Path>,
    command: impl AsyncFnOnce(Config) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    command(load(file).ok_or(Failure::Settings)?).await
}

fn failed(failure: &Failure) -> Exit {
    let exit = match failure {
        // Whoever reads has seen enough: `tidegate events | head`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return Exit::Good,
        Failure::Settings => return Exit::Usage,
        Failure::Usage(_) => Exit::Usage,
        Failure::Unreachable(_) => Exit::Unreachable,
        Failure::NotFound(_) | Failure::Output(_) => Exit::No,
    };
    output::error(&failure.to_string());
    exit
}

/// Where a server that listens on this address is reached from here.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        ip if !ip.is_unspecified() => listen,
        IpAddr::V4(_) => SocketAddr::from(([127, 0, 0, 1], listen.port())),
        IpAddr::V6(_) => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], listen.port())),
    }
}

/// The innermost cause: that is what helps.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
