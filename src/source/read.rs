//! From a verified request to an [`Event`] (or several, see `batch`), a handshake's answer, or an [`Unusable`]
//! with its reason.

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use smallvec::SmallVec;
use tidegate_actors::rules::event::{Event, EventId, Guard, Ignored, Intent, Resource, Unusable};
use tidegate_actors::rules::fields::{MEMBERS_MAX, Patch};
use tidegate_actors::rules::key::{BodyDigest, Key, KeyError};

use super::json::Values;
use super::parts::{self, MembersFault};
use super::reference::{Found, Reference};
use super::rules::{
    self, AlsoRule, EFFECT_KEY, Flaw, KEY, RESOURCE, ResourceRule, StateRule, TENANT, TYPE, TenantRule, VersionPart,
};
use super::wants::json_flaw;
use super::watch::Watch;
use super::{Reading, Request, Source, Verified, digest};

/// The most resources of one event.
const GUARDS_MAX: usize = 64;
/// The most bytes of a kept header's value, and of all kept headers.
const HEADER_BYTES_MAX: usize = 1024;
const HEADERS_BYTES_MAX: usize = 8 * 1024;

type Guards = SmallVec<[Guard; 1]>;
/// The parts of a version, and whether an event without it is unusable.
type VersionRule<'a> = (&'a [VersionPart], bool);

/// What becomes one event: a request, or one item of its batch.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) tenant: &'a Arc<str>,
    /// Headers worth keeping.
    pub(super) headers: &'a Bytes,
    /// The raw bytes, whole.
    pub(super) body: &'a Bytes,
    /// Its place in its batch, where it is an item.
    pub(super) item: Option<usize>,
    /// What they say, inside their content encoding.
    pub(super) content: &'a Bytes,
    /// Who looks on.
    pub(super) watch: Option<&'a Watch>,
}

impl Source {
    /// Reads a request that [`Source::verify`] let pass. Each event is given an id of its own.
    #[must_use]
    pub fn read(&self, request: &Request<'_>, verified: &Verified, ids: &dyn Fn() -> EventId) -> Reading {
        self.read_watched(request, verified, ids, None)
    }

    /// The same, with someone who looks on.
    pub(super) fn read_watched(
        &self,
        request: &Request<'_>,
        verified: &Verified,
        ids: &dyn Fn() -> EventId,
        watch: Option<&Watch>,
    ) -> Reading {
        if request.body.is_empty() {
            return Reading::Empty;
        }
        let tenant: Arc<str> = verified.tenant.clone().unwrap_or_else(|| Arc::from(""));
        let headers = self.kept(request.headers);
        let unpacked = self.content(request.headers, request.body);
        let content = unpacked.as_ref().unwrap_or(request.body);
        let whole =
            Part { request, tenant: &tenant, headers: &headers, body: request.body, item: None, content, watch };
        if let Err(fault) = unpacked {
            let flaw = Flaw::new("body-not-unpacked", format!("{fault}: raise `max_body`, or ask the sender"));
            return Reading::Unusable(self.unusable(&whole, flaw, ids()));
        }
        self.try_read(&whole, ids).unwrap_or_else(|flaw| Reading::Unusable(self.unusable(&whole, flaw, ids())))
    }

    pub(super) fn unusable(&self, part: &Part<'_>, flaw: Flaw, id: EventId) -> Unusable {
        Unusable {
            id,
            received_at_ms: part.request.now_ms,
            source: self.name.clone(),
            tenant: part.tenant.clone(),
            code: flaw.code,
            reason: flaw.reason,
            digest: BodyDigest::of(part.body),
            headers: self.kept_to_read_again(part),
            body: part.body.clone(),
        }
    }

    fn try_read(&self, whole: &Part<'_>, ids: &dyn Fn() -> EventId) -> Result<Reading, Flaw> {
        let rules = &self.rules;
        let headers = whole.request.headers;
        let texts = rules.wants.texts(rules.text, headers, whole.request.target, whole.content)?;
        let picked = rules.wants.pick(&texts)?;
        let deep = rules.wants.body_deep.read(&picked.deep_texts).map_err(json_flaw)?;
        let found = Found {
            without: &rules.without,
            watch: whole.watch,
            ..picked.found(&texts, &deep, headers, whole.content)
        };
        if let Some(greeting) = self.greet_signed(&found, whole.request, Some(whole.tenant)) {
            return Ok(Reading::Greeting(greeting));
        }
        match &rules.batch {
            Some(rule) => self.batch(rule, whole, &found, ids).map(Reading::Batch),
            None => self.event(whole, &picked.body, &found, ids()).map(Reading::Event),
        }
    }

