//! More than fits, and a store that is away: refused before anything is kept, with the time to come again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidegate::app::Backends;
use tidegate_actors::ports::{Claimed, Committed, FetchClaim, Pulse, Session, Store, StoreError, Upkeep, Waits};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use tidegate_actors::rules::key::ResourceHash;
use tokio::sync::Semaphore;

use crate::support::gate::{Gate, SOURCES, until};
use crate::support::http::{Client, Request, Response};
use crate::support::place::Place;
use crate::support::signing::{now_s, signed, signed_at, thing};

on_each_store! {
    a_store_that_is_away_is_503_for_the_sender_and_for_readyz_and_heals_by_itself;
    an_unknown_commit_is_503_and_the_retry_is_recognised;
    refused_data_is_500_for_that_event_alone;
    a_panic_in_the_engine_is_503_and_the_engine_comes_back_clean;
    a_commit_that_takes_too_long_is_503_and_its_retry_is_a_duplicate;
    at_the_budget_of_events_the_next_one_is_503_and_what_was_accepted_is_answered;
    while_draining_new_events_are_503_and_accepted_ones_are_answered;
}

/// What the store behind the engine does.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mood {
    Well,
    /// Nothing can be reached.
    Away,
    /// The connection breaks while committing.
    Unknown,
    /// The data is refused.
    Refuses,
    /// A bug.
    Panics,
    /// Commits wait until the test lets them go.
    Held,
    /// The store's clock is an hour ahead.
    ClockAhead,
}

struct Moody {
    inner: Arc<dyn Store>,
    mood: Arc<AtomicU8>,
    gate: Arc<Semaphore>,
}

struct MoodySession {
    inner: Box<dyn Session>,
    mood: Arc<AtomicU8>,
    gate: Arc<Semaphore>,
}

fn mood(of: &AtomicU8) -> Mood {
    const ALL: [Mood; 7] =
        [Mood::Well, Mood::Away, Mood::Unknown, Mood::Refuses, Mood::Panics, Mood::Held, Mood::ClockAhead];
    ALL[usize::from(of.load(Ordering::SeqCst))]
}

fn away() -> StoreError {
    StoreError::Unavailable("connection to 10.1.2.3 refused".to_owned())
}

#[async_trait(?Send)]
impl Store for Moody {
    async fn open(&self) -> Result<Box<dyn Session>, StoreError> {
        if mood(&self.mood) == Mood::Away {
            return Err(away());
        }
        let inner = self.inner.open().await?;
        Ok(Box::new(MoodySession { inner, mood: Arc::clone(&self.mood), gate: Arc::clone(&self.gate) }))
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        let mut pulse = match mood(&self.mood) {
            Mood::Away => return Err(away()),
            _ => self.inner.pulse().await?,
        };
        if mood(&self.mood) == Mood::ClockAhead {
            pulse.now_ms += 3_600_000;
        }
        Ok(pulse)
    }

    async fn settle_due(&self, limit: u32) -> Result<Waits, StoreError> {
        self.inner.settle_due(limit).await
    }

    async fn release(&self, resource: ResourceHash) -> Result<Option<Waits>, StoreError> {
        self.inner.release(resource).await
    }

    async fn discharge(&self, quarantined: EventId) -> Result<bool, StoreError> {
        self.inner.discharge(quarantined).await
    }

    async fn claim_fetches(&self, limit: u32, lease_ms: i64) -> Result<Claimed, StoreError> {
        self.inner.claim_fetches(limit, lease_ms).await
    }

    async fn fetch_failed(&self, claim: &FetchClaim, why: &str, retry_in_ms: Option<i64>) -> Result<Waits, StoreError> {
        self.inner.fetch_failed(claim, why, retry_in_ms).await
    }

    async fn upkeep(&self) -> Result<Upkeep, StoreError> {
        self.inner.upkeep().await
    }
}

#[async_trait(?Send)]
impl Session for MoodySession {
    async fn commit(&mut self, batch: &[Event]) -> Result<Committed, StoreError> {
        match mood(&self.mood) {
            Mood::Well | Mood::ClockAhead => {}
            Mood::Away => return Err(away()),
            Mood::Unknown => return Err(StoreError::Unknown("the connection broke".to_owned())),
            Mood::Refuses => return Err(StoreError::Refused("a value it cannot hold".to_owned())),
            Mood::Panics => panic!("a bug in the store, as the test wants it"),
            Mood::Held => self.gate.acquire().await.expect("an open gate").forget(),
        }
        self.inner.commit(batch).await
    }

    async fn quarantine(&mut self, items: &[Unusable]) -> Result<Vec<EventId>, StoreError> {
        match mood(&self.mood) {
            Mood::Away => Err(away()),
            _ => self.inner.quarantine(items).await,
        }
    }
}

