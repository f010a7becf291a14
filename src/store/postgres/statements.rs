//! The statements of a writer that name a slot of the key ring, and what they are given.

use std::sync::Arc;

use super::plain::Shape;
use super::rows::RowTypes;

/// Slots of the key ring.
const SLOTS: i16 = 3;

/// The statements, for one slot that takes new claims.
pub(crate) struct Statements {
    pub(crate) slot: i16,
    pub(crate) types: RowTypes,
    commit_once: Arc<str>,
    commit_plain: Arc<str>,
    pub(crate) claim: Arc<str>,
    /// Claims, and writes what was decided.
    pub(crate) write: Arc<str>,
    /// Writes what was decided about events whose keys are claimed.
    pub(crate) write_claimed: Arc<str>,
}

impl Statements {
    pub(crate) fn new(slot: i16, types: RowTypes) -> Self {
        let table = |step: i16| format!("keys_{}", (slot + step).rem_euclid(SLOTS));
        let claim = include_str!("statements/claim_given.sql")
            .replace("{current}", &table(0))
            .replace("{older_a}", &table(2))
            .replace("{older_b}", &table(1))
            .replace("{slot}", &slot.rem_euclid(SLOTS).to_string());
        let with = |sql: &str, claim: &str| Arc::from(sql.replace("{claim}", claim.trim()));
        Self {
            slot,
            types,
            commit_once: with(include_str!("statements/commit_once.sql"), &claim),
            commit_plain: with(include_str!("statements/commit_plain.sql"), &claim),
            claim: with(include_str!("statements/claim.sql"), &claim),
            write: with(include_str!("statements/write.sql"), &claim),
            write_claimed: with(include_str!("statements/write.sql"), "SELECT g.id AS event_id FROM given g"),
        }
    }

    /// The one statement for batches of this shape.
    pub(crate) fn plain(&self, shape: Shape) -> Arc<str> {
        match shape {
            Shape::Once => self.commit_once.clone(),
            Shape::Several => self.commit_plain.clone(),
        }
    }

    /// What nearly all batches take.
    pub(crate) fn usual(&self) -> [Arc<str>; 4] {
        [
            self.commit_once.clone(),
            self.commit_plain.clone(),
            include_str!("statements/load.sql").into(),
            self.write.clone(),
        ]
    }
}
