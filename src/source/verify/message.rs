//! HTTP message signatures (RFC 9421) with Content-Digest (RFC 9530).
//!
//! The algorithm and the components that must be covered are the source's; what the message says of itself only
//! narrows them. Host and scheme come from the settings.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq as _};

use super::super::form;
use super::super::spec::Scheme;
use super::super::{Reason, Request};
use super::Keys;
use super::draft::Draft;
use super::header::HEADER_BYTES_MAX;
use super::key::Made;
use super::place::{one, query_of, trimmed};
use super::sign::{SignError, signature};
use super::time::Window;

pub(super) static HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("signature"), HeaderName::from_static("signature-input")];

/// The most signatures of a message, and the most components of one.
const SIGNATURES_MAX: usize = 4;
const COMPONENTS_MAX: usize = 32;
/// The most bytes of `Signature-Input`.
const INPUT_BYTES_MAX: usize = 2 * HEADER_BYTES_MAX;

pub(super) struct Message {
    pub(super) algorithm: Scheme,
    /// Components that must be covered.
    pub(super) components: Vec<String>,
    pub(super) window: Window,
    /// Scheme, host and path prefix, as the sender calls us.
    pub(super) origin: String,
}

/// One entry of `Signature-Input`.
#[derive(Debug, PartialEq, Eq)]
struct Input<'a> {
    label: &'a str,
    /// The text that is signed as `@signature-params`.
    params: &'a str,
    components: Vec<Component<'a>>,
    created: Option<&'a str>,
    expires: Option<&'a str>,
    alg: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Component<'a> {
    name: &'a str,
    /// As written, with quotes and parameters.
    text: &'a str,
    /// The value of `name="…"`, the only parameter taken.
    query: Option<&'a str>,
}

/// What a signature would have to be over.
pub(super) struct Base {
    pub(super) bytes: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

impl Message {
    pub(super) fn verify(&self, request: &Request<'_>, tenant: Option<&str>, keys: &Keys) -> Result<usize, Reason> {
        let input = one(request.headers, &HEADERS[1])?.map(trimmed).filter(|value| !value.is_empty());
        let values = one(request.headers, &HEADERS[0])?.map(trimmed).filter(|value| !value.is_empty());
        let (values, input) = (values.ok_or(Reason::MissingSignature)?, input.ok_or(Reason::MissingSignature)?);
        if input.len() > INPUT_BYTES_MAX || values.len() > INPUT_BYTES_MAX {
            return Err(Reason::MalformedSignature);
        }
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Reason::MalformedSignature);
        let (input, values) = (text(input)?, text(values)?);
        let mut refused = Reason::MalformedSignature;
        for (number, member) in members(input).enumerate() {
            if number == SIGNATURES_MAX {
                return Err(Reason::MalformedSignature);
            }
            match self.check(request, tenant, keys, member, values) {
                Ok(signer) => return Ok(signer),
                Err(reason) => refused = reason,
            }
        }
        Err(refused)
    }

    /// Whether a signature that lacks this header is refused.
    pub(super) fn needs_header(&self, name: &HeaderName) -> bool {
        self.components.iter().any(|component| component == name.as_str())
    }