struct Bench {
    gate: Gate,
    mood: Arc<AtomicU8>,
    held: Arc<Semaphore>,
}

impl Bench {
    fn start(settings: &str) -> Self {
        Self::start_at(Place::sqlite(), settings)
    }

    fn start_at(place: Place, settings: &str) -> Self {
        let (mood, held) = (Arc::new(AtomicU8::new(0)), Arc::new(Semaphore::new(0)));
        let parts = (Arc::clone(&mood), Arc::clone(&held));
        let gate = Gate::start_with(place, settings, move |backends: Backends| Backends {
            store: Arc::new(Moody { inner: backends.store, mood: parts.0, gate: parts.1 }),
            ..backends
        });
        until("the gate is ready", || gate.call(&Request::new("GET", "/readyz")).status == 200);
        Self { gate, mood, held }
    }

    fn feels(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// Sends an event whose commit is held; its answer comes later.
    fn held_event(&self, id: &str) -> Client {
        let mut client = self.gate.client();
        client.send(&signed("/in/things", id, thing(id, 1)).bytes()).expect("sent");
        client
    }

    fn in_flight(&self) -> u64 {
        self.gate.admin_get("/status").json()["in_flight_events"]["now"].as_u64().expect("a number")
    }
}

fn assert_come_again(answer: &Response, code: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (503, code), "{}", answer.text());
    let seconds = answer.header("retry-after").and_then(|text| text.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| (1..=60).contains(&seconds)), "{answer:?}");
    assert!(!answer.text().contains("10.1.2.3"), "nothing of the inside in {}", answer.text());
}

