//! A world on one thread: a store that watches its commits, a key cache, a clock, and the engine.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use prometheus_client::registry::Registry;
use smallvec::SmallVec;
use tidegate_actors::memory::{MemoryCache, MemoryStore};
use tidegate_actors::ports::{
    Claimed, Clock, Committed, EventFilter, FetchClaim, Fetcher, NoFetcher, Pulse, Reader as _, Session, Store,
    StoreError, Upkeep, Waits,
};
use tidegate_actors::rules::event::{Event, EventId, Guard, Incarnation, Intent, Receipt, Resource, Unusable, Verdict};
use tidegate_actors::rules::key::{BodyDigest, Key, ResourceHash};
use tidegate_actors::rules::order::{Order, Policy, Tie};
use tidegate_actors::rules::version::Version;
use tidegate_actors::{Engine, EngineSettings, Ingress, Ports, Refused};
use uuid::Uuid;

/// Runs on one thread; time stands still while anything can run, and jumps to the next timer otherwise.
pub(crate) fn paused<F: Future>(run: F) -> F::Output {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    actix_rt::System::with_tokio_rt(runtime).block_on(run)
}

/// A clock that goes with the driven time, and ids that count.
pub(crate) struct Ticks {
    start: tokio::time::Instant,
    ids: AtomicU64,
}

impl Default for Ticks {
    fn default() -> Self {
        Self { start: tokio::time::Instant::now(), ids: AtomicU64::new(0) }
    }
}

impl Ticks {
    /// Milliseconds since the world began.
    pub(crate) fn ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap()
    }
}

impl Clock for Ticks {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000 + self.ms()
    }

    fn event_id(&self) -> EventId {
        EventId(Uuid::from_u128(u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1))
    }
}

/// The store in memory, with a record of the batches as the keys they held.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) store: MemoryStore,
    /// Fetches are written one at a time, and each takes a while.
    writer: Arc<tokio::sync::Mutex<()>>,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
}

struct WatchedSession {
    session: Box<dyn Session>,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait(?Send)]
impl Store for Watched {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        let session = self.store.open().await?;
        Ok(Box::new(WatchedSession { session, batches: Arc::clone(&self.batches) }))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.store.pulse().await
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        self.store.settle_due(limit).await
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        self.store.release(resource).await
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.store.discharge(quarantined).await
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        let _writer = self.writer.lock().await;
        self.store.claim_fetches(limit, lease_ms).await
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        let _writer = self.writer.lock().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.store.fetch_failed(claim, why, retry_in_ms).await
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.store.upkeep().await
    }
}

#[async_trait(?Send)]
impl Session for WatchedSession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        self.batches.lock().unwrap().push(batch.iter().map(|event| event.key.text.clone()).collect());
        self.session.commit(batch).await
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        self.session.quarantine(items).await
    }
}

/// Everything a test needs.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) cache: MemoryCache,
    pub(crate) engine: Engine,
    pub(crate) ingress: Ingress,
    pub(crate) clock: Arc<Ticks>,
    pub(crate) registry: Registry,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
}

pub(crate) fn history(number: u128) -> Incarnation {
    Incarnation(Uuid::from_u128(number))
}

/// Settings for one thread.
pub(crate) fn settings() -> EngineSettings {
    EngineSettings { own_arbiters: false, ..EngineSettings::default() }
}

impl World {
    /// A world whose engine is ready.
    pub(crate) async fn start(settings: EngineSettings) -> Self {
        let world = Self::start_unready(settings);
        world.until(|world| world.engine.status().ready).await;
        world
    }

    pub(crate) fn start_unready(settings: EngineSettings) -> Self {
        let clock = Arc::new(Ticks::default());
        let store = MemoryStore::new(clock.clone(), history(1));
        Self::beside(settings, clock, store, MemoryCache::new(10_000))
    }

    /// Another node over the same store and cache.
    pub(crate) fn beside(settings: EngineSettings, clock: Arc<Ticks>, store: MemoryStore, cache: MemoryCache) -> Self {
        Self::asking(settings, clock, store, cache, Arc::new(NoFetcher))
    }

