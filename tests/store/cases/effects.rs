//! Effect keys: one happening under several ids takes effect once (I3), and all of its ids are kept.

use tidegate_actors::ports::{EventFilter, Outcome};
use tidegate_actors::rules::event::{Event, Verdict};
use tidegate_actors::rules::key::Key;

use crate::events::{APPLIED, Words as _, again, conflict_with, duplicate_of, event};
use crate::policies::newest;
use crate::world::World;

/// An event under an id of its own, telling of a happening.
fn told(key: &str, effect: &str, n: u32) -> Event {
    event(key).on("o", n).effect(effect).by(&newest())
}

fn repeat_of(first: &Event) -> Outcome {
    Outcome::Repeat { first: first.id }
}

pub(crate) async fn one_happening_under_two_ids_takes_effect_once_and_both_ids_are_kept(world: &World) {
    let first = told("k1", "paid-7", 1);
    assert_eq!(world.take(&first).await, APPLIED);
    let second = told("k2", "paid-7", 2);
    assert_eq!(world.take(&second).await, repeat_of(&first));
    let row = world.row(&second).await;
    assert_eq!((row.verdict, row.conflicts_with), (Verdict::Duplicate, Some(first.id)));
    assert_eq!(row.why.as_deref(), Some("its effect key was claimed under another id"));
    let state = world.state("o").await;
    assert_eq!((state.version.as_deref(), state.event, state.applied), (Some("1"), Some(first.id), 1));
    // its own id is taken as well: by itself
    assert_eq!(world.take(&again(&second)).await, duplicate_of(&second));
    assert_eq!(world.take(&again(&second).body(b"other bytes")).await, conflict_with(&second));
    assert_eq!(world.take(&again(&first)).await, duplicate_of(&first));
    assert_eq!(world.take(&told("k3", "paid-8", 3)).await, APPLIED);
    assert_eq!(world.node.reader.counts().await.unwrap().keys, 5, "three ids and two happenings");
}

pub(crate) async fn an_effect_twice_in_one_batch_goes_to_the_first(world: &World) {
    let (first, second) = (told("k1", "e", 1), told("k2", "e", 2));
    let batch = [first.clone(), second.clone(), again(&second), event("plain").on("o", 5), told("k3", "f", 6)];
    let outcomes = world.commit(&batch).await;
    assert_eq!(outcomes, [APPLIED, repeat_of(&first), duplicate_of(&second), APPLIED, APPLIED]);
    // what is itself a repeat by its id claims nothing for its effect
    let third = Event { effect_key: told("x", "g", 1).effect_key, ..again(&first) };
    assert_eq!(world.commit(&[third, told("k4", "g", 7)]).await, [duplicate_of(&first), APPLIED]);
}

pub(crate) async fn repeats_with_the_same_bytes_are_all_kept(world: &World) {
    let bytes = |key: &str| told(key, "e", 1).body(b"the same");
    let first = bytes("k1");
    world.take(&first).await;
    let repeats = [bytes("k2"), bytes("k3"), bytes("k4")];
    assert_eq!(world.commit(&repeats).await, [repeat_of(&first); 3]);
    let kept = EventFilter { verdict: Some(Verdict::Duplicate), ..EventFilter::default() };
    let rows = world.node.reader.events(&kept, None, 10).await.unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["k4", "k3", "k2"]);
    assert!(rows.iter().all(|row| row.conflicts_with == Some(first.id)));
}

pub(crate) async fn an_effect_key_never_meets_an_idempotency_key(world: &World) {
    let effect = Key::effect("shop", "", ["same"]).expect("a key");
    assert_ne!(effect.hash, Key::new("shop", "", ["same"]).expect("a key").hash);
    assert_eq!(world.take(&event("same").on("o", 1)).await, APPLIED);
    assert_eq!(world.take(&told("other", "same", 2)).await, APPLIED);
    assert_eq!(world.take(&told("third", "other", 3)).await, APPLIED);
}
