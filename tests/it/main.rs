//! HTTP in, rows out: every row of the table of answers, asked over a socket and read from the store.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and a channel to a thread under test needs no bound of its own"
)]

#[path = "../support/mod.rs"]
mod support;

mod framing;
mod overload;
mod paths;
mod refusals;
mod shutdown;
mod unusable;
mod verdicts;
