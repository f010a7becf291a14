//! Public keys, and the private ones that `send` and tests sign with: texts and DER in, yes or no out.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use ring::rand::SystemRandom;
use ring::signature as algorithms;
use ring::signature::{
    EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::pki_types::pem::{PemObject as _, SectionKind};

use super::super::spec::{Scheme, SecretForm};
use super::der::{self, Algorithm};
use super::header::SIGNATURE_BYTES_MAX;

/// The fewest bits of an RSA key.
const RSA_BITS_MIN: usize = 2048;

/// A key that checks signatures of one scheme.
#[derive(Clone)]
pub(super) struct PublicKey {
    kind: Kind,
    private: Option<Arc<Private>>,
}

#[derive(Clone)]
enum Kind {
    Ed25519(Box<VerifyingKey>),
    Ring(&'static dyn VerificationAlgorithm, Arc<[u8]>),
}

enum Private {
    Dalek(SigningKey),
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>, &'static dyn algorithms::RsaEncoding),
}

/// What a scheme's public keys are, if it has any.
pub(super) const fn algorithm_of(scheme: Scheme) -> Option<Algorithm> {
    match scheme {
        Scheme::Ed25519 => Some(Algorithm::Ed25519),
        Scheme::EcdsaP256Sha256 | Scheme::EcdsaP256Sha256Raw | Scheme::JwtEs256 => Some(Algorithm::P256),
        Scheme::RsaPkcs1Sha1 | Scheme::RsaPkcs1Sha256 | Scheme::RsaPssSha512 => Some(Algorithm::Rsa),
        _ => None,
    }
}

/// The bytes of a scheme's signatures: exactly so many, or at most.
pub(super) const fn signature_bytes(scheme: Scheme) -> (bool, usize) {
    match scheme {
        Scheme::EcdsaP256Sha256 => (false, 72),
        Scheme::RsaPkcs1Sha1 | Scheme::RsaPkcs1Sha256 | Scheme::RsaPssSha512 => (false, SIGNATURE_BYTES_MAX),
        _ => (true, 64),
    }
}

fn verification(scheme: Scheme) -> &'static dyn VerificationAlgorithm {
    match scheme {
        Scheme::EcdsaP256Sha256 => &algorithms::ECDSA_P256_SHA256_ASN1,
        Scheme::RsaPkcs1Sha1 => &algorithms::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Scheme::RsaPkcs1Sha256 => &algorithms::RSA_PKCS1_2048_8192_SHA256,
        Scheme::RsaPssSha512 => &algorithms::RSA_PSS_2048_8192_SHA512,
        _ => &algorithms::ECDSA_P256_SHA256_FIXED,
    }
}

impl PublicKey {
    /// A key out of its raw form: 32 bytes, a point, or PKCS#1.
    pub(super) fn raw(scheme: Scheme, algorithm: Algorithm, bytes: &[u8]) -> Result<Self, String> {
        let wanted = algorithm_of(scheme).ok_or_else(|| "is a public key, and this scheme has none".to_owned())?;
        if wanted != algorithm {
            return Err(format!(
                "is a key for {algorithm:?}, and the scheme takes keys for {wanted:?}: copy the other key"
            ));
        }
        let kind = match algorithm {
            Algorithm::Ed25519 => Kind::Ed25519(Box::new(ed25519(bytes)?)),
            Algorithm::P256 if bytes.len() == 65 && bytes[0] == 4 => Kind::Ring(verification(scheme), Arc::from(bytes)),
            Algorithm::P256 => return Err("is not an uncompressed point of P-256: copy the key again".to_owned()),
            Algorithm::Rsa => {
                let bits = der::rsa_bits(bytes).unwrap_or_default();
                if bits < RSA_BITS_MIN {
                    return Err(format!(
                        "is an RSA key of {bits} bits, fewer than {RSA_BITS_MIN}: ask for a longer one"
                    ));
                }
                Kind::Ring(verification(scheme), Arc::from(bytes))
            }
        };
        Ok(Self { kind, private: None })
    }

    /// A key out of a text as the settings have it.
    pub(super) fn read(text: &str, scheme: Scheme, form: SecretForm) -> Result<Self, String> {
        let raw = |bytes: Option<Vec<u8>>, how: &str| {
            let bytes = bytes.ok_or_else(|| format!("is not {how}: copy the key again, whole"))?;
            Self::raw(scheme, algorithm_of(scheme).unwrap_or(Algorithm::Ed25519), &bytes)
        };
        match form {
            // whatever form the sender shows, PEM says by itself what it is: a private key signs for `send`
            _ if text.starts_with("-----BEGIN ") => Self::pem(text, scheme),
            SecretForm::Hex => raw(hex::decode(text).ok(), "hexadecimal"),
            SecretForm::Base64 | SecretForm::WhsecBase64 => {
                raw(STANDARD.decode(text).ok(), "standard base64 with padding")
            }
            SecretForm::Spki => {
                let bytes = STANDARD
                    .decode(text)
                    .map_err(|_| "is not standard base64 with padding: copy the key again, whole")?;
                Self::spki(&bytes, scheme)
            }
            SecretForm::Pem => Self::pem(text, scheme),
            SecretForm::Utf8 | SecretForm::Sha1Utf8 | SecretForm::Jwks => {
                Err("is a public key: state its form in `verify.secret`: hex, base64, spki or pem".to_owned())
            }
        }
    }

    fn spki(bytes: &[u8], scheme: Scheme) -> Result<Self, String> {
        let (algorithm, key) =
            der::public_key(bytes).ok_or("is no public key for ed25519, P-256 or RSA: copy the key again, whole")?;
        Self::raw(scheme, algorithm, key)
    }

    /// The first public key, certificate or private key of a PEM text.
    pub(super) fn pem(text: &str, scheme: Scheme) -> Result<Self, String> {
        let none = || {
            "holds no PEM text with a public key, a certificate or a private key: copy it whole, with its lines"
                .to_owned()
        };
        let (kind, bytes) = <(SectionKind, Vec<u8>)>::from_pem_slice(text.as_bytes()).map_err(|_| none())?;
        match kind {
            SectionKind::PublicKey => Self::spki(&bytes, scheme),
            SectionKind::Certificate => {
                let found = der::certificate(&bytes).ok_or("is no certificate for ed25519, P-256 or RSA")?;
                Self::raw(scheme, found.algorithm, found.key)
            }
            SectionKind::PrivateKey => Self::private(&bytes, scheme),
            _ => Err(none()),
        }
    }

    fn private(pkcs8: &[u8], scheme: Scheme) -> Result<Self, String> {
        let refused = |error: ring::error::KeyRejected| format!("is a private key this scheme cannot use: {error}");
        let (private, algorithm, public) = match algorithm_of(scheme) {
            Some(Algorithm::Ed25519) => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(refused)?;
                let public = pair.public_key().as_ref().to_vec();
                (Private::Ed25519(pair), Algorithm::Ed25519, public)
            }
            Some(Algorithm::P256) => {
                let how = if scheme == Scheme::EcdsaP256Sha256 {
                    &algorithms::ECDSA_P256_SHA256_ASN1_SIGNING
                } else {
                    &algorithms::ECDSA_P256_SHA256_FIXED_SIGNING
                };
                let pair = EcdsaKeyPair::from_pkcs8(how, pkcs8, &SystemRandom::new()).map_err(refused)?;
                let public = pair.public_key().as_ref().to_vec();
                (Private::Ecdsa(pair), Algorithm::P256, public)
            }
            Some(Algorithm::Rsa) => {
                let how: &'static dyn algorithms::RsaEncoding = match scheme {
                    Scheme::RsaPkcs1Sha256 => &algorithms::RSA_PKCS1_SHA256,
                    Scheme::RsaPssSha512 => &algorithms::RSA_PSS_SHA512,
                    _ => {
                        return Err(
                            "is a private key, and nobody should sign with SHA-1: state the public key".to_owned()
                        );
                    }
                };
                let pair = RsaKeyPair::from_pkcs8(pkcs8).map_err(refused)?;
                let public = pair.public_key().as_ref().to_vec();
                (Private::Rsa(Box::new(pair), how), Algorithm::Rsa, public)
            }
            None => return Err("is a private key, and this scheme has none".to_owned()),
        };
        let key = Self::raw(scheme, algorithm, &public)?;
        Ok(Self { private: Some(Arc::new(private)), ..key })
    }

    /// The key of a JWK for P-256, which states nothing that speaks against it.
    pub(super) fn jwk(jwk: &Jwk) -> Option<Self> {
        let fits = jwk.kty == "EC" && jwk.crv.as_deref() == Some("P-256");
        let for_us = jwk.alg.as_deref().is_none_or(|alg| alg == "ES256")
            && jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
        let number =
            |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok().filter(|bytes| bytes.len() == 32);
        let mut point = vec![4];
        point.extend(number(&jwk.x)?);
        point.extend(number(&jwk.y)?);
        if fits && for_us { Self::raw(Scheme::JwtEs256, Algorithm::P256, &point).ok() } else { None }
    }

    /// A key pair of the Standard Webhooks.
    pub(super) fn dalek(private: SigningKey) -> Self {
        let kind = Kind::Ed25519(Box::new(private.verifying_key()));
        Self { kind, private: Some(Arc::new(Private::Dalek(private))) }
    }

    pub(super) const fn can_sign(&self) -> bool {
        self.private.is_some()
    }

    /// Whether the signature is this key's.
    pub(super) fn holds(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.kind {
            Kind::Ed25519(key) => {
                Signature::from_slice(signature).is_ok_and(|signature| key.verify_strict(message, &signature).is_ok())
            }
            Kind::Ring(algorithm, key) => UnparsedPublicKey::new(*algorithm, key).verify(message, signature).is_ok(),
        }
    }

    /// Signs; `None` for a key that only checks.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        use ed25519_dalek::Signer as _;
        match self.private.as_deref()? {
            Private::Dalek(key) => Some(key.sign(message).to_bytes().to_vec()),
            Private::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
            Private::Ecdsa(pair) => {
                pair.sign(&SystemRandom::new(), message).ok().map(|signature| signature.as_ref().to_vec())
            }
            Private::Rsa(pair, how) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*how, &SystemRandom::new(), message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// A JSON web key, as far as it is read.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub(super) struct Jwk {
    #[serde(default)]
    pub(super) kty: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    crv: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// Seconds since 1970 from which the key no longer counts.
    pub(super) expired_at: Option<i64>,
}

fn ed25519(bytes: &[u8]) -> Result<VerifyingKey, String> {
    let bad = || "is not an ed25519 public key, which has 32 bytes: copy the key again".to_owned();
    let key = VerifyingKey::from_bytes(bytes.try_into().map_err(|_| bad())?).map_err(|_| bad())?;
    if key.is_weak() {
        return Err("is an ed25519 key of small order: anyone could sign".to_owned());
    }
    Ok(key)
}
