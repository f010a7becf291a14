//! Contiguous numbers: gaps are waited for, closed, given up, or expire (I6).

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::order::OnGap;

use crate::asked::hash;
use crate::events::{APPLIED, HELD, STALE, STALE_TIE, Words as _, again, duplicate_of, event};
use crate::policies::{HOLD_MS, sequence};
use crate::world::World;

/// Number `n` of a resource, under a key of both.
fn number(id: &str, n: u32, on_gap: OnGap) -> Event {
    event(&format!("{id}{n}")).on(id, n).by(&sequence(on_gap))
}

fn expiring(id: &str, n: u32) -> Event {
    number(id, n, OnGap::Expire)
}

fn at(version: &str, held: i64) -> (Option<String>, i64) {
    (Some(version.to_owned()), held)
}

pub(crate) async fn the_next_number_applies_and_what_is_above_it_waits(world: &World) {
    assert_eq!(world.take(&expiring("o", 1)).await, APPLIED);
    let third = expiring("o", 3);
    let committed = world.committed(std::slice::from_ref(&third)).await;
    assert_eq!(committed.outcomes, [HELD]);
    let due = committed.waits.due_in_ms.expect("a time");
    assert!((HOLD_MS - 60_000..=HOLD_MS).contains(&due), "{due}");
    assert_eq!(world.at("o").await, at("1", 1));
    assert_eq!(world.said(&third).await, (Verdict::Held, "waits for 2".to_owned()));
    let held = world.held("o").await;
    let now_ms = world.node.store.pulse().await.unwrap().now_ms;
    assert_eq!((held.len(), held[0].event, held[0].why.as_str()), (1, third.id, "waits for 2"));
    assert_eq!((held[0].version.as_deref(), held[0].parked), (Some("3"), false));
    assert!(held[0].until_ms.expect("a time") <= now_ms + HOLD_MS);
    assert_eq!(world.take(&event("again").on("o", 1).by(&sequence(OnGap::Expire))).await, STALE_TIE);
    assert_eq!(world.take(&event("below").on("o", 0).by(&sequence(OnGap::Expire))).await, STALE);
}

pub(crate) async fn what_closes_a_gap_releases_what_waited_in_its_transaction(world: &World) {
    let (third, fourth, sixth) = (expiring("o", 3), expiring("o", 4), expiring("o", 6));
    world.commit(&[expiring("o", 1), sixth.clone(), fourth.clone()]).await;
    world.take(&third).await;
    let second = world.committed(&[expiring("o", 2)]).await;
    assert_eq!((second.outcomes, second.waits.released), (vec![APPLIED], 2));
    assert_eq!(world.at("o").await, at("4", 1));
    assert_eq!(world.state("o").await.event, Some(fourth.id));
    for event in [&third, &fourth] {
        let row = world.row(event).await;
        assert_eq!((row.verdict, row.why), (Verdict::Applied, None));
        assert!(row.settled_at_ms.is_some_and(|at| at >= row.received_at_ms - 60_000), "{:?}", row.settled_at_ms);
    }
    assert_eq!(world.held("o").await.iter().map(|row| row.event).collect::<Vec<_>>(), [sixth.id]);
    assert_eq!(world.said(&sixth).await, (Verdict::Held, "waits for 2".to_owned()), "as it was told when it came");
    assert_eq!(world.take(&expiring("o", 5)).await, APPLIED);
    assert_eq!(world.at("o").await, at("6", 0));
    assert_eq!(world.state("o").await.applied, 6);
}

pub(crate) async fn a_gap_in_a_batch_holds_and_a_batch_that_is_whole_does_not(world: &World) {
    let whole = world.commit(&[expiring("a", 3), expiring("a", 1), expiring("a", 2)]).await;
    assert_eq!(whole, [APPLIED; 3]);
    let gap = world.commit(&[expiring("b", 4), expiring("b", 1), expiring("b", 2)]).await;
    assert_eq!(gap, [HELD, APPLIED, APPLIED]);
    assert_eq!((world.at("a").await, world.at("b").await), (at("3", 0), at("2", 1)));
}

