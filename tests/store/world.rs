//! A backend to run a case on: a database of its own, opened as often as the case likes.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tidegate::store::postgres::{PgStore, Way};
use tidegate::store::sqlite::SqliteStore;
use tidegate::store::{StoreSettings, open, open_reader};
use tidegate_actors::memory::MemoryStore;
use tidegate_actors::ports::{Reader, Session, Store};
use tidegate_actors::rules::event::Incarnation;

use crate::clock::TestClock;
use crate::database::Database;

/// What a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Postgres, each batch the cheapest way.
    Postgres,
    /// Postgres, every batch loaded and decided.
    PostgresLoaded,
    /// Postgres, every batch locked, loaded and decided.
    PostgresLocked,
    /// SQLite, where a second node is the same file once more in this process.
    Sqlite,
    /// The double that the engine's own tests and the simulator run on.
    Memory,
}

/// How a case wants its store opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How long keys are remembered.
    pub(crate) keys_window: Duration,
    /// How long events are kept.
    pub(crate) events_retention: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let of = StoreSettings::of("");
        Self { keys_window: of.keys_window, events_retention: of.events_retention }
    }
}

/// One opening of the store: a node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) reader: Arc<dyn Reader>,
}

impl Node {
    fn of_memory(store: &MemoryStore) -> Self {
        Self { store: Arc::new(store.clone()), reader: Arc::new(store.clone()) }
    }

    pub(crate) async fn session(&self) -> Box<dyn Session> {
        self.store.open().await.expect("a session")
    }
}

/// An empty database, and the node that most cases need.
pub(crate) struct World {
    kind: Kind,
    pub(crate) url: String,
    pub(crate) node: Node,
    clock: Arc<TestClock>,
    sqlite: Option<Arc<SqliteStore>>,
    memory: Option<MemoryStore>,
}

impl World {
    pub(crate) async fn new(kind: Kind, url: String) -> Self {
        let clock = Arc::new(TestClock::default());
        if kind == Kind::Memory {
            let store = MemoryStore::new(Arc::<TestClock>::clone(&clock), Incarnation(crate::events::fresh_id().0));
            let node = Node::of_memory(&store);
            return Self { kind, url, node, clock, sqlite: None, memory: Some(store) };
        }
        if kind == Kind::Sqlite {
            let settings = settings(&url, Options::default());
            let store = SqliteStore::open(&settings).await.expect("the store opens");
            let store = Arc::new(store.with_clock(Arc::<TestClock>::clone(&clock)));
            let reader = open_reader(&settings).await.expect("the reader opens");
            let node = Node { store: Arc::<SqliteStore>::clone(&store), reader };
            return Self { kind, url, node, clock, sqlite: Some(store), memory: None };
        }
        let node = node(kind, &url, Options::default()).await;
        Self { kind, url, node, clock, sqlite: None, memory: None }
    }

    /// So much time passes for everything that waits: a store that was given the clock of the test sees it there,
    /// Postgres has its own, so what waits is moved towards it.
    pub(crate) async fn pass(&self, ms: i64) {
        if self.memory.is_some() || self.sqlite.is_some() {
            return self.clock.pass(ms);
        }
        let mut connection = PgConnection::connect(&self.url).await.expect("a connection");
        for sql in [
            format!("UPDATE tidegate.holds SET until_ms = until_ms - {ms}"),
            format!("UPDATE tidegate.fetches SET due_ms = due_ms - {ms}, leased_until_ms = leased_until_ms - {ms}"),
        ] {
            connection.execute(AssertSqlSafe(sql)).await.expect("what waits is moved");
        }
        connection.close().await.expect("the connection closes");
    }

    /// Opens the same database once more, as another node would.
    pub(crate) async fn open(&self, options: Options) -> Node {
        if let Some(first) = &self.memory {
            return Node::of_memory(&first.beside(options.keys_window, options.events_retention));
        }
        match &self.sqlite {
            Some(first) => {
                let store = Arc::new(first.beside(&settings(&self.url, options)));
                Node { store, reader: Arc::clone(&self.node.reader) }
            }
            None => node(self.kind, &self.url, options).await,
        }
    }
}

fn settings(url: &str, options: Options) -> StoreSettings {
    StoreSettings {
        keys_window: options.keys_window,
        events_retention: options.events_retention,
        ..StoreSettings::of(url)
    }
}

async fn node(kind: Kind, url: &str, options: Options) -> Node {
    let settings = settings(url, options);
    let opened = open(&settings).await.unwrap_or_else(|error| panic!("the store opens: {error}"));
    let store: Arc<dyn Store> = match kind {
        Kind::Postgres | Kind::Sqlite | Kind::Memory => opened.store,
        Kind::PostgresLoaded => Arc::new(PgStore::with_way(&settings, Way::Loaded).expect("a store")),
        Kind::PostgresLocked => Arc::new(PgStore::with_way(&settings, Way::Locked).expect("a store")),
    };
    Node { store, reader: opened.reader }
}

/// Runs a case on a database made for it, and drops that whatever comes of the case.
pub(crate) fn run(kind: Kind, case: impl AsyncFnOnce(&World)) {
    with_database(kind, |url| {
        block_on(async {
            let world = World::new(kind, url).await;
            case(&world).await;
        });
    });
}

/// Makes a database, hands out its URL, and drops it whatever comes of the work.
pub(crate) fn with_database(kind: Kind, work: impl FnOnce(String)) {
    if kind == Kind::Memory {
        return work(String::new());
    }
    if kind == Kind::Sqlite {
        let folder = tempfile::tempdir().expect("a folder for the database");
        return work(format!("sqlite:{}", folder.path().join("tidegate.db").display()));
    }
    let database = block_on(Database::create());
    let url = database.url.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(url)));
    block_on(database.drop());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a future as an arbiter does: on one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    Arbiter::new().block_on(work)
}

/// One thread that futures run on, one after the other.
pub(crate) struct Arbiter(tokio::runtime::Runtime, tokio::task::LocalSet);

impl Arbiter {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self(runtime, tokio::task::LocalSet::new())
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.1.block_on(&self.0, work)
    }
}
