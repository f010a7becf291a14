//! A whole gate inside the test process: real sockets, a real store, and its rows to look at.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate::app::{self, Backends};
use tidegate::config::Config;
use tidegate_actors::Drained;
use tidegate_actors::ports::{Counts, EventFilter, EventRow, QuarantineRow, Reader, ResourceFilter, ResourceRow};
use tokio::sync::mpsc;

use super::http::{Client, DEADLINE, Request, Response};
use super::place::Place;
use super::signing;

/// What every gate under test has: `things`, versioned by a sequence, and its relatives.
pub(crate) const SOURCES: &str = r#"
[[source]]
name = "things"
preset = "standard-webhooks"
secrets = ["env:TEST_SECRET"]
type = "body:/type"
resource = { type = "body:/object", id = "body:/id" }
version = [{ from = "body:/sequence", as = "integer" }]
"#;

type Asking = Box<dyn FnOnce(Arc<dyn Reader>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A running gate. Dropping it stops it without waiting for anything.
pub(crate) struct Gate {
    pub(crate) public: SocketAddr,
    pub(crate) admin: SocketAddr,
    ask: Option<mpsc::Sender<Asking>>,
    thread: Option<JoinHandle<Drained>>,
    place: Option<Place>,
}

impl Gate {
    /// On an SQLite file of its own, with `settings` (TOML) over the defaults.
    pub(crate) fn start(settings: &str) -> Self {
        Self::start_at(Place::sqlite(), settings)
    }

    /// On this store.
    pub(crate) fn start_at(place: Place, settings: &str) -> Self {
        Self::start_with(place, settings, |backends| backends)
    }

    /// With other adapters: `change` gets what the settings name and says what stands behind the engine.
    pub(crate) fn start_with(
        place: Place,
        settings: &str,
        change: impl FnOnce(Backends) -> Backends + Send + 'static,
    ) -> Self {
        let config = config(&place, settings);
        let (started, opened) = std::sync::mpsc::sync_channel(1);
        let (ask, asked) = mpsc::channel(16);
        let thread = std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move { run(config, change, &started, asked).await })
        });
        let (public, admin) = opened.recv_timeout(DEADLINE).expect("the gate opens");
        Self { public, admin, ask: Some(ask), thread: Some(thread), place: Some(place) }
    }

    /// Where its rows are.
    pub(crate) fn place(&self) -> &Place {
        self.place.as_ref().expect("a running gate")
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.public).expect("the gate takes connections")
    }

    /// One request on a connection of its own.
    pub(crate) fn call(&self, request: &Request) -> Response {
        self.client().call(request).expect("an answer")
    }

    /// A signed event for the source `things`.
    pub(crate) fn post(&self, id: &str, body: &str) -> Response {
        self.call(&signing::signed("/in/things", id, body))
    }

    pub(crate) fn admin_get(&self, path: &str) -> Response {
        let mut client = Client::connect(self.admin).expect("the admin listener takes connections");
        client.call(&Request::new("GET", path)).expect("an answer")
    }

    /// Asks the store's reader, on the thread that owns it.
    pub(crate) fn ask<T: Send + 'static, F: Future<Output = T>>(
        &self,
        question: impl FnOnce(Arc<dyn Reader>) -> F + Send + 'static,
    ) -> T {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let asking: Asking = Box::new(move |reader| {
            Box::pin(async move {
                let _ = answer.send(question(reader).await);
            })
        });
        self.ask.as_ref().expect("a running gate").blocking_send(asking).expect("a running gate");
        answered.recv_timeout(DEADLINE).expect("the reader answers")
    }

    /// Every event, the oldest first.
    pub(crate) fn events(&self) -> Vec<EventRow> {
        let mut rows = self.ask(|reader| async move {
            let (mut rows, mut after) = (Vec::new(), None);
            loop {
                let page = reader.events(&EventFilter::default(), after, 1_000).await.expect("events");
                rows.extend(page.rows);
                after = page.next;
                if after.is_none() {
                    return rows;
                }
            }
        });
        rows.reverse();
        rows
    }

    /// Every resource.
    pub(crate) fn resources(&self) -> Vec<ResourceRow> {
        self.ask(|reader| async move {
            let (mut rows, mut after) = (Vec::new(), None);
            loop {
                let page = reader.resources(&ResourceFilter::default(), after, 1_000).await.expect("resources");
                rows.extend(page.rows);
                after = page.next;
                if after.is_none() {
                    return rows;
                }
            }
        })
    }

    pub(crate) fn quarantined(&self) -> Vec<QuarantineRow> {
        self.ask(|reader| async move { reader.quarantine(None, 1_000).await.expect("the quarantine").rows })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.ask(|reader| async move { reader.counts().await.expect("counts") })
    }

    /// Nothing was kept: no key, no event, no resource, nothing in quarantine.
    pub(crate) fn assert_empty(&self) {
        let counts = self.counts();
        assert!(
            counts.keys == 0 && counts.resources == 0 && counts.events.iter().all(|(_, count)| *count == 0),
            "{counts:?}"
        );
    }

    /// Shuts down as a signal would; gives the store back for another start.
    pub(crate) fn stop(mut self) -> (Drained, Place) {
        self.ask = None;
        let thread = self.thread.take().expect("a running gate");
        let drained = thread.join().expect("a gate that ends well");
        (drained, self.place.take().expect("a place"))
    }

    /// Begins to shut down, and goes on.
    pub(crate) fn begin_stop(&mut self) {
        self.ask = None;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the gate ended badly");
        }
    }
}

async fn run(
    config: Config,
    change: impl FnOnce(Backends) -> Backends,
    started: &std::sync::mpsc::SyncSender<(SocketAddr, SocketAddr)>,
    mut asked: mpsc::Receiver<Asking>,
) -> Drained {
    let drain_within = config.server.drain_within;
    let backends = Backends::open(&config).await.expect("the store opens");
    let running = app::start(config, change(backends)).await.expect("the gate opens");
    started.send((running.public, running.admin)).expect("a test that waits");
    while let Some(asking) = asked.recv().await {
        asking(Arc::clone(&running.reader)).await;
    }
    running.stop(drain_within).await
}

/// The settings of a gate under test: `settings` over a store of its own and free ports.
pub(crate) fn config(place: &Place, settings: &str) -> Config {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.toml");
    let sources = if settings.contains("[[source]]") { "" } else { SOURCES };
    std::fs::write(&file, format!("{settings}\n{sources}")).expect("a settings file");
    match Config::load(Some(&file), &environment(place)) {
        Ok(config) => config,
        Err(problems) => panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// What the environment says for every gate under test.
pub(crate) fn environment(place: &Place) -> std::collections::BTreeMap<String, String> {
    let entries = [
        ("TIDEGATE_STORE__URL", place.url()),
        ("TIDEGATE_SERVER__LISTEN", "127.0.0.1:0".to_owned()),
        ("TIDEGATE_ADMIN__LISTEN", "127.0.0.1:0".to_owned()),
        ("TIDEGATE_LOG__FORMAT", "json".to_owned()),
        ("TEST_SECRET", signing::secret(signing::KEY)),
        ("OTHER_SECRET", signing::secret(signing::OTHER_KEY)),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a deadline in real time")]
    let started = std::time::Instant::now();
    while !holds() {
        assert!(started.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
