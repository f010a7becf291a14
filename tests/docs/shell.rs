//! Runs a document's commands in an empty folder, against servers of the test's own.
//!
//! Addresses that a document may name are replaced by free ones: two test runs do not meet, and a server that
//! already runs on this machine is not touched.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::setting;

const PUBLIC: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const POSTGRES: &str = "postgres://tidegate:tidegate@localhost:5432/tidegate";
const REDIS: &str = "redis://localhost:6379/0";

/// One document's shell.
pub(crate) struct Shell {
    folder: TempDir,
    server: Option<Child>,
    public: String,
    admin: String,
    postgres: Option<String>,
}

impl Default for Shell {
    fn default() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // `tidegate` is what was built for this test.
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tidegate"), folder.path().join("bin/tidegate")).unwrap();
        fs::create_dir(folder.path().join("here")).unwrap();
        Self { folder, server: None, public: free_address(), admin: free_address(), postgres: None }
    }
}

impl Shell {
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("here").join(name), text).unwrap();
    }

    /// Every picture that the commands drew so far, by its name.
    pub(crate) fn drawn(&self) -> Vec<(String, String)> {
        let files = fs::read_dir(self.folder.path().join("here")).unwrap().map(|entry| entry.unwrap().path());
        let drawn = files.filter(|path| path.extension().is_some_and(|ending| ending == "svg"));
        drawn
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap()))
            .collect()
    }

    /// Runs each command and compares what it prints with what stands below it, if anything does.
    pub(crate) fn run(&mut self, place: &str, block: &str) {
        let mut exports = String::new();
        for (command, expected) in commands(block) {
            if command.starts_with("export ") {
                exports.push_str(&format!("{command}\n"));
                continue;
            }
            let output = self.bash(&format!("{exports}{command}")).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success(),
                "{place}: `{command}` ended with {}:\n{printed}\n{complaint}",
                output.status
            );
            for line in expected {
                assert!(
                    printed.lines().any(|real| fits(line, real)),
                    "{place}: `{command}` does not print `{line}`:\n{printed}"
                );
            }
        }
    }

    /// Starts a server in place of the one before, and waits until it is ready.
    pub(crate) fn serve(&mut self, place: &str, block: &str) {
        self.stop();
        (self.public, self.admin) = (free_address(), free_address());
        let lines: Vec<String> = commands(block).into_iter().map(|(command, _)| command).collect();
        let (last, exports) = lines.split_last().unwrap_or_else(|| panic!("{place}: no command"));
        let log = self.folder.path().join("server.log");
        let output = fs::File::create(&log).unwrap();
        let mut command = self.bash(&format!("{}\nexec {last}", exports.join("\n")));
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let mut server = command.spawn().unwrap();
        let started = Instant::now();
        while !is_ready(&self.admin) {
            let ended = server.try_wait().unwrap();
            let patience = started.elapsed() < Duration::from_secs(30);
            assert!(
                ended.is_none() && patience,
                "{place}: not ready ({ended:?}):\n{}",
                fs::read_to_string(&log).unwrap()
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.server = Some(server);
    }

    fn bash(&mut self, script: &str) -> Command {
        let mut script = script.replace(PUBLIC, &self.public).replace(ADMIN, &self.admin);
        if script.contains(POSTGRES) {
            let database = self.postgres.get_or_insert_with(fresh_database).clone();
            script = script.replace(POSTGRES, &database);
        }
        if script.contains(REDIS) {
            script = script.replace(REDIS, &setting("TIDEGATE_TEST_REDIS"));
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &script]).current_dir(self.folder.path().join("here")).process_group(0);
        // Settings of whoever runs the tests must not reach the commands.
        let foreign = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_"));
        foreign.for_each(|(name, _)| {
            command.env_remove(name);
        });
        command.env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()));
        command.env("TIDEGATE_SERVER__LISTEN", &self.public).env("TIDEGATE_ADMIN__LISTEN", &self.admin);
        command
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            Command::new("kill").arg(server.id().to_string()).status().unwrap();
            let status = server.wait().unwrap();
            assert!(status.success(), "the server ends well on SIGTERM: {status}");
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(mut server) = self.server.take() {
                server.kill().ok();
                server.wait().ok();
            }
        } else {
            self.stop();
        }
    }
}

/// Commands of a block, each with the lines it is to print.
fn commands(block: &str) -> Vec<(String, Vec<&str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((command, _))) if command.ends_with('\\') => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, expected))) if !line.trim().is_empty() => expected.push(line),
            _ => {}
        }
    }
    found
}

/// Whether a printed line is the shown one, where `…` stands for anything.
fn fits(shown: &str, printed: &str) -> bool {
    let mut rest = printed.trim();
    for (index, part) in shown.trim().split('…').enumerate() {
        match rest.find(part) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    shown.ends_with('…') || rest.is_empty()
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn is_ready(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: docs\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// A database of the document's own on the test's Postgres.
fn fresh_database() -> String {
    let maintenance = setting("TIDEGATE_TEST_POSTGRES");
    let name = format!("docs_{}_{}", std::process::id(), Instant::now().elapsed().as_nanos());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use sqlx::Connection as _;
        let mut connection = sqlx::PgConnection::connect(&maintenance).await.unwrap();
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    });
    let (server, _) = maintenance.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

#[test]
fn a_shown_line_fits_the_printed_one() {
    assert!(fits("401", "401") && fits("a … c", "a b c") && fits("a…", "abc") && fits("…c", "abc"));
    assert!(!fits("401", "4010") && !fits("b…", "abc") && !fits("a…d", "abc"));
}

#[test]
fn commands_are_told_from_what_they_print() {
    let found = commands("$ a \\\n  b\nout\n\n$ c\n");
    assert_eq!(found, [("a \\\n  b".to_owned(), vec!["out"]), ("c".to_owned(), vec![])]);
}
