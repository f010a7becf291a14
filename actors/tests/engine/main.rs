//! The engine from outside: events in, receipts out, on one thread with driven time.

mod bounds;
mod cache;
mod drain;
mod duplicates;
mod failures;
mod order;
mod support;
