//! The admin listener: figures for Prometheus, status for people and scripts, health, and what a person may do.
//!
//! Promises that reading changes nothing and shows no secret. It asks nobody who they are, so it listens on
//! loopback by default. Knows what the engine says of itself, and nothing of the store. A figure that cannot
//! be written is a 500.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use actix_server::Server;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::web::{self, Data};
use actix_web::{App, HttpResponse};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tidegate_actors::PoolStatus;
use tidegate_actors::ports::Reader;

use super::operate::{self, RELEASE};
use super::public::{Edge, Gate};
use super::quarantine::{self, DROP, RETRY};
use super::{ListenSettings, health, listen, problem};

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What the admin listener shows.
pub struct AdminParts {
    /// The public side.
    pub gate: Arc<Gate>,
    /// Reads what is kept.
    pub reader: Arc<dyn Reader>,
    /// Every figure.
    pub registry: Registry,
    /// The store, without its password.
    pub store: String,
    /// The cache, without its password.
    pub cache: String,
    /// The names of the sources.
    pub sources: Vec<String>,
}

/// Serves them.
pub(super) fn serve(settings: ListenSettings, listener: TcpListener, parts: Arc<AdminParts>) -> io::Result<Server> {
    let app = move || {
        let gate = Arc::clone(&parts.gate);
        let edge = Edge { ingress: gate.engine.ingress(), gate };
        App::new()
            .app_data(Data::from(Arc::clone(&parts)))
            .app_data(Data::new(edge))
            .service(web::resource("/metrics").get(metrics).default_service(web::to(not_this_method)))
            .service(web::resource("/status").get(status).default_service(web::to(not_this_method)))
            .service(web::resource("/healthz").get(alive).default_service(web::to(not_this_method)))
            .service(web::resource("/readyz").get(ready).default_service(web::to(not_this_method)))
            .service(web::resource(RELEASE).post(operate::release).default_service(web::to(only_post)))
            .service(web::resource(RETRY).post(quarantine::retry).default_service(web::to(only_post)))
            .service(web::resource(DROP).post(quarantine::give_up).default_service(web::to(only_post)))
            .default_service(web::to(nowhere))
    };
    listen::serve(settings, listener, app, || |_: &_| Ok(()))
}

async fn metrics(parts: Data<AdminParts>) -> HttpResponse {
    let mut figures = String::with_capacity(16 * 1024);
    match text::encode(&mut figures, &parts.registry) {
        Ok(()) => HttpResponse::Ok().insert_header((CONTENT_TYPE, OPEN_METRICS)).body(figures),
        Err(_) => problem::INTERNAL.answer(),
    }
}

/// The whole of `/status`.
#[derive(Serialize)]
struct Shown<'a> {
    version: &'static str,
    ready: bool,
    reasons: Vec<String>,
    draining: bool,
    up_s: u64,
    store: &'a str,
    cache: &'a str,
    sources: &'a [String],
    incarnation: Option<String>,
    clock_difference_ms: i64,
    in_flight_events: Used,
    in_flight_bytes: Used,
    live_resources: usize,
    pools: Vec<Pool>,
}

/// How much of a bound is used.
#[derive(Serialize)]
struct Used {
    now: usize,
    bound: usize,
}

#[derive(Serialize)]
struct Pool {
    name: &'static str,
    actors: i64,
    mailbox_depth: i64,
    mailbox_bound: i64,
    refused_full: u64,
    panics: u64,
}

async fn status(parts: Data<AdminParts>) -> HttpResponse {
    let engine = parts.gate.engine.status();
    let reasons = parts.gate.not_ready(&engine);
    let used = |(now, bound)| Used { now, bound };
    HttpResponse::Ok().json(Shown {
        version: env!("CARGO_PKG_VERSION"),
        ready: reasons.is_empty(),
        reasons,
        draining: parts.gate.is_draining(),
        up_s: parts.gate.up().as_secs(),
        store: &parts.store,
        cache: &parts.cache,
        sources: &parts.sources,
        incarnation: engine.incarnation.map(|incarnation| incarnation.0.to_string()),
        clock_difference_ms: engine.clock_difference_ms,
        in_flight_events: used(engine.in_flight_events),
        in_flight_bytes: used(engine.in_flight_bytes),
        live_resources: engine.live_resources,
        pools: engine.pools.iter().map(Pool::from).collect(),
    })
}

impl From<&PoolStatus> for Pool {
    fn from(pool: &PoolStatus) -> Self {
        Self {
            name: pool.name,
            actors: pool.actors,
            mailbox_depth: pool.depth,
            mailbox_bound: pool.bound,
            refused_full: pool.full,
            panics: pool.panics,
        }
    }
}

async fn alive() -> HttpResponse {
    health::alive()
}

async fn ready(parts: Data<AdminParts>) -> HttpResponse {
    health::ready(&parts.gate)
}

async fn not_this_method() -> HttpResponse {
    problem::method_not_allowed(false)
}

async fn only_post() -> HttpResponse {
    problem::only_post()
}

async fn nowhere() -> HttpResponse {
    problem::ADMIN_NOT_FOUND.answer()
}
