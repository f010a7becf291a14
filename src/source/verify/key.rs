//! Secrets as keys: how a text becomes bytes, and which texts are refused when settings are loaded.
//! No problem's text holds any part of a secret.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::ExposeSecret as _;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use smallvec::SmallVec;

use super::super::spec::{Scheme, SecretForm};
use super::super::{Problem, ResolvedSecret};

/// The fewest bytes of a key that is not called weak.
pub(super) const KEY_BYTES_MIN: usize = 16;
/// The most bytes of a secret's text.
const SECRET_BYTES_MAX: usize = 1024;

/// A signature's bytes.
pub(super) type Tag = SmallVec<[u8; 64]>;

/// A live or ended key of a source.
pub(super) struct Key {
    pub(super) tenant: Option<Arc<str>>,
    pub(super) until_ms: Option<i64>,
    pub(super) made: Made,
}

/// A key ready for use; the MAC's first block is already taken in.
pub(super) enum Made {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Box<Hmac<Sha512>>),
    Ed25519 { public: Box<VerifyingKey>, private: Option<Box<SigningKey>> },
}

impl Made {
    pub(super) const fn is_ed25519(&self) -> bool {
        matches!(self, Self::Ed25519 { .. })
    }

    /// The MAC over what `feed` hands over; `None` for a key that makes no MAC.
    pub(super) fn tag<E>(&self, feed: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>) -> Result<Option<Tag>, E> {
        Ok(match self {
            Self::Sha1(mac) => {
                let mut mac = mac.clone();
                feed(&mut |bytes| mac.update(bytes))?;
                Some(Tag::from_slice(&mac.finalize().into_bytes()))
            }
            Self::Sha256(mac) => {
                let mut mac = mac.clone();
                feed(&mut |bytes| mac.update(bytes))?;
                Some(Tag::from_slice(&mac.finalize().into_bytes()))
            }
            Self::Sha512(mac) => {
                let mut mac = mac.clone();
                feed(&mut |bytes| mac.update(bytes))?;
                Some(Tag::from_slice(&mac.finalize().into_bytes()))
            }
            Self::Ed25519 { .. } => None,
        })
    }
}

impl Key {
    pub(super) fn is_live(&self, tenant: Option<&str>, now_ms: i64) -> bool {
        let ended = self.until_ms.is_some_and(|until_ms| now_ms >= until_ms);
        let other = self.tenant.as_deref().is_some_and(|own| Some(own) != tenant);
        !ended && !other
    }

    pub(super) fn make(
        secret: &ResolvedSecret,
        scheme: Scheme,
        form: SecretForm,
        prefix: Option<&str>,
        allow_weak: bool,
    ) -> Result<Self, Problem> {
        let problem = |message: String| Problem::new(&secret.key, message);
        let text = secret.value.expose_secret();
        check_text(text, form, prefix).map_err(problem)?;
        let made = match (scheme, form) {
            (Scheme::StandardWebhooks, SecretForm::WhsecBase64) if text.starts_with("whpk_") => public_key(&text[5..]),
            (Scheme::StandardWebhooks, SecretForm::WhsecBase64) if text.starts_with("whsk_") => private_key(&text[5..]),
            _ => mac_key(text, scheme, form, allow_weak),
        };
        let made = made.map_err(problem)?;
        Ok(Self { tenant: secret.tenant.as_deref().map(Arc::from), until_ms: secret.until_ms, made })
    }
}

fn check_text(text: &str, form: SecretForm, prefix: Option<&str>) -> Result<(), String> {
    if text.is_empty() {
        return Err("is empty: anyone could sign; set the secret the sender shows".to_owned());
    }
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("is longer than {SECRET_BYTES_MAX} bytes: this is not a secret"));
    }
    if text.trim() != text {
        return Err("begins or ends with blanks or a line end: remove them".to_owned());
    }
    if text.starts_with("v1,") && form == SecretForm::WhsecBase64 {
        return Err("begins with `v1,`: leave that out, the secret begins with `whsec_`".to_owned());
    }
    match prefix {
        Some(prefix) if !text.starts_with(prefix) => {
            Err(format!("does not begin with `{prefix}` as this sender's secrets do: check what was pasted"))
        }
        _ => Ok(()),
    }
}

fn mac_key(text: &str, scheme: Scheme, form: SecretForm, allow_weak: bool) -> Result<Made, String> {
    let not_base64 = |_| "is not standard base64 with padding: copy the secret again, whole".to_owned();
    let bytes = match form {
        SecretForm::Utf8 => text.as_bytes().to_vec(),
        SecretForm::Hex => hex::decode(text).map_err(|_| "is not hexadecimal: copy the secret again".to_owned())?,
        SecretForm::Base64 => STANDARD.decode(text).map_err(not_base64)?,
        SecretForm::WhsecBase64 => STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).map_err(not_base64)?,
    };
    if bytes.is_empty() {
        return Err("holds no bytes: anyone could sign; set the secret the sender shows".to_owned());
    }
    if bytes.len() < KEY_BYTES_MIN && !allow_weak {
        return Err(format!(
            "has {} bytes, fewer than {KEY_BYTES_MIN}: use a longer one, or state `allow_weak_secret = true` for a demo",
            bytes.len()
        ));
    }
    // a MAC takes keys of any length, so this names a fault that cannot be met
    let refused = |_| "cannot be a key of this scheme".to_owned();
    Ok(match scheme {
        Scheme::HmacSha1 => Made::Sha1(Hmac::new_from_slice(&bytes).map_err(refused)?),
        Scheme::HmacSha256 | Scheme::StandardWebhooks => Made::Sha256(Hmac::new_from_slice(&bytes).map_err(refused)?),
        Scheme::HmacSha512 => Made::Sha512(Box::new(Hmac::new_from_slice(&bytes).map_err(refused)?)),
    })
}

fn public_key(text: &str) -> Result<Made, String> {
    let bad = || "is not an ed25519 public key: after `whpk_` come 32 bytes as base64".to_owned();
    let bytes: [u8; 32] = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(bad)?;
    let public = VerifyingKey::from_bytes(&bytes).map_err(|_| bad())?;
    if public.is_weak() {
        return Err("is an ed25519 key of small order: anyone could sign".to_owned());
    }
    Ok(Made::Ed25519 { public: Box::new(public), private: None })
}

fn private_key(text: &str) -> Result<Made, String> {
    let bad = || "is not an ed25519 private key: after `whsk_` come 32 or 64 bytes as base64".to_owned();
    let bytes = STANDARD.decode(text).map_err(|_| bad())?;
    let private = match bytes.len() {
        32 => SigningKey::from_bytes(bytes.as_slice().try_into().map_err(|_| bad())?),
        64 => SigningKey::from_keypair_bytes(bytes.as_slice().try_into().map_err(|_| bad())?).map_err(|_| bad())?,
        _ => return Err(bad()),
    };
    Ok(Made::Ed25519 { public: Box::new(private.verifying_key()), private: Some(Box::new(private)) })
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
        Key::make(&secret, scheme, form, prefix, false).err().map(|problem| problem.to_string())
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
