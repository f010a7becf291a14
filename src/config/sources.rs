//! The `[[source]]` list: each item read, its secrets fetched, its faults named.
//!
//! Owns the way from a table to a [`SourceSpec`] with every fault in it found at once, and the rules about
//! where secrets may stand. What a source's fields mean is judged by `source`.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;
use tidegate_actors::ports::Clock as _;
use toml::{Table, Value};

use super::layers::joined;
use super::redact::printable;
use super::secret::{Environment, HeaderRef, SecretRef};
use super::units::{ShowDuration, ShowSize};
use super::{Config, Problem, hints, secrets_file, spec_faults};
use crate::clock::SystemClock;
use crate::source::spec::{HeaderSpec, SecretSpec, TenantSpec};
use crate::source::{ResolvedConfig, ResolvedSecret, Source, SourceSpec};

/// The most sources one process serves.
const SOURCES_MAX: usize = 10_000;

/// A source as configured: its rules, whether it is on, and its secrets.
#[derive(Clone, Debug)]
pub struct SourceEntry {
    /// Where it stands in the settings, for problems.
    pub key: String,
    /// Its rules as written down.
    pub spec: SourceSpec,
    /// Whether it takes requests.
    pub enabled: bool,
    /// Its secrets, fetched; empty where it is off.
    pub secrets: Vec<ResolvedSecret>,
    /// The values of its `config`, their secrets fetched; as written where it is off.
    pub config: ResolvedConfig,
    /// Headers of its `refetch`, their secrets fetched; empty where it is off.
    pub headers: Vec<(String, SecretString)>,
    /// Headers of its `verify.keys`, likewise.
    pub key_headers: Vec<(String, SecretString)>,
}

