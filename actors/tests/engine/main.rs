//! The engine from outside: events in, receipts out, on one thread with driven time.

#![allow(clippy::unwrap_used)] // in the helpers too, what is not there fails the test

mod bounds;
mod cache;
mod drain;
mod duplicates;
mod failures;
mod order;
mod support;