    /// One event; `values` are those picked out of its text.
    pub(super) fn event(
        &self,
        part: &Part<'_>,
        values: &Values<'_>,
        untyped: &Found<'_>,
        id: EventId,
    ) -> Result<Event, Flaw> {
        let kind = self.kind(untyped)?;
        let found = Found { kind: &kind, own: Some(id), ..*untyped };
        let (tenant, known) = self.tenant(&found, part.tenant)?;
        let key = self.key(&found, &tenant)?;
        let state = self.rules.state(&kind);
        let intent = self.intent(&kind, known);
        let guards = match intent {
            Intent::Apply => self.guards(state, &found, &tenant)?,
            Intent::Ignore(_) => Guards::new(),
        };
        let deletes =
            intent == Intent::Apply && state.delete.as_ref().map_or(Ok(false), |rule| rule.applies(&found))?;
        let effect_key = if intent == Intent::Apply { self.effect_key(state, &found, &tenant)? } else { None };
        let step = match &state.step {
            Some(rule) if !guards.is_empty() => Some(rule.read(&found)?),
            _ => None,
        };
        let patch = match &state.state {
            Some(rule) if !guards.is_empty() && !deletes => Some(members(rule, &found)?),
            _ => None,
        };
        Ok(Event {
            id,
            received_at_ms: part.request.now_ms,
            source: self.name.clone(),
            tenant,
            key,
            digest: self.digest(part.content, untyped.text, values),
            guards,
            order: Arc::clone(&state.order),
            step,
            patch,
            effect_key,
            fetched: None,
            deletes,
            intent,
            headers: part.headers.clone(),
            body: part.body.clone(),
            kind,
        })
    }

    fn kind(&self, found: &Found<'_>) -> Result<String, Flaw> {
        let mut kind = String::new();
        for reference in &self.rules.kind {
            let Some(part) = TYPE.text(reference, found)? else { continue };
            if !kind.is_empty() {
                kind.push('.');
            }
            kind.push_str(&part);
        }
        TYPE.check(&kind)?;
        Ok(kind)
    }

    /// The tenant, and whether the source takes it.
    fn tenant(&self, found: &Found<'_>, by_path: &Arc<str>) -> Result<(Arc<str>, bool), Flaw> {
        let TenantRule::Signed(reference) = &self.rules.tenant else { return Ok((by_path.clone(), true)) };
        let Some(name) = TENANT.text(reference, found)? else {
            let from = &reference.text;
            return Err(Flaw::new("tenant-missing", format!("the tenant at `{from}` is missing: correct `tenant`")));
        };
        TENANT.check(&name)?;
        Ok(match self.rules.tenants.get(&*name) {
            Some(known) => (known.clone(), true),
            None => (Arc::from(&*name), self.rules.tenants.is_empty()),
        })
    }

