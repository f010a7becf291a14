//! Secrets and tenants as written down. A literal secret's text never leaves this module by `Debug`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A secret's text, plain or with an end date.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SecretSpec {
    /// `env:NAME`, `file:/path`, or `demo:…` for a literal that everybody may know.
    Text(String),
    /// The same with the time it stops counting, as RFC 3339.
    Until(SecretUntil),
}

/// A secret with an end date.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SecretUntil {
    /// `env:NAME`, `file:/path`, or `demo:…` for a literal that everybody may know.
    pub value: String,
    /// RFC 3339 time from which the secret no longer counts.
    pub until: String,
}

impl SecretSpec {
    /// The text to resolve.
    #[must_use]
    pub fn value(&self) -> &str {
        match self {
            Self::Text(value) => value,
            Self::Until(secret) => &secret.value,
        }
    }

    /// The end date as written.
    #[must_use]
    pub fn until(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Until(secret) => Some(&secret.until),
        }
    }
}

impl fmt::Debug for SecretSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a literal secret never reaches a log; where it would come from may
        match self.value() {
            text if text.starts_with("env:") || text.starts_with("file:") => write!(f, "SecretSpec({text})"),
            _ => f.write_str("SecretSpec(***)"),
        }
    }
}

impl fmt::Debug for SecretUntil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUntil(*** until {})", self.until)
    }
}

/// A value of a source's own `config`; never shown, since it may be a secret.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ConfigSpec(pub super::Texts);

impl fmt::Debug for ConfigSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigSpec(***)")
    }
}

/// A tenant by name, or with secrets of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum TenantSpec {
    /// Only the name.
    Name(String),
    /// Name and secrets.
    Own(TenantOwn),
}

/// A tenant with secrets of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TenantOwn {
    /// The tenant's name.
    pub name: String,
    /// Secrets that count for this tenant alone.
    pub secrets: Vec<SecretSpec>,
}

impl TenantSpec {
    /// The tenant's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Own(own) => &own.name,
        }
    }

    /// Its own secrets.
    #[must_use]
    pub fn secrets(&self) -> &[SecretSpec] {
        match self {
            Self::Name(_) => &[],
            Self::Own(own) => &own.secrets,
        }
    }
}