/// Everything found while reading the list.
pub(super) struct Sources<'a> {
    environment: &'a Environment,
    listen: SocketAddr,
    body_bytes: u64,
    /// How long the store remembers all of an event: its row and its key.
    remembers: [(&'static str, Duration); 2],
    pub(super) entries: Vec<SourceEntry>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl<'a> Sources<'a> {
    pub(super) fn read(list: Option<&Value>, config: &Config, environment: &'a Environment) -> Self {
        let mut sources = Self {
            environment,
            listen: config.server.listen,
            body_bytes: config.limits.body_bytes,
            remembers: [("events.retention", config.events.retention), ("keys.window", config.keys.window)],
            entries: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        };
        let Some(Value::Array(items)) = list else {
            sources.problem("source", "must be a list: write [[source]] with double brackets");
            return sources;
        };
        if items.len() > SOURCES_MAX {
            sources.problem("source", format!("must have at most {SOURCES_MAX} items, got {}", items.len()));
            return sources;
        }
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::Table(table) => sources.add(index, table.clone()),
                _ => sources
                    .problem(&format!("source[{index}]"), "must be a table: write [[source]] with double brackets"),
            }
        }
        sources.check_names();
        sources.warnings.extend(hints::of(&sources.entries));
        sources
    }

    fn problem(&mut self, key: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(key, message.into()));
    }

    fn add(&mut self, index: usize, mut table: Table) {
        let named = table.get("name").and_then(Value::as_str).filter(|name| is_plain(name)).map(str::to_owned);
        let key = named.map_or_else(|| format!("source[{index}]"), |name| format!("source.{name}"));
        let enabled = match table.remove("enabled") {
            None => true,
            Some(Value::Boolean(enabled)) => enabled,
            Some(_) => {
                self.problem(&joined(&key, "enabled"), "must be true or false, without quotes");
                true
            }
        };
        let Some(mut spec) = spec_faults::read(&key, table, &mut self.problems) else { return };
        let before = self.problems.len();
        let mut secrets = self.secrets(&key, &spec, enabled);
        secrets.extend(self.secrets_of_file(&key, &mut spec, enabled));
        let config = self.config(&key, &spec, enabled);
        // Secrets that are wrong were told already; those of a source that is off are not there to be judged.
        let judge_secrets = enabled && self.problems.len() == before;
        for problem in Source::compile_with(&spec, &secrets, &config).err().unwrap_or_default() {
            if judge_secrets || !problem.key.contains("secrets") {
                self.problem(&joined(&key, &problem.key), problem.message);
            }
        }
        if let Some(own) = spec.max_body.filter(|own| enabled && own.0 as u64 > self.body_bytes) {
            let message = format!("must be at most `limits.body_bytes` ({}), got {own}", ShowSize(self.body_bytes));
            self.problem(&joined(&key, "max_body"), message);
        }
        let refetch = spec.refetch.iter().flat_map(|refetch| &refetch.headers);
        let headers = self.headers(&format!("{key}.refetch.headers"), refetch, enabled);
        let keys = spec.verify.iter().flat_map(|verify| &verify.keys).flat_map(|keys| &keys.headers);
        let key_headers = self.headers(&format!("{key}.verify.keys.headers"), keys, enabled);
        self.holds(&key, &spec);
        if let Some(setup) = spec.setup.as_ref().filter(|_| enabled) {
            let message = format!(
                "waits for a secret to be written to {}: once it is there, name it in `secrets` as \"file:…\" and take \
                 `setup` out",
                printable(&setup.secret_to, 256)
            );
            self.warnings.push(Problem::new(joined(&key, "setup"), message));
        }
        self.entries.push(SourceEntry { key, spec, enabled, secrets, config, headers, key_headers });
    }

    /// The tenants of a file beside the settings, which become the source's.
    fn secrets_of_file(&mut self, key: &str, spec: &mut SourceSpec, enabled: bool) -> Vec<ResolvedSecret> {
        let Some(path) = spec.secrets_file.clone().filter(|_| enabled) else { return Vec::new() };
        let place = joined(key, "secrets_file");
        let of = |tenant: &str| format!("secrets_file.{}", printable(tenant, 64));
        let tenants = match secrets_file::read(&path) {
            Ok(tenants) => tenants,
            Err(problems) => {
                for (tenant, message) in problems {
                    let place = tenant.map_or_else(|| place.clone(), |tenant| joined(key, &of(&tenant)));
                    self.problem(&place, message);
                }
                return Vec::new();
            }
        };
        let mut resolved = Vec::with_capacity(tenants.len());
        for (tenant, secrets) in tenants {
            for secret in &secrets {
                let found = self.secret_of_file(&joined(key, &of(&tenant)), secret);
                let Some((value, until_ms)) = found else { continue };
                resolved.push(ResolvedSecret { key: of(&tenant), tenant: Some(tenant.clone()), value, until_ms });
            }
            if !spec.tenants.iter().any(|known| known.name() == tenant) {
                spec.tenants.push(TenantSpec::Name(tenant));
            }
        }
        resolved
    }

    /// A secret as it stands in a file that only its owner reads, or the place where it is kept.
    fn secret_of_file(&mut self, key: &str, secret: &SecretSpec) -> Option<(SecretString, Option<i64>)> {
        let until_ms = self.until(key, secret)?;
        match SecretRef::parse(secret.value()).filter(|reference| !reference.is_demo()) {
            None => Some((SecretString::from(secret.value()), until_ms)),
            Some(reference) => match reference.resolve(self.environment) {
                Ok(value) => Some((value, until_ms)),
                Err(reason) => {
                    self.problem(key, reason);
                    None
                }
            },
        }
    }

    /// The values of a source's own `config`: texts, and secrets by their place.
    fn config(&mut self, key: &str, spec: &SourceSpec, enabled: bool) -> ResolvedConfig {
        let mut config = ResolvedConfig::new();
        for (name, texts) in &spec.config {
            let mut values = Vec::new();
            for text in texts.0.all() {
                let reference = SecretRef::parse(text).filter(|reference| enabled && !reference.is_demo());
                match reference.map(|reference| reference.resolve(self.environment)) {
                    None => values.push(SecretString::from(text.as_str())),
                    Some(Ok(value)) => values.push(value),
                    Some(Err(reason)) => self.problem(&format!("{key}.config.{}", printable(name, 64)), reason),
                }
            }
            config.insert(name.clone(), values);
        }
        config
    }

    /// Headers of a question; a secret in one is named like any other, also behind a word such as `Bearer`.
    fn headers<'s>(
        &mut self,
        key: &str,
        stated: impl Iterator<Item = (&'s String, &'s HeaderSpec)>,
        enabled: bool,
    ) -> Vec<(String, SecretString)> {
        let mut headers = Vec::new();
        for (name, value) in stated {
            let read = HeaderRef::parse(name, &value.0).and_then(|value| match enabled {
                true => value.resolve(self.environment).map(Some),
                false => Ok(None),
            });
            match read {
                Ok(value) => headers.extend(value.map(|value| (name.clone(), value))),
                Err(reason) => self.problem(&format!("{key}.{}", printable(name, 64)), reason),
            }
        }
        headers
    }

    /// An event that waits must not be forgotten by then, nor its key: its repeat would be another event.
    fn holds(&mut self, key: &str, spec: &SourceSpec) {
        let narrowed = spec.narrow.iter().flatten().enumerate();
        let narrowed = narrowed.map(|(at, narrow)| (format!("narrow[{at}].order"), narrow.order.as_ref()));
        for (place, order) in std::iter::once(("order".to_owned(), spec.order.as_ref())).chain(narrowed) {
            let Some(hold_for) = order.and_then(|order| order.hold_for) else { continue };
            let shortest = self.remembers.into_iter().min_by_key(|(_, kept)| *kept);
            let Some((setting, kept)) = shortest.filter(|(_, kept)| hold_for.0 >= *kept) else { continue };
            let message = format!(
                "must be shorter than `{setting}` ({}), got {hold_for}: the event would be forgotten while it waits",
                ShowDuration(kept)
            );
            self.problem(&format!("{key}.{place}.hold_for"), message);
        }
    }

    fn secrets(&mut self, key: &str, spec: &SourceSpec, enabled: bool) -> Vec<ResolvedSecret> {
        let shared = spec.secrets.iter().enumerate().map(|(at, secret)| (format!("secrets[{at}]"), None, secret));
        let own = spec.tenants.iter().enumerate().flat_map(|(tenant_at, tenant)| {
            let name = Some(tenant.name().to_owned());
            let place = move |at| format!("tenants[{tenant_at}].secrets[{at}]");
            tenant.secrets().iter().enumerate().map(move |(at, secret)| (place(at), name.clone(), secret))
        });
        let mut resolved = Vec::new();
        for (place, tenant, secret) in shared.chain(own) {
            let found = self.secret(&joined(key, &place), secret, enabled);
            if let Some((value, until_ms)) = found {
                resolved.push(ResolvedSecret { key: place, tenant, value, until_ms });
            }
        }
        resolved
    }

    fn secret(&mut self, key: &str, secret: &SecretSpec, enabled: bool) -> Option<(SecretString, Option<i64>)> {
        let until_ms = self.until(key, secret)?;
        let Some(reference) = SecretRef::parse(secret.value()) else {
            let message = "must be \"env:NAME\" or \"file:/path\", got something else (not shown): \
                           move the secret into an environment variable or a file";
            self.problem(key, message);
            return None;
        };
        if !enabled {
            return None;
        }
        if reference.is_demo() && !self.listen.ip().is_loopback() {
            let message = format!(
                "is a demo secret that everybody knows, allowed only while `server.listen` is a loopback address, got {}: \
                 list your own [[source]] in a file and name that with --config, or set enabled = false",
                self.listen
            );
            self.problem(key, message);
            return None;
        }
        match reference.resolve(self.environment) {
            Ok(value) => Some((value, until_ms)),
            Err(reason) => {
                self.problem(key, reason);
                None
            }
        }
    }

    /// The end date; `None` when it is wrong.
    #[allow(clippy::option_option, reason = "the outer says whether it could be read, the inner whether there is one")]
    fn until(&mut self, key: &str, secret: &SecretSpec) -> Option<Option<i64>> {
        let Some(text) = secret.until() else { return Some(None) };
        let Ok(until) = text.parse::<jiff::Timestamp>() else {
            let key = joined(key, "until");
            self.problem(&key, "must be a time with zone such as \"2030-01-31T00:00:00Z\"");
            return None;
        };
        let until_ms = until.as_millisecond();
        if until_ms <= SystemClock::new().now_ms() {
            let message = format!("is past ({text}): the secret no longer counts, take it out");
            self.warnings.push(Problem::new(joined(key, "until"), message));
        }
        Some(Some(until_ms))
    }

    fn check_names(&mut self) {
        let mut names: Vec<&str> = self.entries.iter().map(|entry| entry.spec.name.as_str()).collect();
        names.sort_unstable();
        let mut twice: Vec<String> =
            names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned()).collect();
        twice.dedup();
        for name in twice {
            self.problem(&format!("source.{name}"), "is there more than once: give each source a name of its own");
        }
        if !self.entries.iter().any(|entry| entry.enabled) && self.problems.is_empty() {
            self.warnings.push(Problem::new("source", "has no enabled item: every request will be answered 401"));
        }
    }
}

/// Whether a name can stand in a key path as it is.
fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits)
}