    /// The request with one signature over what must be covered, made now.
    pub(super) fn sign(&self, request: &Request<'_>, made: &Made) -> Result<Draft, SignError> {
        let mut draft = Draft::of(request);
        let mut set = |name: HeaderName, text: &str| {
            let value = HeaderValue::from_str(text).map_err(|_| SignError::NotAHeader(text.to_owned()))?;
            draft.headers.insert(name, value);
            Ok(())
        };
        let digest = HeaderName::from_static("content-digest");
        if self.needs_header(&digest) {
            set(digest, &format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(request.body))))?;
        }
        let components: Vec<String> = self.components.iter().map(|name| format!("\"{name}\"")).collect();
        let algorithm = name_of(self.algorithm).map_or_else(String::new, |name| format!(";alg=\"{name}\""));
        let created = request.now_ms.div_euclid(1000);
        let member = format!("sig1=({});created={created}{algorithm}", components.join(" "));
        set(HEADERS[1].clone(), &member)?;
        let full = Request { headers: &draft.headers, ..*request };
        let input = Input::read(&member).ok_or(SignError::MissingHeader)?;
        let base = self.base(&full, &input).map_err(|_| SignError::MissingHeader)?;
        let text = format!("sig1=:{}:", STANDARD.encode(signature(made, &base)?));
        let value = HeaderValue::from_str(&text).map_err(|_| SignError::NotAHeader(text))?;
        draft.headers.insert(HEADERS[0].clone(), value);
        Ok(draft)
    }

    fn check(
        &self,
        request: &Request<'_>,
        tenant: Option<&str>,
        keys: &Keys,
        member: &str,
        values: &str,
    ) -> Result<usize, Reason> {
        let input = Input::read(member).ok_or(Reason::MalformedSignature)?;
        let value = members(values).find_map(|value| value.strip_prefix(input.label)?.strip_prefix('='));
        let signature = value.and_then(bytes).ok_or(Reason::MalformedSignature)?;
        if input.alg.is_some_and(|alg| Some(alg) != name_of(self.algorithm)) {
            return Err(Reason::UnsupportedVersion);
        }
        let covers = |wanted: &String| input.components.iter().any(|component| component.name == wanted.as_str());
        if !self.components.iter().all(covers) {
            return Err(Reason::InsufficientCoverage);
        }
        let created_ms = self.window.read(input.created.ok_or(Reason::MissingTimestamp)?.as_bytes())?;
        let expires_ms = input.expires.map(|text| self.window.read(text.as_bytes())).transpose()?;
        let base = self.base(request, &input)?;
        let signer = signer(&base, &signature, request, tenant, keys)?;
        if input.components.iter().any(|component| component.name == "content-digest") {
            check_digest(request.headers, request.body)?;
        }
        self.window.check(created_ms, request.now_ms)?;
        if expires_ms.is_some_and(|expires_ms| expires_ms < i128::from(request.now_ms)) {
            return Err(Reason::OutsideWindowPast);
        }
        Ok(signer)
    }

    /// What each listed signature would have to be over, with the signature.
    pub(super) fn bases(&self, request: &Request<'_>) -> Result<Vec<Base>, Reason> {
        let text = |name| {
            let value = one(request.headers, name)?.and_then(|value| value.to_str().ok());
            value.filter(|value| value.len() <= INPUT_BYTES_MAX).ok_or(Reason::MissingSignature)
        };
        let (input, values) = (text(&HEADERS[1])?, text(&HEADERS[0])?);
        let mut bases = Vec::new();
        for input in members(input).take(SIGNATURES_MAX).filter_map(Input::read) {
            let value = members(values).find_map(|value| value.strip_prefix(input.label)?.strip_prefix('='));
            if let Some(signature) = value.and_then(bytes) {
                bases.push(Base { bytes: self.base(request, &input)?, signature });
            }
        }
        Ok(bases)
    }

    fn base(&self, request: &Request<'_>, input: &Input<'_>) -> Result<Vec<u8>, Reason> {
        let mut base = Vec::with_capacity(512);
        for component in &input.components {
            base.extend_from_slice(component.text.as_bytes());
            base.extend_from_slice(b": ");
            self.value(request, component, &mut base)?;
            base.push(b'\n');
        }
        base.extend_from_slice(b"\"@signature-params\": ");
        base.extend_from_slice(input.params.as_bytes());
        Ok(base)
    }

    fn value(&self, request: &Request<'_>, component: &Component<'_>, base: &mut Vec<u8>) -> Result<(), Reason> {
        let (scheme, rest) = self.origin.split_once("://").unwrap_or_default();
        let (host, _) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let target = request.target;
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let own = if scheme == "https" { ":443" } else { ":80" };
        let mut put = |text: &str| base.extend_from_slice(text.as_bytes());
        match component.name {
            "@method" => put(request.method.as_str()),
            "@target-uri" => {
                put(&self.origin);
                put(target);
            }
            "@authority" => put(&host.strip_suffix(own).unwrap_or(host).to_ascii_lowercase()),
            "@scheme" => put(scheme),
            "@request-target" => put(target),
            "@path" => put(path),
            "@query" => {
                put("?");
                put(query.unwrap_or_default());
            }
            "@query-param" => put(&query_param(target, component.query.ok_or(Reason::UnsupportedVersion)?)?),
            name if name.starts_with('@') => return Err(Reason::UnsupportedVersion),
            name => {
                let name: HeaderName = name.parse().map_err(|_| Reason::MalformedSignature)?;
                let mut values = request.headers.get_all(&name);
                base.extend_from_slice(trimmed(values.next().ok_or(Reason::MissingHeader)?));
                for value in values {
                    base.extend_from_slice(b", ");
                    base.extend_from_slice(trimmed(value));
                }
            }
        }
        Ok(())
    }
}

