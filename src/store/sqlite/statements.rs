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
/// Sizes of lists that are written.
const WRITE_SIZES: [usize; 3] = [1, 8, 64];

/// Parameters of one claim in [`Statements::record`]; all claims stand before the events.
pub(super) const CLAIM_PARAMETERS: usize = 3;
/// Parameters of one event in [`Statements::record`].
pub(super) const EVENT_PARAMETERS: usize = 18;
/// Parameters of one state in [`Statements::put_states`].
pub(super) const STATE_PARAMETERS: usize = 15;
/// Parameters of one state in [`Statements::change_states`].
pub(super) const CHANGE_PARAMETERS: usize = 11;
/// Parameters of one hold in [`Statements::hold`].
pub(super) const HOLD_PARAMETERS: usize = 7;
/// Parameters of one hold in [`Statements::rearm`].
pub(super) const REARM_PARAMETERS: usize = 5;
/// Parameters of one event in [`Statements::settle`]; all events stand before the list of holds.
pub(super) const SETTLE_PARAMETERS: usize = 5;
/// Parameters of one fetch in [`Statements::ask`] and [`Statements::answer`].
pub(super) const FETCH_PARAMETERS: usize = 2;

/// Takes the write lock, so that what is read afterwards is still true when it is written.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE; \
     SELECT incarnation, key_slot, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM meta";

const EVENT_COLUMNS: &str = "id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, \
     resource_id, version, version_text, verdict, tie, why, conflicts_with, digest, headers, body";

/// A text and how many rows it takes.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    pub(super) sql: Arc<str>,
    pub(super) rows: usize,
}

/// One text in several sizes.
#[derive(Debug)]
pub(super) struct Sizes(Vec<Sized>);

impl Sizes {
    fn of(sizes: &[usize], text: impl Fn(usize) -> String) -> Self {
        Self(sizes.iter().map(|&rows| Sized { sql: text(rows).into(), rows }).collect())
    }

    /// The smallest that holds all rows, else the largest.
    pub(super) fn fitting(&self, rows: usize) -> &Sized {
        self.0.iter().find(|sized| sized.rows >= rows).unwrap_or(&self.0[self.0.len() - 1])
    }
}

/// All texts, made once for a store.
#[derive(Debug)]
pub(super) struct Statements {
    /// Begins, reads the meta row, and looks up keys, and states behind them.
    pub(super) begin_and_load: Sizes,
    /// Looks up more of the same.
    pub(super) load: Sizes,
    /// Looks up states.
    pub(super) load_states: Sizes,
    /// Looks up what resources have waiting.
    pub(super) load_holds: Sizes,
    /// Looks up the claims of fetches.
    pub(super) load_fetches: Sizes,
    /// Claims keys in a slot and records events.
    pub(super) record: [Sizes; KEY_SLOTS],
    /// Writes states that may be new.
    pub(super) put_states: Sizes,
    /// Writes states of resources that are there.
    pub(super) change_states: Sizes,
    /// Writes holds.
    pub(super) hold: Sizes,
    /// Says how holds wait from now on.
    pub(super) rearm: Sizes,
    /// Ends holds: the events' rows get their verdicts, the holds go.
    pub(super) settle: Sizes,
    /// Asks for fetches, unless they are asked for.
    pub(super) ask: Sizes,
    /// Lets answered fetches rest, or asks again.
    pub(super) answer: Sizes,
    /// Records one conflict, unless the same bytes are kept already.
    pub(super) conflict: Arc<str>,
}

