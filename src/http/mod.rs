//! The two listeners: webhooks and health on the public one, figures and status on the admin one.
//!
//! Owns routes, limits of requests, and answers. Promises that a 2xx is written only after the engine said
//! what became of the event (I1), that whatever was not vouched for gets one and the same 401 and is neither
//! kept nor logged (I2), and that overload is refused before anything is accepted (I15). Knows no store and
//! no cache. A fault in a handler is a 500 to its sender and nothing else.

mod admin;
mod answer;
mod batch;
mod body;
mod figures;
mod handshake;
mod health;
mod ingest;
mod listen;
pub(crate) mod operate;
pub(crate) mod problem;
mod public;
pub(crate) mod quarantine;
mod rate;
pub(crate) mod route;

pub use admin::AdminParts;
pub use listen::{ListenError, ListenSettings, bind};
pub use public::{Gate, GateParts, RequestLimits};

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use actix_server::Server;

/// Serves webhooks on a bound socket.
pub fn serve_public(settings: ListenSettings, listener: TcpListener, gate: Arc<Gate>) -> io::Result<Server> {
    public::serve(settings, listener, gate)
}

/// Serves figures and status on a bound socket.
pub fn serve_admin(settings: ListenSettings, listener: TcpListener, parts: Arc<AdminParts>) -> io::Result<Server> {
    admin::serve(settings, listener, parts)
}
