//! One key takes effect at most once (I3, I7).

use tidegate_actors::ports::{EventFilter, Outcome};
use tidegate_actors::rules::event::Verdict;

use crate::events::{APPLIED, Words as _, again, conflict_with, duplicate_of, event, event_of};
use crate::world::World;

pub(crate) async fn a_free_key_is_claimed_and_a_second_event_with_it_is_a_duplicate(world: &World) {
    let mut session = world.node.session().await;
    let first = event("k1").on("o1", 1);
    assert_eq!(session.commit(std::slice::from_ref(&first)).await.unwrap().outcomes, [APPLIED]);
    let second = again(&first);
    assert_eq!(session.commit(&[second, event("k2")]).await.unwrap().outcomes, [duplicate_of(&first), APPLIED]);
    let row = world.node.reader.resource(first.guards[0].resource.hash).await.unwrap().expect("a state");
    assert_eq!((row.event, row.applied), (Some(first.id), 1));
    assert_eq!(world.node.reader.counts().await.unwrap().keys, 2);
}

pub(crate) async fn a_key_twice_in_one_batch_goes_to_the_first(world: &World) {
    let mut session = world.node.session().await;
    let first = event("k1").on("o1", 1);
    let batch = [first.clone(), again(&first), event("k2"), again(&first)];
    let outcomes = session.commit(&batch).await.unwrap().outcomes;
    assert_eq!(outcomes, [APPLIED, duplicate_of(&first), APPLIED, duplicate_of(&first)]);
    let later = [again(&first), again(&first)];
    assert_eq!(session.commit(&later).await.unwrap().outcomes, [duplicate_of(&first); 2]);
}

pub(crate) async fn the_same_key_with_other_bytes_is_kept_aside_once(world: &World) {
    let mut session = world.node.session().await;
    let first = event("k1").on("o1", 1);
    session.commit(std::slice::from_ref(&first)).await.unwrap();
    let other = again(&first).body(b"other bytes");
    let outcomes = session.commit(std::slice::from_ref(&other)).await.unwrap().outcomes;
    assert_eq!(outcomes, [conflict_with(&first)]);
    // The sender tries again, and once more twice in one batch: nothing new to keep.
    session.commit(&[again(&other)]).await.unwrap();
    session.commit(&[again(&other), again(&other)]).await.unwrap();

    let kept = EventFilter { verdict: Some(Verdict::Duplicate), ..EventFilter::default() };
    let rows = world.node.reader.events(&kept, None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| (row.id, row.conflicts_with)).collect::<Vec<_>>(), [(other.id, Some(first.id))]);
    let row = world.node.reader.event(other.id).await.unwrap().expect("the row kept aside");
    assert_eq!(row.body.as_deref(), Some(&b"other bytes"[..]));
    let state = world.node.reader.resource(first.guards[0].resource.hash).await.unwrap().expect("a state");
    assert_eq!(state.event, Some(first.id));
}

pub(crate) async fn two_different_bodies_under_one_key_in_one_batch_are_a_conflict(world: &World) {
    let mut session = world.node.session().await;
    let first = event("k1");
    let other = again(&first).body(b"other bytes");
    let outcomes = session.commit(&[first.clone(), other.clone(), again(&first)]).await.unwrap().outcomes;
    assert_eq!(outcomes, [APPLIED, conflict_with(&first), duplicate_of(&first)]);
    // The first in this batch is itself a conflict; what follows is held against the event that has the key.
    let outcomes = session.commit(&[again(&other), again(&first), again(&other)]).await.unwrap().outcomes;
    assert_eq!(outcomes, [conflict_with(&first), duplicate_of(&first), conflict_with(&first)]);
    assert_eq!(world.node.reader.events(&EventFilter::default(), None, 10).await.unwrap().rows.len(), 2);
}

pub(crate) async fn the_same_event_again_is_a_duplicate_of_itself(world: &World) {
    // What a writer does that does not know whether its commit happened.
    let first = event("k1").on("o1", 1);
    let mut session = world.node.session().await;
    session.commit(std::slice::from_ref(&first)).await.unwrap();
    let mut another = world.node.session().await;
    let outcomes = another.commit(std::slice::from_ref(&first)).await.unwrap().outcomes;
    assert_eq!(outcomes, [duplicate_of(&first)]);
}

pub(crate) async fn a_big_batch_is_taken_whole_and_again_as_duplicates(world: &World) {
    let mut session = world.node.session().await;
    let batch: Vec<_> = (0..500).map(|n| event(&format!("k{n}")).on(&format!("o{}", n % 40), n)).collect();
    let outcomes = session.commit(&batch).await.unwrap().outcomes;
    assert_eq!(outcomes, vec![APPLIED; 500]);
    let repeats: Vec<_> = batch.iter().map(again).collect();
    let expected: Vec<Outcome> = batch.iter().map(duplicate_of).collect();
    assert_eq!(session.commit(&repeats).await.unwrap().outcomes, expected);
    let counts = world.node.reader.counts().await.unwrap();
    assert_eq!((counts.keys, counts.resources), (500, 40));
}

pub(crate) async fn tenants_and_sources_have_keys_of_their_own(world: &World) {
    let mut session = world.node.session().await;
    let batch = [event_of("shop", "", "k"), event_of("shop", "t", "k"), event_of("other", "", "k")];
    assert_eq!(session.commit(&batch).await.unwrap().outcomes, [APPLIED; 3]);
}
