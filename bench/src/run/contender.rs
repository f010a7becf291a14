//! The five contenders, and one of them running.
//!
//! Owns the child process and, for SQLite, the file. Promises: a started contender answers `/readyz`; a dropped one
//! is dead. What it writes goes to a log file, whose end is part of the error when it does not start.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::database::Database;

/// What all contenders and the load generator share; a fixed secret of a benchmark keeps nothing safe.
pub(super) const SECRET: &str = "benchmark-secret-of-32-characters";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    Transaction,
    Function,
    Verify,
    Postgres,
    Sqlite,
}

impl Contender {
    pub(super) const ALL: [Self; 5] = [Self::Transaction, Self::Function, Self::Verify, Self::Postgres, Self::Sqlite];

    pub(super) fn letter(self) -> char {
        match self {
            Self::Transaction => 'a',
            Self::Function => 'b',
            Self::Verify => 'c',
            Self::Postgres => 'd',
            Self::Sqlite => 'e',
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Transaction => "by hand, one transaction a request",
            Self::Function => "by hand, one function call",
            Self::Verify => "verifies and answers only",
            Self::Postgres => "**Tidegate**, Postgres and Redis",
            Self::Sqlite => "**Tidegate**, SQLite",
        }
    }

    pub(super) fn uses_postgres(self) -> bool {
        matches!(self, Self::Transaction | Self::Function | Self::Postgres)
    }

    fn way(self) -> Option<&'static str> {
        match self {
            Self::Transaction => Some("transaction"),
            Self::Function => Some("function"),
            Self::Verify => Some("verify"),
            Self::Postgres | Self::Sqlite => None,
        }
    }
}

/// The policy of all measurements but those that compare policies.
pub(super) const NEWEST: &str = r#"{ policy = "newest" }"#;

/// Where the programs are and where files may go.
pub(super) struct Programs {
    pub(super) by_hand: PathBuf,
    pub(super) tidegate: PathBuf,
    pub(super) redis: String,
    pub(super) scratch: PathBuf,
}

pub(super) struct Running {
    child: Child,
    pub(super) address: SocketAddr,
    files: PathBuf,
}

impl Programs {
    /// Starts a contender on the database `name`, with a policy of order where it has one; `preload` slows its own disk
    /// (for SQLite).
    pub(super) fn start(
        &self,
        contender: Contender,
        order: &str,
        database: &Database,
        name: &str,
        preload: Option<&Path>,
    ) -> Result<Running, String> {
        let files = self.scratch.join(format!("{}-{name}", contender.letter()));
        let _ = fs::remove_dir_all(&files);
        fs::create_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
        let address = free_address()?;
        let mut command = match contender.way() {
            Some(way) => {
                let mut command = Command::new(&self.by_hand);
                command.args(["--way", way, "--listen", &address.to_string(), "--secret", SECRET]);
                if contender.uses_postgres() {
                    command.args(["--database", &database.url(name)]);
                }
                command
            }
            None => {
                let config = files.join("config.toml");
                let text = self.tidegate_config(contender, order, &database.url(name), address, &files)?;
                fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
                let mut command = Command::new(&self.tidegate);
                command.arg("--config").arg(&config).arg("serve").env("TIDEGATE_BENCH_SECRET", SECRET);
                command
            }
        };
        if let Some(preload) = preload.filter(|_| contender == Contender::Sqlite) {
            command.env("LD_PRELOAD", preload);
        }
        let log = files.join("log");
        let open = || File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
        let out = open()?;
        let err = out.try_clone().map_err(|error| error.to_string())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let mut running = Running { child, address, files };
        running.wait_until_ready(&log)?;
        Ok(running)
    }

    fn tidegate_config(
        &self,
        contender: Contender,
        order: &str,
        database: &str,
        address: SocketAddr,
        files: &Path,
    ) -> Result<String, String> {
        let (store, cache) = match contender {
            Contender::Sqlite => (format!("sqlite:{}/tidegate.db", files.display()), String::new()),
            _ => (database.to_owned(), format!("[cache]\nurl = \"{}\"\n", self.redis)),
        };
        let admin = free_address()?;
        Ok(format!(
            r#"[server]
listen = "{address}"
[admin]
listen = "{admin}"
[store]
url = "{store}"
{cache}
[[source]]
name = "bench"
secrets = ["env:TIDEGATE_BENCH_SECRET"]
verify = {{ scheme = "hmac-sha256", header = "x-signature", signed = "{{body}}", encoding = "hex" }}
key = ["body:/id"]
type = "body:/type"
resource = {{ type = "body:/data/object/object", id = "body:/data/object/id" }}
version = [{{ from = "body:/sequence", as = "integer" }}]
order = {order}
"#
        ))
    }
}

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_ready(self.address) {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || Instant::now() > deadline {
                let text = fs::read_to_string(log).unwrap_or_default();
                let from = text.char_indices().rev().nth(1_500).map_or(0, |(at, _)| at);
                return Err(format!(
                    "the server did not get ready ({ended:?}); the end of its log:\n{}",
                    &text[from..]
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Asks the server to end and waits; kills it after 15 s, which is an error worth seeing.
    pub(super) fn stop(mut self) -> Result<(), String> {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|error| error.to_string())?;
        }
        let deadline = Instant::now() + Duration::from_secs(15);
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() > deadline {
                return Err("a server did not end within 15 s of SIGTERM".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The log and the configuration stay, the database file of some gigabytes does not.
        for entry in fs::read_dir(&self.files).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(".db") {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn is_ready(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n")?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(&start == b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}

/// A port nothing listens on; another program may still take it first, and then the start fails with its own words.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map_err(|error| error.to_string())
}