pub(crate) async fn numbers_begin_at_the_start_also_for_a_resource_never_seen(world: &World) {
    let second = expiring("o", 2);
    assert_eq!(world.take(&second).await, HELD);
    let row = world.state("o").await;
    assert_eq!((row.version, row.event, row.applied, row.held), (None, None, 0, 1));
    assert_eq!((row.kind.as_str(), row.id.as_str()), ("order", "o"));
    assert_eq!(world.take(&expiring("o", 1)).await, APPLIED);
    assert_eq!(world.at("o").await, at("2", 0));
    assert_eq!(world.state("o").await.event, Some(second.id));
}

pub(crate) async fn a_repeat_of_what_waits_is_a_duplicate_and_the_gap_stays(world: &World) {
    let third = expiring("o", 3);
    world.commit(&[expiring("o", 1), third.clone()]).await;
    assert_eq!(world.commit(&[again(&third), again(&third)]).await, [duplicate_of(&third); 2]);
    assert_eq!(world.at("o").await, at("1", 1));
    assert_eq!(world.held("o").await.len(), 1);
}

pub(crate) async fn a_hold_that_is_over_gives_the_gap_up(world: &World) {
    let release = |n| number("o", n, OnGap::Release);
    let (third, fifth, sixth, eighth) = (release(3), release(5), release(6), release(8));
    world.commit(&[release(1), third.clone()]).await;
    world.pass(HOLD_MS / 2).await;
    assert_eq!(world.settle().await.released, 0, "nothing is over yet");
    world.commit(&[fifth.clone(), sixth.clone(), eighth.clone()]).await;
    world.pass(HOLD_MS / 2 + 60_000).await;
    let waits = world.settle().await;
    assert_eq!((waits.released, waits.expired), (1, 0), "only the third had its time");
    assert!(waits.due_in_ms.is_some_and(|due| due > 0 && due < HOLD_MS / 2));
    assert_eq!(world.said(&third).await, (Verdict::Applied, "the gap before it was given up".to_owned()));
    assert_eq!(world.at("o").await, at("3", 3));
    // what the gap hid comes too late now; what follows releases as ever
    assert_eq!(world.take(&release(2)).await, STALE);
    assert_eq!(world.take(&release(4)).await, APPLIED);
    assert_eq!(world.at("o").await, at("6", 1));
    world.pass(HOLD_MS).await;
    assert_eq!(world.settle().await.released, 1);
    assert_eq!(world.at("o").await, at("8", 0));
    assert_eq!(world.settle().await, Default::default(), "nothing waits any more");
}

pub(crate) async fn a_hold_that_is_over_expires_with_a_record(world: &World) {
    let third = expiring("o", 3);
    world.commit(&[expiring("o", 1), third.clone()]).await;
    world.pass(HOLD_MS / 2).await;
    world.take(&expiring("o", 4)).await;
    world.pass(HOLD_MS / 2 + 60_000).await;
    let waits = world.settle().await;
    assert_eq!((waits.released, waits.stale, waits.expired), (0, 0, 1));
    let row = world.row(&third).await;
    assert_eq!(row.verdict, Verdict::Expired);
    assert!(row.why.is_some_and(|why| why.contains("its time ran out") && why.contains("waits for 2")));
    assert!(row.settled_at_ms.is_some());
    assert_eq!(world.at("o").await, at("1", 1), "the prefix is still contiguous");
    // its key stays taken: a repeat is told so, and does not come to life again
    assert_eq!(world.take(&again(&third)).await, duplicate_of(&third));
    assert_eq!(world.take(&expiring("o", 2)).await, APPLIED);
    assert_eq!(world.at("o").await, at("2", 1), "the fourth waits for the third, which is gone");
}

