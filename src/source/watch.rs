//! What reading looked at, for people: each reference with what every one of its places held.
//!
//! Reading itself hands it in, so an explanation cannot differ from what happens; where nobody watches, nothing is
//! noted and nothing allocated. Bounded in number and length. Values of the source's own `config` are not noted.

use std::cell::RefCell;

use super::reference::{Found, Reference};

/// The most references noted, and the most characters of a text.
const SIGHTS_MAX: usize = 2_000;
const TEXT_CHARS_MAX: usize = 200;

/// One reference that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// What it is read for: `key`, `type`, `resource` and so on.
    pub what: &'static str,
    /// The place of the item in its batch.
    pub item: Option<usize>,
    /// Its alternatives up to the first that is there.
    pub tried: Vec<Tried>,
}

/// One place of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// As the rules write it.
    pub reference: String,
    /// What stands there.
    pub held: Held,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A text, perhaps cut.
    Text(String),
    /// A text that is not to be shown.
    Hidden,
    /// Nothing.
    Nothing,
    /// A blank text.
    Blank,
    /// What is no text: an object, an array, a header that came twice.
    Unfit(&'static str),
}

/// Takes down what is looked up.
#[derive(Debug, Default)]
pub(super) struct Watch(RefCell<Vec<Sight>>);

impl Watch {
    pub(super) fn saw(&self, what: &'static str, reference: &Reference, found: &Found<'_>) {
        let mut sights = self.0.borrow_mut();
        if sights.len() < SIGHTS_MAX {
            sights.push(Sight { what, item: found.index, tried: reference.tried(found) });
        }
    }

    pub(super) fn into_sights(self) -> Vec<Sight> {
        self.0.into_inner()
    }
}

impl Held {
    pub(super) fn text(text: &str) -> Self {
        match text.char_indices().nth(TEXT_CHARS_MAX) {
            _ if text.trim().is_empty() => Self::Blank,
            Some((end, _)) => Self::Text(format!("{}…", &text[..end])),
            None => Self::Text(text.to_owned()),
        }
    }
}
