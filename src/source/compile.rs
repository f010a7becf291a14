//! A source's settings as a [`Source`], or everything that is wrong with them at once.

mod handshake;
mod order;
mod refetch;
mod tenants;

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
use tidegate_actors::rules::version::{Precision, VERSION_PARTS_MAX};

use super::canonical::Without;
use super::handshake::{Key, Template};
use super::pattern::Patterns;
use super::reference::Reference;
use super::rules::{AlsoRule, BatchRule, DeleteRule, ResourceRule, Rules, Split, StateRule, VersionPart};
use super::spec::{
    AlsoSpec, CodingSpec, DecodeSpec, DeleteSpec, PrecisionSpec, ResourceSpec, SignedAs, SourceSpec, Texts,
    VersionForm, VersionSpec,
};
use super::times;
use super::verify::Verifier;
use super::wants::{ConfigValues, Hidden, TextRule, Wants};
use super::{Answer, MAX_BODY_DEFAULT, Problem, ResolvedSecret, Source};

/// The longest body a source may take.
const MAX_BODY_MAX: usize = 64 * 1024 * 1024;
/// The most items of one batch, where the source says nothing else, and at all.
const BATCH_ITEMS_DEFAULT: u32 = 1_000;
const BATCH_ITEMS_MAX: u32 = 10_000;
/// The most bytes of a source's or tenant's name.
const NAME_BYTES_MAX: usize = 63;
/// Headers that never leave the request, whatever a source asks for.
const NEVER_KEPT: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// The values of a source's `config`, their secrets fetched.
pub type ResolvedConfig = BTreeMap<String, Vec<SecretString>>;

impl Source {
    /// Compiles a source whose `config` needs nothing fetched; on failure says everything that is wrong, with keys
    /// below the source.
    pub fn compile(spec: &SourceSpec, secrets: &[ResolvedSecret]) -> Result<Self, Vec<Problem>> {
        let spec = spec.with_preset().map_err(|problem| vec![problem])?;
        let values = |texts: &Texts| texts.all().iter().map(|text| SecretString::from(text.as_str())).collect();
        let config = spec.config.iter().map(|(name, value)| (name.clone(), values(&value.0))).collect();
        Self::compile_with(&spec, secrets, &config)
    }

    /// Compiles a source; on failure says everything that is wrong, with keys below the source.
    pub fn compile_with(
        spec: &SourceSpec,
        secrets: &[ResolvedSecret],
        config: &ResolvedConfig,
    ) -> Result<Self, Vec<Problem>> {
        let spec = spec.with_preset().map_err(|problem| vec![problem])?;
        let mut compiler = Compiler {
            wants: Wants { config: hidden(config), ..Wants::default() },
            problems: Vec::new(),
            items: spec.batch.is_some(),
        };
        let nobodys = nobodys_secret(&spec);
        let for_verifier = if secrets.is_empty() && spec.setup.is_some() { &nobodys } else { secrets };
        let verifier =
            Verifier::compile(&spec, for_verifier, config).map_err(|found| compiler.problems.extend(found)).ok();
        let rules = compiler.rules(&spec, verifier.as_ref());
        compiler.names(&spec, secrets, &rules.tenant);
        if let Some(verifier) = &verifier {
            compiler.unsigned_resources(&rules, verifier);
        }
        let answer = compiler.answer(&spec);
        let max_body = spec.max_body.map_or(MAX_BODY_DEFAULT, |size| size.0);
        if max_body == 0 || max_body > MAX_BODY_MAX {
            compiler.problem("max_body", format!("is {max_body} bytes: state between 1 B and 64MiB"));
        }
        if spec.rate.is_some_and(|rate| rate.per_second == 0 || rate.burst == Some(0)) {
            compiler.problem("rate", "takes nothing: state at least 1, or leave it out".to_owned());
        }
        compiler.explain_config(&spec);
        compiler.say_once();
        let (Some(verifier), true) = (verifier, compiler.problems.is_empty()) else {
            return Err(compiler.problems);
        };
        let mut rules = rules;
        rules.wants = compiler.wants;
        rules.kept = kept_headers(&spec, &rules, &verifier);
        Ok(Self {
            name: Arc::from(spec.name.as_str()),
            preset: spec.preset.clone(),
            verifier,
            handshake_keys: handshake_keys(&rules, secrets),
            rules,
            on_unusable: spec.on_unusable.unwrap_or_default(),
            max_body,
            coding: spec.content_encoding.unwrap_or_default(),
            content_types: spec
                .content_types
                .unwrap_or_default()
                .iter()
                .map(|kind| kind.to_ascii_lowercase())
                .collect(),
            answer,
            rate: spec.rate,
            origin: spec.verify.and_then(|verify| verify.origin).unwrap_or_default(),
            setup: spec.setup.map(|setup| setup.secret_to.into()),
        })
    }
}

