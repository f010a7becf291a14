//! What the SQL stores share: migrations in order.
//!
//! Plain functions over plain data: no connection and no clock, so that Postgres and SQLite mean the same.

pub mod migration;
