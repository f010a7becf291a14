//! The state of a resource, as far as the rules need it, and what applying does to it.

use super::super::event::EventId;
use super::super::fields::{Fields, Merged};
use super::super::order::Merge;
use super::super::version::Version;
use super::Item;

/// What is stored of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The stored version: never goes back within an epoch (I5).
    pub version: Option<Version>,
    /// Counts the beginnings of the sender's counter, from 1.
    pub epoch: i64,
    /// The step of a state machine.
    pub step: Option<String>,
    /// A delete was the last thing applied.
    pub deleted: bool,
    /// The members of a state that is put together.
    pub fields: Option<Fields>,
    /// The event whose body is the state; `None` of a resource never seen.
    pub event: Option<EventId>,
    /// When that event was received, milliseconds since 1970.
    pub applied_at_ms: i64,
    /// How many events were applied.
    pub applied: i64,
    /// How many events are held.
    pub held: i64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: None,
            epoch: 1,
            step: None,
            deleted: false,
            fields: None,
            event: None,
            applied_at_ms: 0,
            applied: 0,
            held: 0,
        }
    }
}

impl State {
    /// Applies an event: whole, or what is newer of a partial update. Where that has too many members, nothing
    /// changes.
    pub(super) fn apply(&mut self, item: &Item<'_>) -> Merged {
        let view = item.subject;
        let merged = if view.order.merge == Merge::Fields && item.along {
            // the members of an embedded object are not told apart: those that were set one by one stay
            Merged::Changed { tie: false }
        } else if view.order.merge == Merge::Fields {
            let had_fields = self.fields.is_some();
            let mut fields = self.fields.take().unwrap_or_default();
            let merged = match view.patch {
                _ if view.deletes => fields.delete(view.version),
                Some(patch) => fields.merge(patch, view.version, view.order.tie()),
                None => Merged::Changed { tie: false },
            };
            if merged == Merged::TooMany {
                self.fields = had_fields.then_some(fields);
                return merged;
            }
            self.deleted = (view.deletes || self.deleted) && fields.is_empty();
            self.fields = Some(fields);
            merged
        } else {
            self.fields = None;
            self.deleted = view.deletes;
            Merged::Changed { tie: false }
        };
        let newest = view.version.is_none() || self.version.as_ref() <= view.version;
        if newest || view.order.merge == Merge::Replace || item.along || self.event.is_none() {
            self.event = Some(item.id);
            self.applied_at_ms = view.received_at_ms;
            self.step = view.step.map(str::to_owned).or_else(|| self.step.take());
        }
        if newest || matches!(merged, Merged::Changed { .. }) {
            self.applied += 1;
        }
        if self.version.as_ref() < view.version {
            self.version = view.version.cloned();
        }
        merged
    }

    /// The sender's counter starts again.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.version = None;
        self.step = None;
        if let Some(fields) = &mut self.fields {
            fields.begin_epoch();
        }
    }
}