    fn key(&self, found: &Found<'_>, tenant: &str) -> Result<Key, Flaw> {
        let mut parts = SmallVec::<[Cow<'_, str>; 4]>::new();
        for reference in &self.rules.key {
            let Some(part) = KEY.text(reference, found)? else {
                let from = &reference.text;
                return Err(Flaw::new(
                    "key-missing",
                    format!("the key at `{from}` is missing: correct `key` of the source, or ask the sender for an id"),
                ));
            };
            parts.push(part);
        }
        Key::new(&self.name, tenant, parts.iter().map(|part| &**part)).map_err(|error| {
            let code = match error {
                KeyError::Empty => "key-missing",
                KeyError::Blank => "key-blank",
                KeyError::TooLong => "key-too-long",
                KeyError::Control => "key-not-text",
                KeyError::TooManyParts => "key-too-many-parts",
            };
            Flaw::new(code, format!("{error}: correct `key` of the source, or ask the sender for a usable id"))
        })
    }

    /// The second key; an event that lacks a part of it has none.
    fn effect_key(&self, state: &StateRule, found: &Found<'_>, tenant: &str) -> Result<Option<Key>, Flaw> {
        if state.effect_key.is_empty() {
            return Ok(None);
        }
        let mut parts = SmallVec::<[Cow<'_, str>; 4]>::new();
        for reference in &state.effect_key {
            let Some(part) = EFFECT_KEY.text(reference, found)? else { return Ok(None) };
            parts.push(part);
        }
        let key = Key::effect(&self.name, tenant, parts.iter().map(|part| &**part));
        key.map(Some)
            .map_err(|error| Flaw::new("effect-key-malformed", format!("{error}: correct `effect_key` of the source")))
    }

    fn intent(&self, kind: &str, known_tenant: bool) -> Intent {
        if self.rules.pings.matches(kind) {
            return Intent::Ignore(Ignored::Ping);
        }
        if !known_tenant {
            return Intent::Ignore(Ignored::UnknownTenant);
        }
        match &self.rules.types {
            Some(types) if !types.matches(kind) => Intent::Ignore(Ignored::UnwantedType),
            _ => Intent::Apply,
        }
    }

    fn guards(&self, state: &StateRule, found: &Found<'_>, tenant: &str) -> Result<Guards, Flaw> {
        let mut guards = Guards::new();
        if let Some(rule) = &state.resource {
            self.guard(&mut guards, rule, (&state.version, state.version_needed), found, tenant)?;
        }
        for also in &self.rules.also {
            let parts = also.version.as_ref().unwrap_or(&state.version);
            self.also(&mut guards, also, (parts, state.version_needed), found, tenant)?;
        }
        Ok(guards)
    }

    fn also(
        &self,
        guards: &mut Guards,
        also: &AlsoRule,
        version: VersionRule<'_>,
        found: &Found<'_>,
        tenant: &str,
    ) -> Result<(), Flaw> {
        let Some(slot) = also.each else { return self.guard(guards, &also.resource, version, found, tenant) };
        let Some(raw) = found.body.get(slot).copied().flatten().filter(|raw| *raw != "null") else { return Ok(()) };
        let items = parts::items(raw, GUARDS_MAX).map_err(|_| {
            Flaw::new(
                "resource-not-an-array",
                format!("the resources of `also.each` are no array of at most {GUARDS_MAX} items: correct `also`"),
            )
        })?;
        for item in items {
            let wants = &self.rules.wants;
            let item = wants.item.read(item).map_err(json_flaw)?;
            let texts = wants.item_deep.texts(&item);
            let deep = wants.item_deep.read(&texts).map_err(json_flaw)?;
            self.guard(guards, &also.resource, version, &Found { item: &item, item_deep: &deep, ..*found }, tenant)?;
        }
        Ok(())
    }

    fn guard(
        &self,
        guards: &mut Guards,
        rule: &ResourceRule,
        version: VersionRule<'_>,
        found: &Found<'_>,
        tenant: &str,
    ) -> Result<(), Flaw> {
        let kind = RESOURCE.joined(&rule.kind, found)?;
        let id = RESOURCE.joined(&rule.id, found)?;
        // a version that is none is a fault also where it would guard nothing
        let (parts, needed) = version;
        let version = rules::version(parts, found)?;
        // an event without a resource passes unguarded
        let (Some(kind), Some(id)) = (kind, id) else { return Ok(()) };
        if version.is_none() && !parts.is_empty() && needed {
            let from = parts.iter().map(|part| part.from.text.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Flaw::new(
                "version-missing",
                format!(
                    "the version at `{from}` is missing: correct `version`, or state on_missing_version = \"arrival\""
                ),
            ));
        }
        let resource = Resource::new(&self.name, tenant, kind, id);
        if guards.iter().any(|guard| guard.resource.hash == resource.hash) {
            return Ok(());
        }
        if guards.len() == GUARDS_MAX {
            return Err(Flaw::new("resource-too-many", format!("the event changes more than {GUARDS_MAX} resources")));
        }
        guards.push(Guard { resource, version });
        Ok(())
    }

    fn digest(&self, raw: &[u8], text: Option<&str>, values: &Values<'_>) -> BodyDigest {
        let volatile = || self.rules.volatile.iter().filter_map(|&slot| values[slot]);
        match text {
            Some(text) if volatile().next().is_some() => digest::without(text, volatile()),
            _ => BodyDigest::of(raw),
        }
    }

    /// The headers worth keeping, as a JSON object; bounded, and without what is not text.
    pub(super) fn kept(&self, headers: &HeaderMap) -> Bytes {
        let mut json = Vec::with_capacity(160);
        json.push(b'{');
        for name in &self.rules.kept {
            let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) else { continue };
            if value.len() > HEADER_BYTES_MAX || json.len() + value.len() > HEADERS_BYTES_MAX {
                continue;
            }
            if json.len() > 1 {
                json.push(b',');
            }
            // writing into memory cannot fail, and texts always have a JSON form
            let _ = serde_json::to_writer(&mut json, name.as_str());
            json.push(b':');
            let _ = serde_json::to_writer(&mut json, value);
        }
        json.push(b'}');
        Bytes::from(json)
    }
}

/// The members of the state object that a reference names.
pub(super) fn members(state: &Reference, found: &Found<'_>) -> Result<Patch, Flaw> {
    let from = &state.text;
    let raw = state.json(found).ok_or_else(|| {
        Flaw::new("state-missing", format!("the state at `{from}` is missing: correct `state` of the source"))
    })?;
    let members = parts::members(raw, MEMBERS_MAX).map_err(|fault| {
        let (code, is) = match fault {
            MembersFault::NotAnObject => ("state-not-an-object", "is no object".to_owned()),
            MembersFault::TooMany => ("state-too-large", format!("has more than {MEMBERS_MAX} members")),
            MembersFault::Duplicate(name) => ("body-duplicate-key", format!("has the member {name:?} twice")),
            MembersFault::NotText => ("state-not-text", "has a member whose name is not text".to_owned()),
        };
        Flaw::new(code, format!("the state at `{from}` {is}: correct `state` of the source, or ask the sender"))
    })?;
    Ok(Patch(members.into_iter().map(|(name, value)| (name, value.to_owned())).collect()))
}
