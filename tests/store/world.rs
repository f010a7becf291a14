//! A backend to run a case on: a database of its own, opened as often as the case likes.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tidegate::clock::SystemClock;
use tidegate::store::postgres::{PgStore, Way};
use tidegate::store::sqlite::SqliteStore;
use tidegate::store::{StoreSettings, open, open_reader};
use tidegate_actors::memory::MemoryStore;
use tidegate_actors::ports::{Reader, Session, Store};
use tidegate_actors::rules::event::Incarnation;

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
    sqlite: Option<Arc<SqliteStore>>,
    memory: Option<MemoryStore>,
}

impl World {
    async fn new(kind: Kind, url: String) -> Self {
        if kind == Kind::Sqlite {
            let settings = settings(&url, Options::default());
            let store = Arc::new(SqliteStore::open(&settings).await.expect("the store opens"));
            let reader = open_reader(&settings).await.expect("the reader opens");
            let node = Node { store: Arc::<SqliteStore>::clone(&store), reader };
            return Self { kind, url, node, sqlite: Some(store), memory: None };
        }
        let node = node(kind, &url, Options::default()).await;
        Self { kind, url, node, sqlite: None, memory: None }
    }

    fn in_memory() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock::new()), Incarnation(crate::events::fresh_id().0));
        let node = Node::of_memory(&store);
        Self { kind: Kind::Memory, url: String::new(), node, sqlite: None, memory: Some(store) }
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
    if kind == Kind::Memory {
        return block_on(async { case(&World::in_memory()).await });
    }
    if kind == Kind::Sqlite {
        let folder = tempfile::tempdir().expect("a folder for the database");
        let url = format!("sqlite:{}", folder.path().join("tidegate.db").display());
        return run_at(kind, url, case);
    }
    let database = block_on(Database::create());
    let url = database.url.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_at(kind, url, case)));
    block_on(database.drop());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn run_at(kind: Kind, url: String, case: impl AsyncFnOnce(&World)) {
    block_on(async {
        let world = World::new(kind, url).await;
        case(&world).await;
    });
}

/// Runs a future as an arbiter does: on one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, work)
}

/// A database of one test, made from a template that is migrated once.
pub(crate) struct Database {
    name: String,
    pub(crate) url: String,
}

impl Database {
    async fn create() -> Self {
        let mut connection = maintenance().await;
        let template = template(&mut connection).await;
        let name = format!("tidegate_test_{}", crate::events::fresh_id().0.simple());
        make(&mut connection, &name, &template).await;
        connection.close().await.expect("the maintenance connection closes");
        Self { url: url_of(&name), name }
    }

    /// A database without any table.
    pub(crate) async fn empty() -> Self {
        let mut connection = maintenance().await;
        let name = format!("tidegate_test_{}", crate::events::fresh_id().0.simple());
        make(&mut connection, &name, "template0").await;
        connection.close().await.expect("the maintenance connection closes");
        Self { url: url_of(&name), name }
    }

    pub(crate) async fn drop(self) {
        let mut connection = maintenance().await;
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(sql)).await.expect("the test's database is dropped");
    }
}

async fn make(connection: &mut PgConnection, name: &str, template: &str) {
    // Two copies of one template at a time are refused, so they queue.
    connection.execute("SELECT pg_advisory_lock(7404)").await.expect("a lock");
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'");
    let made = connection.execute(AssertSqlSafe(sql)).await;
    connection.execute("SELECT pg_advisory_unlock(7404)").await.expect("an unlock");
    made.expect("a database for the test");
}

/// The migrated template, named after its migrations, made by whichever test comes first.
async fn template(connection: &mut PgConnection) -> String {
    let schema = include_str!("../../src/store/postgres/migrations/0001_start.sql");
    let digest = tidegate_actors::rules::key::BodyDigest::of(schema.as_bytes());
    let name = format!("tidegate_template_{digest}");
    connection.execute("SELECT pg_advisory_lock(7403)").await.expect("a lock");
    let ready: Option<bool> = sqlx::query_scalar("SELECT datistemplate FROM pg_database WHERE datname = $1")
        .bind(&name)
        .fetch_optional(&mut *connection)
        .await
        .expect("the list of databases");
    if ready != Some(true) {
        let run = |sql: String| AssertSqlSafe(sql);
        connection.execute(run(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await.expect("a clean start");
        connection.execute(run(format!("CREATE DATABASE {name} TEMPLATE template0"))).await.expect("a template");
        drop(open(&StoreSettings::of(url_of(&name))).await.expect("the template is migrated"));
        let done = format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false");
        connection.execute(run(done)).await.expect("the template is closed");
    }
    connection.execute("SELECT pg_advisory_unlock(7403)").await.expect("an unlock");
    name
}

async fn maintenance() -> PgConnection {
    PgConnection::connect(&maintenance_url()).await.expect("the server in TIDEGATE_TEST_POSTGRES answers")
}

fn maintenance_url() -> String {
    std::env::var("TIDEGATE_TEST_POSTGRES")
        .expect("TIDEGATE_TEST_POSTGRES is not set: run the tests by `scripts/test`, which starts a Postgres for them")
}

/// The maintenance URL with another database, which keeps every other part of it.
fn url_of(database: &str) -> String {
    let url = maintenance_url();
    let options: PgConnectOptions = url.parse().expect("TIDEGATE_TEST_POSTGRES is a URL");
    let old = options.get_database().unwrap_or("postgres").to_owned();
    let (base, query) = url.split_once('?').map_or((url.as_str(), None), |(base, query)| (base, Some(query)));
    let base = base.strip_suffix(&old).unwrap_or(base).trim_end_matches('/');
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{base}/{database}{query}")
}
