//! A Postgres server of a test's own, to be killed.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::gate::until;
use super::setting;

/// A server on a free port, durable like a real one; gone with this value.
pub(crate) struct PostgresServer {
    folder: tempfile::TempDir,
    port: u16,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("tidegate-pg").tempdir().expect("a temporary folder");
        if let Some(user) = user() {
            let owned = Command::new("chown").arg(&user).arg(folder.path()).status();
            assert!(owned.expect("chown").success(), "{user} can own a temporary folder");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let server = Self { folder, port };
        let made = tool("initdb").args(["-A", "trust", "-U", "tidegate", "-D"]).arg(server.data()).output();
        let made = made.expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.run();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://tidegate@127.0.0.1:{}/postgres", self.port)
    }

    /// SIGKILL to the server's first process; its children follow by themselves.
    pub(crate) fn kill(&self) {
        let file = self.data().join("postmaster.pid");
        let pid = std::fs::read_to_string(&file).expect("a running server").lines().next().expect("a pid").to_owned();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().expect("kill").success(), "the server was running");
        until("the killed server is gone", || TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }

    /// Starts it, on the same port and files, and waits until it takes connections.
    pub(crate) fn run(&self) {
        until("the server starts", || {
            // refused while a child of the killed server still holds its shared memory
            let port = self.port.to_string();
            let started = tool("pg_ctl")
                .args(["start", "-w", "-t", "20", "-s", "-D"])
                .arg(self.data())
                .arg("-l")
                .arg(self.folder.path().join("log"))
                .args(["-o", &format!("-p {port} -k '' -c listen_addresses=127.0.0.1 -c max_connections=60")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            started.expect("pg_ctl runs").success()
        });
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        tool("pg_ctl").args(["stop", "-m", "immediate", "-s", "-D"]).arg(self.data()).status().ok();
    }
}

/// Postgres refuses to run as root: the user to run it as, if another one.
fn user() -> Option<String> {
    std::env::var("TIDEGATE_TEST_PG_USER").ok().filter(|user| !user.is_empty())
}

fn tool(name: &str) -> Command {
    let path = PathBuf::from(setting("TIDEGATE_TEST_PG_BIN")).join(name);
    let mut command = match user() {
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", &user, "--"]).arg(path);
            command
        }
        None => Command::new(path),
    };
    command.current_dir("/");
    command
}
