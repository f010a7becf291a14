//! Secrets as keys: how a text becomes bytes, and which texts are refused when settings are loaded.
//! No problem's text holds any part of a secret.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretSlice};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use smallvec::SmallVec;

use super::super::spec::{Scheme, SecretForm};
use super::super::{Problem, ResolvedSecret};
use super::header::digest;
use super::public::{Jwk, PublicKey, algorithm_of};

/// The fewest bytes of a key that is not called weak.
pub(super) const KEY_BYTES_MIN: usize = 16;
/// The most bytes of a secret's text, and of a key's that has lines.
const SECRET_BYTES_MAX: usize = 1024;
const PEM_BYTES_MAX: usize = 64 * 1024;

/// A signature's bytes.
pub(super) type Tag = SmallVec<[u8; 64]>;

/// A live or ended key of a source.
pub(super) struct Key {
    pub(super) tenant: Option<Arc<str>>,
    pub(super) until_ms: Option<i64>,
    /// The key for each method of the source; one where it has no list of methods.
    pub(super) made: SmallVec<[Made; 1]>,
}

/// A key ready for use; a MAC's first block is already taken in.
pub(super) enum Made {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Box<Hmac<Sha384>>),
    Sha512(Box<Hmac<Sha512>>),
    /// A plain hash over a text that holds the secret.
    Digest {
        sha1: bool,
        secret: SecretSlice<u8>,
    },
    /// The digest of a static credential, and its text for `send`.
    Token {
        digest: Tag,
        text: SecretSlice<u8>,
    },
    Public(PublicKey),
    /// Keys by their id.
    Jwks(Vec<Jwk>),
}

impl Made {
    pub(super) const fn public(&self) -> Option<&PublicKey> {
        match self {
            Self::Public(key) => Some(key),
            _ => None,
        }
    }

    /// What `{secret}` stands for.
    pub(super) fn secret(&self) -> &[u8] {
        match self {
            Self::Digest { secret, .. } => secret.expose_secret(),
            _ => b"",
        }
    }

    /// The MAC over what `feed` hands over; `None` for a key that makes no MAC.
    pub(super) fn tag<E>(&self, feed: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>) -> Result<Option<Tag>, E> {
        macro_rules! mac {
            ($mac:expr) => {{
                let mut mac = $mac.clone();
                feed(&mut |bytes| mac.update(bytes))?;
                Some(Tag::from_slice(&mac.finalize().into_bytes()))
            }};
        }
        macro_rules! hash {
            ($hash:ty) => {{
                let mut hash = <$hash>::new();
                feed(&mut |bytes| sha2::Digest::update(&mut hash, bytes))?;
                Some(Tag::from_slice(&hash.finalize()))
            }};
        }
        Ok(match self {
            Self::Sha1(mac) => mac!(mac),
            Self::Sha256(mac) => mac!(mac),
            Self::Sha384(mac) => mac!(mac),
            Self::Sha512(mac) => mac!(mac),
            Self::Digest { sha1: true, .. } => hash!(Sha1),
            Self::Digest { .. } => hash!(Sha256),
            Self::Token { digest, .. } => Some(digest.clone()),
            Self::Public(_) | Self::Jwks(_) => None,
        })
    }
}

/// How texts become keys.
#[derive(Clone, Copy)]
pub(super) struct Forming<'f> {
    pub(super) form: SecretForm,
    /// What each begins with.
    pub(super) prefix: Option<&'f str>,
    /// What is left out before decoding.
    pub(super) stripped: Option<&'f str>,
    pub(super) allow_weak: bool,
}

impl Key {
    pub(super) fn is_live(&self, tenant: Option<&str>, now_ms: i64) -> bool {
        let ended = self.until_ms.is_some_and(|until_ms| now_ms >= until_ms);
        let other = self.tenant.as_deref().is_some_and(|own| Some(own) != tenant);
        !ended && !other
    }

    pub(super) fn make(secret: &ResolvedSecret, schemes: &[Scheme], forming: Forming<'_>) -> Result<Self, Problem> {
        let problem = |message: String| Problem::new(&secret.key, message);
        let text = secret.value.expose_secret();
        let text = if has_lines(forming.form) { text.trim() } else { text };
        check_text(text, forming).map_err(problem)?;
        let made = schemes.iter().map(|&scheme| make(text, scheme, forming)).collect::<Result<_, _>>();
        Ok(Self {
            tenant: secret.tenant.as_deref().map(Arc::from),
            until_ms: secret.until_ms,
            made: made.map_err(problem)?,
        })
    }
}

const fn has_lines(form: SecretForm) -> bool {
    matches!(form, SecretForm::Pem | SecretForm::Jwks)
}