fn hidden(config: &ResolvedConfig) -> ConfigValues {
    let value = |text: &SecretString| Hidden(Arc::from(text.expose_secret()));
    Arc::new(config.iter().map(|(name, texts)| (name.clone(), texts.iter().map(value).collect())).collect())
}

/// What a source verifies with that has no secret yet: nobody knows it, so nothing passes.
#[expect(clippy::disallowed_methods, reason = "nobody is to know it: no test, and no seed")]
fn nobodys_secret(spec: &SourceSpec) -> [ResolvedSecret; 1] {
    let prefix = spec.verify.as_ref().and_then(|verify| verify.secret_prefix.as_deref()).unwrap_or_default();
    let text = format!("{prefix}{}", hex::encode(rand::random::<[u8; 32]>()));
    [ResolvedSecret { key: "secrets".to_owned(), tenant: None, value: text.into(), until_ms: None }]
}

/// Secrets as texts, only where an answer needs them.
fn handshake_keys(rules: &Rules, secrets: &[ResolvedSecret]) -> Vec<Key> {
    let mut all = rules.signed_handshakes.iter().chain(&rules.unsigned.all);
    if !all.any(|handshake| handshake.any(&Template::needs_secret)) {
        return Vec::new();
    }
    let key = |secret: &ResolvedSecret| Key {
        tenant: secret.tenant.as_deref().map(Arc::from),
        until_ms: secret.until_ms,
        text: secret.value.clone(),
    };
    secrets.iter().map(key).collect()
}

/// Collects what the rules want from a request, and what is wrong with them.
struct Compiler {
    wants: Wants,
    problems: Vec<Problem>,
    /// There are items to read: of a batch, or of the array of `also.each`.
    items: bool,
}

impl Compiler {
    fn problem(&mut self, key: &str, message: String) {
        self.problems.push(Problem::new(key, message));
    }

    /// What a narrowed rule takes over from the source is said once.
    fn say_once(&mut self) {
        let mut said = Vec::with_capacity(self.problems.len());
        for problem in self.problems.drain(..) {
            if !said.contains(&problem) {
                said.push(problem);
            }
        }
        self.problems = said;
    }

    /// A value that is missing is told with what its preset says of it.
    fn explain_config(&mut self, spec: &SourceSpec) {
        for (name, help) in spec.config_help.iter().flatten() {
            let refers = format!("refers to `config.{name}`");
            if let Some(problem) = self.problems.iter_mut().find(|problem| problem.message.starts_with(&refers)) {
                *problem = Problem::new(format!("config.{name}"), format!("is missing: state {help}"));
            }
            self.problems.retain(|problem| !problem.message.starts_with(&refers));
        }
    }

