//! Outcomes made by hand, right and wrong: the model must tell them apart.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::rules::graph::Graph;
use crate::rules::order::{OnGap, Wait};

const HELD: Outcome = Outcome::Held;
const AT_ONCE: Outcome = Outcome::Applied { tie: false };
const STALE: Outcome = Outcome::Stale { tie: false };

/// Versions of one byte, for events 0 to 9.
const VERSIONS: [[u8; 1]; 10] = [[0], [1], [2], [3], [4], [5], [6], [7], [8], [9]];

/// An event: its place, when it was taken, what was said, when that was final, and what it was then.
fn one(place: u8, taken_ms: u64, outcome: Outcome, settled_ms: u64, verdict: Verdict) -> Taken<'static> {
    Taken {
        event: Some(u32::from(place)),
        id: EventId(Uuid::from_u128(u128::from(place) << 64 | u128::from(taken_ms))),
        version: Some(&VERSIONS[usize::from(place)]),
        place: Some(u64::from(place)),
        first: true,
        deletes: false,
        outcome,
        verdict,
        batch: taken_ms,
        taken_ms,
        settled_ms,
    }
}

fn now(place: u8, at_ms: u64) -> Taken<'static> {
    one(place, at_ms, AT_ONCE, at_ms, Verdict::Applied)
}

fn late(place: u8, at_ms: u64) -> Taken<'static> {
    one(place, at_ms, STALE, at_ms, Verdict::Stale)
}

fn held(place: u8, at_ms: u64, until_ms: u64, verdict: Verdict) -> Taken<'static> {
    one(place, at_ms, HELD, until_ms, verdict)
}

fn sequence(on_gap: OnGap) -> Order {
    Order::judged(Policy::Sequence { start: 1, wait: Wait { hold_for_ms: 100, on_gap } })
}

