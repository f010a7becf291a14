//! What becomes of a request, and whether that is right: taken only if its sender signed it, and then with the
//! events that its sender meant.

use std::collections::BTreeMap;

use tidegate::source::{Item, KeyPort, Reading, Source};
use tidegate_actors::rules::event::{Event, EventId, Unusable};
use uuid::Uuid;

use super::claim::Covers;
use super::sender::Sender;
use super::wire::Wire;

/// What one event, or one item, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// Its key, or why there is none.
    pub(crate) key: Result<String, &'static str>,
    /// Type, resources with versions, and whatever else is acted upon.
    pub(crate) rest: String,
    pub(crate) tenant: String,
}

pub(crate) type Facts = Vec<Fact>;

/// What a server would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// By a word for why.
    Refused(&'static str),
    Taken(Facts),
}

/// The same steps, in the same order, that requests take through the server.
pub(crate) fn outcome(source: &Source, wire: &Wire, keys: Option<&dyn KeyPort>) -> Outcome {
    let Some(parsed) = wire.parsed() else { return Outcome::Refused("no-http") };
    let request = parsed.request();
    // nobody signed these, so nothing of them may be kept: they only must not break anything
    let _ = source.greet(&request);
    if parsed.body.len() > source.max_body() {
        return Outcome::Refused("too-large");
    }
    if !source.takes_encoding(&parsed.headers) {
        return Outcome::Refused("content-encoding");
    }
    let Ok(signed) = source.signed_bytes(&parsed.headers, parsed.body.clone()) else {
        return Outcome::Refused("not-unpacked");
    };
    let request = tidegate::source::Request { body: &signed, ..request };
    let mut verdict = source.verify(&request);
    if let (Err(refusal), Some(keys)) = (&verdict, keys)
        && refusal.wants_key()
    {
        ready(source.fetch_key(&request, keys));
        verdict = source.verify(&request);
    }
    let verified = match verdict {
        Ok(verified) => verified,
        Err(refusal) => return Outcome::Refused(refusal.reason.label()),
    };
    if !source.takes_content_type(&parsed.headers) {
        return Outcome::Refused("content-type");
    }
    match source.read(&request, &verified, &|| EventId(Uuid::nil())) {
        Reading::Event(event) => Outcome::Taken(vec![of_event(&event)]),
        Reading::Unusable(unusable) => Outcome::Taken(vec![of_unusable(&unusable)]),
        Reading::Batch(items) => Outcome::Taken(items.iter().map(of_item).collect()),
        Reading::Greeting(_) => Outcome::Taken(vec![nothing("greeting")]),
        Reading::Empty => Outcome::Taken(vec![nothing("empty")]),
    }
}

fn ready<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

fn nothing(why: &'static str) -> Fact {
    Fact { key: Err(why), rest: String::new(), tenant: String::new() }
}

fn of_item(item: &Item) -> Fact {
    match item {
        Item::Event(event) => of_event(event),
        Item::Unusable(unusable) => of_unusable(unusable),
    }
}

fn of_unusable(unusable: &Unusable) -> Fact {
    Fact { tenant: unusable.tenant.to_string(), ..nothing(unusable.code) }
}

fn of_event(event: &Event) -> Fact {
    let Event { kind, guards, step, patch, effect_key, deletes, intent, digest, .. } = event;
    Fact {
        key: Ok(event.key.text.to_string()),
        rest: format!("{kind} {guards:?} {step:?} {patch:?} {effect_key:?} {deletes} {intent:?} {digest:?}"),
        tenant: event.tenant.to_string(),
    }
}

/// A right outcome, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Right {
    /// Refused, for this reason.
    Refused(&'static str),
    /// Taken: everything that is read is as it was sent.
    Untouched,
    /// Taken: the body is as it was signed, and something besides it changed that no signature covers.
    BesideChanged,
    /// Taken: only a part of the body is signed, and that part is as it was.
    PartSigned,
    /// Taken: two sources of the campaign share a key, and the other one's sender signed this.
    SharedKey,
    /// Taken: the sender signs the fields of a form and not its bytes, and they give what they gave.
    SameFields,
}

