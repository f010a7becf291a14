//! Asking a provider: coalesced, claimed, answered as an event, tried again, given up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tidegate_actors::EngineSettings;
use tidegate_actors::memory::{MemoryCache, MemoryStore};
use tidegate_actors::ports::{Clock as _, FetchClaim, FetchOutcome, Fetcher, Reader as _};
use tidegate_actors::rules::event::{Event, Guard, Incarnation, Intent, Resource, Verdict};
use tidegate_actors::rules::key::{BodyDigest, Key, ResourceHash};
use tidegate_actors::rules::order::{Order, Policy, Tie};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use crate::support::{Ticks, World, paused, settings, verdict};

/// What the provider does when it is asked.
#[derive(Clone)]
enum Answer {
    /// The state has this version.
    State(u64),
    /// It fails.
    Fails,
    /// It answers only after a long time.
    Hangs,
}

struct Provider {
    clock: Arc<Ticks>,
    plan: Mutex<VecDeque<Answer>>,
    asked_at_ms: Mutex<Vec<i64>>,
}

#[async_trait(?Send)]
impl Fetcher for Provider {
    async fn fetch(&self, claim: &FetchClaim) -> FetchOutcome {
        self.asked_at_ms.lock().unwrap().push(self.clock.ms());
        let answer = self.plan.lock().unwrap().pop_front().unwrap_or(Answer::Fails);
        // a provider takes a while
        tokio::time::sleep(Duration::from_millis(50)).await;
        match answer {
            Answer::State(version) => FetchOutcome::State(Box::new(self.state(claim, version))),
            Answer::Fails => FetchOutcome::Failed { why: "503".to_owned(), retry_after: None, last: false },
            Answer::Hangs => std::future::pending().await,
        }
    }
}

impl Provider {
    fn state(&self, claim: &FetchClaim, version: u64) -> Event {
        let body = bytes::Bytes::from(format!("state {version}"));
        let version = Some(Version::integer(&version.to_string()).unwrap());
        let resource = Resource::new(&claim.source, &claim.tenant, claim.kind.clone(), claim.id.clone());
        let key = format!("refetch:{}:{}", claim.resource, claim.epoch);
        Event {
            id: self.clock.event_id(),
            received_at_ms: self.clock.now_ms(),
            source: claim.source.as_str().into(),
            tenant: claim.tenant.as_str().into(),
            key: Key::new(&claim.source, &claim.tenant, [key.as_str()]).unwrap(),
            digest: BodyDigest::of(&body),
            kind: "tidegate.fetched".to_owned(),
            guards: smallvec::smallvec![Guard { resource, version }],
            order: Arc::new(Order::judged(Policy::Newest { tie: Tie::Apply })),
            step: None,
            patch: None,
            effect_key: None,
            fetched: Some(claim.epoch),
            deletes: false,
            intent: Intent::Apply,
            headers: bytes::Bytes::from_static(b"{}"),
            body,
        }
    }
}

async fn start(settings: EngineSettings, plan: &[Answer]) -> (World, Arc<Provider>) {
    let clock = Arc::new(Ticks::default());
    let store = MemoryStore::new(clock.clone(), Incarnation(Uuid::from_u128(1)));
    let plan = Mutex::new(plan.iter().cloned().collect());
    let provider = Arc::new(Provider { clock: Arc::clone(&clock), plan, asked_at_ms: Mutex::default() });
    let fetcher: Arc<dyn Fetcher> = provider.clone();
    let world = World::asking(settings, clock, store, MemoryCache::new(100), fetcher);
    world.until(|world| world.engine.status().ready).await;
    (world, provider)
}

fn signal() -> Arc<Order> {
    Arc::new(Order::judged(Policy::Refetch))
}

fn asked(provider: &Provider) -> usize {
    provider.asked_at_ms.lock().unwrap().len()
}

#[test]
fn many_signals_ask_once_and_the_answer_is_the_state() {
    paused(async {
        let (world, provider) = start(settings(), &[Answer::State(7), Answer::State(7)]).await;
        let signals = (0..20).map(|number| {
            let mut event = world.under(&signal(), &format!("s{number}"), "a", 0);
            event.guards[0].version = None;
            event
        });
        for answer in world.take_all(signals.collect()).await {
            assert_eq!(verdict(&answer), Verdict::Held);
        }
        world.became("s19", Verdict::Applied).await;
        assert_eq!(asked(&provider), 1);
        let row = world.store.resource(ResourceHash::of("shop", "", "order", "a")).await.unwrap().unwrap();
        assert_eq!((row.version.as_deref(), row.applied, row.held), (Some("7"), 1, 0));
        let state = world.store.event(row.event.unwrap()).await.unwrap().unwrap();
        assert_eq!(state.body.as_deref(), Some(b"state 7".as_slice()));
    });
}

