//! Handshakes with their contradictions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use serde_json::{Map, Value};

use super::Compiler;
use crate::source::handshake::{Condition, Guard, Handshake, Hosts, Is, Json, Shape, Template, Unsigned};
use crate::source::spec::{GuardSpec, HandshakeSpec, Letters, SourceSpec, Texts};
use crate::source::wants::{Hidden, TextRule, Wants};

/// The most handshakes of a source, and the most letters of a text that goes into an answer.
const HANDSHAKES_MAX: usize = 16;
const GUARDED_MAX: usize = 4096;
/// Headers that the server decides.
const NOT_OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "content-type"];

impl Compiler {
    /// The handshakes that need the source's signature, and those that do not.
    pub(super) fn handshakes(&mut self, spec: &SourceSpec, decode: TextRule) -> (Vec<Handshake>, Unsigned) {
        let all = spec.handshake.as_deref().unwrap_or_default();
        if all.len() > HANDSHAKES_MAX {
            self.problem("handshake", format!("has more than {HANDSHAKES_MAX} items: leave some out"));
        }
        let wants = || Wants { config: self.wants.config.clone(), ..Wants::default() };
        let mut unsigned = Unsigned { wants: wants(), ..Unsigned::default() };
        let form_json = spec.form_json.as_deref().map(|field| unsigned.wants.field(field));
        unsigned.text = TextRule { form_json, decode: decode.decode };
        let mut signed = Vec::new();
        for (index, handshake) in all.iter().enumerate() {
            let key = format!("handshake[{index}]");
            let methods = self.methods(&key, handshake.method.as_ref());
            let only_post = methods.iter().all(|method| method == Method::POST);
            let verify = handshake.verify.unwrap_or(only_post);
            if verify && !only_post {
                let message = "is true, and only a POST is ever signed: leave it out, or the other methods";
                self.problem(&format!("{key}.verify"), message.to_owned());
            }
            let mut other = std::mem::take(&mut unsigned.wants);
            // what is read of an unsigned request is read of nothing else
            if !verify {
                std::mem::swap(&mut self.wants, &mut other);
            }
            let compiled = self.handshake(&key, handshake, methods);
            if !verify {
                std::mem::swap(&mut self.wants, &mut other);
            }
            unsigned.wants = other;
            if verify { signed.push(compiled) } else { unsigned.all.push(compiled) }
        }
        self.setup(spec, &unsigned);
        self.address(spec, signed.iter().chain(&unsigned.all));
        (signed, unsigned)
    }

    fn handshake(&mut self, key: &str, spec: &HandshakeSpec, methods: Vec<Method>) -> Handshake {
        let at = |name: &str| format!("{key}.{name}");
        if spec.name.trim().is_empty() || spec.name.len() > 64 {
            self.problem(&at("name"), "must have 1 to 64 letters: it is what logs say".to_owned());
        }
        if spec.when.is_empty() {
            self.problem(
                &at("when"),
                "is empty, so every request would be this handshake: say what makes it one".to_owned(),
            );
        }
        let when = self.conditions(&at("when"), &spec.when);
        let require = self.conditions(&at("require"), &spec.require);
        let refuse = spec.refuse.unwrap_or(403);
        if !matches!(refuse, 403 | 404) {
            self.problem(&at("refuse"), format!("is {refuse}: state 403 or 404"));
        }
        let guard = self.guard(&at("guard"), spec.guard);
        let status = spec.answer.status.unwrap_or(200);
        if !(200..300).contains(&status) {
            self.problem(&at("answer.status"), format!("is {status}: a handshake is answered 2xx"));
        }
        let body = match (&spec.answer.text, &spec.answer.json) {
            (Some(_), Some(_)) => {
                self.problem(&at("answer"), "states both `text` and `json`: leave one out".to_owned());
                None
            }
            (Some(text), None) => Some(Shape::Text(self.template(&at("answer.text"), text))),
            (None, Some(json)) => Some(Shape::Json(self.object(&at("answer.json"), json))),
            (None, None) => None,
        };
        let mut headers = Vec::new();
        for (name, text) in &spec.answer.headers {
            let place = at(&format!("answer.headers.{name}"));
            let known = name.parse::<HeaderName>().ok().filter(|name| !NOT_OURS.contains(&name.as_str()));
            match known {
                Some(name) => headers.push((name, self.template(&place, text))),
                None => self.problem(&place, "is no header that can be answered: correct its name".to_owned()),
            }
        }
        let learn = spec.learn.as_deref().and_then(|text| self.reference(&at("learn"), text));
        let get = spec.get.as_ref().and_then(|get| {
            let hosts = Hosts::parse(&get.hosts).map_err(|message| self.problem(&at("get.hosts"), message)).ok();
            Some((self.reference(&at("get.url"), &get.url)?, hosts?))
        });
        let name: Arc<str> = Arc::from(spec.name.as_str());
        let handshake = Handshake { name, methods, when, require, refuse, guard, status, body, headers, learn, get };
        if handshake.any(&Template::is_keyed) && guard.letters == Letters::Text {
            let message = "is `text`, and the answer signs: anyone could have any message signed with the key of events; \
                           use `token` or `lower-hex`";
            self.problem(&at("guard"), message.to_owned());
        }
        handshake
    }

