//! Signals, and the fetches that answer them: one a resource, claimed by epoch (I9), counted before the work (I10).

use tidegate_actors::ports::{FetchClaim, Outcome};
use tidegate_actors::rules::event::{Event, Verdict};

use crate::asked::hash;
use crate::events::{APPLIED, HELD, Words as _, event};
use crate::policies::refetch;
use crate::world::World;

const LEASE_MS: i64 = 600_000;

fn signal(key: &str) -> Event {
    event(key).on_unversioned("o").by(&refetch())
}

fn answer(claim: &FetchClaim, version: u32) -> Event {
    event(&format!("refetch:{}:{}", claim.id, claim.epoch)).on(&claim.id, version).by(&refetch()).answers(claim)
}

async fn claims(world: &World) -> Vec<FetchClaim> {
    world.node.store.claim_fetches(10, LEASE_MS).await.unwrap().claims
}

/// The one claim there is.
async fn claim(world: &World) -> FetchClaim {
    let [claim] = <[FetchClaim; 1]>::try_from(claims(world).await).expect("one fetch is due");
    claim
}

pub(crate) async fn a_signal_waits_and_the_fetches_of_a_resource_are_one(world: &World) {
    let (one, two) = (signal("k1"), signal("k2"));
    let committed = world.committed(std::slice::from_ref(&one)).await;
    assert_eq!((committed.outcomes, committed.waits.wants_fetch), (vec![HELD], true));
    assert_eq!(world.take(&two).await, HELD);
    let held = world.held("o").await;
    assert_eq!(held.iter().map(|row| (row.event, row.until_ms)).collect::<Vec<_>>(), [(one.id, None), (two.id, None)]);
    assert_eq!(world.node.reader.counts().await.unwrap().fetches, 1);
    let claim = claim(world).await;
    assert_eq!((claim.resource, claim.epoch, claim.attempt), (hash("o"), 1, 1));
    assert_eq!((claim.source.as_str(), claim.tenant.as_str(), claim.kind.as_str()), ("shop", "", "order"));
    let again = world.node.store.claim_fetches(10, LEASE_MS).await.unwrap();
    assert_eq!(again.claims, [], "it is leased");
    assert!(again.due_in_ms.is_some_and(|due| due > 0 && due <= LEASE_MS), "{:?}", again.due_in_ms);
    world.pass(LEASE_MS + 60_000).await;
    let again = self::claim(world).await;
    assert_eq!((again.epoch, again.attempt), (2, 2), "whoever had it is taken to be dead");
    assert_eq!(world.node.store.claim_fetches(0, LEASE_MS).await.unwrap().claims, []);
}

pub(crate) async fn an_answer_settles_the_signals_that_were_there_when_it_was_asked_for(world: &World) {
    let (before, after) = (signal("k1"), signal("k2"));
    world.take(&before).await;
    let first = claim(world).await;
    world.take(&after).await;
    let state = answer(&first, 7);
    let committed = world.committed(std::slice::from_ref(&state)).await;
    assert_eq!((committed.outcomes, committed.waits.released), (vec![APPLIED], 1));
    assert!(committed.waits.wants_fetch, "the second signal may tell of something newer");
    assert_eq!([world.verdict(&before).await, world.verdict(&after).await], [Verdict::Applied, Verdict::Held]);
    let row = world.state("o").await;
    assert_eq!((row.version.as_deref(), row.event, row.held), (Some("7"), Some(state.id), 1));
    let second = claim(world).await;
    assert_eq!((second.epoch, second.attempt), (2, 1));
    // nothing newer is there: the same version again
    assert!(matches!(world.take(&answer(&second, 7)).await, Outcome::Applied { tie: true }));
    assert_eq!(world.at("o").await, (Some("7".to_owned()), 0));
    let fetch = world.node.reader.fetch(hash("o")).await.unwrap().expect("a row");
    assert_eq!((fetch.attempts, fetch.due_ms, fetch.last_error), (0, None, None), "it rests");
    assert_eq!(claims(world).await, []);
}

pub(crate) async fn a_late_answer_changes_nothing(world: &World) {
    world.take(&signal("k1")).await;
    let slow = claim(world).await;
    world.pass(LEASE_MS + 60_000).await;
    let quick = claim(world).await;
    assert_eq!(world.take(&answer(&quick, 5)).await, APPLIED);
    let late = answer(&slow, 9);
    assert_eq!(world.take(&late).await, Outcome::Ignored);
    assert_eq!(world.said(&late).await, (Verdict::Ignored, "another fetch took over".to_owned()));
    assert_eq!(world.at("o").await, (Some("5".to_owned()), 0));
    let failed = world.node.store.fetch_failed(&slow, "503", None).await.unwrap();
    assert_eq!(failed, Default::default());
    assert_eq!(world.node.reader.fetch(hash("o")).await.unwrap().expect("a row").last_error, None);
}

pub(crate) async fn a_failed_fetch_is_due_again_and_keeps_what_happened(world: &World) {
    world.take(&signal("k1")).await;
    let first = claim(world).await;
    let waits = world.node.store.fetch_failed(&first, "answered 503\0", Some(LEASE_MS)).await.unwrap();
    assert_eq!((waits.due_in_ms, waits.expired), (Some(LEASE_MS), 0));
    assert_eq!(claims(world).await, [], "not yet");
    let fetch = world.node.reader.fetch(hash("o")).await.unwrap().expect("a row");
    assert_eq!(fetch.attempts, 1);
    assert!(fetch.last_error.is_some_and(|error| error.starts_with("answered 503")));
    assert_eq!(world.state("o").await.held, 1, "waiting is not failing");
    world.pass(LEASE_MS + 60_000).await;
    let second = claim(world).await;
    assert_eq!((second.epoch, second.attempt), (2, 2));
    assert_eq!(world.take(&answer(&second, 1)).await, APPLIED);
    let fetch = world.node.reader.fetch(hash("o")).await.unwrap().expect("a row");
    assert_eq!((fetch.attempts, fetch.last_error), (0, None));
}

pub(crate) async fn a_fetch_given_up_lets_its_signals_expire(world: &World) {
    let (before, after) = (signal("k1"), signal("k2"));
    world.take(&before).await;
    let first = claim(world).await;
    world.take(&after).await;
    let waits = world.node.store.fetch_failed(&first, "answered 404", None).await.unwrap();
    assert_eq!((waits.expired, waits.wants_fetch), (1, true), "the later signal has a fetch of its own");
    let (verdict, why) = world.said(&before).await;
    assert_eq!(verdict, Verdict::Expired);
    assert!(why.contains("the provider gave no answer"), "{why}");
    let row = world.state("o").await;
    assert_eq!((row.held, row.event, row.applied), (1, None, 0));
    let second = claim(world).await;
    assert_eq!((second.epoch, second.attempt), (2, 1), "the epoch never starts again, the count does");
    world.node.store.fetch_failed(&second, "answered 404", None).await.unwrap();
    assert_eq!(world.verdict(&after).await, Verdict::Expired);
    assert_eq!(world.node.reader.counts().await.unwrap().fetches, 0);
    world.take(&signal("k3")).await;
    assert_eq!(claim(world).await.epoch, 3);
}
