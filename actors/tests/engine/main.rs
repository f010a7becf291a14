//! The engine from outside: events in, receipts out, on one thread with driven time.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the report")]

mod bounds;
mod cache;
mod drain;
mod duplicates;
mod failures;
mod fetches;
mod holds;
mod order;
mod support;
