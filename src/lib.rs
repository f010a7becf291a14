//! Tidegate: the adapters around the engine, their wiring and the command line.

pub mod app;
pub mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod effect;
pub mod fetch;
pub mod http;
pub mod serve;
pub mod source;
pub mod store;
pub mod telemetry;