    /// The same with a provider to ask.
    pub(crate) fn asking(
        settings: EngineSettings,
        clock: Arc<Ticks>,
        store: MemoryStore,
        cache: MemoryCache,
        fetcher: Arc<dyn Fetcher>,
    ) -> Self {
        let batches = Arc::default();
        let watched = Watched { store: store.clone(), writer: Arc::default(), batches: Arc::clone(&batches) };
        let mut registry = Registry::default();
        let ports = Ports { store: Arc::new(watched), cache: Arc::new(cache.clone()), clock: clock.clone(), fetcher };
        let engine = Engine::start(settings, ports, &mut registry);
        let ingress = engine.ingress();
        Self { store, cache, engine, ingress, clock, registry, batches }
    }

    /// Waits for a condition, in driven time.
    pub(crate) async fn until(&self, condition: impl Fn(&Self) -> bool) {
        let mut turns = tokio::time::interval(Duration::from_millis(1));
        let wait = async {
            while !condition(self) {
                turns.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the condition comes true within a minute");
    }

    /// An event of a resource, with its body made of its key.
    pub(crate) fn event(&self, key: &str, resource: &str, version: u64) -> Event {
        let resource = Resource::new("shop", "", "order".to_owned(), resource.to_owned());
        let version = Some(Version::integer(&version.to_string()).unwrap());
        let mut event = self.unguarded(key);
        event.guards.push(Guard { resource, version });
        event
    }

    /// An event without a resource.
    pub(crate) fn unguarded(&self, key: &str) -> Event {
        let body = Bytes::from(format!("body of {key}"));
        Event {
            id: self.clock.event_id(),
            received_at_ms: self.clock.now_ms(),
            source: "shop".into(),
            tenant: "".into(),
            key: Key::new("shop", "", [key]).unwrap(),
            digest: BodyDigest::of(&body),
            kind: "order.updated".to_owned(),
            guards: SmallVec::new(),
            order: Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep })),
            step: None,
            patch: None,
            effect_key: None,
            fetched: None,
            deletes: false,
            intent: Intent::Apply,
            headers: Bytes::from_static(b"{}"),
            body,
        }
    }

    /// An event under a rule of its own.
    pub(crate) fn under(&self, order: &Arc<Order>, key: &str, resource: &str, version: u64) -> Event {
        Event { order: Arc::clone(order), ..self.event(key, resource, version) }
    }

    /// What became of the event with this key, as its row says.
    pub(crate) async fn verdict_of(&self, key: &str) -> Verdict {
        let filter = EventFilter { key: Some(key.to_owned()), ..EventFilter::default() };
        self.store.events(&filter, None, 1).await.unwrap().rows[0].verdict
    }

    /// Waits until the event with this key became that, and says when that was.
    pub(crate) async fn became(&self, key: &str, verdict: Verdict) -> i64 {
        let wait = async {
            while self.verdict_of(key).await != verdict {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3_600), wait).await.expect("it becomes that within an hour");
        self.clock.ms()
    }

    pub(crate) async fn take(&self, event: Event) -> Result<Receipt, Refused> {
        let permit = self.ingress.reserve(event.body.len())?;
        self.ingress.take(event, permit).await
    }

    /// Takes all at once and waits for all answers, in the order given.
    pub(crate) async fn take_all(&self, events: Vec<Event>) -> Vec<Result<Receipt, Refused>> {
        futures_util::future::join_all(events.into_iter().map(|event| self.take(event))).await
    }

    /// The keys of each commit so far, by text without the `shop` around it.
    pub(crate) fn batches(&self) -> Vec<Vec<String>> {
        self.batches.lock().unwrap().clone()
    }

    /// The value of a metric line that starts with this.
    pub(crate) fn figure(&self, line: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let found = text.lines().find_map(|each| each.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no metric {line} in\n{text}"))
    }
}

/// Lets everything run that can, without time passing.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn verdict(answer: &Result<Receipt, Refused>) -> Verdict {
    answer.as_ref().expect("a receipt").verdict
}

/// Starts something beside the test and shows its answer once it has come.
pub(crate) fn beside<T: 'static>(work: impl Future<Output = T> + 'static) -> Rc<RefCell<Option<T>>> {
    let place = Rc::new(RefCell::new(None));
    let of_work = Rc::clone(&place);
    actix_rt::spawn(async move {
        let value = work.await;
        *of_work.borrow_mut() = Some(value);
    });
    place
}