#[test]
fn a_signal_that_comes_while_the_provider_is_asked_asks_again() {
    paused(async {
        let (world, provider) = start(settings(), &[Answer::State(7), Answer::State(8)]).await;
        world.take(world.under(&signal(), "before", "a", 1)).await.unwrap();
        world.until(|_| asked(&provider) == 1).await;
        world.take(world.under(&signal(), "meanwhile", "a", 2)).await.unwrap();
        world.became("before", Verdict::Applied).await;
        assert_eq!(world.verdict_of("meanwhile").await, Verdict::Held, "the answer may be older than it");
        world.became("meanwhile", Verdict::Applied).await;
        assert_eq!(asked(&provider), 2);
    });
}

#[test]
fn a_failed_fetch_is_seen_and_tried_again_with_growing_pauses_and_then_given_up() {
    paused(async {
        let settings = EngineSettings { fetch_attempts: 4, ..settings() };
        let (world, provider) = start(settings, &[]).await;
        world.take(world.under(&signal(), "s", "a", 1)).await.unwrap();
        world.until(|_| asked(&provider) == 2).await;
        let hash = ResourceHash::of("shop", "", "order", "a");
        let fetch = world.store.fetch(hash).await.unwrap().unwrap();
        assert_eq!((fetch.attempts, fetch.last_error.as_deref()), (2, Some("503")));
        world.became("s", Verdict::Expired).await;
        assert_eq!(asked(&provider), 4);
        let at = provider.asked_at_ms.lock().unwrap().clone();
        let pauses: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0] - 50).collect();
        for (pause, least) in pauses.iter().zip([1_000, 2_000, 4_000]) {
            assert!((least..=2 * least + 10).contains(pause), "{pauses:?}");
        }
        assert_eq!(world.store.counts().await.unwrap().fetches, 0);
        // a later signal begins anew
        provider.plan.lock().unwrap().push_back(Answer::State(3));
        world.take(world.under(&signal(), "again", "a", 2)).await.unwrap();
        world.became("again", Verdict::Applied).await;
    });
}

#[test]
fn a_failure_that_is_being_written_does_not_wait_for_the_next_claim_of_the_same_writer() {
    paused(async {
        let (world, provider) = start(settings(), &[Answer::Fails, Answer::State(2), Answer::State(1)]).await;
        world.take(world.under(&signal(), "fails", "a", 1)).await.unwrap();
        world.until(|_| asked(&provider) == 1).await;
        // the provider takes 50 ms and the failure 10 more to be written: the next signal comes in between
        tokio::time::sleep(Duration::from_millis(55)).await;
        world.take(world.under(&signal(), "next", "b", 2)).await.unwrap();
        world.became("next", Verdict::Applied).await;
        world.became("fails", Verdict::Applied).await;
    });
}

#[test]
fn a_provider_that_hangs_costs_one_slot_until_its_lease_is_over() {
    paused(async {
        let (world, provider) = start(settings(), &[Answer::Hangs, Answer::State(2), Answer::State(3)]).await;
        world.take(world.under(&signal(), "hangs", "a", 1)).await.unwrap();
        world.until(|_| asked(&provider) == 1).await;
        world.take(world.under(&signal(), "other", "b", 1)).await.unwrap();
        let other = world.became("other", Verdict::Applied).await;
        assert!(other < 1_000, "{other}");
        let late = world.became("hangs", Verdict::Applied).await;
        assert!((30_000..40_000).contains(&late), "{late}");
    });
}

#[test]
fn a_late_answer_of_a_claim_that_was_taken_over_changes_nothing() {
    paused(async {
        let (world, provider) = start(settings(), &[Answer::State(7)]).await;
        world.take(world.under(&signal(), "s", "a", 1)).await.unwrap();
        world.became("s", Verdict::Applied).await;
        let claim = FetchClaim {
            resource: ResourceHash::of("shop", "", "order", "a"),
            source: "shop".to_owned(),
            tenant: String::new(),
            kind: "order".to_owned(),
            id: "a".to_owned(),
            epoch: 0,
            attempt: 1,
        };
        let late = world.take(provider.state(&claim, 9)).await;
        assert_eq!(verdict(&late), Verdict::Ignored);
        let row = world.store.resource(claim.resource).await.unwrap().unwrap();
        assert_eq!(row.version.as_deref(), Some("7"));
    });
}
