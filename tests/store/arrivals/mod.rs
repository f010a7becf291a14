//! The same events, in any order of arrival, with any repeats and however they are cut into batches, end in the same
//! state (I17): on every store, and that state is the one that memory and a few plain words say.

mod play;
mod stream;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tidegate_actors::memory::MemoryStore;
use tidegate_actors::ports::{Session, Store as _};
use tidegate_actors::rules::event::Incarnation;

use self::play::{Ends, arrivals, play};
use self::stream::{Rule, Stream, stream};
use crate::clock::TestClock;
use crate::events::fresh_id;
use crate::world::{Arbiter, Kind, World, with_database};

/// How much is played where.
struct Extent {
    streams: u32,
    happenings_max: usize,
    /// Up to so many deliveries, every order of them is played.
    all_up_to: usize,
    /// Beyond that, so many at random.
    random: usize,
}

const fn extent(kind: Kind) -> Extent {
    match kind {
        Kind::Memory => Extent { streams: 400, happenings_max: 9, all_up_to: 5, random: 60 },
        Kind::Sqlite => Extent { streams: 80, happenings_max: 8, all_up_to: 4, random: 30 },
        Kind::Postgres | Kind::PostgresLoaded | Kind::PostgresLocked => {
            Extent { streams: 50, happenings_max: 8, all_up_to: 4, random: 30 }
        }
    }
}

#[test]
fn memory() {
    every_arrival_order_ends_in_one_state(Kind::Memory);
}

#[test]
fn sqlite() {
    every_arrival_order_ends_in_one_state(Kind::Sqlite);
}

#[test]
fn postgres() {
    every_arrival_order_ends_in_one_state(Kind::Postgres);
}

#[test]
fn postgres_loaded() {
    every_arrival_order_ends_in_one_state(Kind::PostgresLoaded);
}

#[test]
fn postgres_locked() {
    every_arrival_order_ends_in_one_state(Kind::PostgresLocked);
}

fn every_arrival_order_ends_in_one_state(kind: Kind) {
    with_database(kind, |url| {
        let Extent { streams, happenings_max, all_up_to, random } = extent(kind);
        let arbiter = Arbiter::new();
        let world = RefCell::new(arbiter.block_on(World::new(kind, url)));
        let session: RefCell<Option<Box<dyn Session>>> = RefCell::new(None);
        let played = Cell::new(0);
        let config = Config { cases: streams, failure_persistence: None, max_shrink_iters: 600, ..Config::default() };
        let outcome = TestRunner::new(config).run(&stream(happenings_max), |stream| {
            let arrivals = arrivals(&stream, all_up_to, random);
            played.set(played.get() + arrivals.len());
            if kind == Kind::Memory {
                // it looks through all it has: a fresh one for each stream
                *world.borrow_mut() = arbiter.block_on(World::new(kind, String::new()));
                *session.borrow_mut() = None;
            }
            arbiter.block_on(check(&world.borrow(), &session, &stream, &arrivals)).map_err(TestCaseError::fail)
        });
        arbiter.block_on(async {
            drop(session);
            drop(world);
        });
        match outcome {
            Ok(()) => println!("{streams} streams in {} orders of arrival", played.get()),
            Err(TestError::Fail(reason, smallest)) => panic!("{reason}\nthe smallest stream: {smallest:#?}"),
            Err(aborted) => panic!("{aborted}"),
        }
    });
}

/// Plays a stream in these orders, and compares where they end with what memory and the words say.
async fn check(
    world: &World,
    session: &RefCell<Option<Box<dyn Session>>>,
    stream: &Stream,
    arrivals: &[play::Arrival],
) -> Result<(), String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let source = format!("stream{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let expected = in_order(stream, &source).await?;
    said(stream, &expected)?;
    let taken = session.borrow_mut().take();
    let mut open = match taken {
        Some(open) => open,
        None => world.node.session().await,
    };
    let ends = play(stream, arrivals, &source, open.as_mut(), world.node.reader.as_ref()).await?;
    *session.borrow_mut() = Some(open);
    for (arrival, end) in arrivals.iter().zip(&ends) {
        if *end != expected {
            return Err(format!("arriving as {arrival:?} it ends in {end:#?}, and in order in {expected:#?}"));
        }
    }
    Ok(())
}

/// Where the stream ends in memory, event by event, in the order it happened.
async fn in_order(stream: &Stream, source: &str) -> Result<Ends, String> {
    let memory = MemoryStore::new(std::sync::Arc::new(TestClock::default()), Incarnation(fresh_id().0));
    let mut session = memory.open().await.map_err(|error| error.to_string())?;
    let arrival = (0..stream.happenings.len()).map(|place| vec![(place, false)]).collect();
    let mut ends = play(stream, &[arrival], source, session.as_mut(), &memory).await?;
    ends.pop().ok_or_else(|| "nothing was played".to_owned())
}

/// Which happening is the state of each resource and which wait, said of the rule in plain words.
fn said(stream: &Stream, ends: &Ends) -> Result<(), String> {
    for (id, end) in ends {
        let mut own: Vec<usize> = (0..stream.happenings.len()).collect();
        own.retain(|&place| stream.happenings[place].resource == *id);
        let along = (0..stream.happenings.len()).filter(|&place| stream.happenings[place].along.as_deref() == Some(id));
        let (state, mut held) = match stream.rule {
            Rule::Newest => (own.iter().copied().chain(along).max(), Vec::new()),
            _ if own.is_empty() => (along.max(), Vec::new()),
            Rule::Sequence | Rule::Chain { .. } => prefix(stream, own),
            Rule::Ranks { .. } if own.iter().all(|&place| stream.happenings[place].step != Some("created")) => {
                (None, own)
            }
            Rule::Ranks { .. } => (own.into_iter().max_by_key(|&place| rank(stream, place)), Vec::new()),
            Rule::Shortcuts { .. } | Rule::Rounds => (own.last().copied(), Vec::new()),
        };
        held.sort_unstable();
        if (end.happening, &end.held) != (state, &held) {
            return Err(format!("of {id} happening {state:?} is the state and {held:?} wait, not as {end:#?} says"));
        }
    }
    Ok(())
}

/// As far as nothing is missing.
fn prefix(stream: &Stream, mut own: Vec<usize>) -> (Option<usize>, Vec<usize>) {
    own.sort_by_key(|&place| rank(stream, place));
    let first = usize::from(stream.rule == Rule::Sequence);
    let whole = own.iter().enumerate().take_while(|&(number, &place)| rank(stream, place).0 == number + first).count();
    (own[..whole].last().copied(), own[whole..].to_vec())
}

/// What puts a happening in its place: its step or number, then its version.
fn rank(stream: &Stream, place: usize) -> (usize, Option<&tidegate_actors::rules::version::Version>) {
    let one = &stream.happenings[place];
    let steps = ["a", "b", "c", "d", "e", "created", "updated", "done", "deleted"];
    let number = match one.step {
        Some(step) => steps.iter().position(|known| *known == step),
        None => one.version.as_ref().and_then(|version| version.text().parse().ok()),
    };
    (number.unwrap_or(0), one.version.as_ref())
}
