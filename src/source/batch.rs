//! One request with several events: each item of an array is an event of its own.
//!
//! Promises: an item's body is the slice of the verified bytes where the item stands, never written anew (I2);
//! items come in the order they stand; a bad item costs its neighbours nothing. At most so many slices are kept
//! as the source takes items, however long the array is. An array that is missing, no array or too long makes
//! the whole request unusable.

use bytes::Bytes;
use tidegate_actors::rules::event::EventId;

use super::parts::{self, ItemsFault};
use super::read::{Part, json_flaw};
use super::reference::Found;
use super::rules::{BatchRule, Flaw};
use super::{Item, Source};

impl Source {
    /// The events of the array that the rule names.
    pub(super) fn batch(
        &self,
        rule: BatchRule,
        whole: &Part<'_>,
        found: &Found<'_>,
        ids: &dyn Fn() -> EventId,
    ) -> Result<Vec<Item>, Flaw> {
        let Some(raw) = found.body.get(rule.slot).copied().flatten() else {
            let reason = "the array of events is missing: correct `batch` of the source";
            return Err(Flaw::new("batch-missing", reason));
        };
        let items = parts::items(raw, rule.items_max).map_err(|fault| match fault {
            ItemsFault::NotAnArray => {
                Flaw::new("batch-not-an-array", "the events stand in no array: correct `batch` of the source")
            }
            ItemsFault::TooMany => Flaw::new(
                "batch-too-large",
                format!("the array has more than {} items: raise `batch_items` of the source", rule.items_max),
            ),
        })?;
        Ok(items.into_iter().enumerate().map(|(index, text)| self.item(index, text, whole, found, ids())).collect())
    }

    fn item(&self, index: usize, text: &str, whole: &Part<'_>, found: &Found<'_>, id: EventId) -> Item {
        let body = slice(whole.body, text);
        let part = Part { body: &body, ..*whole };
        let read = self.rules.wants.item.read(text).map_err(json_flaw).and_then(|values| {
            let found = Found { item: &values, raw: text.as_bytes(), ..*found };
            self.event(&part, Some(text), &values, &found, id)
        });
        read.map_or_else(
            |flaw| {
                let reason = format!("item {index} of the batch, counted from 0: {}", flaw.reason);
                Item::Unusable(self.unusable(&part, Flaw { reason, ..flaw }, id))
            },
            Item::Event,
        )
    }
}

/// The bytes of `part`, which is a slice of `whole`, as a share of the same buffer.
fn slice(whole: &Bytes, part: &str) -> Bytes {
    let from = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    match from.checked_add(part.len()) {
        Some(to) if to <= whole.len() => whole.slice(from..to),
        // cannot be: the text was read out of these bytes
        _ => Bytes::copy_from_slice(part.as_bytes()),
    }
}
