//! A database in a folder of its own, and events to put into it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;
use tidegate::clock::SystemClock;
use tidegate::store::sqlite::{SqliteReader, SqliteStore, open_reader};
use tidegate::store::{OpenError, StoreSettings};
use tidegate_actors::ports::{Clock, Outcome, Store as _};
use tidegate_actors::rules::event::{Event, EventId, Guard, Intent, Resource};
use tidegate_actors::rules::key::{BodyDigest, Key};
use tidegate_actors::rules::order::{OnGap, Order, Policy, Tie, Wait};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

pub(crate) const DAY_MS: i64 = 86_400_000;

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the database"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("data/tidegate.db")
    }

    pub(crate) async fn open(&self) -> Result<SqliteStore, OpenError> {
        SqliteStore::open(&settings(&self.database())).await
    }

    pub(crate) async fn store(&self) -> SqliteStore {
        self.open().await.expect("the database opens")
    }

    /// A connection of somebody else's, as a shell makes it.
    pub(crate) async fn shell(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.database()).connect().await.expect("a connection")
    }

    /// Waits until nobody has the database open, and leaves all of it in its one file. A store that is dropped closes its
    /// connections a little later; only who is alone may leave the journal mode WAL.
    pub(crate) async fn closed(&self) {
        let options = SqliteConnectOptions::new().filename(self.database()).busy_timeout(Duration::ZERO);
        let started = tokio::time::Instant::now();
        loop {
            let mut connection = options.connect().await.expect("a connection");
            let mode = sqlx::query_scalar("PRAGMA journal_mode = DELETE").fetch_one(&mut connection).await;
            connection.close().await.expect("closed");
            let mode: String = mode.unwrap_or_else(|error| error.to_string());
            if mode == "delete" {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "waited 20s in vain for the database to be closed: {mode}"
            );
            tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await.ok();
        }
    }

    pub(crate) async fn reader(&self) -> SqliteReader {
        open_reader(&settings(&self.database())).await.expect("the database opens for reading")
    }
}

pub(crate) fn settings(database: &Path) -> StoreSettings {
    StoreSettings {
        keys_window: Duration::from_secs(10 * 86_400),
        events_retention: Duration::from_secs(10 * 86_400),
        ..StoreSettings::of(format!("sqlite:{}", database.display()))
    }
}

/// An event of resource `r` with a time-ordered id.
pub(crate) fn event(key: &str, resource: &str, version: u64, received_at_ms: i64, body: &[u8]) -> Event {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut id = [0; 16];
    id[..6].copy_from_slice(&received_at_ms.to_be_bytes()[2..]);
    id[6] = 0x70;
    id[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    id[12..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let resource = Resource::new("shop", "", "order".into(), resource.into());
    let version = Some(Version::integer(&version.to_string()).expect("a version"));
    Event {
        id: EventId(Uuid::from_bytes(id)),
        received_at_ms,
        source: "shop".into(),
        tenant: "".into(),
        key: Key::new("shop", "", [key]).expect("a key"),
        digest: BodyDigest::of(body),
        kind: "order.updated".into(),
        guards: [Guard { resource, version }].into_iter().collect(),
        order: Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep })),
        step: None,
        patch: None,
        effect_key: None,
        fetched: None,
        deletes: false,
        intent: Intent::Apply,
        headers: "{}".into(),
        body: body.to_vec().into(),
    }
}

/// How long events of [`sequence`] wait.
pub(crate) const HOLD_MS: i64 = 60_000;

/// Contiguous numbers from 1.
pub(crate) fn sequence(on_gap: OnGap) -> Arc<Order> {
    let wait = Wait { hold_for_ms: HOLD_MS, on_gap };
    Arc::new(Order::judged(Policy::Sequence { start: 1, wait }))
}

/// System time, and as much ahead of it as a test says.
#[derive(Default)]
pub(crate) struct Ahead {
    system: SystemClock,
    by_ms: AtomicI64,
}

impl Ahead {
    pub(crate) fn pass(&self, ms: i64) {
        self.by_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Ahead {
    fn now_ms(&self) -> i64 {
        self.system.now_ms() + self.by_ms.load(Ordering::Relaxed)
    }

    fn event_id(&self) -> EventId {
        self.system.event_id()
    }
}

pub(crate) async fn commit(store: &SqliteStore, batch: &[Event]) -> Vec<Outcome> {
    let mut session = store.open().await.expect("a session");
    session.commit(batch).await.expect("a commit").outcomes
}