impl Statements {
    pub(super) fn new() -> Self {
        Self {
            begin_and_load: Sizes::of(&LOAD_SIZES, |rows| format!("{BEGIN}; {}", load(rows))),
            load: Sizes::of(&LOAD_SIZES, load),
            load_states: Sizes::of(&LOAD_SIZES, load_states),
            load_holds: Sizes::of(&LOAD_SIZES, |rows| {
                // in the order in which they came
                format!(
                    "SELECT resource_hash, event_id, subject, until_ms, parked_in, fetch FROM holds \
                     WHERE resource_hash IN ({}) ORDER BY resource_hash, event_id",
                    list(rows)
                )
            }),
            load_fetches: Sizes::of(&LOAD_SIZES, |rows| {
                format!("SELECT resource_hash, epoch FROM fetches WHERE resource_hash IN ({})", list(rows))
            }),
            record: std::array::from_fn(|slot| Sizes::of(&WRITE_SIZES, |rows| record(slot, rows))),
            put_states: Sizes::of(&WRITE_SIZES, put_states),
            change_states: Sizes::of(&WRITE_SIZES, change_states),
            hold: Sizes::of(&WRITE_SIZES, |rows| {
                format!(
                    "INSERT OR FAIL INTO holds (event_id, resource_hash, subject, until_ms, parked_in, fetch, why) {}",
                    rows_of(rows, HOLD_PARAMETERS)
                )
            }),
            rearm: Sizes::of(&WRITE_SIZES, |rows| {
                format!(
                    "UPDATE OR FAIL holds SET until_ms = v.column2, parked_in = v.column3, fetch = v.column4, \
                     why = v.column5 FROM ({}) AS v WHERE holds.event_id = v.column1",
                    rows_of(rows, REARM_PARAMETERS)
                )
            }),
            settle: Sizes::of(&WRITE_SIZES, settle),
            ask: Sizes::of(&WRITE_SIZES, |rows| {
                format!(
                    "INSERT INTO fetches (resource_hash, epoch, attempts, due_ms) SELECT column1, 0, 0, column2 \
                     FROM ({}) WHERE true \
                     ON CONFLICT (resource_hash) DO UPDATE SET due_ms = excluded.due_ms WHERE fetches.due_ms IS NULL",
                    rows_of(rows, FETCH_PARAMETERS)
                )
            }),
            answer: Sizes::of(&WRITE_SIZES, |rows| {
                format!(
                    "UPDATE OR FAIL fetches SET attempts = 0, due_ms = v.column2, leased_until_ms = NULL, \
                     last_error = NULL FROM ({}) AS v WHERE fetches.resource_hash = v.column1",
                    rows_of(rows, FETCH_PARAMETERS)
                )
            }),
            conflict: conflict().into(),
        }
    }
}

fn list(rows: usize) -> String {
    vec!["?"; rows].join(",")
}

fn load(rows: usize) -> String {
    let list = list(rows);
    let probes: Vec<_> = (0..KEY_SLOTS)
        .map(|slot| format!("SELECT hash, event_id, digest FROM keys_{slot} WHERE hash IN ({list})"))
        .collect();
    format!("{}; {}", probes.join(" UNION ALL "), load_states(rows))
}

fn load_states(rows: usize) -> String {
    format!(
        "SELECT hash, version, version_text, epoch, step, deleted, fields, event_id, applied_at_ms, applied, held \
         FROM resources WHERE hash IN ({})",
        list(rows)
    )
}

/// `VALUES` of so many rows without those left empty.
fn rows_of(rows: usize, parameters: usize) -> String {
    let row = format!("({})", list(parameters));
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
        "INSERT INTO events ({EVENT_COLUMNS}) {} \
         ON CONFLICT (conflicts_with, digest) WHERE conflicts_with IS NOT NULL AND why IS NULL DO NOTHING",
        rows_of(1, EVENT_PARAMETERS),
    )
}

/// The version guard stands in both statements once more: a stored version never goes back within an epoch,
/// whoever computed the row (I5).
fn guard(version: &str, epoch: &str) -> String {
    format!(
        "({epoch} > resources.epoch OR ({epoch} = resources.epoch \
         AND (resources.version IS NULL OR {version} >= resources.version)))"
    )
}

fn put_states(rows: usize) -> String {
    format!(
        "INSERT OR FAIL INTO resources (hash, source, tenant, kind, id, version, version_text, epoch, step, deleted, \
         fields, event_id, applied_at_ms, applied, held) {} \
         ON CONFLICT (hash) DO UPDATE SET version = excluded.version, version_text = excluded.version_text, \
         epoch = excluded.epoch, step = excluded.step, deleted = excluded.deleted, fields = excluded.fields, \
         event_id = excluded.event_id, applied_at_ms = excluded.applied_at_ms, applied = excluded.applied, \
         held = excluded.held WHERE {}",
        rows_of(rows, STATE_PARAMETERS),
        guard("excluded.version", "excluded.epoch"),
    )
}

fn change_states(rows: usize) -> String {
    format!(
        "UPDATE OR FAIL resources SET version = v.column2, version_text = v.column3, epoch = v.column4, \
         step = v.column5, deleted = v.column6, fields = v.column7, event_id = v.column8, \
         applied_at_ms = v.column9, applied = v.column10, held = v.column11 \
         FROM ({}) AS v WHERE resources.hash = v.column1 AND {}",
        rows_of(rows, CHANGE_PARAMETERS),
        guard("v.column2", "v.column4"),
    )
}

fn settle(rows: usize) -> String {
    format!(
        "UPDATE OR FAIL events SET verdict = v.column2, tie = v.column3, why = v.column4, settled_at_ms = v.column5 \
         FROM ({}) AS v WHERE events.id = v.column1; \
         DELETE FROM holds WHERE event_id IN ({})",
        rows_of(rows, SETTLE_PARAMETERS),
        list(rows),
    )
}
