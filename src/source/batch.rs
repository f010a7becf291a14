//! One request with several events: each item of an array, or each line, is an event of its own.
//!
//! Promises: an item's body is the slice of the verified bytes where the item stands, never written anew (I2);
//! where those were decoded first (a form field, base64, gzip), the slice of what came out;
//! items come in the order they stand; a bad item costs its neighbours nothing. At most so many slices are kept
//! as the source takes items, however long the array is. An array that is missing, no array or too long makes
//! the whole request unusable.

use bytes::Bytes;
use tidegate_actors::rules::event::EventId;

use super::parts::{self, ItemsFault};
use super::read::Part;
use super::reference::Found;
use super::rules::{BatchRule, Flaw, Split};
use super::wants::json_flaw;
use super::{Item, Source};

/// Where an item stands.
pub(super) struct Place<'a> {
    pub(super) index: usize,
    pub(super) text: &'a str,
    /// What is read of the item around it, where there are two levels.
    pub(super) outer: &'a [Option<&'a str>],
}

impl Source {
    /// The events of the request that the rule parts.
    pub(super) fn batch(
        &self,
        rule: &BatchRule,
        whole: &Part<'_>,
        found: &Found<'_>,
        ids: &dyn Fn() -> EventId,
    ) -> Result<Vec<Item>, Flaw> {
        let max = rule.items_max;
        match &rule.split {
            Split::Array(slots) => {
                let texts = array(first(found.body, slots), max)?;
                let places = texts.into_iter().enumerate().map(|(index, text)| Place { index, text, outer: &[] });
                Ok(places.map(|place| self.item(&place, whole, found, ids())).collect())
            }
            Split::Lines => {
                let lines = found.text.unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
                let places: Vec<_> =
                    lines.take(max + 1).enumerate().map(|(index, text)| Place { index, text, outer: &[] }).collect();
                if places.len() > max {
                    return Err(too_large(max));
                }
                Ok(places.iter().map(|place| self.item(place, whole, found, ids())).collect())
            }
            Split::Nested { outer, inner } => self.nested((*outer, inner), max, whole, found, ids),
        }
    }

    /// The items of the arrays in the items of an array. An outer item without its array is one item, which
    /// cannot be used.
    fn nested(
        &self,
        (outer, inner): (usize, &[usize]),
        max: usize,
        whole: &Part<'_>,
        found: &Found<'_>,
        ids: &dyn Fn() -> EventId,
    ) -> Result<Vec<Item>, Flaw> {
        let mut items = Vec::new();
        for (number, text) in array(found.body.get(outer).copied().flatten(), max)?.into_iter().enumerate() {
            let values = self.rules.wants.outer.read(text).map_err(json_flaw)?;
            let inside = match array(first(&values, inner), max - items.len()) {
                Ok(inside) => inside,
                Err(flaw) if flaw.code == TOO_LARGE => return Err(too_large(max)),
                Err(flaw) => {
                    items.push(self.unusable_item(number, text, whole, &flaw, ids()));
                    continue;
                }
            };
            for text in inside {
                let place = Place { index: items.len(), text, outer: &values };
                items.push(self.item(&place, whole, found, ids()));
            }
        }
        Ok(items)
    }

    fn item(&self, place: &Place<'_>, whole: &Part<'_>, found: &Found<'_>, id: EventId) -> Item {
        let read = self.read_item(place, whole, found, id);
        read.map_or_else(|flaw| self.unusable_item(place.index, place.text, whole, &flaw, id), Item::Event)
    }

    pub(super) fn read_item(
        &self,
        place: &Place<'_>,
        whole: &Part<'_>,
        found: &Found<'_>,
        id: EventId,
    ) -> Result<tidegate_actors::rules::event::Event, Flaw> {
        let body = slice(whole.content, place.text);
        let part = Part { body: &body, item: Some(place.index), content: &body, ..*whole };
        let wants = &self.rules.wants;
        let values = wants.item.read(place.text).map_err(json_flaw)?;
        let texts = wants.item_deep.texts(&values);
        let deep = wants.item_deep.read(&texts).map_err(json_flaw)?;
        let found = Found {
            item: &values,
            item_deep: &deep,
            outer: place.outer,
            index: Some(place.index),
            text: Some(place.text),
            raw: place.text.as_bytes(),
            ..*found
        };
        self.event(&part, &values, &found, id)
    }

    fn unusable_item(&self, index: usize, text: &str, whole: &Part<'_>, flaw: &Flaw, id: EventId) -> Item {
        let body = slice(whole.content, text);
        let part = Part { body: &body, item: Some(index), content: &body, ..*whole };
        let reason = format!("item {index} of the batch, counted from 0: {}", flaw.reason);
        Item::Unusable(self.unusable(&part, Flaw { code: flaw.code, reason }, id))
    }
}

const TOO_LARGE: &str = "batch-too-large";

fn too_large(max: usize) -> Flaw {
    Flaw::new(TOO_LARGE, format!("the request has more than {max} items: raise `batch_items` of the source"))
}

/// The first of these values that is there; `null` only where nothing else is.
fn first<'a>(values: &[Option<&'a str>], slots: &[usize]) -> Option<&'a str> {
    let there = || slots.iter().filter_map(|&slot| values.get(slot).copied().flatten());
    there().find(|text| *text != "null").or_else(|| there().next())
}

fn array(raw: Option<&str>, max: usize) -> Result<Vec<&str>, Flaw> {
    let missing = || Flaw::new("batch-missing", "the array of events is missing: correct `batch` of the source");
    parts::items(raw.ok_or_else(missing)?, max).map_err(|fault| match fault {
        ItemsFault::NotAnArray => {
            Flaw::new("batch-not-an-array", "the events stand in no array: correct `batch` of the source")
        }
        ItemsFault::TooMany => too_large(max),
    })
}

/// The bytes of `part` as a share of the same buffer, where it is a slice of `whole`; a copy where it was decoded.
fn slice(whole: &Bytes, part: &str) -> Bytes {
    let from = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    match from.checked_add(part.len()) {
        Some(to) if to <= whole.len() => whole.slice(from..to),
        _ => Bytes::copy_from_slice(part.as_bytes()),
    }
}
