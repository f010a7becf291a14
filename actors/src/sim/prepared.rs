//! A plan made ready to be played: real events with their hashes, made once, and tables to find them by.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use uuid::Uuid;

use super::plan::{Plan, PlannedEvent, PlannedVersion};
use crate::rules::event::{Event, EventId, Guard, Ignored, Intent, Resource};
use crate::rules::fields::Patch;
use crate::rules::key::{BodyDigest, Key, KeyHash, ResourceHash};
use crate::rules::order::{Merge, Order, Policy, Tie};
use crate::rules::version::Version;
use crate::sim::clock::EPOCH_MS;

/// A plan with everything made that each delivery needs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) plan: Plan,
    /// One for each event of the plan; a delivery clones it and gives it a name and a time.
    templates: Vec<Event>,
    /// The bytes of a version by its text.
    versions: HashMap<String, Vec<u8>>,
    resources: HashMap<ResourceHash, u32>,
    /// The rule behind each policy.
    orders: Vec<Arc<Order>>,
}

impl Prepared {
    pub(super) fn new(plan: &Plan) -> Self {
        let sources = Interned::default();
        let mut versions = HashMap::new();
        let orders = orders(plan);
        let templates =
            plan.events.iter().map(|event| template(plan, event, &orders, &sources, &mut versions)).collect();
        let resource = |resource: &super::plan::PlannedResource| {
            ResourceHash::of(&resource.source, &resource.tenant, &resource.kind, &resource.id)
        };
        let resources = plan.resources.iter().map(resource).zip(0..).collect();
        Self { plan: plan.clone(), templates, versions, resources, orders }
    }

    /// The event, as it is delivered now.
    pub(super) fn deliver(&self, event: u32, id: EventId, received_at_ms: i64) -> Event {
        Event { id, received_at_ms, ..self.templates[event as usize].clone() }
    }

    pub(super) fn template(&self, event: u32) -> &Event {
        &self.templates[event as usize]
    }

    pub(super) fn planned(&self, event: u32) -> &PlannedEvent {
        &self.plan.events[event as usize]
    }

    /// The bytes of a version that some event of the plan carries.
    pub(super) fn version_bytes(&self, text: &str) -> Option<&[u8]> {
        self.versions.get(text).map(Vec::as_slice)
    }

    /// The rule of a policy.
    pub(super) fn order(&self, policy: u32) -> &Arc<Order> {
        &self.orders[policy as usize]
    }

    /// The place of a resource in the plan.
    pub(super) fn resource(&self, hash: ResourceHash) -> Option<u32> {
        self.resources.get(&hash).copied()
    }
}

/// Names that many events share.
#[derive(Default)]
struct Interned(std::cell::RefCell<HashMap<String, Arc<str>>>);

impl Interned {
    fn get(&self, name: &str) -> Arc<str> {
        Arc::clone(self.0.borrow_mut().entry(name.to_owned()).or_insert_with(|| name.into()))
    }
}

/// The engine's rules. Where one of them is judged, all are: they are of one source.
fn orders(plan: &Plan) -> Vec<Arc<Order>> {
    let fallback = |_| Order::plain(Policy::Newest { tie: Tie::Keep });
    let rules: Vec<Order> = plan.policies.iter().map(|policy| policy.rule().unwrap_or_else(fallback)).collect();
    let judged = rules.iter().any(Order::needs_judging) || plan.events.iter().any(|event| event.effect_key.is_some());
    rules.into_iter().map(|rule| Arc::new(Order { judged, ..rule })).collect()
}

fn template(
    plan: &Plan,
    event: &PlannedEvent,
    orders: &[Arc<Order>],
    names: &Interned,
    versions: &mut HashMap<String, Vec<u8>>,
) -> Event {
    let (source, tenant) = (names.get(&event.source), names.get(&event.tenant));
    let guards: SmallVec<[Guard; 1]> = event
        .guards
        .iter()
        .map(|guard| {
            let resource = &plan.resources[guard.resource as usize];
            let version = guard.version.as_ref().map(version);
            if let Some(version) = &version {
                versions.entry(version.text().to_owned()).or_insert_with(|| version.bytes().to_vec());
            }
            let resource =
                Resource::new(&resource.source, &resource.tenant, resource.kind.clone(), resource.id.clone());
            Guard { resource, version }
        })
        .collect();
    let order = Arc::clone(&orders[event.policy as usize]);
    Event {
        id: EventId(Uuid::nil()),
        received_at_ms: EPOCH_MS,
        key: key(event),
        digest: event.digest.as_deref().and_then(sixteen).map_or_else(|| BodyDigest::of(&event.body), BodyDigest),
        kind: event.kind.clone(),
        guards,
        step: event.step.clone(),
        patch: (order.merge == Merge::Fields).then(|| patch(&event.body)).flatten(),
        effect_key: event.effect_key.as_deref().and_then(|text| {
            // another domain than that of keys: the two never meet
            Key::new(&event.source, &event.tenant, ["effect", text]).ok()
        }),
        fetched: None,
        order,
        deletes: event.deletes,
        intent: if event.ignored { Intent::Ignore(Ignored::UnwantedType) } else { Intent::Apply },
        headers: bytes::Bytes::from_static(b"{}"),
        body: event.body.clone(),
        source,
        tenant,
    }
}

/// The top-level members of a body.
fn patch(body: &[u8]) -> Option<Patch> {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    Some(Patch(members.into_iter().map(|(name, value)| (name, value.to_string())).collect()))
}

fn key(event: &PlannedEvent) -> Key {
    if let Some(hash) = event.key_hash.as_deref().and_then(sixteen) {
        return Key { text: event.key.clone(), hash: KeyHash(hash) };
    }
    Key::new(&event.source, &event.tenant, [event.key.as_str()]).unwrap_or_else(|_| Key {
        // a text that is no key of its own: its digest names it
        hash: KeyHash(BodyDigest::of(event.key.as_bytes()).0),
        text: event.key.clone(),
    })
}

fn version(version: &PlannedVersion) -> Version {
    Version::stored(&hex::decode(&version.bytes).unwrap_or_default(), version.text.clone())
}

fn sixteen(text: &str) -> Option<[u8; 16]> {
    hex::decode(text).ok()?.try_into().ok()
}
