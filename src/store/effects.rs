//! What the stores share about effects: which events have some, what is exempt after a failure, what is recorded of it.
//!
//! Plain data and plain functions. A transaction in which an effect failed is rolled back and done again without the
//! event it belongs to: so one bad event costs nobody else anything but time (I14).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use tidegate_actors::ports::Outcome;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::key::KeyHash;
use tidegate_actors::rules::plan::{Applied, Blocked, Loaded};
use uuid::Uuid;

use crate::effect::{Effects, Pardon, pardon};

/// How often a transaction is done again without the events whose effects failed, before it is refused whole.
pub(super) const ROUNDS_MAX: usize = 8;
/// The most letters of an error that are kept.
const ERROR_MAX: usize = 1_000;

/// An event that takes effect, as effects see it.
#[derive(Clone, Debug)]
pub(super) struct Subject<'e> {
    pub(super) id: EventId,
    pub(super) received_at_ms: i64,
    pub(super) source: Cow<'e, str>,
    pub(super) tenant: Cow<'e, str>,
    pub(super) key: Cow<'e, str>,
    pub(super) kind: Cow<'e, str>,
    pub(super) resource: Option<(Cow<'e, str>, Cow<'e, str>)>,
    pub(super) version: Option<Cow<'e, str>>,
    pub(super) body: Cow<'e, [u8]>,
    /// The name under which a failure is counted: its key's hash while it is not taken, its own once it is held.
    pub(super) failure: Uuid,
    pub(super) held: bool,
}

impl<'e> Subject<'e> {
    fn of(event: &'e Event) -> Self {
        let guard = event.guards.first();
        Self {
            id: event.id,
            received_at_ms: event.received_at_ms,
            source: Cow::Borrowed(&event.source),
            tenant: Cow::Borrowed(&event.tenant),
            key: Cow::Borrowed(&event.key.text),
            kind: Cow::Borrowed(&event.kind),
            resource: guard.map(|guard| (Cow::Borrowed(&*guard.resource.kind), Cow::Borrowed(&*guard.resource.id))),
            version: guard.and_then(|guard| guard.version.as_ref()).map(|version| Cow::Borrowed(version.text())),
            body: Cow::Borrowed(&event.body),
            failure: Uuid::from_bytes(event.key.hash.0),
            held: false,
        }
    }
}

/// An effect that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) event: EventId,
    pub(super) name: Uuid,
    pub(super) held: bool,
    pub(super) source: String,
    pub(super) tenant: String,
    pub(super) key: String,
    pub(super) kind: String,
    /// The effect's place in the settings.
    pub(super) effect: String,
    /// What the database said.
    pub(super) error: String,
}

impl Failure {
    pub(super) fn of(subject: &Subject<'_>, effect: &str, error: &str) -> Self {
        let error: String = error.chars().take(ERROR_MAX).collect();
        Self {
            event: subject.id,
            name: subject.failure,
            held: subject.held,
            source: subject.source.to_string(),
            tenant: subject.tenant.to_string(),
            key: subject.key.to_string(),
            kind: subject.kind.to_string(),
            effect: effect.to_owned(),
            error,
        }
    }

    fn tell(&self, failures: i64) {
        let Self { event, source, kind, effect, error, .. } = self;
        tracing::warn!(%event, source, kind, effect, failures, error, "an effect failed; its event was rolled back alone");
    }
}

/// Who is left out of a transaction because an effect of theirs failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Exempt {
    /// Keys of events that just came: they are not taken.
    keys: HashSet<KeyHash>,
    /// Events that are held: they wait on, or are given up.
    pub(super) blocked: HashMap<EventId, Blocked>,
}

impl Exempt {
    /// Leaves one more out. `failures` counts this one too; `now_ms` is the store's clock.
    pub(super) fn add(&mut self, failure: &Failure, failures: i64, now_ms: i64) {
        failure.tell(failures);
        if !failure.held {
            self.keys.insert(KeyHash(failure.name.into_bytes()));
            return;
        }
        let Failure { effect, error, .. } = failure;
        let blocked = match pardon(failures) {
            Pardon::Waits(pause_ms) => Blocked {
                until_ms: Some(now_ms.saturating_add(pause_ms)),
                why: format!("{effect} failed, time {failures}: {error}"),
            },
            Pardon::Never => {
                Blocked { until_ms: None, why: format!("{effect} failed {failures} times, given up: {error}") }
            }
        };
        self.blocked.insert(failure.event, blocked);
    }

    /// The events of a batch that are not left out.
    pub(super) fn rest<'b>(&self, batch: &'b [Event]) -> Cow<'b, [Event]> {
        if self.keys.is_empty() {
            return Cow::Borrowed(batch);
        }
        batch.iter().filter(|event| !self.keys.contains(&event.key.hash)).cloned().collect()
    }

    /// The outcomes of a whole batch, of those of the rest.
    pub(super) fn outcomes(&self, batch: &[Event], rest: Vec<Outcome>) -> Vec<Outcome> {
        if self.keys.is_empty() {
            return rest;
        }
        let mut rest = rest.into_iter();
        let outcome =
            |event: &Event| if self.keys.contains(&event.key.hash) { Some(Outcome::Failed) } else { rest.next() };
        batch.iter().filter_map(outcome).collect()
    }
}

/// Whether any event of a batch may have effects.
pub(super) fn wanted(effects: &Effects, batch: &[Event]) -> bool {
    !effects.is_empty() && batch.iter().any(|event| effects.want(&event.source, &event.kind))
}

/// Those of what takes effect that were held: their rows are to be read first.
pub(super) fn held_of(applied: &[Applied]) -> Vec<EventId> {
    applied.iter().filter(|applied| applied.fresh.is_none()).map(|applied| applied.id).collect()
}

/// What takes effect, in order; `held` are the ones that were read.
pub(super) fn subjects<'e>(
    effects: &Effects,
    batch: &'e [Event],
    held: Vec<Subject<'e>>,
    applied: &[Applied],
) -> Vec<Subject<'e>> {
    let fresh: HashMap<EventId, &'e Event> = batch.iter().map(|event| (event.id, event)).collect();
    let mut held: HashMap<EventId, Subject<'e>> = held.into_iter().map(|subject| (subject.id, subject)).collect();
    let subject = |applied: &Applied| match applied.fresh {
        Some(_) => fresh.get(&applied.id).map(|event| Subject::of(event)),
        None => held.remove(&applied.id),
    };
    let subjects = applied.iter().filter_map(subject);
    subjects.filter(|subject| effects.want(&subject.source, &subject.kind)).collect()
}

/// Held events that were loaded and whose time is not over: those of them that failed before wait on.
pub(super) fn still_blocked(loaded: &Loaded) -> Vec<(EventId, i64)> {
    let held = loaded.resources.values().flat_map(|known| &known.held);
    let waiting = held.filter_map(|held| Some((held.id, held.until_ms?)));
    waiting.filter(|(id, until_ms)| *until_ms > loaded.now_ms && !loaded.blocked.contains_key(id)).collect()
}

/// Under which names failures of what is taken were counted, if there were any.
pub(super) fn names(batch: &[Event], exempt: &Exempt, applied: &[Applied]) -> Vec<Uuid> {
    let taken = batch.iter().map(|event| event.key.hash).filter(|hash| !exempt.keys.contains(hash));
    taken.map(|hash| Uuid::from_bytes(hash.0)).chain(held_of(applied).into_iter().map(|id| id.0)).collect()
}