    fn methods(&mut self, key: &str, texts: Option<&Texts>) -> Vec<Method> {
        let Some(texts) = texts else { return vec![Method::POST] };
        let known = [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST];
        let mut methods = Vec::new();
        for text in texts.all() {
            match known.iter().find(|method| method.as_str() == text) {
                Some(method) => methods.push(method.clone()),
                None => {
                    self.problem(&format!("{key}.method"), format!("has {text:?}: use GET, HEAD, OPTIONS or POST"));
                }
            }
        }
        if methods.is_empty() && self.problems.is_empty() {
            self.problem(&format!("{key}.method"), "is empty: state GET, HEAD, OPTIONS or POST".to_owned());
        }
        methods
    }

    fn conditions(&mut self, key: &str, all: &BTreeMap<String, Texts>) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (reference, texts) in all {
            let place = format!("{key}.{reference:?}");
            let Some(from) = self.reference(&place, reference) else { continue };
            let is = match texts.all() {
                [] => {
                    self.problem(&place, "is an empty list: state a text, `*` for any, or \"\" for none".to_owned());
                    continue;
                }
                [only] if only == "*" => Is::There,
                [only] if only.is_empty() => Is::Absent,
                several => Is::OneOf(several.iter().flat_map(|text| self.known_texts(&place, text)).collect()),
            };
            conditions.push(Condition { from, is });
        }
        conditions
    }

    /// A text as written, or the values of `config:name`.
    pub(super) fn known_texts(&mut self, key: &str, text: &str) -> Vec<Hidden> {
        let Some(name) = text.strip_prefix("config:") else { return vec![Hidden(Arc::from(text))] };
        let values = self.wants.config.get(name).cloned();
        values.unwrap_or_else(|| {
            self.problem(key, format!("refers to `config.{name}`, which is missing: add it to the source's `config`"));
            Vec::new()
        })
    }

    fn guard(&mut self, key: &str, spec: Option<GuardSpec>) -> Guard {
        let guard = match spec {
            None => Guard::of(Letters::default()),
            Some(GuardSpec::Letters(letters)) => Guard::of(letters),
            Some(GuardSpec::Bounded(bounded)) => Guard { letters: bounded.chars, min: bounded.min, max: bounded.max },
        };
        if guard.min == 0 || guard.min > guard.max || guard.max > GUARDED_MAX {
            self.problem(key, format!("must be from 1 to {GUARDED_MAX} letters, `min` not above `max`"));
        }
        guard
    }

    fn template(&mut self, key: &str, text: &str) -> Template {
        let parsed = Template::parse(text, &mut self.wants);
        parsed.map_err(|message| self.problem(key, message)).unwrap_or_default()
    }

    fn object(&mut self, key: &str, members: &Map<String, Value>) -> Json {
        let member = |(name, value): (&String, &Value)| (name.clone(), self.json(&format!("{key}.{name}"), value));
        Json::Object(members.iter().map(member).collect())
    }

    fn json(&mut self, key: &str, value: &Value) -> Json {
        match value {
            Value::String(text) => Json::Text(self.template(key, text)),
            Value::Object(members) => self.object(key, members),
            Value::Array(items) => Json::Array(items.iter().map(|item| self.json(key, item)).collect()),
            other => Json::Fixed(other.clone()),
        }
    }

    fn setup(&mut self, spec: &SourceSpec, unsigned: &Unsigned) {
        let Some(setup) = &spec.setup else { return };
        if !unsigned.all.iter().any(|handshake| handshake.learn.is_some()) {
            let message = "is stated, and no unsigned handshake has `learn`: there is nothing to set up, take it out";
            self.problem("setup", message.to_owned());
        }
        if !Path::new(&setup.secret_to).is_absolute() {
            let message = "must be the whole path of a file, such as \"/etc/tidegate/NAME.secret\"";
            self.problem("setup.secret_to", message.to_owned());
        }
    }

    fn address<'h>(&mut self, spec: &SourceSpec, mut all: impl Iterator<Item = &'h Handshake>) {
        let origin = spec.verify.as_ref().and_then(|verify| verify.origin.as_deref()).unwrap_or_default();
        if all.any(|handshake| handshake.any(&Template::needs_url)) && origin.is_empty() {
            let message = "is missing although a handshake answers with `url`: state scheme and host as the sender calls \
                           them, such as https://hooks.example.com";
            self.problem("verify.origin", message.to_owned());
        }
    }
}