    fn rules(&mut self, spec: &SourceSpec, verifier: Option<&Verifier>) -> Rules {
        let kind = spec.kind.as_ref().map_or_else(Vec::new, |kind| self.references("type", kind));
        if kind.iter().any(Reference::reads_kind) {
            self.problem("type", "refers to itself: name where the type stands".to_owned());
        }
        let batch = self.batch(spec);
        let key = self.key(spec);
        let tenant = self.tenant(spec, verifier);
        let mut general = self.state("", spec, None);
        let narrow = spec.narrow.iter().flatten().enumerate().map(|(index, narrow)| {
            let prefix = format!("narrow[{index}].");
            let types = self.patterns(&format!("{prefix}types"), &narrow.types, true);
            (types, self.state(&prefix, spec, Some(narrow)))
        });
        let mut narrow: Vec<(Patterns, StateRule)> = narrow.collect();
        let all: Vec<&StateRule> = std::iter::once(&general).chain(narrow.iter().map(|(_, rule)| rule)).collect();
        let refetch = self.refetch(spec, &all);
        let judged = all.iter().any(|rule| rule.order.needs_judging() || !rule.effect_key.is_empty());
        for rule in std::iter::once(&mut general).chain(narrow.iter_mut().map(|(_, rule)| rule)) {
            // one rule that needs judging makes all events of the source judged: they share resources and keys
            Arc::make_mut(&mut rule.order).judged = judged;
        }
        let also = spec.also.iter().flatten().enumerate().map(|(index, also)| self.also(index, also)).collect();
        let form_json = spec.form_json.as_deref().map(|field| self.wants.field(field));
        let text = TextRule { form_json, decode: spec.decode.unwrap_or_default() };
        let mut without = Without::default();
        spec.digest_without.iter().flatten().for_each(|pointer| without.add(pointer));
        let volatile = spec.digest_without.iter().flatten().filter_map(|pointer| self.volatile(pointer));
        let volatile = volatile.collect();
        let types = spec.types.as_ref().map(|types| self.patterns("types", types, true));
        let pings = self.patterns("pings", spec.pings.as_deref().unwrap_or_default(), false);
        let (signed_handshakes, unsigned) = self.handshakes(spec, text);
        Rules {
            wants: Wants::default(),
            text,
            batch,
            key,
            kind,
            tenant,
            tenants: spec.tenants.iter().map(|tenant| (tenant.name().to_owned(), Arc::from(tenant.name()))).collect(),
            general,
            narrow,
            also,
            types,
            pings,
            refetch,
            volatile,
            without,
            signed_handshakes,
            unsigned,
            kept: Vec::new(),
        }
    }

    fn batch(&mut self, spec: &SourceSpec) -> Option<BatchRule> {
        let items_max = spec.batch_items.unwrap_or(BATCH_ITEMS_DEFAULT);
        if !(1..=BATCH_ITEMS_MAX).contains(&items_max) {
            self.problem("batch_items", format!("must be 1 to {BATCH_ITEMS_MAX}, got {items_max}"));
        }
        let Some(text) = &spec.batch else {
            if spec.batch_items.is_some() {
                self.problem(
                    "batch_items",
                    "is set without `batch`: name the array of events, or leave it out".to_owned(),
                );
            }
            return None;
        };
        let split = match text.as_str() {
            "lines" => {
                if spec.decode.unwrap_or_default() != DecodeSpec::Json {
                    self.problem("batch", "is \"lines\", which go with JSON: leave `decode` out".to_owned());
                }
                self.wants.whole = true;
                Split::Lines
            }
            text => self.split(text)?,
        };
        Some(BatchRule { split, items_max: usize::try_from(items_max).unwrap_or(usize::MAX) })
    }

    fn split(&mut self, text: &str) -> Option<Split> {
        self.split_at(text).map_err(|message| self.problem("batch", message)).ok()
    }

    /// Alternatives are arrays side by side, of which a request has one.
    fn split_at(&mut self, text: &str) -> Result<Split, String> {
        let mut arrays = Vec::new();
        let mut outers = Vec::new();
        for one in text.split(" | ") {
            let Some(pointer) = one.trim().strip_prefix("body:") else {
                return Err(format!("must be \"body:\" or \"body:/pointer\" of an array, or \"lines\", got {one:?}"));
            };
            match pointer.split_once("/*") {
                None => arrays.push(self.wants.body.add(pointer)?),
                Some((_, inner)) if !inner.starts_with('/') || inner.contains("/*") => {
                    return Err(format!("has {one:?}: `*` stands for the items of one array, with another below it"));
                }
                Some((outer, inner)) => {
                    outers.push(self.wants.body.add(outer)?);
                    arrays.push(self.wants.outer.add(inner)?);
                }
            }
        }
        match outers.first() {
            None => Ok(Split::Array(arrays)),
            Some(&outer) if outers.len() == arrays.len() && outers.iter().all(|&other| other == outer) => {
                Ok(Split::Nested { outer, inner: arrays })
            }
            Some(_) => Err(format!("has {text:?}: alternatives below `*` must stand in items of the same array")),
        }
    }

    fn key(&mut self, spec: &SourceSpec) -> Vec<Reference> {
        let Some(key) = &spec.key else {
            self.problem(
                "key",
                "is missing: name the field or header that is the same for every attempt of one event".to_owned(),
            );
            return Vec::new();
        };
        let references = self.references("key", key);
        if !references.is_empty() && references.iter().all(Reference::is_constant) {
            self.problem("key", "is the same for every event, so all but the first would be duplicates".to_owned());
        } else if spec.batch.is_some() && !references.iter().any(Reference::tells_items_apart) {
            let message = "reads nothing of the item, so all but the first of a batch would be duplicates: \
                           add a part that reads `item:`";
            self.problem("key", message.to_owned());
        }
        references
    }