fn make(text: &str, scheme: Scheme, forming: Forming<'_>) -> Result<Made, String> {
    match (scheme, forming.form) {
        (Scheme::StandardWebhooks, SecretForm::WhsecBase64) if text.starts_with("whpk_") => standard_public(&text[5..]),
        (Scheme::StandardWebhooks, SecretForm::WhsecBase64) if text.starts_with("whsk_") => {
            standard_private(&text[5..])
        }
        (Scheme::JwtEs256, SecretForm::Jwks) => jwks(text),
        (Scheme::Basic, _) if !text.contains(':') => {
            Err("is no `user:password`: write both with a colon between them".to_owned())
        }
        (Scheme::Token | Scheme::Basic, SecretForm::Utf8) => {
            strong(text.len(), forming.allow_weak)?;
            Ok(Made::Token { digest: digest(text.as_bytes()), text: text.as_bytes().to_vec().into() })
        }
        (Scheme::Token | Scheme::Basic, _) => Err("is compared as it stands: leave `verify.secret` out".to_owned()),
        _ if algorithm_of(scheme).is_some() => {
            let text = stripped(text, forming.stripped);
            PublicKey::read(text, scheme, forming.form).map(Made::Public)
        }
        _ => mac_key(text, scheme, forming),
    }
}

fn stripped<'t>(text: &'t str, prefix: Option<&str>) -> &'t str {
    prefix.and_then(|prefix| text.strip_prefix(prefix)).unwrap_or(text)
}

fn strong(bytes: usize, allow_weak: bool) -> Result<(), String> {
    if bytes == 0 {
        return Err("holds no bytes: anyone could sign; set the secret the sender shows".to_owned());
    }
    if bytes < KEY_BYTES_MIN && !allow_weak {
        return Err(format!(
            "has {bytes} bytes, fewer than {KEY_BYTES_MIN}: use a longer one, or state `allow_weak_secret = true` for a demo"
        ));
    }
    Ok(())
}

fn check_text(text: &str, forming: Forming<'_>) -> Result<(), String> {
    let most = if has_lines(forming.form) { PEM_BYTES_MAX } else { SECRET_BYTES_MAX };
    if text.is_empty() {
        return Err("is empty: anyone could sign; set the secret the sender shows".to_owned());
    }
    if text.len() > most {
        return Err(format!("is longer than {most} bytes: this is not a secret"));
    }
    if text.trim() != text {
        return Err("begins or ends with blanks or a line end: remove them".to_owned());
    }
    let quotes = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if quotes('"') || quotes('\'') {
        return Err("is in quotes: take them off, they are no part of it".to_owned());
    }
    // a PEM text is taken for a public key whatever form is stated
    let is_pem = text.starts_with("-----BEGIN ");
    if !has_lines(forming.form) && !is_pem && text.contains(['\n', '\r']) {
        return Err("has several lines: leave the one that is the secret".to_owned());
    }
    if text.get(1..).is_some_and(|rest| rest.contains("whsec_")) && !text.starts_with("v1,") {
        return Err("holds `whsec_` beyond its beginning: leave out what stands before it".to_owned());
    }
    if text.starts_with("v1,") && forming.form == SecretForm::WhsecBase64 {
        return Err("begins with `v1,`: leave that out, the secret begins with `whsec_`".to_owned());
    }
    match forming.prefix {
        Some(prefix) if !text.starts_with(prefix) => {
            Err(format!("does not begin with `{prefix}` as this sender's secrets do: check what was pasted"))
        }
        _ => Ok(()),
    }
}

fn mac_key(text: &str, scheme: Scheme, forming: Forming<'_>) -> Result<Made, String> {
    let not_base64 = |_| "is not standard base64 with padding: copy the secret again, whole".to_owned();
    let coded = stripped(text, forming.stripped);
    let bytes = match forming.form {
        SecretForm::Utf8 => text.as_bytes().to_vec(),
        SecretForm::Hex => hex::decode(coded).map_err(|_| "is not hexadecimal: copy the secret again".to_owned())?,
        SecretForm::Base64 => STANDARD.decode(coded).map_err(not_base64)?,
        SecretForm::WhsecBase64 => STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).map_err(not_base64)?,
        SecretForm::Sha1Utf8 => {
            strong(text.len(), forming.allow_weak)?;
            Sha1::digest(text.as_bytes()).to_vec()
        }
        SecretForm::Spki | SecretForm::Pem | SecretForm::Jwks => {
            return Err(
                "is a public key by `verify.secret`, and this scheme has secrets: correct one of them".to_owned()
            );
        }
    };
    strong(bytes.len(), forming.allow_weak)?;
    // a MAC takes keys of any length, so this names a fault that cannot be met
    let refused = |_| "cannot be a key of this scheme".to_owned();
    Ok(match scheme {
        Scheme::HmacSha1 => Made::Sha1(Hmac::new_from_slice(&bytes).map_err(refused)?),
        Scheme::HmacSha384 => Made::Sha384(Box::new(Hmac::new_from_slice(&bytes).map_err(refused)?)),
        Scheme::HmacSha512 => Made::Sha512(Box::new(Hmac::new_from_slice(&bytes).map_err(refused)?)),
        Scheme::DigestSha1 => Made::Digest { sha1: true, secret: bytes.into() },
        Scheme::DigestSha256 => Made::Digest { sha1: false, secret: bytes.into() },
        _ => Made::Sha256(Hmac::new_from_slice(&bytes).map_err(refused)?),
    })
}

