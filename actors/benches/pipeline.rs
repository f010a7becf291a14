//! What the actors cost: events through the whole engine over a store that does nothing, against a bare
//! channel with one batching writer over the same store. Both answer by a oneshot from another thread.
//!
//! `cargo bench -p tidegate-actors --bench pipeline`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use prometheus_client::registry::Registry;
use smallvec::smallvec;
use tidegate_actors::memory::MemoryCache;
use tidegate_actors::ports::{
    Claimed, Clock, Committed, FetchClaim, NoFetcher, Outcome, Pulse, Session, Store, StoreError, Upkeep, Waits,
};
use tidegate_actors::rules::event::{Event, EventId, Guard, Incarnation, Intent, Receipt, Resource, Unusable, Verdict};
use tidegate_actors::rules::key::{BodyDigest, Key, ResourceHash};
use tidegate_actors::rules::order::{Order, Policy, Tie};
use tidegate_actors::rules::version::Version;
use tidegate_actors::{Engine, EngineSettings, Ports};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

const RESOURCES: u64 = 100_000;

/// Commits nothing, in the time given: zero for the bare cost, more for a store like a real one.
#[derive(Clone, Copy)]
struct Nothing {
    commit: Duration,
    each: Duration,
}

#[async_trait(?Send)]
impl Store for Nothing {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        Ok(Box::new(*self))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        Ok(Pulse { now_ms: 0, incarnation: Incarnation(Uuid::nil()) })
    }

    async fn settle_due(&self, _limit: u32) -> Result<Waits, StoreError> {
        Ok(Waits::default())
    }

    async fn release(&self, _resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        Ok(None)
    }

    async fn discharge(&self, _quarantined: EventId) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn claim_fetches(&self, _limit: u32, _lease_ms: i64) -> Result<Claimed, StoreError> {
        Ok(Claimed::default())
    }

    async fn fetch_failed(&self, _: &FetchClaim, _: &str, _: Option<i64>) -> Result<Waits, StoreError> {
        Ok(Waits::default())
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        Ok(Upkeep::default())
    }
}

#[async_trait(?Send)]
impl Session for Nothing {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        let time = self.commit + self.each * u32::try_from(batch.len()).unwrap_or(u32::MAX);
        if time.is_zero() {
            // a round trip at least
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(time).await;
        }
        let outcomes = batch.iter().map(|_| Outcome::Applied { tie: false }).collect();
        Ok(Committed { outcomes, incarnation: Incarnation(Uuid::nil()), waits: Waits::default() })
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        Ok(items.iter().map(|item| item.id).collect())
    }
}

struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now_ms(&self) -> i64 {
        0
    }

    fn event_id(&self) -> EventId {
        EventId(Uuid::from_u128(self.0.fetch_add(1, Ordering::Relaxed).into()))
    }
}

/// Events made ahead, each with a key and a resource of its own choice.
struct Events {
    made: u64,
    source: Arc<str>,
    tenant: Arc<str>,
    body: Bytes,
}

impl Events {
    fn new() -> Self {
        Self { made: 0, source: "bench".into(), tenant: "".into(), body: Bytes::from(vec![b'x'; 1_024]) }
    }

    fn next(&mut self) -> Event {
        self.made += 1;
        let number = self.made;
        let resource = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % RESOURCES;
        let resource = Resource::new(&self.source, "", "order".to_owned(), resource.to_string());
        let key = number.to_string();
        Event {
            id: EventId(Uuid::from_u128(number.into())),
            received_at_ms: 0,
            source: Arc::clone(&self.source),
            tenant: Arc::clone(&self.tenant),
            key: Key::new(&self.source, "", [&*key]).expect("a key"),
            digest: BodyDigest([0; 16]),
            kind: "order.updated".to_owned(),
            guards: smallvec![Guard { resource, version: Some(Version::integer(&key).expect("a number")) }],
            order: Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep })),
            step: None,
            patch: None,
            effect_key: None,
            fetched: None,
            deletes: false,
            intent: Intent::Apply,
            headers: Bytes::from_static(b"{}"),
            body: self.body.clone(),
        }
    }
}

struct BareJob {
    event: Event,
    reply: oneshot::Sender<Receipt>,
}

/// The bare way: one bounded channel, one writer that takes whatever waits.
fn bare(store: Nothing) -> mpsc::Sender<BareJob> {
    let (sender, mut jobs) = mpsc::channel::<BareJob>(4_096);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let mut session = store.open().await.expect("a session");
            let (mut waiting, mut events, mut replies) = (Vec::new(), Vec::new(), Vec::new());
            while jobs.recv_many(&mut waiting, 500).await > 0 {
                for BareJob { event, reply } in waiting.drain(..) {
                    events.push(event);
                    replies.push(reply);
                }
                session.commit(&events).await.expect("a commit");
                for (event, reply) in events.drain(..).zip(replies.drain(..)) {
                    let receipt = Receipt { verdict: Verdict::Applied, id: event.id, tie: false, conflict: false };
                    let _ = reply.send(receipt);
                }
            }
        });
    });
    sender
}

/// Keeps so many events in flight until all are answered; only that is timed.
async fn closed_loop<F, T>(events: Vec<Event>, in_flight: usize, take: impl Fn(Event) -> F) -> Duration
where
    F: Future<Output = T>,
{
    let started = Instant::now();
    let mut events = events.into_iter();
    let mut running: FuturesUnordered<F> = events.by_ref().take(in_flight).map(&take).collect();
    while running.next().await.is_some() {
        running.extend(events.next().map(&take));
    }
    started.elapsed()
}

fn made(events: &mut Events, count: u64) -> Vec<Event> {
    (0..count).map(|_| events.next()).collect()
}

fn compare(criterion: &mut Criterion, name: &str, store: Nothing) {
    let system = actix_rt::System::new();
    let (sender, engine) = system.block_on(async {
        let clock: Arc<dyn Clock> = Arc::new(Ticks(AtomicU64::new(0)));
        let ports = Ports {
            store: Arc::new(store),
            cache: Arc::new(MemoryCache::new(100_000)),
            clock,
            fetcher: Arc::new(NoFetcher),
        };
        let engine = Engine::start(EngineSettings::default(), ports, &mut Registry::default());
        while !engine.status().ready {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (bare(store), engine)
    });
    let ingress = system.block_on(async { engine.ingress() });
    let mut events = Events::new();
    for in_flight in [64, 256] {
        let mut group = criterion.benchmark_group(format!("{name}, {in_flight} in flight"));
        group.throughput(Throughput::Elements(1)).measurement_time(Duration::from_secs(4));
        group.bench_function("bare channel", |bencher| {
            bencher.iter_custom(|count| {
                let events = made(&mut events, count);
                system.block_on(closed_loop(events, in_flight, |event| async {
                    let (reply, answer) = oneshot::channel();
                    sender.send(BareJob { event, reply }).await.expect("the writer runs");
                    answer.await.expect("an answer")
                }))
            });
        });
        group.bench_function("actors", |bencher| {
            bencher.iter_custom(|count| {
                let events = made(&mut events, count);
                system.block_on(closed_loop(events, in_flight, |event| async {
                    let permit = ingress.reserve(event.body.len()).expect("room");
                    ingress.take(event, permit).await.expect("an answer")
                }))
            });
        });
        group.finish();
    }
}

fn pipeline(criterion: &mut Criterion) {
    let zero = Duration::ZERO;
    compare(criterion, "a commit that takes no time", Nothing { commit: zero, each: zero });
    // the runtime's timers have whole milliseconds
    compare(criterion, "a commit of 2 ms", Nothing { commit: Duration::from_millis(2), each: zero });
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