    fn reference(&mut self, key: &str, text: &str) -> Option<Reference> {
        let reference = self.wants.reference(text).map_err(|message| self.problem(key, message)).ok()?;
        if reference.reads_item() && !self.items {
            let message = "reads `item:`, and there are no items: name their array with `batch` (or `also.each`)";
            self.problem(key, message.to_owned());
        }
        if reference.is_own() && key != "key" {
            self.problem(key, "reads `unique`, which only a `key` can: name a field".to_owned());
        }
        Some(reference)
    }

    fn references(&mut self, key: &str, texts: &Texts) -> Vec<Reference> {
        if texts.all().is_empty() || texts.all().len() > 8 {
            self.problem(key, "must have 1 to 8 references".to_owned());
        }
        texts.all().iter().filter_map(|text| self.reference(key, text)).collect()
    }

    fn patterns(&mut self, key: &str, patterns: &[String], needed: bool) -> Patterns {
        if needed && patterns.is_empty() {
            self.problem(key, "is empty: state a pattern such as \"*\"".to_owned());
        }
        if patterns.len() > 256 || patterns.iter().any(|pattern| pattern.len() > 255) {
            self.problem(key, "has more than 256 patterns, or one longer than 255 bytes".to_owned());
        }
        Patterns::new(patterns)
    }

    fn resource(&mut self, key: &str, spec: &ResourceSpec) -> ResourceRule {
        let kind = self.references(&format!("{key}.type"), &spec.kind);
        let id = self.references(&format!("{key}.id"), &spec.id);
        if !id.is_empty() && id.iter().all(Reference::is_literal) {
            self.problem(&format!("{key}.id"), "is the same for every event: name the field that holds it".to_owned());
        }
        ResourceRule { kind, id }
    }