/// The one field of this name, escaped anew as the specification says.
fn query_param(target: &str, name: &str) -> Result<String, Reason> {
    let fields = form::read(query_of(target).as_bytes(), &[name.to_owned()]).map_err(|_| Reason::DuplicateHeader)?;
    let value = fields.into_iter().next().flatten().ok_or(Reason::MissingHeader)?;
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

fn signer(
    base: &[u8],
    signature: &[u8],
    request: &Request<'_>,
    tenant: Option<&str>,
    keys: &Keys,
) -> Result<usize, Reason> {
    let mut signer = None;
    for (index, key) in keys.live(tenant, request.now_ms) {
        for made in &key.made {
            if holds(made, base, signature)? {
                signer = signer.or(Some(index));
            }
        }
    }
    signer.ok_or(Reason::WrongSignature)
}

/// Whether the key made the signature of this base.
pub(super) fn holds(made: &Made, base: &[u8], signature: &[u8]) -> Result<bool, Reason> {
    let tag = made.tag(|sink| {
        sink(base);
        Ok::<_, Reason>(())
    })?;
    Ok(match (tag, made.public()) {
        (Some(tag), _) => tag.ct_eq(signature).into(),
        (None, Some(public)) => public.holds(base, signature),
        _ => false,
    })
}

const fn name_of(algorithm: Scheme) -> Option<&'static str> {
    match algorithm {
        Scheme::HmacSha256 => Some("hmac-sha256"),
        Scheme::Ed25519 => Some("ed25519"),
        Scheme::EcdsaP256Sha256Raw => Some("ecdsa-p256-sha256"),
        Scheme::RsaPkcs1Sha256 => Some("rsa-v1_5-sha256"),
        Scheme::RsaPssSha512 => Some("rsa-pss-sha512"),
        _ => None,
    }
}

/// Every known digest has to be the body's, and one has to be there.
fn check_digest(headers: &HeaderMap, body: &[u8]) -> Result<(), Reason> {
    let name = HeaderName::from_static("content-digest");
    let value = one(headers, &name)?.and_then(|value| value.to_str().ok()).ok_or(Reason::BodyHashMismatch)?;
    let (mut seen, mut same) = (false, Choice::from(1));
    for member in members(value) {
        let (name, value) = member.split_once('=').ok_or(Reason::BodyHashMismatch)?;
        let stated = bytes(value).ok_or(Reason::BodyHashMismatch)?;
        match name {
            "sha-256" => same &= Sha256::digest(body).ct_eq(&stated),
            "sha-512" => same &= Sha512::digest(body).ct_eq(&stated),
            _ => continue,
        }
        seen = true;
    }
    if seen && bool::from(same) { Ok(()) } else { Err(Reason::BodyHashMismatch) }
}

/// `:base64:`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.trim().strip_prefix(':')?.strip_suffix(':')?).ok()
}

