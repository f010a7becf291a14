//! A store lives through the same as the one in memory, and after every step both tell the same: outcomes, states,
//! what waits and why, fetches, and in the end every event's row.

mod draw;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tidegate_actors::ports::{EventFilter, EventRow, FetchClaim, FetchRow, HeldFilter, HeldRow, Session, Waits};
use tidegate_actors::rules::event::Event;

use self::draw::{Act, RESOURCES, id, life, make};
use crate::asked::hash;
use crate::events::{Words as _, event};
use crate::policies::{HOLD_MS, refetch};
use crate::world::{Kind, World, block_on, with_database};

const LEASE_MS: i64 = HOLD_MS;
/// Times of two clocks that are looked at one behind the other differ by less.
const NEAR_MS: i64 = 120_000;

#[test]
fn sqlite() {
    lives_like_memory(Kind::Sqlite, 150);
}

#[test]
fn postgres() {
    lives_like_memory(Kind::Postgres, 30);
}

#[test]
fn postgres_loaded() {
    lives_like_memory(Kind::PostgresLoaded, 30);
}

#[test]
fn postgres_locked() {
    lives_like_memory(Kind::PostgresLocked, 30);
}

fn lives_like_memory(kind: Kind, lives: u32) {
    let config = Config { cases: lives, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let outcome = TestRunner::new(config).run(&life(), |life| {
        let mut outcome = Ok(());
        with_database(kind, |url| {
            outcome = block_on(async {
                let memory = World::new(Kind::Memory, String::new()).await;
                live(&World::new(kind, url).await, &memory, &life).await
            });
        });
        outcome.map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, smallest)) => panic!("{reason}\nthe smallest life: {smallest:#?}"),
        Err(aborted) => panic!("{aborted}"),
    }
}

/// Two stores that are to tell the same.
struct Pair<'a> {
    store: &'a World,
    memory: &'a World,
    sessions: [Box<dyn Session>; 2],
    claims: Vec<FetchClaim>,
}

async fn live(store: &World, memory: &World, life: &[Act]) -> Result<(), String> {
    let sessions = [store.node.session().await, memory.node.session().await];
    let mut pair = Pair { store, memory, sessions, claims: Vec::new() };
    for (number, act) in life.iter().enumerate() {
        let step = |text: String| format!("at step {number}, {act:?}: {text}");
        pair.act(act).await.map_err(step)?;
        pair.compare().await.map_err(step)?;
    }
    pair.compare_events().await
}

/// Both tell the same, or what each told.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, [store, memory]: [T; 2]) -> Result<(), String> {
    if store == memory { Ok(()) } else { Err(format!("{what}: {store:#?}, and memory tells {memory:#?}")) }
}

fn near(one: Option<i64>, two: Option<i64>) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => (one - two).abs() < NEAR_MS,
        (one, two) => one == two,
    }
}

fn same_waits([store, memory]: [Waits; 2]) -> Result<(), String> {
    let timeless = |waits: Waits| Waits { due_in_ms: None, ..waits };
    if !near(store.due_in_ms, memory.due_in_ms) {
        return Err(format!("the next hold ends in {:?}, and in {:?} in memory", store.due_in_ms, memory.due_in_ms));
    }
    same("what moved", [timeless(store), timeless(memory)])
}

