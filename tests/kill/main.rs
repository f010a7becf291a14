//! Crashes under load: the program killed, its store killed, its clients gone in the middle. Senders
//! retry as real ones do, and afterwards the rows are held against what the senders were told.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "in a test a failed unwrap is the report, deadlines are real time, and the run says how much it did"
)]

#[path = "../support/mod.rs"]
mod support;

mod judge;
mod program;
mod reset;
mod senders;
mod store;
