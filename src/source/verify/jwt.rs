//! JWTs beside a body: one algorithm, a key by its id, and the body's hash among the claims.

use actix_web::http::header::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::super::json::{Wanted as Pointers, scalar};
use super::super::{Reason, Request};
use super::Keys;
use super::draft::Draft;
use super::key::Made;
use super::keys::Wanted;
use super::place::{one, trimmed};
use super::public::PublicKey;
use super::sign::{SignError, signature};
use super::signature::same_hash;
use super::time::Window;

/// The most bytes of a JWT, and of a key's id.
const JWT_BYTES_MAX: usize = 4096;
const KID_BYTES_MAX: usize = 255;
const SIGNATURE_BYTES: usize = 64;

pub(super) struct Jwt {
    pub(super) header: HeaderName,
    pub(super) window: Window,
    /// Names of the claims that hold the time and the body's hash, as pointers.
    pub(super) time: String,
    pub(super) hash: String,
}

/// The parts of a JWT, none of them checked.
struct Token<'a> {
    signed: &'a [u8],
    claims: &'a str,
    kid: Option<String>,
    signature: Vec<u8>,
}

impl Jwt {
    pub(super) fn verify(&self, request: &Request<'_>, tenant: Option<&str>, keys: &Keys) -> Result<usize, Reason> {
        let token = self.token(request)?;
        let signer = signer(&token, request, tenant, keys)?;
        // only now is anything read out of the claims
        let claims = URL_SAFE_NO_PAD.decode(token.claims).map_err(|_| Reason::MalformedSignature)?;
        let [time, hash] = members(&claims, [&self.time, &self.hash]).map_err(|_| Reason::MalformedSignature)?;
        let time_ms = self.window.read(time.ok_or(Reason::MissingTimestamp)?.as_bytes())?;
        same_hash(hash.ok_or(Reason::BodyHashMismatch)?.as_bytes(), request.body)?;
        self.window.check(time_ms, request.now_ms)?;
        Ok(signer)
    }

    /// The request with a JWT over its body, made now.
    pub(super) fn sign(&self, request: &Request<'_>, made: &Made) -> Result<Draft, SignError> {
        let hash = hex::encode(Sha256::digest(request.body));
        let time = request.now_ms.div_euclid(1000);
        let name = |pointer: &str| pointer.trim_start_matches('/').to_owned();
        let claims = serde_json::json!({ name(&self.time): time, name(&self.hash): hash });
        let coded = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", coded(r#"{"alg":"ES256","typ":"JWT"}"#), coded(&claims.to_string()));
        let text = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature(made, signed.as_bytes())?));
        let mut draft = Draft::of(request);
        let value = HeaderValue::from_str(&text).map_err(|_| SignError::NotAHeader(text))?;
        draft.headers.insert(self.header.clone(), value);
        Ok(draft)
    }

    pub(super) fn wanted_key(&self, request: &Request<'_>) -> Option<Wanted> {
        self.token(request).ok()?.kid.map(Wanted)
    }

    fn token<'a>(&self, request: &Request<'a>) -> Result<Token<'a>, Reason> {
        let value = one(request.headers, &self.header)?.map(trimmed).filter(|value| !value.is_empty());
        let value = value.ok_or(Reason::MissingSignature)?;
        let bad = Reason::MalformedSignature;
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= JWT_BYTES_MAX).ok_or(bad)?;
        let (signed, signature) = text.rsplit_once('.').ok_or(bad)?;
        let (head, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or(bad)?;
        let head = URL_SAFE_NO_PAD.decode(head).map_err(|_| bad)?;
        let [alg, kid, crit] = members(&head, ["/alg", "/kid", "/crit"]).map_err(|_| bad)?;
        if alg.as_deref() != Some("ES256") || crit.is_some() {
            return Err(Reason::UnsupportedVersion);
        }
        let signature =
            URL_SAFE_NO_PAD.decode(signature).ok().filter(|bytes| bytes.len() == SIGNATURE_BYTES).ok_or(bad)?;
        let kid = kid.filter(|kid| !kid.is_empty() && kid.len() <= KID_BYTES_MAX);
        Ok(Token { signed: signed.as_bytes(), claims, kid, signature })
    }
}

fn signer(token: &Token<'_>, request: &Request<'_>, tenant: Option<&str>, keys: &Keys) -> Result<usize, Reason> {
    let mut known = false;
    for (index, key) in keys.live(tenant, request.now_ms) {
        for made in &key.made {
            let Made::Jwks(set) = made else { continue };
            let named = set.iter().filter(|jwk| token.kid.is_none() || jwk.kid == token.kid);
            let live = named.filter(|jwk| jwk.expired_at.is_none_or(|at| at.saturating_mul(1000) > request.now_ms));
            for public in live.filter_map(PublicKey::jwk) {
                known = true;
                if public.holds(token.signed, &token.signature) {
                    return Ok(index);
                }
            }
        }
    }
    if known {
        return Err(Reason::WrongSignature);
    }
    let (Some(fetched), Some(kid)) = (&keys.fetched, &token.kid) else { return Err(Reason::UnknownKey) };
    let made = fetched.get(&Wanted(kid.clone()), request.now_ms)?;
    let holds = made.iter().filter_map(Made::public).any(|public| public.holds(token.signed, &token.signature));
    if holds { Ok(0) } else { Err(Reason::WrongSignature) }
}

/// Texts of an object's members.
fn members<const N: usize>(json: &[u8], pointers: [&str; N]) -> Result<[Option<String>; N], ()> {
    let mut wanted = Pointers::default();
    for pointer in pointers {
        wanted.add(pointer).map_err(|_| ())?;
    }
    let values = wanted.read(std::str::from_utf8(json).map_err(|_| ())?).map_err(|_| ())?;
    let mut texts = [const { None }; N];
    for (text, raw) in texts.iter_mut().zip(values) {
        *text = match raw.map(scalar) {
            None => None,
            Some(Ok(value)) => value.map(std::borrow::Cow::into_owned),
            // an object or an array is there all the same
            Some(Err(_)) => Some(String::new()),
        };
    }
    Ok(texts)
}
