//! Binds addresses and runs HTTP/1.1 servers on them, with every limit stated.
//!
//! Owns the sockets and actix' own settings. Promises HTTP/1.1 only, that `Expect: 100-continue` is answered
//! after the cheap checks and not before, and that nothing is left to a default of the framework. Knows
//! nothing of what is served. A port that is taken is an error that says which one and what to do.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_http::{HttpService, KeepAlive, Request, Response};
use actix_server::Server;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{AppConfig, RequestHead};
use tokio::net::TcpSocket;

/// How a listener behaves.
#[derive(Clone, Copy, Debug)]
pub struct ListenSettings {
    /// Worker threads.
    pub workers: usize,
    /// Connections at once, over all workers.
    pub connections: usize,
    /// How long the first request's head may take.
    pub header_within: Duration,
    /// How long an idle connection is kept.
    pub keep_alive: Duration,
    /// How long a connection may take to close.
    pub close_within: Duration,
    /// How long workers may take to finish when told to stop.
    pub stop_within: Duration,
}

/// An address that could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} (`{setting}`): {why}")]
pub struct ListenError {
    /// The setting that names the address.
    pub setting: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// What is wrong, and what to do.
    pub why: String,
}

/// Binds one address; the kernel may hold `backlog` connections for us.
pub fn bind(setting: &'static str, address: SocketAddr, backlog: u32) -> Result<TcpListener, ListenError> {
    let bound = (|| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(backlog)?.into_std()
    })();
    bound.map_err(|error: io::Error| ListenError { setting, address, why: explain(&error, address) })
}

fn explain(error: &io::Error, address: SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {} is in use by another program, perhaps another Tidegate: stop it, or set another port",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => {
            format!("port {} needs more rights than this user has: set a port of 1024 or above", address.port())
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: set one it has, or 0.0.0.0 for all of them".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Serves `app` on a bound socket. `early` sees the head of a request that waits for `100 Continue`, before
/// its body is sent, and may refuse it.
pub(super) fn serve<F, I, S, B, E, C>(
    settings: ListenSettings,
    listener: TcpListener,
    app: F,
    early: E,
) -> io::Result<Server>
where
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: std::fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    S::Service: 'static,
    <S::Service as actix_service::Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
    E: Fn() -> C + Send + Clone + 'static,
    C: Fn(&RequestHead) -> Result<(), Response<BoxBody>> + Clone + 'static,
{
    let builder = Server::build()
        .workers(settings.workers)
        .max_concurrent_connections(settings.connections.div_ceil(settings.workers).max(1))
        .shutdown_timeout(settings.stop_within.as_secs().max(1))
        .disable_signals();
    let stopping = builder.graceful_shutdown_signal();
    let local = listener.local_addr()?;
    let builder = builder.listen(format!("http {local}"), listener, move || {
        let stopping = stopping.clone();
        let early = early();
        let check = fn_service(move |request: Request| {
            let verdict = early(request.head());
            std::future::ready(verdict.map(|()| request))
        });
        let app = app().into_factory().map_err(|error| Response::from(error.into().error_response()));
        HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(KeepAlive::Timeout(settings.keep_alive))
            .client_request_timeout(settings.header_within)
            .client_disconnect_timeout(settings.close_within)
            .tcp_nodelay(true)
            .local_addr(local)
            .expect(check)
            .h1(map_config(app, |()| AppConfig::default()))
            .tcp()
    })?;
    Ok(builder.run())
}
