//! Events for the cases, made by a few words.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;
use tidegate::clock::SystemClock;
use tidegate_actors::ports::{Clock as _, FetchClaim, Outcome};
use tidegate_actors::rules::event::{Event, EventId, Guard, Ignored, Intent, Resource};
use tidegate_actors::rules::fields::Patch;
use tidegate_actors::rules::key::{BodyDigest, Key};
use tidegate_actors::rules::order::{Order, Policy, Tie};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

pub(crate) const APPLIED: Outcome = Outcome::Applied { tie: false };
pub(crate) const APPLIED_TIE: Outcome = Outcome::Applied { tie: true };
pub(crate) const STALE: Outcome = Outcome::Stale { tie: false };
pub(crate) const STALE_TIE: Outcome = Outcome::Stale { tie: true };
pub(crate) const HELD: Outcome = Outcome::Held;

/// The outcome of meeting the claim of `first` with the same bytes.
pub(crate) fn duplicate_of(first: &Event) -> Outcome {
    Outcome::Duplicate { first: first.id, conflict: false }
}

/// The outcome of meeting the claim of `first` with other bytes.
pub(crate) fn conflict_with(first: &Event) -> Outcome {
    Outcome::Duplicate { first: first.id, conflict: true }
}

/// An event of source `shop` without a resource.
pub(crate) fn event(key: &str) -> Event {
    event_of("shop", "", key)
}

pub(crate) fn event_of(source: &str, tenant: &str, key: &str) -> Event {
    let body = Bytes::from(format!("{{\"key\":{key:?}}}"));
    let id = fresh_id();
    Event {
        id,
        received_at_ms: received_at_ms(id),
        source: source.into(),
        tenant: tenant.into(),
        key: Key::new(source, tenant, [key]).expect("a key"),
        digest: BodyDigest::of(&body),
        kind: "order.updated".to_owned(),
        guards: SmallVec::new(),
        order: Arc::new(Order::plain(Policy::Newest { tie: Tie::Keep })),
        step: None,
        patch: None,
        effect_key: None,
        fetched: None,
        deletes: false,
        intent: Intent::Apply,
        headers: Bytes::from_static(b"{}"),
        body,
    }
}

static CLOCK: SystemClock = SystemClock::new();

/// A fresh, time-ordered id.
pub(crate) fn fresh_id() -> EventId {
    CLOCK.event_id()
}

fn received_at_ms(id: EventId) -> i64 {
    i64::try_from(id.0.as_u128() >> 80).expect("48 bits")
}

pub(crate) fn resource(source: &str, tenant: &str, id: &str) -> Resource {
    Resource::new(source, tenant, "order".to_owned(), id.to_owned())
}

pub(crate) fn version(number: &impl ToString) -> Version {
    Version::integer(&number.to_string()).expect("a version")
}

/// Words that change an event.
pub(crate) trait Words: Sized {
    /// Guards a resource by a version.
    fn on(self, id: &str, number: impl ToString) -> Self;
    /// Touches a resource without a version.
    fn on_unversioned(self, id: &str) -> Self;
    fn ties_apply(self) -> Self;
    fn arrival(self) -> Self;
    fn deleting(self) -> Self;
    fn ignored(self) -> Self;
    /// Is ordered by this rule.
    fn by(self, order: &Arc<Order>) -> Self;
    /// Is of this step of a state machine.
    fn step(self, name: &str) -> Self;
    /// Sets these members: names, and values as JSON.
    fn sets(self, members: &[(&str, &str)]) -> Self;
    /// Has a second key.
    fn effect(self, key: &str) -> Self;
    /// Is what the provider answered to a claim.
    fn answers(self, claim: &FetchClaim) -> Self;
    fn body(self, body: &[u8]) -> Self;
    fn at(self, at_ms: i64) -> Self;
}

impl Words for Event {
    fn on(mut self, id: &str, number: impl ToString) -> Self {
        let resource = resource(&self.source, &self.tenant, id);
        self.guards.push(Guard { resource, version: Some(version(&number)) });
        self
    }

    fn on_unversioned(mut self, id: &str) -> Self {
        let resource = resource(&self.source, &self.tenant, id);
        self.guards.push(Guard { resource, version: None });
        self
    }

    fn ties_apply(mut self) -> Self {
        self.order = Arc::new(Order::plain(Policy::Newest { tie: Tie::Apply }));
        self
    }

    fn arrival(mut self) -> Self {
        self.order = Arc::new(Order::plain(Policy::Arrival));
        self
    }

    fn deleting(mut self) -> Self {
        self.deletes = true;
        self
    }

    fn ignored(mut self) -> Self {
        self.intent = Intent::Ignore(Ignored::UnwantedType);
        self
    }

    fn by(mut self, order: &Arc<Order>) -> Self {
        self.order = Arc::clone(order);
        self
    }

    fn step(mut self, name: &str) -> Self {
        self.step = Some(name.to_owned());
        self
    }

    fn sets(mut self, members: &[(&str, &str)]) -> Self {
        self.patch = Some(Patch(members.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()));
        self
    }

    fn effect(mut self, key: &str) -> Self {
        self.effect_key = Some(Key::effect(&self.source, &self.tenant, [key]).expect("a key"));
        self
    }

    fn answers(mut self, claim: &FetchClaim) -> Self {
        self.fetched = Some(claim.epoch);
        self
    }

    fn body(mut self, body: &[u8]) -> Self {
        self.body = Bytes::copy_from_slice(body);
        self.digest = BodyDigest::of(body);
        self
    }

    /// As if it had been received then: id and time.
    fn at(mut self, at_ms: i64) -> Self {
        let low = self.id.0.as_u128() & ((1 << 80) - 1);
        let high = u128::from(u64::try_from(at_ms).expect("a time after 1970")) << 80;
        self.id = EventId(Uuid::from_u128(high | low));
        self.received_at_ms = at_ms;
        self
    }
}

/// A later delivery of the same event: another id, the same key and bytes.
pub(crate) fn again(event: &Event) -> Event {
    let id = fresh_id();
    Event { id, received_at_ms: received_at_ms(id), ..event.clone() }
}
