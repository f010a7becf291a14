//! A Redis server of a test's own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::setting;

/// A server on a free port, without persistence; gone with this value.
pub(crate) struct RedisServer {
    child: Child,
    port: u16,
    arguments: Vec<String>,
}

impl RedisServer {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(child) = spawn(port, &arguments) {
                return Self { child, port, arguments };
            }
        }
        panic!("redis-server did not start on five ports in a row");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Forgets everything.
    pub(crate) fn flush(&self) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.write_all(b"*1\r\n$8\r\nFLUSHALL\r\n").unwrap();
        let mut answer = [0; 5];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+OK\r\n");
    }

    /// SIGKILL: what was in it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts an empty server on the port of the killed one.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.port, &self.arguments).expect("redis-server starts again on its port");
    }

    /// Accepts connections and bytes, answers nothing.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(done.success(), "kill -{name} works");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(port: u16, arguments: &[String]) -> Option<Child> {
    let mut child = Command::new(setting("TIDEGATE_TEST_REDIS_BIN"))
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(["--dir", std::env::temp_dir().to_str().unwrap()])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if child.try_wait().unwrap().is_some() {
            return None; // a rival took the port first
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    child.kill().ok();
    child.wait().ok();
    None
}
