//! The texts of the hot statements, in few fixed sizes, so that each is prepared once and kept.
//!
//! Every execution is a hop to the connection's thread and back, so one execution carries as many rows and
//! statements as it can. Parameters have no numbers: SQLite looks a numbered one up by walking a list, which
//! for a thousand of them costs more than the insert. A list is filled up with NULL: in `IN (…)` it matches
//! nothing, in `VALUES` the row is left out.

use std::sync::Arc;

use super::KEY_SLOTS;

/// Sizes of lists that are looked up.
const LOAD_SIZES: [usize; 4] = [1, 8, 64, 256];
/// Sizes of lists that are inserted.
const WRITE_SIZES: [usize; 3] = [1, 8, 64];

/// Parameters of one claim in [`Statements::record`]; all claims stand before the events.
pub(super) const CLAIM_PARAMETERS: usize = 3;
/// Parameters of one event in [`Statements::record`].
pub(super) const EVENT_PARAMETERS: usize = 17;
/// Parameters of one state in [`Statements::states`].
pub(super) const STATE_PARAMETERS: usize = 11;

const EVENT_COLUMNS: &str = "id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, \
     resource_id, version, version_text, verdict, tie, conflicts_with, digest, headers, body";

/// A text and how many rows it takes.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    pub(super) sql: Arc<str>,
    pub(super) rows: usize,
}

/// All texts, made once for a store.
#[derive(Debug)]
pub(super) struct Statements {
    begin_and_load: Vec<Sized>,
    load: Vec<Sized>,
    record: [Vec<Sized>; KEY_SLOTS],
    states: Vec<Sized>,
    /// Records one conflict, unless the same bytes are kept already.
    pub(super) conflict: Arc<str>,
}

impl Statements {
    pub(super) fn new() -> Self {
        let sized = |sizes: &[usize], text: &dyn Fn(usize) -> String| {
            sizes.iter().map(|&rows| Sized { sql: text(rows).into(), rows }).collect::<Vec<_>>()
        };
        Self {
            begin_and_load: sized(&LOAD_SIZES, &|rows| {
                format!("BEGIN IMMEDIATE; SELECT incarnation, key_slot FROM meta; {}", load(rows))
            }),
            load: sized(&LOAD_SIZES, &load),
            record: std::array::from_fn(|slot| sized(&WRITE_SIZES, &|rows| record(slot, rows))),
            states: sized(&WRITE_SIZES, &states),
            conflict: conflict().into(),
        }
    }

    /// Begins, reads the meta row, and looks up so many keys, and states behind them.
    pub(super) fn begin_and_load(&self, rows: usize) -> &Sized {
        fitting(&self.begin_and_load, rows)
    }

    /// Looks up more of the same.
    pub(super) fn load(&self, rows: usize) -> &Sized {
        fitting(&self.load, rows)
    }

    /// Claims keys in a slot and records their events.
    pub(super) fn record(&self, slot: usize, rows: usize) -> &Sized {
        fitting(&self.record[slot], rows)
    }

    /// Writes states.
    pub(super) fn states(&self, rows: usize) -> &Sized {
        fitting(&self.states, rows)
    }
}

/// The smallest that holds all rows, else the largest.
fn fitting(sizes: &[Sized], rows: usize) -> &Sized {
    sizes.iter().find(|sized| sized.rows >= rows).unwrap_or(&sizes[sizes.len() - 1])
}

fn load(rows: usize) -> String {
    let list = vec!["?"; rows].join(",");
    let probes: Vec<_> = (0..KEY_SLOTS)
        .map(|slot| format!("SELECT hash, event_id, digest FROM keys_{slot} WHERE hash IN ({list})"))
        .collect();
    format!(
        "{}; SELECT hash, version, version_text FROM resources WHERE hash IN ({list}) AND version IS NOT NULL",
        probes.join(" UNION ALL ")
    )
}

/// `VALUES` of so many rows without those left empty.
fn rows_of(rows: usize, parameters: usize) -> String {
    let row = format!("({})", vec!["?"; parameters].join(","));
    format!("SELECT * FROM (VALUES {}) WHERE column1 IS NOT NULL", vec![row; rows].join(","))
}

// OR FAIL: rows of a statement that fails need not be undone one by one, the transaction is rolled back anyway.

fn record(slot: usize, rows: usize) -> String {
    format!(
        "INSERT OR FAIL INTO keys_{slot} (hash, event_id, digest) {}; INSERT OR FAIL INTO events ({EVENT_COLUMNS}) {}",
        rows_of(rows, CLAIM_PARAMETERS),
        rows_of(rows, EVENT_PARAMETERS),
    )
}

fn conflict() -> String {
    format!(
        "INSERT INTO events ({EVENT_COLUMNS}) {} ON CONFLICT (conflicts_with, digest) WHERE conflicts_with IS NOT NULL DO NOTHING",
        rows_of(1, EVENT_PARAMETERS),
    )
}

/// The version guard stands here once more: a stored version never goes back, whoever computed the row (I5).
fn states(rows: usize) -> String {
    format!(
        "INSERT OR FAIL INTO resources \
         (hash, source, tenant, kind, id, version, version_text, deleted, event_id, applied_at_ms, applied) {} \
         ON CONFLICT (hash) DO UPDATE SET version = excluded.version, version_text = excluded.version_text, \
         deleted = excluded.deleted, event_id = excluded.event_id, applied_at_ms = excluded.applied_at_ms, \
         applied = resources.applied + excluded.applied WHERE resources.version IS NULL OR excluded.version >= resources.version",
        rows_of(rows, STATE_PARAMETERS),
    )
}
