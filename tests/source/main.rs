//! Sources from outside: signatures of six senders, their payloads, and what strangers send.

mod batches;
mod campaign;
mod common;
mod decoding;
mod handshakes;
mod hostile;
mod order;
mod presets;
mod reading;
mod refetch;
mod settings;
#[path = "../support/presets.rs"]
mod stated;
mod vectors;
