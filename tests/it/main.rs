//! HTTP in, rows out: every row of the table of answers, asked over a socket and read from the store.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and a channel to a thread under test needs no bound of its own"
)]

#[path = "../support/mod.rs"]
mod support;

/// Makes each named function, which takes a `Place`, a test on SQLite and one on Postgres.
macro_rules! on_each_store {
    ($($name:ident;)*) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(crate::support::place::Place::sqlite()); })*
        }

        mod on_postgres {
            $(#[test] fn $name() { super::$name(crate::support::place::Place::postgres()); })*
        }
    };
}

mod across;
mod again;
mod batches;
mod effects;
mod figures;
mod framing;
mod handshakes;
mod holds;
mod nodes;
mod overload;
mod packed;
mod panics;
mod paths;
mod presets;
mod refetch;
mod refusals;
mod shutdown;
mod timeline;
mod unusable;
mod verdicts;