pub(crate) async fn a_hold_that_is_over_asks_the_provider(world: &World) {
    let ask = |n| number("o", n, OnGap::Refetch);
    let (third, sixth, eighth) = (ask(3), ask(6), ask(8));
    world.commit(&[ask(1), third.clone()]).await;
    world.pass(HOLD_MS + 60_000).await;
    assert!(world.settle().await.wants_fetch);
    assert_eq!(world.held("o").await[0].until_ms, None, "it waits for the provider now");
    assert!(!world.settle().await.wants_fetch);
    let claimed = world.node.store.claim_fetches(10, 60_000).await.unwrap();
    assert_eq!(claimed.claims.len(), 1);
    let claim = &claimed.claims[0];
    assert_eq!((claim.resource, claim.id.as_str(), claim.attempt), (hash("o"), "o", 1));
    world.commit(&[sixth.clone(), eighth.clone()]).await;
    let answer = event("refetch:o:1").on("o", 5).by(&sequence(OnGap::Refetch)).answers(claim);
    let committed = world.committed(std::slice::from_ref(&answer)).await;
    assert_eq!(committed.outcomes, [APPLIED]);
    assert_eq!((committed.waits.stale, committed.waits.released), (1, 1));
    assert_eq!(world.said(&third).await.0, Verdict::Stale);
    assert_eq!(world.verdict(&sixth).await, Verdict::Applied);
    assert_eq!(world.at("o").await, at("6", 1));
    assert_eq!(world.node.reader.fetch(hash("o")).await.unwrap().expect("a row").due_ms, None, "it rests");
}

pub(crate) async fn a_transaction_settles_so_many_resources_and_says_when_to_come_again(world: &World) {
    let batch: Vec<Event> = (0..5).map(|n| expiring(&format!("o{n}"), 3)).collect();
    assert_eq!(world.commit(&batch).await, [HELD; 5]);
    world.pass(HOLD_MS + 60_000).await;
    let mut expired = Vec::new();
    for _ in 0..2 {
        let waits = world.node.store.settle_due(2).await.unwrap();
        assert_eq!(waits.due_in_ms, Some(0), "there is more");
        expired.push(waits.expired);
    }
    let last = world.node.store.settle_due(2).await.unwrap();
    assert_eq!((expired, last.expired, last.due_in_ms), (vec![2, 2], 1, None));
}

pub(crate) async fn a_person_gives_a_gap_up(world: &World) {
    let (third, fifth) = (expiring("o", 3), expiring("o", 5));
    world.commit(&[expiring("o", 1), third.clone(), fifth.clone()]).await;
    let waits = world.node.store.release(hash("o")).await.unwrap().expect("something waited");
    assert_eq!(waits.released, 2);
    assert_eq!(world.at("o").await, at("5", 0));
    assert_eq!(world.said(&fifth).await.1, "the gap before it was given up");
    assert_eq!(world.node.store.release(hash("o")).await.unwrap(), None, "nothing waits");
    assert_eq!(world.node.store.release(hash("never seen")).await.unwrap(), None);
}

pub(crate) async fn two_sessions_close_gaps_for_each_other(world: &World) {
    let (mut left, mut right) = (world.node.session().await, world.node.session().await);
    for round in 0..20 {
        let id = format!("o{round}-");
        // each side has every other number, the later ones first
        let of = |numbers: [u32; 3]| numbers.map(|n| expiring(&id, n));
        let (odd, even) = (of([5, 3, 1]), of([6, 4, 2]));
        for (a, b) in odd.iter().zip(&even) {
            let (a, b) = (std::slice::from_ref(a), std::slice::from_ref(b));
            let (one, two) = tokio::join!(left.commit(a), right.commit(b));
            let outcomes: Vec<Outcome> = [one, two].into_iter().flat_map(|done| done.unwrap().outcomes).collect();
            assert_eq!(outcomes.len(), 2);
        }
        assert_eq!(world.at(&id).await, at("6", 0), "round {round}");
        assert_eq!(world.state(&id).await.applied, 6);
    }
}
