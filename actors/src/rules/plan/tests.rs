//! What a transaction does with events of several resources, and with answers.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::smallvec;
use uuid::Uuid;

use super::*;
use crate::rules::event::Resource;
use crate::rules::key::{BodyDigest, Key};
use crate::rules::order::{OnGap, Order, Policy, Tie, Wait};
use crate::rules::version::Version;

fn guard(id: &str, version: i64) -> Guard {
    let version = Version::integer(&version.to_string()).ok();
    Guard { resource: Resource::new("shop", "", "thing".to_owned(), id.to_owned()), version }
}

fn event(number: u128, policy: Policy) -> Event {
    Event {
        id: EventId(Uuid::from_u128(number)),
        received_at_ms: 0,
        source: "shop".into(),
        tenant: "".into(),
        key: Key::new("shop", "", [number.to_string().as_str()]).expect("a key"),
        digest: BodyDigest::of(b"{}"),
        kind: "thing.changed".to_owned(),
        guards: smallvec![guard("order", 5), guard("customer", 3)],
        order: Arc::new(Order::judged(policy)),
        step: None,
        patch: None,
        effect_key: None,
        fetched: None,
        deletes: false,
        intent: Intent::Apply,
        headers: Bytes::from_static(b"{}"),
        body: Bytes::from_static(b"{}"),
    }
}

fn state<'a>(plan: &'a Plan<'_>, id: &str) -> Option<&'a State> {
    let hash = guard(id, 0).resource.hash;
    plan.states.iter().find(|changed| changed.hash == hash).map(|changed| &changed.state)
}

#[test]
fn what_deletes_an_order_does_not_delete_the_customer_that_comes_along() {
    let mut deleting = event(1, Policy::Newest { tie: Tie::Keep });
    deleting.deletes = true;
    let plan = plan(&[&deleting], &Loaded::default(), Push::None).expect("room");
    assert_eq!(state(&plan, "order").map(|state| state.deleted), Some(true));
    assert_eq!(state(&plan, "customer").map(|state| state.deleted), Some(false));
}

#[test]
fn what_comes_along_is_applied_at_once_while_its_carrier_waits() {
    let waiting = event(1, Policy::Sequence { start: 1, wait: Wait { hold_for_ms: 10, on_gap: OnGap::Expire } });
    let plan = plan(&[&waiting], &Loaded { now_ms: 7, ..Loaded::default() }, Push::None).expect("room");
    assert_eq!(plan.recorded[0].verdict, Verdict::Held);
    assert_eq!(state(&plan, "customer").and_then(|state| state.version.as_ref()).map(Version::text), Some("3"));
    assert_eq!(state(&plan, "order").map(|state| (state.held, state.event)), Some((1, None)));
    assert_eq!((plan.held.len(), plan.next_due_ms), (1, Some(17)));
}

#[test]
fn an_answer_of_a_claim_that_was_taken_over_is_recorded_and_changes_nothing() {
    let mut answer = event(1, Policy::Newest { tie: Tie::Apply });
    answer.fetched = Some(3);
    let known = Known { fetch: Some(4), ..Known::default() };
    let resources = [(guard("order", 0).resource.hash, known)].into();
    let loaded = Loaded { resources, ..Loaded::default() };
    let plan = plan(&[&answer], &loaded, Push::None).expect("room");
    assert_eq!((plan.recorded[0].verdict, plan.states.len(), plan.fetches.len()), (Verdict::Ignored, 0, 0));
    assert_eq!(plan.recorded[0].why.as_deref(), Some("another fetch took over"));
}