#[test]
fn a_source_beyond_its_rate_gets_429_with_retry_after_and_the_others_go_on() {
    let limited = SOURCES.replace("[[source]]", "[[source]]\nrate = { per_second = 1, burst = 2 }");
    let gate = Gate::start(&format!("{limited}{}", SOURCES.replace("\"things\"", "\"others\"")));
    let answers: Vec<Response> =
        (0..6).map(|number| gate.post(&format!("evt_{number}"), &thing("t1", number))).collect();
    let refused: Vec<&Response> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(refused.len() >= 3, "{answers:?}");
    for answer in refused {
        assert_eq!(answer.code(), "rate-limited");
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(gate.call(&signed("/in/others", "evt_1", thing("t1", 1))).verdict(), "applied");
}

fn at_the_budget_of_events_the_next_one_is_503_and_what_was_accepted_is_answered(place: Place) {
    let bench = Bench::start_at(place, "[limits]\nin_flight_events = 2");
    bench.feels(Mood::Held);
    let mut accepted = [bench.held_event("evt_1"), bench.held_event("evt_2")];
    until("two are in flight", || bench.in_flight() == 2);
    assert_come_again(&bench.gate.post("evt_3", &thing("t3", 1)), "overloaded");
    bench.feels(Mood::Well);
    bench.held.add_permits(10);
    for client in &mut accepted {
        assert_eq!(client.response().expect("an answer").verdict(), "applied");
    }
    assert_eq!(bench.gate.post("evt_3", &thing("t3", 1)).verdict(), "applied");
    assert_eq!(bench.gate.events().len(), 3);
}

#[test]
fn at_the_budget_of_bytes_a_body_is_refused_before_it_is_read() {
    let bench = Bench::start(
        "[limits]\nin_flight_bytes = \"1MiB\"\nbody_bytes = \"1MiB\"\n[[source]]\nmax_body = \"1MiB\"\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\n",
    );
    let large = signed("/in/things", "evt_1", vec![b'x'; 900_000]);
    let mut holding = bench.gate.client();
    holding.send(&large.head()).expect("sent");
    until("its bytes are reserved", || {
        bench.gate.admin_get("/status").json()["in_flight_bytes"]["now"].as_u64() >= Some(900_000)
    });
    let mut client = bench.gate.client();
    client.send(&signed("/in/things", "evt_2", vec![b'x'; 200_000]).head()).expect("sent");
    assert_come_again(&client.response().expect("an answer"), "overloaded");
    drop(holding);
    until("its bytes are given back", || bench.gate.admin_get("/status").json()["in_flight_bytes"]["now"] == 0);
}

fn a_store_that_is_away_is_503_for_the_sender_and_for_readyz_and_heals_by_itself(place: Place) {
    let bench = Bench::start_at(place, "");
    bench.feels(Mood::Away);
    assert_come_again(&bench.gate.post("evt_1", &thing("t1", 1)), "store-unavailable");
    until("readyz says so", || bench.gate.call(&Request::new("GET", "/readyz")).status == 503);
    let ready = bench.gate.call(&Request::new("GET", "/readyz"));
    assert_eq!(ready.code(), "not-ready");
    assert!(!ready.json()["reasons"].as_array().expect("reasons").is_empty());
    assert!(!ready.text().contains("10.1.2.3"), "nothing of the inside in {}", ready.text());
    until("the operator sees why", || bench.gate.admin_get("/status").text().contains("10.1.2.3"));
    assert_eq!(bench.gate.call(&Request::new("GET", "/healthz")).status, 200, "the process lives");

    bench.feels(Mood::Well);
    until("it takes events again", || bench.gate.post("evt_1", &thing("t1", 1)).status == 200);
    until("readyz says so", || bench.gate.call(&Request::new("GET", "/readyz")).status == 200);
    assert_eq!(bench.gate.events().len(), 1);
}

fn an_unknown_commit_is_503_and_the_retry_is_recognised(place: Place) {
    let bench = Bench::start_at(place, "");
    bench.feels(Mood::Unknown);
    assert_come_again(&bench.gate.post("evt_1", &thing("t1", 1)), "commit-unknown");
    bench.feels(Mood::Well);
    until("the retry is taken", || bench.gate.post("evt_1", &thing("t1", 1)).status == 200);
    assert_eq!(bench.gate.events().len(), 1);
}

fn refused_data_is_500_for_that_event_alone(place: Place) {
    let bench = Bench::start_at(place, "");
    bench.feels(Mood::Refuses);
    let answer = bench.gate.post("evt_1", &thing("t1", 1));
    assert_eq!((answer.status, answer.code().as_str()), (500, "store-rejected"));
    bench.feels(Mood::Well);
    until("the next is taken", || bench.gate.post("evt_2", &thing("t2", 1)).status == 200);
}

fn a_panic_in_the_engine_is_503_and_the_engine_comes_back_clean(place: Place) {
    let bench = Bench::start_at(place, "");
    bench.feels(Mood::Panics);
    assert_come_again(&bench.gate.post("evt_1", &thing("t1", 1)), "store-unavailable");
    bench.feels(Mood::Well);
    until("it takes events again", || bench.gate.post("evt_1", &thing("t1", 1)).status == 200);
    assert_eq!(bench.gate.resources().len(), 1);
}

fn a_commit_that_takes_too_long_is_503_and_its_retry_is_a_duplicate(place: Place) {
    let bench = Bench::start_at(place, "[server]\nanswer_within = \"200ms\"");
    bench.feels(Mood::Held);
    assert_come_again(&bench.gate.post("evt_1", &thing("t1", 1)), "too-late");
    bench.feels(Mood::Well);
    bench.held.add_permits(10);
    until("it is committed all the same", || bench.gate.events().len() == 1);
    assert_eq!(bench.gate.post("evt_1", &thing("t1", 1)).verdict(), "duplicate");
}

#[test]
fn when_only_the_time_is_off_and_our_own_clock_is_in_doubt_it_is_503_and_not_401() {
    let bench = Bench::start("");
    let late = signed_at("/in/things", "evt_1", now_s() + 3_600, thing("t1", 1));
    assert_eq!(bench.gate.call(&late).status, 401);
    bench.feels(Mood::ClockAhead);
    until("the clock is in doubt", || bench.gate.call(&Request::new("GET", "/readyz")).status == 503);
    assert_come_again(&bench.gate.call(&late), "clock-suspect");
    let forged = late.without("webhook-signature").header("webhook-signature", "v1,AAAA");
    assert_eq!(bench.gate.call(&forged).status, 401, "a wrong signature is wrong at any time");
    bench.gate.assert_empty();
}

fn while_draining_new_events_are_503_and_accepted_ones_are_answered(place: Place) {
    let mut bench = Bench::start_at(place, "");
    bench.feels(Mood::Held);
    let mut accepted = bench.held_event("evt_1");
    let mut idle = bench.gate.client();
    assert_eq!(idle.call(&Request::new("GET", "/healthz")).expect("an answer").status, 200);
    until("one is in flight", || bench.in_flight() == 1);
    bench.gate.begin_stop();
    until("new connections are refused", || Client::connect(bench.gate.public).is_err());
    bench.held.add_permits(10);
    assert_eq!(accepted.response().expect("an answer").verdict(), "applied");
    let (drained, place) = bench.gate.stop();
    assert!(drained.complete && drained.left == 0, "{drained:?}");
    let again = Gate::start_at(place, "");
    assert_eq!(again.post("evt_1", &thing("evt_1", 1)).verdict(), "duplicate");
}

#[test]
fn a_drain_ends_in_time_and_tells_what_it_left() {
    let mut bench = Bench::start("[server]\nanswer_within = \"500ms\"\ndrain_within = \"1s\"");
    bench.feels(Mood::Held);
    let _accepted = bench.held_event("evt_1");
    until("one is in flight", || bench.in_flight() == 1);
    let began = std::time::Instant::now();
    bench.gate.begin_stop();
    let (drained, _place) = bench.gate.stop();
    assert!(!drained.complete && drained.left == 1, "{drained:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
