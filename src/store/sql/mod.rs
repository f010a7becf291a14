//! What the SQL stores share: folding a batch, deciding it by the rules, migrations in order.
//!
//! Plain functions over plain data: no connection and no clock, so that Postgres and SQLite mean the same.

pub mod batch;
pub mod decide;
pub mod migration;