impl Pair<'_> {
    fn stores(&self) -> [&dyn tidegate_actors::ports::Store; 2] {
        [self.store.node.store.as_ref(), self.memory.node.store.as_ref()]
    }

    async fn act(&mut self, act: &Act) -> Result<(), String> {
        let [store, memory] = self.stores();
        match act {
            Act::Commit(draws) => {
                let batch: Vec<Event> = draws.iter().map(make).collect();
                self.commit(&batch).await
            }
            Act::Pass => {
                self.store.pass(HOLD_MS / 2 + 60_000).await;
                self.memory.pass(HOLD_MS / 2 + 60_000).await;
                Ok(())
            }
            Act::Settle => same_waits([store.settle_due(100).await.unwrap(), memory.settle_due(100).await.unwrap()]),
            Act::Release(resource) => {
                let of = hash(&id(*resource));
                let both = [store.release(of).await.unwrap(), memory.release(of).await.unwrap()];
                same("something waited", both.map(|waits| waits.is_some()))?;
                same_waits(both.map(Option::unwrap_or_default))
            }
            Act::Claim => {
                let one = store.claim_fetches(10, LEASE_MS).await.unwrap();
                let two = memory.claim_fetches(10, LEASE_MS).await.unwrap();
                if !near(one.due_in_ms, two.due_in_ms) {
                    return Err(format!("the next fetch is due in {:?}, and {:?}", one.due_in_ms, two.due_in_ms));
                }
                let sorted = |mut claims: Vec<FetchClaim>| {
                    claims.sort_by_key(|claim| claim.resource);
                    claims
                };
                let both = [sorted(one.claims), sorted(two.claims)];
                self.claims.extend(both[1].clone());
                same("claims", both)
            }
            Act::Fail(place, last) => {
                let Some(claim) = self.claims.get(*place) else { return Ok(()) };
                let retry_in_ms = (!last).then_some(LEASE_MS);
                same_waits([
                    store.fetch_failed(claim, "answered 503", retry_in_ms).await.unwrap(),
                    memory.fetch_failed(claim, "answered 503", retry_in_ms).await.unwrap(),
                ])
            }
            Act::Answer(place, version) => {
                let Some(claim) = self.claims.get(*place) else { return Ok(()) };
                let key = format!("refetch:{}:{}", claim.resource, claim.epoch);
                let answer = event(&key).on(&claim.id, version).by(&refetch()).answers(claim);
                self.commit(&[answer]).await
            }
        }
    }

    async fn commit(&mut self, batch: &[Event]) -> Result<(), String> {
        let [store, memory] = &mut self.sessions;
        let both = [store.commit(batch).await.unwrap(), memory.commit(batch).await.unwrap()];
        let [one, two] = both;
        same("outcomes", [one.outcomes, two.outcomes])?;
        same_waits([one.waits, two.waits])
    }

    async fn compare(&self) -> Result<(), String> {
        let readers = [&self.store.node.reader, &self.memory.node.reader];
        for resource in 0..RESOURCES {
            let of = hash(&id(resource));
            let [one, two] = readers;
            same("a resource", [one.resource(of).await.unwrap(), two.resource(of).await.unwrap()])?;
            let fetches = [one.fetch(of).await.unwrap(), two.fetch(of).await.unwrap()];
            let [due, due_in_memory] = fetches.clone().map(|fetch| fetch.and_then(|fetch| fetch.due_ms));
            let timeless = |fetch: FetchRow| (fetch.attempts, fetch.due_ms.is_some(), fetch.last_error);
            same("a fetch", fetches.map(|fetch| fetch.map(timeless)))?;
            self.same_time("a fetch", due, due_in_memory).await?;
        }
        let [one, two] = readers;
        let all = HeldFilter::default();
        let held = [one.held(&all, None, 1_000).await.unwrap().rows, two.held(&all, None, 1_000).await.unwrap().rows];
        for (row, in_memory) in held[0].iter().zip(&held[1]) {
            self.same_time(&row.why, row.until_ms, in_memory.until_ms).await?;
        }
        let timeless = |row: HeldRow| HeldRow { until_ms: row.until_ms.map(|_| 0), ..row };
        same("what waits", held.map(|rows| rows.into_iter().map(timeless).collect::<Vec<_>>()))?;
        same(
            "counts",
            [one.counts().await.unwrap(), two.counts().await.unwrap()].map(|counts| {
                let some = counts.events.into_iter().filter(|&(_, count)| count > 0).collect::<Vec<_>>();
                (some, counts.keys, counts.resources, counts.held, counts.fetches)
            }),
        )
    }

    /// Each by the clock of its own store.
    async fn same_time(&self, what: &str, one: Option<i64>, two: Option<i64>) -> Result<(), String> {
        if one.is_none() && two.is_none() {
            return Ok(());
        }
        let [store, memory] = self.stores();
        let [here, there] = [store.pulse().await.unwrap().now_ms, memory.pulse().await.unwrap().now_ms];
        let (left, left_in_memory) = (one.map(|at| at - here), two.map(|at| at - there));
        if near(left, left_in_memory) {
            return Ok(());
        }
        Err(format!("{what}: due in {left:?} ms, and in {left_in_memory:?} ms in memory"))
    }

    async fn compare_events(&self) -> Result<(), String> {
        let all = EventFilter::default();
        let rows = async |world: &World| world.node.reader.events(&all, None, 1_000).await.unwrap().rows;
        let timeless = |row: EventRow| EventRow { settled_at_ms: row.settled_at_ms.map(|_| 0), ..row };
        let both = [rows(self.store).await, rows(self.memory).await];
        same("events", both.map(|rows| rows.into_iter().map(timeless).collect::<Vec<_>>()))
    }
}
