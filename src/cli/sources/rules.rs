//! The rules of a source in words: one line for each thing that is read, checked or answered.

use crate::source::explain::layout;
use crate::source::spec::{
    AlsoSpec, DeleteSpec, HandshakeSpec, NarrowSpec, OrderSpec, ResourceSpec, Scheme, SecretForm, SignedSpec,
    SourceSpec, StartSpec, Texts, TieSpec, VerifySpec, VersionForm, VersionSpec,
};

/// A heading with its lines: what, and how.
pub(super) type Section = (String, Vec<(&'static str, String)>);

/// A setting as the file writes it.
pub(super) fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

/// The scheme's name.
pub(super) fn scheme(spec: &SourceSpec) -> String {
    spec.verify.as_ref().and_then(|verify| verify.scheme).map_or_else(|| "-".to_owned(), word)
}

/// All sections of a source whose preset is laid under it.
pub(super) fn sections(spec: &SourceSpec, order_why: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(verify) = &spec.verify {
        sections.push(("verification".to_owned(), verification(verify)));
    }
    sections.push(("events".to_owned(), events(spec, order_why)));
    for narrow in spec.narrow.iter().flatten() {
        sections.push((format!("events of type {}", narrow.types.join(", ")), narrowed(narrow)));
    }
    for handshake in spec.handshake.iter().flatten() {
        sections.push((format!("handshake {}", handshake.name), greeting(handshake)));
    }
    let limits = limits(spec);
    if !limits.is_empty() {
        sections.push(("answers and limits".to_owned(), limits));
    }
    sections
}

fn joined(texts: &Texts, by: &str) -> String {
    texts.all().join(by)
}

fn verification(verify: &VerifySpec) -> Vec<(&'static str, String)> {
    let scheme = verify.scheme.unwrap_or(Scheme::HmacSha256);
    let standard = scheme == Scheme::StandardWebhooks;
    let usual = |stated: Option<String>, usual: &str| stated.or_else(|| standard.then(|| usual.to_owned()));
    let mut lines = vec![("scheme", word(scheme))];
    let place = verify.header.as_ref().map(|names| format!("header {}", joined(names, ", else ")));
    let place = place.or_else(|| verify.from.as_ref().map(|places| joined(places, ", else ")));
    let place = usual(place, "header webhook-signature").or_else(|| match scheme {
        Scheme::Basic => Some("header authorization".to_owned()),
        Scheme::Contentful => Some("header x-contentful-signature".to_owned()),
        Scheme::HttpSignature => Some("headers signature-input and signature".to_owned()),
        _ => None,
    });
    lines.extend(place.map(|place| ("signature", place)));
    lines.extend(verify.also_header.as_ref().map(|names| ("also", format!("header {}", joined(names, ", ")))));
    lines.extend(verify.format.as_ref().map(|format| ("layout", layout(format))));
    let encoded = !matches!(scheme, Scheme::Token | Scheme::Basic | Scheme::JwtEs256 | Scheme::HttpSignature);
    if encoded {
        let encoding = verify.encoding.map(word);
        lines.push(("written in", encoding.unwrap_or_else(|| if standard { "base64" } else { "hex" }.to_owned())));
    }
    lines.extend(verify.each.as_ref().map(|array| ("for each", format!("item of {array}, by itself"))));
    lines.extend(usual(signed(verify, scheme), "{id}.{timestamp}.{body}").map(|signed| ("signed", signed)));
    let id = verify.id.as_ref().map(|places| joined(places, ", else "));
    lines.extend(usual(id, "webhook-id").map(|id| ("id", id)));
    lines.extend(time(verify, scheme).map(|time| ("time", time)));
    for require in verify.require.iter().flatten() {
        lines.push(("required", format!("{} is {}", require.from, joined(&require.is, " or "))));
    }
    lines.extend(
        verify.body_hash.as_ref().map(|place| ("body", format!("its SHA-256 in hexadecimal stands at {place}"))),
    );
    if let Some(methods) = &verify.methods {
        let allowed: Vec<String> =
            methods.allow.iter().map(|(name, scheme)| format!("{name:?} {}", word(scheme))).collect();
        lines.push(("algorithms", format!("by {}: {}", methods.from, allowed.join(", "))));
    }
    lines.extend(verify.components.as_ref().map(|all| ("covers", all.join(", "))));
    if verify.partial == Some(true) {
        lines.push(("partial", "only a part of the event is signed: take it over https alone".to_owned()));
    }
    lines.push(("secret", secret(verify, scheme)));
    lines
}

fn signed(verify: &VerifySpec, scheme: Scheme) -> Option<String> {
    if matches!(scheme, Scheme::Token | Scheme::Basic) {
        return Some("nothing: the secret itself is sent".to_owned());
    }
    match &verify.signed {
        Some(SignedSpec::Any(texts)) => {
            Some(texts.all().iter().map(|text| shown(text)).collect::<Vec<_>>().join(" or "))
        }
        Some(SignedSpec::ByField(by_field)) => {
            let all: Vec<String> =
                by_field.when.iter().map(|(name, text)| format!("{name}: {}", shown(text))).collect();
            Some(format!("by {}: {}", by_field.from, all.join("; ")))
        }
        None => match scheme {
            Scheme::StandardWebhooks => None,
            Scheme::JwtEs256 => Some("the claims of the JWT".to_owned()),
            Scheme::HttpSignature => Some("the components that the request lists".to_owned()),
            Scheme::Contentful => Some("method, path, the headers it lists, and the body".to_owned()),
            _ => Some("{body}".to_owned()),
        },
    }
}

fn shown(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn time(verify: &VerifySpec, scheme: Scheme) -> Option<String> {
    let (place, unit, window) = match scheme {
        Scheme::StandardWebhooks => (Some("header:webhook-timestamp"), "s", Some("5m")),
        Scheme::Contentful => (Some("header:x-contentful-timestamp"), "ms", Some("30s")),
        Scheme::HttpSignature => (Some("created of the signature"), "s", None),
        _ => (None, "s", None),
    };
    let stated = verify.timestamp.as_ref().map(|places| joined(places, ", else "));
    let place = stated.or_else(|| place.map(str::to_owned))?;
    let unit = verify.unit.map_or_else(|| unit.to_owned(), word);
    let window = self::window(verify).or_else(|| window.map(str::to_owned));
    let side = if verify.sides.map(word).as_deref() == Some("past") { "ago at most" } else { "off at most" };
    Some(match window {
        Some(window) => format!("{place} in {unit}, {window} {side}"),
        None => format!("{place} in {unit}"),
    })
}

/// How far a signature's time may lie off.
pub(super) fn window(verify: &VerifySpec) -> Option<String> {
    verify.window.map(|window| match window.0.as_secs() {
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        _ => window.to_string(),
    })
}

fn secret(verify: &VerifySpec, scheme: Scheme) -> String {
    if let Some(certificate) = &verify.certificate {
        return format!(
            "none: the certificate is fetched from {} on {}",
            certificate.from,
            certificate.hosts.join(", ")
        );
    }
    if let Some(keys) = &verify.keys {
        return format!("none: keys are asked for at {}", keys.url);
    }
    let standard = scheme == Scheme::StandardWebhooks;
    let form = verify.secret.unwrap_or(if standard { SecretForm::WhsecBase64 } else { SecretForm::Utf8 });
    let form = match (scheme, form) {
        (Scheme::Basic, _) => "name:password, as they are",
        (_, SecretForm::Utf8) => "its characters as they are",
        (_, SecretForm::WhsecBase64) => "base64 behind `whsec_`",
        (_, SecretForm::Base64) => "base64 of the key",
        (_, SecretForm::Hex) => "the key in hexadecimal",
        (_, SecretForm::Sha1Utf8) => "its characters, of which SHA-1 makes the key",
        (_, SecretForm::Spki) => "a public key, base64 of DER",
        (_, SecretForm::Pem) => "a public key or a certificate, as PEM",
        (_, SecretForm::Jwks) => "a JWK set",
    };
    match &verify.secret_prefix {
        Some(prefix) => format!("{form}; begins with `{prefix}`"),
        None => form.to_owned(),
    }
}

fn events(spec: &SourceSpec, order_why: &str) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if spec.form_json.is_some() || spec.decode.is_some() {
        let from = spec.form_json.as_ref().map_or_else(|| "body".to_owned(), |field| format!("form field {field}"));
        let decode = spec.decode.map_or_else(|| "json".to_owned(), word);
        lines.push(("body", format!("{from} as {decode}")));
    }
    if let Some(batch) = &spec.batch {
        let most = spec.batch_items.map_or_else(String::new, |most| format!(", at most {most}"));
        lines.push(("batch", format!("each item of {batch} is an event{most}")));
    }
    lines.extend(spec.key.as_ref().map(|key| ("key", joined(key, " and "))));
    lines.extend(spec.kind.as_ref().map(|kind| ("type", joined(kind, " . "))));
    lines.extend(spec.tenant.as_ref().map(|tenant| ("tenant", tenant.clone())));
    lines.extend(spec.resource.as_ref().map(|rule| ("resource", resource(rule))));
    lines.extend(spec.version.as_ref().map(|parts| ("version", version(parts))));
    let policy = spec.policies().first().copied().unwrap_or_default();
    lines.push(("order", order(policy, spec.order.as_ref())));
    if !order_why.is_empty() {
        lines.push(("why", order_why.to_owned()));
    }
    lines.extend(spec.merge.map(|merge| ("merge", word(merge))));
    lines.extend(spec.state.as_ref().map(|state| ("state", state.clone())));
    lines.extend(spec.effect_key.as_ref().map(|key| ("effect key", joined(key, " and "))));
    lines.extend(spec.refetch.as_ref().map(|refetch| ("refetch", refetch.url.clone())));
    lines.extend(spec.delete.as_ref().map(|rule| ("deletes", delete(rule))));
    lines.extend(spec.also.iter().flatten().map(|rule| ("also", also(rule))));
    lines.extend(spec.types.as_ref().map(|types| ("only types", types.join(", "))));
    lines.extend(spec.pings.as_ref().map(|pings| ("pings", pings.join(", "))));
    lines.extend(spec.digest_without.as_ref().map(|all| ("retries change", all.join(", "))));
    lines
}

/// A resource's two references.
pub(super) fn resource(rule: &ResourceSpec) -> String {
    format!("{} with the id {}", joined(&rule.kind, " / "), joined(&rule.id, " / "))
}

/// The parts of a version.
pub(super) fn version(parts: &[VersionSpec]) -> String {
    let part = |part: &VersionSpec| match part.form {
        VersionForm::Rank => format!("{} ranked {}", part.from, part.ranks.join(" < ")),
        form => format!("{} as {}", part.from, word(form)),
    };
    if parts.is_empty() { "none".to_owned() } else { parts.iter().map(part).collect::<Vec<_>>().join(", then ") }
}

fn order(policy: &str, spec: Option<&OrderSpec>) -> String {
    let mut text = policy.to_owned();
    let Some(spec) = spec else { return text };
    match spec.tie {
        Some(TieSpec::Apply) => text.push_str("; of equal versions the later arrival applies"),
        Some(TieSpec::Keep) => text.push_str("; of equal versions the stored one stays"),
        None => {}
    }
    match &spec.start {
        Some(StartSpec::Number(number)) => text.push_str(&format!("; begins with {number}")),
        Some(StartSpec::Steps(steps)) => text.push_str(&format!("; begins with {}", joined(steps, " or "))),
        None => {}
    }
    let spans = [("; waits for ", spec.hold_for), ("; held for ", spec.window)];
    for (before, span) in spans {
        text.push_str(&span.map_or_else(String::new, |span| format!("{before}{span}")));
    }
    text.push_str(&spec.on_gap.map_or_else(String::new, |then| format!(", then {}", word(then))));
    text
}

fn delete(rule: &DeleteSpec) -> String {
    let mut ways = Vec::new();
    if !rule.types.is_empty() {
        ways.push(format!("types {}", rule.types.join(", ")));
    }
    if let (Some(from), Some(equals)) = (&rule.from, &rule.equals) {
        ways.push(format!("{from} is {equals}"));
    }
    ways.join(", or ")
}

fn also(rule: &AlsoSpec) -> String {
    let each = rule.each.as_ref().map_or_else(String::new, |each| format!("each of {each}: "));
    let version = rule.version.as_ref().map_or_else(String::new, |parts| format!(", version {}", version(parts)));
    format!("{each}{}{version}", resource(&rule.resource))
}

fn narrowed(narrow: &NarrowSpec) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(narrow.resource.as_ref().map(|rule| ("resource", resource(rule))));
    lines.extend(narrow.version.as_ref().map(|parts| ("version", version(parts))));
    if let Some(spec) = &narrow.order {
        lines.push(("order", order(spec.policy.map_or("as above", |policy| policy.name()), Some(spec))));
    }
    lines.extend(narrow.merge.map(|merge| ("merge", word(merge))));
    lines.extend(narrow.state.as_ref().map(|state| ("state", state.clone())));
    lines.extend(narrow.effect_key.as_ref().map(|key| ("effect key", joined(key, " and "))));
    lines.extend(narrow.delete.as_ref().map(|rule| ("deletes", delete(rule))));
    lines
}

fn greeting(handshake: &HandshakeSpec) -> Vec<(&'static str, String)> {
    let method = handshake.method.as_ref().map_or_else(|| "POST".to_owned(), |methods| joined(methods, ", "));
    let is_signed = handshake.verify.unwrap_or(method == "POST");
    let conditions = |all: &std::collections::BTreeMap<String, Texts>| {
        let one = |(from, texts): (&String, &Texts)| match joined(texts, " or ").as_str() {
            "*" => format!("{from} is there"),
            "" => format!("{from} is not there"),
            text => format!("{from} is {text}"),
        };
        all.iter().map(one).collect::<Vec<_>>().join(" and ")
    };
    let mut lines = vec![
        ("request", format!("{method}, {}", if is_signed { "signed" } else { "not signed" })),
        ("when", conditions(&handshake.when)),
    ];
    if !handshake.require.is_empty() {
        lines.push(("required", conditions(&handshake.require)));
    }
    let answer = &handshake.answer;
    let status = answer.status.unwrap_or(200);
    let text = answer.text.clone().or_else(|| answer.json.as_ref().map(word));
    lines.push(("answer", text.map_or_else(|| status.to_string(), |text| format!("{status} {text}"))));
    lines.extend(answer.headers.iter().map(|(name, value)| ("header", format!("{name}: {value}"))));
    lines.extend(handshake.get.as_ref().map(|get| ("fetches", format!("{} on {}", get.url, get.hosts.join(", ")))));
    lines.extend(handshake.learn.as_ref().map(|place| ("learns", format!("the secret at {place}"))));
    lines
}

fn limits(spec: &SourceSpec) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(spec.content_types.as_ref().map(|types| ("content types", types.join(", "))));
    lines.extend(spec.max_body.map(|size| ("body", format!("at most {size}"))));
    if let Some(answer) = &spec.answer {
        let body = answer.body.as_ref().map_or_else(String::new, |body| format!(" {body}"));
        lines.push(("answer", format!("{}{body}", answer.status.unwrap_or(200))));
        lines.extend(answer.headers.iter().map(|(name, value)| ("header", format!("{name}: {value}"))));
    }
    lines.extend(spec.on_unusable.map(|what| ("unusable", word(what))));
    lines.extend(spec.content_encoding.map(|coding| ("encodings", word(coding))));
    lines.extend(spec.rate.map(|rate| ("rate", format!("{} a second", rate.per_second))));
    lines
}
