//! Panics planned inside each actor: its callers hear "unavailable", and the pool goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::registry::Registry;
use smallvec::smallvec;
use uuid::Uuid;

use super::{Engine, EngineSettings, Ports};
use crate::admission::Refused;
use crate::ingress::Ingress;
use crate::memory::{MemoryCache, MemoryStore};
use crate::ports::{Clock, NoFetcher};
use crate::rules::event::{Event, EventId, Guard, Incarnation, Intent, Receipt, Resource, Verdict};
use crate::rules::key::{BodyDigest, Key};
use crate::rules::order::{Order, Policy};
use crate::supervise::planned::panic_in;

#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now_ms(&self) -> i64 {
        0
    }

    fn event_id(&self) -> EventId {
        EventId(Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed))))
    }
}

struct World {
    engine: Engine,
    ingress: Ingress,
    clock: Arc<Ticks>,
}

impl World {
    async fn start() -> Self {
        let clock = Arc::new(Ticks::default());
        let store = Arc::new(MemoryStore::new(clock.clone(), Incarnation(Uuid::nil())));
        let ports =
            Ports { store, cache: Arc::new(MemoryCache::new(100)), clock: clock.clone(), fetcher: Arc::new(NoFetcher) };
        let settings = EngineSettings { own_arbiters: false, ..EngineSettings::default() };
        let engine = Engine::start(settings, ports, &mut Registry::default());
        let mut turns = tokio::time::interval(Duration::from_millis(1));
        while !engine.status().ready {
            turns.tick().await;
        }
        Self { ingress: engine.ingress(), engine, clock }
    }

    async fn take(&self, key: &str, resource: &str) -> Result<Receipt, Refused> {
        let event = Event {
            id: self.clock.event_id(),
            received_at_ms: 0,
            source: "shop".into(),
            tenant: "".into(),
            key: Key::new("shop", "", [key]).unwrap(),
            digest: BodyDigest::of(key.as_bytes()),
            kind: String::new(),
            guards: smallvec![Guard {
                resource: Resource::new("shop", "", "order".to_owned(), resource.to_owned()),
                version: None,
            }],
            order: Arc::new(Order::plain(Policy::Arrival)),
            step: None,
            patch: None,
            effect_key: None,
            fetched: None,
            deletes: false,
            intent: Intent::Apply,
            headers: Bytes::new(),
            body: Bytes::new(),
        };
        self.ingress.take(event, self.ingress.reserve(1)?).await
    }
}

fn paused(run: impl Future<Output = ()>) {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    actix_rt::System::with_tokio_rt(runtime).block_on(run);
}

#[test]
fn a_panic_in_any_actor_costs_its_own_callers_only() {
    paused(async {
        let world = World::start().await;
        for pool in ["ingress", "dedup", "ordering", "resource", "writer"] {
            assert_eq!(world.take(&format!("{pool} before"), pool).await.map(|it| it.verdict), Ok(Verdict::Applied));
            panic_in(pool);
            let lost = world.take(&format!("{pool} lost"), pool).await;
            assert!(matches!(lost, Err(Refused::Unavailable(_))), "{pool}: {lost:?}");
            for resource in [pool, "another"] {
                let next = world.take(&format!("{pool} after {resource}"), resource).await;
                assert_eq!(next.map(|it| it.verdict), Ok(Verdict::Applied), "{pool}");
            }
            let status = world.engine.status();
            assert!(status.ready && status.in_flight_events.0 == 0, "{pool}: {status:?}");
            let counted = status.pools.iter().find(|each| each.name == pool).map(|each| each.panics);
            assert_eq!(counted, Some(1), "{pool}");
            assert!(status.pools.iter().all(|each| each.depth == 0), "{pool}: {status:?}");
        }
    });
}

#[test]
fn a_resource_that_panicked_can_be_passivated_and_woken_again() {
    paused(async {
        let world = World::start().await;
        panic_in("resource");
        assert!(world.take("lost", "o1").await.is_err());
        let mut turns = tokio::time::interval(Duration::from_secs(1));
        while world.engine.status().live_resources > 0 {
            turns.tick().await;
        }
        assert!(world.take("next", "o1").await.is_ok());
    });
}