fn jwks(text: &str) -> Result<Made, String> {
    let keys = read_jwks(text).ok_or("is neither a JWK set nor a JWK: copy it again, whole")?;
    if !keys.iter().any(|jwk| PublicKey::jwk(jwk).is_some()) {
        return Err("holds no key for ES256 (P-256): copy the other set".to_owned());
    }
    Ok(Made::Jwks(keys))
}

/// The keys of a JWK set, of `{"key": …}`, or of one JWK.
pub(super) fn read_jwks(text: &str) -> Option<Vec<Jwk>> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Shape {
        Set { keys: Vec<Jwk> },
        Answer { key: Jwk },
        One(Jwk),
    }
    Some(match serde_json::from_str(text).ok()? {
        Shape::Set { keys } => keys,
        Shape::Answer { key } | Shape::One(key) => vec![key],
    })
}

fn standard_public(text: &str) -> Result<Made, String> {
    let bad = || "is not an ed25519 public key: after `whpk_` come 32 bytes as base64".to_owned();
    let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == 32).ok_or_else(bad)?;
    PublicKey::raw(Scheme::Ed25519, super::der::Algorithm::Ed25519, &bytes).map(Made::Public)
}

fn standard_private(text: &str) -> Result<Made, String> {
    let bad = || "is not an ed25519 private key: after `whsk_` come 32 or 64 bytes as base64".to_owned();
    let bytes = STANDARD.decode(text).map_err(|_| bad())?;
    let private = match bytes.len() {
        32 => SigningKey::from_bytes(bytes.as_slice().try_into().map_err(|_| bad())?),
        64 => SigningKey::from_keypair_bytes(bytes.as_slice().try_into().map_err(|_| bad())?).map_err(|_| bad())?,
        _ => return Err(bad()),
    };
    Ok(Made::Public(PublicKey::dalek(private)))
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn problem(text: &str, scheme: Scheme, form: SecretForm, prefix: Option<&str>) -> Option<String> {
        let secret = ResolvedSecret {
            key: "secrets[0]".to_owned(),
            tenant: None,
            value: SecretString::from(text),
            until_ms: None,
        };
        Key::make(&secret, &[scheme], Forming { form, prefix, stripped: None, allow_weak: false })
            .err()
            .map(|problem| problem.to_string())
    }

    #[test]
    fn bad_secrets_are_named_by_key_and_reason_and_never_by_text() {
        let standard = (Scheme::StandardWebhooks, SecretForm::WhsecBase64);
        let cases = [
            ("", standard, "empty"),
            (" 0123456789abcdef", (Scheme::HmacSha256, SecretForm::Utf8), "blanks"),
            ("0123456789abcdef\n", (Scheme::HmacSha256, SecretForm::Utf8), "line end"),
            ("topsecret", (Scheme::HmacSha256, SecretForm::Utf8), "fewer than 16"),
            ("v1,whsec_c2l4dGVlbi1ieXRlLWtleQ==", standard, "`v1,`"),
            ("whsec_not*base64", standard, "base64"),
            ("SECRET=whsec_c2l4dGVlbi1ieXRlLWtleQ==", standard, "beyond its beginning"),
            ("\"0123456789abcdef\"", (Scheme::HmacSha256, SecretForm::Utf8), "in quotes"),
            ("0123456789abcdef\n0123456789abcdef", (Scheme::HmacSha256, SecretForm::Utf8), "several lines"),
            ("whsec_", standard, "no bytes"),
            ("whpk_AAAA", standard, "public key"),
            ("whsk_AAAA", standard, "private key"),
            ("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", (Scheme::HmacSha1, SecretForm::Hex), "hexadecimal"),
        ];
        for (text, (scheme, form), reason) in cases {
            let found = problem(text, scheme, form, None).expect("a problem");
            assert!(found.contains("secrets[0]") && found.contains(reason), "{found}");
            assert!(text.trim().len() < 6 || !found.contains(text.trim()), "{found}");
        }
        let found = problem("sk_0123456789abcdef", Scheme::HmacSha256, SecretForm::Utf8, Some("whsec_"));
        assert!(found.expect("a problem").contains("does not begin with `whsec_`"));
    }

    #[test]
    fn sixteen_bytes_behind_a_prefix_are_enough() {
        let text = "whsec_c2l4dGVlbi1ieXRlLWtleQ==";
        assert_eq!(problem(text, Scheme::StandardWebhooks, SecretForm::WhsecBase64, None), None);
        assert_eq!(problem(text, Scheme::HmacSha256, SecretForm::Utf8, None), None);
    }
}