/// The members of a dictionary: split at commas outside of quotes and parentheses.
fn members(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped, mut depth) = (false, false, 0_u32);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    rest = Some(&text[at + 1..]);
                    return Some(text[..at].trim());
                }
                _ => {}
            }
        }
        rest = None;
        Some(text.trim())
    })
}

impl<'a> Input<'a> {
    fn read(member: &'a str) -> Option<Self> {
        let (label, params) = member.split_once('=')?;
        let label_fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte);
        if label.is_empty() || !label.bytes().all(label_fits) {
            return None;
        }
        let mut rest = params.strip_prefix('(')?;
        let mut components: Vec<Component<'_>> = Vec::new();
        loop {
            rest = rest.trim_start_matches(' ');
            if let Some(after) = rest.strip_prefix(')') {
                rest = after;
                break;
            }
            let (component, after) = component(rest)?;
            // the same component twice would be read twice and compared once
            if components.len() == COMPONENTS_MAX || components.iter().any(|known| known.text == component.text) {
                return None;
            }
            components.push(component);
            rest = after;
        }
        let mut input = Self { label, params, components, created: None, expires: None, alg: None };
        while !rest.is_empty() {
            let (name, value, after) = param(rest)?;
            let slot = match name {
                "created" => &mut input.created,
                "expires" => &mut input.expires,
                "alg" => &mut input.alg,
                _ => {
                    rest = after;
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return None;
            }
            rest = after;
        }
        Some(input)
    }
}

/// A component and what follows it.
fn component(text: &str) -> Option<(Component<'_>, &str)> {
    let (name, mut rest) = quoted(text)?;
    let mut query = None;
    while rest.starts_with(';') {
        let (param, value, after) = param(rest)?;
        if param != "name" || query.replace(value).is_some() {
            return None;
        }
        rest = after;
    }
    let lower = !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase());
    let fits = lower && (query.is_some() == (name == "@query-param")) && name != "@signature-params";
    let text = &text[..text.len() - rest.len()];
    fits.then_some((Component { name, text, query }, rest))
}

/// A parameter `;name=value`, and what follows it.
fn param(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.strip_prefix(';')?.trim_start_matches(' ');
    let end = text.find([';', '=', ' ', ')']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix('=') else { return Some((name, "", rest)) };
    if rest.starts_with('"') {
        let (value, rest) = quoted(rest)?;
        return Some((name, value, rest));
    }
    let end = rest.find([';', ' ', ')']).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    Some((name, value, rest))
}

/// A quoted text without escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (inner, rest) = text.strip_prefix('"')?.split_once('"')?;
    (!inner.contains('\\')).then_some((inner, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_input_is_taken_apart() {
        let text = r#"sig1=("@method" "@query-param";name="a" "date");created=5;keyid="a,b";alg="ed25519""#;
        assert_eq!(members(text).count(), 1);
        let input = Input::read(text).expect("an input");
        assert_eq!((input.label, input.created, input.alg), ("sig1", Some("5"), Some("ed25519")));
        assert_eq!(input.components.len(), 3);
        assert_eq!(input.components[1].text, r#""@query-param";name="a""#);
        assert_eq!(members(r#"a=("x");k="1,2", b=("y")"#).collect::<Vec<_>>(), [r#"a=("x");k="1,2""#, r#"b=("y")"#]);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "sig1",
            "sig1=(",
            r#"sig1=("a" "a");created=1"#,
            r#"sig1=("a");created=1;created=2"#,
            r#"sig1=("A")"#,
            r#"sig1=("a";sf)"#,
            r#"sig1=("a";name="x")"#,
            r#"sig1=("@query-param")"#,
            r#"sig1=("@signature-params")"#,
            r#"SIG=("a")"#,
        ] {
            assert_eq!(Input::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_never_a_panic(text in "[a-z\"@();=, :\\\\é]{0,60}") {
            for member in members(&text) {
                let _ = (Input::read(member), bytes(member));
            }
            let _ = Input::read(&format!("sig1=({text}"));
        }
    }
}
