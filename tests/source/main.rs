//! Sources from outside: signatures of six senders, their payloads, and what strangers send.

mod batches;
mod common;
mod hostile;
mod payloads;
mod reading;
mod settings;
mod vectors;
