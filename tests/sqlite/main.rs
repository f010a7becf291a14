//! What only the SQLite store does: its file, its lock, its log, and what a kill leaves behind.

mod file;
mod killed;
mod upkeep;
mod world;