    fn version(&mut self, key: &str, parts: &[VersionSpec]) -> Vec<VersionPart> {
        if parts.len() > VERSION_PARTS_MAX {
            self.problem(key, format!("has more than {VERSION_PARTS_MAX} parts: leave some out"));
        }
        let mut all = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let key = format!("{key}[{index}]");
            let ranked = part.form == VersionForm::Rank;
            if ranked == part.ranks.is_empty() {
                self.problem(&format!("{key}.ranks"), "belongs to `as = \"rank\"`, and to nothing else".to_owned());
            }
            let ranks = self.patterns(&format!("{key}.ranks"), &part.ranks, false);
            let zone = part.zone.as_deref().map(times::zone);
            if zone == Some(None) || (zone.is_some() && part.form != VersionForm::Time) {
                let message = "must be \"UTC\" or an offset such as \"+02:00\", and goes with `as = \"time\"`";
                self.problem(&format!("{key}.zone"), message.to_owned());
            }
            let Some(from) = self.reference(&format!("{key}.from"), &part.from) else { continue };
            let (form, precision) = (part.form, precision(part.precision));
            all.push(VersionPart { from, form, precision, zone: zone.flatten(), ranks });
        }
        all
    }

    fn delete(&mut self, key: &str, spec: &DeleteSpec) -> Option<DeleteRule> {
        let types = self.patterns(&format!("{key}.types"), &spec.types, false);
        let field = match (&spec.from, &spec.equals) {
            (Some(from), Some(equals)) => Some((self.reference(&format!("{key}.from"), from)?, equals.clone())),
            (None, None) => None,
            _ => {
                self.problem(key, "states only one of `from` and `equals`: state both".to_owned());
                None
            }
        };
        Some(DeleteRule { types, field })
    }

    fn also(&mut self, index: usize, spec: &AlsoSpec) -> AlsoRule {
        let key = format!("also[{index}]");
        let each = spec.each.as_deref().and_then(|each| {
            let pointer = each.strip_prefix("body:").map(|pointer| self.wants.body.add(pointer));
            match pointer {
                Some(Ok(slot)) => Some(slot),
                Some(Err(message)) => {
                    self.problem(&format!("{key}.each"), message);
                    None
                }
                None => {
                    self.problem(&format!("{key}.each"), "must be `body:/pointer` of an array".to_owned());
                    None
                }
            }
        });
        if spec.each.is_some() && self.items {
            let message = "cannot go with `batch`: both would be read by `item:`";
            self.problem(&format!("{key}.each"), message.to_owned());
        }
        let before = self.items;
        self.items |= spec.each.is_some();
        let resource = self.resource(&format!("{key}.resource"), &spec.resource);
        let version = spec.version.as_ref().map(|parts| self.version(&format!("{key}.version"), parts));
        self.items = before;
        let reads_item = resource.id.iter().chain(&resource.kind).any(Reference::reads_item);
        if spec.each.is_some() && !reads_item {
            self.problem(
                &key,
                "has `each`, but its resource reads no `item:`: all items would be one resource".to_owned(),
            );
        }
        AlsoRule { each, resource, version }
    }

    fn volatile(&mut self, pointer: &str) -> Option<usize> {
        let added = if pointer.is_empty() {
            Err("would leave out the whole body".to_owned())
        } else if self.items {
            self.wants.item.add(pointer)
        } else {
            self.wants.body.add(pointer)
        };
        added.map_err(|message| self.problem("digest_without", message)).ok()
    }

    fn answer(&mut self, spec: &SourceSpec) -> Answer {
        let answer = spec.answer.clone().unwrap_or_default();
        let status = answer.status.unwrap_or(200);
        if !(200..300).contains(&status) {
            self.problem("answer.status", format!("is {status}: a taken event is answered 2xx"));
        }
        if answer.body.as_ref().is_some_and(|body| body.len() > 4096) {
            self.problem("answer.body", "is longer than 4096 bytes".to_owned());
        }
        let kind = answer.content_type.unwrap_or_else(|| "text/plain; charset=utf-8".to_owned());
        if kind.parse::<HeaderValue>().is_err() {
            self.problem("answer.content_type", "cannot be a header's value: correct it".to_owned());
        }
        let mut headers = Vec::new();
        for (name, text) in &answer.headers {
            let key = format!("answer.headers.{name}");
            let texts = self.known_texts(&key, text);
            let value = texts.first().and_then(|text| HeaderValue::from_str(&text.0).ok());
            match (name.parse::<HeaderName>(), value) {
                (Ok(name), Some(value)) => headers.push((name, value)),
                _ if texts.is_empty() => {}
                _ => self.problem(&key, "is no header that can be answered: correct it".to_owned()),
            }
        }
        Answer { status, body: answer.body.map(|body| (kind, Bytes::from(body))), headers }
    }
}

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let dots = text.bytes().all(|byte| byte == b'.');
    !dots && text.len() <= NAME_BYTES_MAX && text.bytes().all(fits)
}

const fn precision(spec: Option<PrecisionSpec>) -> Precision {
    match spec {
        Some(PrecisionSpec::S) => Precision::Seconds,
        Some(PrecisionSpec::Ms) => Precision::Millis,
        Some(PrecisionSpec::Us) => Precision::Micros,
        Some(PrecisionSpec::Ns) | None => Precision::Nanos,
    }
}

/// What is kept beside the body: the content type, and the headers the rules read or the source names;
/// never a signature or a credential.
fn kept_headers(spec: &SourceSpec, rules: &Rules, verifier: &Verifier) -> Vec<HeaderName> {
    let stated = spec.keep_headers.iter().flatten().filter_map(|name| name.parse().ok());
    let state = std::iter::once(&rules.general).chain(rules.narrow.iter().map(|(_, rule)| rule));
    let of_state = state.flat_map(|rule| {
        let versions = rule.version.iter().map(|part| &part.from);
        versions.chain(rule.step.iter().map(|step| &step.from)).chain(&rule.effect_key)
    });
    let read = rules.key.iter().chain(&rules.kind).chain(of_state).flat_map(Reference::headers).cloned();
    let mut kept: Vec<HeaderName> = Vec::new();
    let CodingSpec { gzip, deflate } = spec.content_encoding.unwrap_or_default();
    // what is kept as it came is read by this header
    let packed = [gzip, deflate].contains(&Some(SignedAs::SignedEncoded)).then_some(CONTENT_ENCODING);
    for name in std::iter::once(CONTENT_TYPE).chain(packed).chain(read).chain(stated) {
        let secret = NEVER_KEPT.contains(&name.as_str()) || verifier.signature_headers().any(|header| *header == name);
        if !secret && !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}