/// Whether an outcome is right for a request that was made out of a good one; the text says why it is not.
pub(crate) fn judge(sender: &Sender, from: usize, wire: &Wire, outcome: &Outcome) -> Result<Right, String> {
    let good = &sender.goods[from];
    let facts = match outcome {
        Outcome::Refused(reason) if !is_untouched(sender, &good.wire, wire) => return Ok(Right::Refused(reason)),
        Outcome::Refused("key-missing") if sender.fetches() => return Ok(Right::Refused("key-missing")),
        Outcome::Refused(reason) => return Err(format!("refused as {reason}, and nothing that counts was changed")),
        Outcome::Taken(facts) => facts,
    };
    let Some(signed) = sender.authentic(wire) else {
        let shared = sender.signed_under_the_same_key(wire);
        return if shared { Ok(Right::SharedKey) } else { Err("taken, and its sender did not sign it".to_owned()) };
    };
    // what was put together out of two good requests is judged by the one whose signature it has
    let good = signed.first().map_or(good, |place| &sender.goods[*place]);
    if facts.iter().any(|fact| fact.tenant != good.facts.first().map_or("", |fact| &fact.tenant)) {
        return Err("taken, and for another tenant".to_owned());
    }
    if good.wire.method != wire.method {
        // the door takes events by POST alone, whatever their signature
        return Ok(Right::Refused("method"));
    }
    if good.wire.body != wire.body {
        return match sender.scheme.covers() {
            Covers::Body => Err("taken with a body that its sender did not sign".to_owned()),
            Covers::Fields => Ok(Right::SameFields),
            Covers::Part => Ok(Right::PartSigned),
        };
    }
    let changed = changed(sender, &good.wire, wire);
    let otherwise = Otherwise {
        by_rules: changed.iter().any(|name| sender.reads.by_rules.contains(name))
            // what is packed says nothing while it is not unpacked, and counts as other bytes
            || (changed.iter().any(|name| name == "content-encoding") && good.wire.value("content-encoding").is_some())
            || (sender.reads.query_by_rules && good.wire.target != wire.target),
        read: changed.iter().any(|name| name.starts_with("content-")),
    };
    if !otherwise.may_become(&good.facts, facts) {
        return Err(format!("nothing that is read was changed, and {:?} became {facts:?}", good.facts));
    }
    let as_sent = changed.is_empty() && good.wire.target == wire.target;
    if as_sent { Ok(Right::Untouched) } else { Ok(Right::BesideChanged) }
}

/// What differs beside a body that is as its sender signed it.
struct Otherwise {
    /// Something that rules read and nobody signs.
    by_rules: bool,
    /// What the body is said to be.
    read: bool,
}

impl Otherwise {
    /// Whether the same signed body may say this: it may become unusable, and never another event.
    fn may_become(&self, good: &[Fact], facts: &[Fact]) -> bool {
        let unusable = || facts.iter().all(|fact| fact.key.is_err());
        self.by_rules || good == facts || (self.read && unusable())
    }
}

/// Whether a request is the good one in everything that verification and rules read, inside its time.
fn is_untouched(sender: &Sender, good: &Wire, wire: &Wire) -> bool {
    let same_target = !sender.reads.target || good.target == wire.target;
    let in_time = sender.authentic(wire).is_some() && good.now_ms.abs_diff(wire.now_ms) < sender.steady_ms();
    good.body == wire.body
        && good.method == wire.method
        && same_target
        && in_time
        && changed(sender, good, wire).is_empty()
        && wire.parsed().is_some()
}

/// The headers that are read and have other values.
fn changed(sender: &Sender, good: &Wire, wire: &Wire) -> Vec<String> {
    let read = |wire: &Wire| {
        let mut values: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for (name, value) in wire.headers.iter().filter(|(name, _)| sender.reads.header(name)) {
            values.entry(name.to_ascii_lowercase()).or_default().push(super::wire::blanks_off(value).to_vec());
        }
        values
    };
    let (good, found) = (read(good), read(wire));
    let names = good.keys().chain(found.keys()).filter(|name| good.get(*name) != found.get(*name));
    names.cloned().collect()
}
