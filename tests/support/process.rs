//! A gate as a process of its own: to be signalled and killed.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use super::gate::{SOURCES, environment, until};
use super::http::{Client, DEADLINE};
use super::place::Place;

/// The program, running.
pub(crate) struct Process {
    pub(crate) public: SocketAddr,
    pub(crate) admin: SocketAddr,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Process {
    /// `tidegate serve` on this store, with `settings` over the defaults and `variables` in the environment.
    pub(crate) fn start(place: &Place, settings: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("config.toml");
        let sources = if settings.contains("[[source]]") { "" } else { SOURCES };
        std::fs::write(&file, format!("{settings}\n{sources}")).expect("a settings file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["serve", "--config"]).arg(&file).envs(environment(place)).envs(variables.iter().copied());
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().expect("its log"));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                kept.lock().expect("the log").push(line);
            }
        });
        let mut addresses = None;
        until("the program says where it listens", || {
            addresses = log.lock().expect("the log").iter().find_map(|line| addresses_in(line));
            assert!(child.try_wait().expect("a child").is_none() || addresses.is_some(), "it ended: {log:?}");
            addresses.is_some()
        });
        let (public, admin) = addresses.expect("addresses");
        Self { public, admin, child, log, _folder: folder }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.public).expect("the gate takes connections")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(sent.expect("kill").success(), "kill -{name} works");
    }

    /// SIGKILL, and wait until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the program ends", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("a status")
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("the log").join("\n")
    }

    /// Waits until it logs something.
    pub(crate) fn logs(&self, text: &str) {
        until(&format!("the program logs {text:?} within {DEADLINE:?}"), || self.log().contains(text));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn addresses_in(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    if line["message"] != "serving" {
        return None;
    }
    let address = |name: &str| line[name].as_str()?.parse().ok();
    Some((address("public")?, address("admin")?))
}
