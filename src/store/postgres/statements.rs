//! The statements of a writer that name a slot of the key ring, and the types of what they are given.

use std::sync::Arc;

use sqlx::postgres::PgConnection;

use super::plain::Shape;
use super::rows::RowTypes;

/// Slots of the key ring.
const SLOTS: i16 = 3;

/// Whether a statement claims the keys of what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claiming {
    /// It claims them.
    Now,
    /// They are claimed already, in the same transaction, or there are none.
    Before,
}

/// The statements, for one slot that takes new claims.
pub(crate) struct Statements {
    pub(crate) slot: i16,
    pub(crate) types: RowTypes,
    commit_once: Arc<str>,
    commit_plain: Arc<str>,
    pub(crate) claim: Arc<str>,
    write: Write,
    write_claimed: Write,
}

/// One of the two statements made from `write.sql`.
struct Write {
    alone: Arc<str>,
    with_waits: Arc<str>,
}

impl Statements {
    pub(crate) fn new(slot: i16, types: RowTypes) -> Self {
        let table = |step: i16| format!("keys_{}", (slot + step).rem_euclid(SLOTS));
        let claiming = |of: &str| {
            include_str!("statements/claiming.sql")
                .replace("{of}", of)
                .replace("{current}", &table(0))
                .replace("{older_a}", &table(2))
                .replace("{older_b}", &table(1))
                .replace("{slot}", &slot.rem_euclid(SLOTS).to_string())
        };
        let plain = |sql: &str| Arc::from(sql.replace("{claim_given}", claiming("given").trim()));
        let claim = claiming("claims");
        Self {
            slot,
            types,
            commit_once: plain(include_str!("statements/commit_once.sql")),
            commit_plain: plain(include_str!("statements/commit_plain.sql")),
            claim: include_str!("statements/claim.sql").replace("{claim}", claim.trim()).into(),
            write: Write::new(claim.trim()),
            write_claimed: Write::new("SELECT c.id AS event_id FROM claims c"),
        }
    }

    /// For who writes about what waits only, and claims nothing.
    pub(crate) async fn without_claims(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        Ok(Self::new(0, RowTypes::of(connection).await?))
    }

    /// The one statement for batches of this shape.
    pub(crate) fn plain(&self, shape: Shape) -> Arc<str> {
        match shape {
            Shape::Once => self.commit_once.clone(),
            Shape::Several => self.commit_plain.clone(),
        }
    }

    /// The one statement that writes what was decided.
    pub(crate) fn write(&self, claiming: Claiming, waits: bool) -> Arc<str> {
        let write = match claiming {
            Claiming::Now => &self.write,
            Claiming::Before => &self.write_claimed,
        };
        if waits { write.with_waits.clone() } else { write.alone.clone() }
    }

    /// What nearly all batches take.
    pub(crate) fn usual(&self) -> [Arc<str>; 5] {
        [
            self.commit_once.clone(),
            self.commit_plain.clone(),
            include_str!("statements/load.sql").into(),
            self.write.alone.clone(),
            self.write.with_waits.clone(),
        ]
    }
}

impl Write {
    fn new(claim: &str) -> Self {
        let write = include_str!("statements/write.sql").replace("{claim}", claim);
        let waits = include_str!("statements/waits.sql");
        let all_ended = "\n                 + CASE WHEN (SELECT count(*) FROM ended) = cardinality($5) THEN 0 ELSE tidegate.rival() END";
        Self {
            alone: write.replace("{waits}", "").replace("{ended}", "").into(),
            with_waits: write.replace("{waits}", waits.trim()).replace("{ended}", all_ended).into(),
        }
    }
}
