//! Settings that are each fine and together are not: problems, and what is allowed but should be known.

use std::net::SocketAddr;

use super::reader::Reader;
use super::units::{ShowDuration, ShowSize};
use super::{Config, Problem};

/// Checks settings against each other.
pub(super) fn check(config: &Config, reader: &mut Reader<'_>) {
    times(config, reader);
    sizes(config, reader);
    addresses(config, reader);
    stores(config, reader);
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&config.log.filter) {
        let message = format!("must be a log filter such as \"info\" or \"info,tidegate::http=debug\": {error}");
        reader.problem("log.filter", message);
    }
}

fn times(config: &Config, reader: &mut Reader<'_>) {
    let server = &config.server;
    if server.drain_within <= server.answer_within {
        let (answer, drain) = (ShowDuration(server.answer_within), ShowDuration(server.drain_within));
        let message = format!(
            "must be longer than `server.answer_within` ({answer}), got {drain}: what was accepted needs that long to finish"
        );
        reader.problem("server.drain_within", message);
    }
    if config.cache.keep > config.keys.window {
        let (keep, window) = (ShowDuration(config.cache.keep), ShowDuration(config.keys.window));
        let message =
            format!("must not be longer than `keys.window` ({window}), got {keep}: the store forgets the key by then");
        reader.problem("cache.keep", message);
    }
    if config.fetch.pause > config.fetch.pause_max {
        let (first, longest) = (ShowDuration(config.fetch.pause), ShowDuration(config.fetch.pause_max));
        let message = format!("must be at least `fetch.pause` ({first}), got {longest}: pauses only grow");
        reader.problem("fetch.pause_max", message);
    }
}

fn sizes(config: &Config, reader: &mut Reader<'_>) {
    let limits = &config.limits;
    if limits.in_flight_bytes < limits.body_bytes {
        let (budget, body) = (ShowSize(limits.in_flight_bytes), ShowSize(limits.body_bytes));
        let message = format!(
            "must be at least `limits.body_bytes` ({body}), got {budget}: a body of the largest size would always be answered 503"
        );
        reader.problem("limits.in_flight_bytes", message);
    }
    let pools = &config.pools;
    if pools.live < pools.shards {
        let message = format!("must be at least `pools.writer.shards` ({}), got {}", pools.shards, pools.live);
        reader.problem("pools.ordering.live", message);
    }
    if pools.writer_mailbox < pools.batch_events {
        let (events, mailbox) = (pools.batch_events, pools.writer_mailbox);
        let message = format!(
            "must be at least `pools.writer.batch_events` ({events}), got {mailbox}: a batch is gathered from the mailbox"
        );
        reader.problem("pools.writer.mailbox", message);
    }
}

fn addresses(config: &Config, reader: &mut Reader<'_>) {
    let (public, admin) = (config.server.listen, config.admin.listen);
    if meet(public, admin) {
        let message =
            format!("must differ from `server.listen` ({public}), got {admin}: figures are not for the public");
        reader.problem("admin.listen", message);
    }
}

/// Whether the system would refuse to bind both.
fn meet(left: SocketAddr, right: SocketAddr) -> bool {
    let (any_left, any_right) = (left.ip().is_unspecified(), right.ip().is_unspecified());
    left.port() != 0 && left.port() == right.port() && (left.ip() == right.ip() || any_left || any_right)
}

fn stores(config: &Config, reader: &mut Reader<'_>) {
    let store = &config.store;
    if store.is_sqlite() && config.pools.shards > 1 {
        let message = format!(
            "must be 1 while `store.url` is \"{}\", got {}: SQLite has one writer; use a postgres:// URL for more",
            store.shown(),
            config.pools.shards
        );
        reader.problem("pools.writer.shards", message);
    }
    let secrets =
        [("cache.password", config.cache.password.is_some()), ("cache.secret", config.cache.secret.is_some())];
    for (key, set) in secrets {
        if set && config.cache.url.is_none() {
            reader.problem(key, "is set, but `cache.url` is \"\": set a redis:// URL or take it out");
        }
    }
    if store.is_sqlite() && store.password.is_some() {
        reader.problem(
            "store.password",
            "is set, but an SQLite file has none: set a postgres:// `store.url` or take it out",
        );
    }
    let passwords = [
        ("store", Some(&store.url), store.password.is_some()),
        ("cache", config.cache.url.as_ref(), config.cache.password.is_some()),
    ];
    for (section, url, set) in passwords {
        if set && url.is_some_and(|url| has_password(url)) {
            let message = format!("is set, but `{section}.url` holds one too: take that one out");
            reader.problem(&format!("{section}.password"), message);
        }
    }
}

fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(rest));
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// What is allowed, but should be known.
pub(super) fn warnings(config: &Config) -> Vec<Problem> {
    let mut warnings = Vec::new();
    if !config.admin.listen.ip().is_loopback() {
        let message = format!(
            "{} is not a loopback address and has no password: keep it on a private network",
            config.admin.listen
        );
        warnings.push(Problem::new("admin.listen", message));
    }
    if config.events.retention < config.keys.window {
        let (kept, window) = (ShowDuration(config.events.retention), ShowDuration(config.keys.window));
        let message =
            format!("({kept}) is shorter than `keys.window` ({window}): a late duplicate names an event that is gone");
        warnings.push(Problem::new("events.retention", message));
    }
    warnings
}