/// The promises that these break.
#[track_caller]
fn broken(order: &Order, taken: &[Taken<'_>]) -> Vec<&'static str> {
    wrong_verdicts(order, true, taken).into_iter().map(|(promise, ..)| promise).collect()
}

#[test]
fn newest_takes_nothing_older_and_refuses_nothing_newer() {
    let newest = Order::plain(Policy::Newest { tie: Tie::Keep });
    assert_eq!(broken(&newest, &[now(2, 1), late(1, 2), now(3, 3)]), [""; 0]);
    assert_eq!(broken(&newest, &[now(2, 1), now(1, 2)]), ["I5"]);
    assert_eq!(broken(&newest, &[now(1, 1), late(2, 2)]), ["I17"]);
}

#[test]
fn the_state_is_that_of_the_newest_and_of_ties_the_one_the_rule_names() {
    let plan = crate::sim::generate(&crate::sim::Scenario::default(), 1);
    let bodies = Prepared::new(&plan);
    let taken = [now(2, 1), one(2, 2, STALE, 2, Verdict::Stale), late(1, 3)];
    let state = |tie| expected(&Order::plain(Policy::Newest { tie }), &taken, &bodies).event;
    assert_eq!(state(Tie::Keep), Some(taken[0].id));
    assert_eq!(state(Tie::Apply), Some(taken[1].id));
    let arrival = expected(&Order::plain(Policy::Arrival), &taken, &bodies);
    assert_eq!((arrival.event, arrival.version), (Some(taken[2].id), Some(vec![2])));
}

#[test]
fn a_row_applies_in_turn_and_what_waits_goes_with_what_closes_the_gap() {
    let rule = sequence(OnGap::Release);
    let right = [now(1, 1), held(3, 2, 5, Verdict::Applied), now(2, 5)];
    assert_eq!(broken(&rule, &right), [""; 0]);
    let waits_on = [now(1, 1), held(3, 2, 9, Verdict::Applied), now(2, 5)];
    assert_eq!(broken(&rule, &waits_on), ["I6"]);
    let over_the_gap = [now(1, 1), now(3, 2), late(2, 5)];
    assert_eq!(broken(&rule, &over_the_gap), ["I17"]);
    let before_the_first = [now(2, 1)];
    assert_eq!(broken(&rule, &before_the_first), ["I17"]);
    let back = [now(1, 1), now(2, 2), now(1, 3)];
    assert_eq!(broken(&rule, &back), ["I5"]);
}

#[test]
fn a_gap_is_given_up_when_the_wait_is_over_and_not_before() {
    let rule = sequence(OnGap::Release);
    let right = [now(1, 1), held(3, 2, 102, Verdict::Applied), held(4, 50, 102, Verdict::Applied), late(2, 200)];
    assert_eq!(broken(&rule, &right), [""; 0]);
    let early = [now(1, 1), held(3, 2, 101, Verdict::Applied)];
    assert_eq!(broken(&rule, &early), ["I17"]);
    let of_another_rule = [now(1, 1), held(3, 2, 102, Verdict::Applied)];
    assert_eq!(broken(&sequence(OnGap::Expire), &of_another_rule), ["I17"]);
    let never = [now(1, 1), held(3, 2, 102, Verdict::Held)];
    assert_eq!(broken(&rule, &never), ["I6", "I17"]);
    let thrown_away = [now(1, 1), held(3, 2, 102, Verdict::Stale)];
    assert_eq!(broken(&rule, &thrown_away), ["I17", "I17"]);
}

#[test]
fn what_expires_has_waited_in_vain() {
    let rule = sequence(OnGap::Expire);
    assert_eq!(broken(&rule, &[now(1, 1), held(3, 2, 102, Verdict::Expired), now(2, 200)]), [""; 0]);
    assert_eq!(broken(&rule, &[now(1, 1), held(3, 2, 101, Verdict::Expired)]), ["I6"]);
    assert_eq!(broken(&rule, &[now(1, 1), now(2, 50), held(3, 2, 102, Verdict::Expired)]), ["I6"]);
    assert_eq!(broken(&sequence(OnGap::Release), &[now(1, 1), held(3, 2, 102, Verdict::Expired)]), ["I6", "I17"]);
}

#[test]
fn ranks_may_be_skipped_but_for_the_first() {
    let graph = Arc::new(Graph::ranks(["created", "paid", "sent"]).expect("a graph"));
    let wait = Wait { hold_for_ms: 100, on_gap: OnGap::Release };
    let rule = Order::judged(Policy::Transition { graph, tie: Tie::Keep, wait });
    let broken = |taken: &[Taken<'_>]| wrong_verdicts(&rule, false, taken).len();
    assert_eq!(broken(&[now(1, 1), now(3, 2), late(2, 3)]), 0);
    assert_eq!(broken(&[held(3, 1, 5, Verdict::Applied), now(1, 5)]), 0);
    assert_eq!(broken(&[now(3, 1), late(1, 5)]), 1);
}

#[test]
fn a_window_opens_when_it_is_over() {
    let rule = Order::judged(Policy::Window { window_ms: 100, tie: Tie::Keep });
    let right = [held(3, 1, 101, Verdict::Applied), held(2, 50, 101, Verdict::Applied), late(1, 150)];
    assert_eq!(broken(&rule, &right), [""; 0]);
    assert_eq!(broken(&rule, &[held(3, 1, 100, Verdict::Applied)]), ["I17"]);
    assert_eq!(broken(&rule, &[now(3, 1)]), ["I17"]);
    assert_eq!(broken(&rule, &[held(3, 1, 101, Verdict::Applied), held(2, 2, 150, Verdict::Applied)]), ["I5"]);
    assert_eq!(broken(&rule, &[held(3, 1, 101, Verdict::Expired)]), ["I6", "I17"]);
    assert_eq!(broken(&rule, &[held(3, 1, 101, Verdict::Applied), held(4, 2, 101, Verdict::Stale)]), ["I17", "I17"]);
}

#[test]
fn a_signal_is_settled_by_a_state_as_new_as_itself() {
    let rule = Order::judged(Policy::Refetch);
    let state = |place, at_ms| Taken { event: None, ..now(place, at_ms) };
    assert_eq!(broken(&rule, &[held(2, 1, 5, Verdict::Applied), state(2, 5)]), [""; 0]);
    assert_eq!(broken(&rule, &[held(2, 1, 5, Verdict::Applied), state(1, 5)]), ["I17"]);
    assert_eq!(broken(&rule, &[now(2, 1), state(2, 5)]), ["I17"]);
    assert_eq!(broken(&rule, &[held(2, 1, 5, Verdict::Expired)]), [""; 0]);
    assert_eq!(broken(&rule, &[held(2, 1, 5, Verdict::Held)]), ["I6"]);
}
