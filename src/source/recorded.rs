//! Recorded requests, read by the same rules as those that come in, with no signature to check: for the
//! simulator, which stores nothing and answers nobody.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use tidegate_actors::rules::event::EventId;

use super::spec::{Scheme, SecretForm, SourceSpec};
use super::{Problem, Reading, Reason, Request, ResolvedSecret, Source, Verified};

/// Bytes of a secret that stands in for one of the source. It signs and verifies nothing.
const SECRET_BYTES: usize = 24;

impl Source {
    /// Compiles a source that only reads: its own secrets are not asked for.
    pub fn compile_to_read(spec: &SourceSpec) -> Result<Self, Vec<Problem>> {
        let whole = spec.with_preset().map_err(|problem| vec![problem])?;
        let verify = whole.verify.clone().unwrap_or_default();
        let standard = verify.scheme == Some(Scheme::StandardWebhooks);
        let usual = if standard { SecretForm::WhsecBase64 } else { SecretForm::Utf8 };
        let form = verify.secret.unwrap_or(usual);
        let text = |index: usize| {
            let bytes = [u8::try_from(index % 251).unwrap_or(0); SECRET_BYTES].map(|byte: u8| byte.wrapping_add(1));
            let bytes = [&bytes[..], &index.to_be_bytes()].concat();
            match form {
                SecretForm::WhsecBase64 => format!("whsec_{}", STANDARD.encode(bytes)),
                SecretForm::Hex => hex::encode(bytes),
                SecretForm::Base64 => STANDARD.encode(bytes),
                SecretForm::Utf8 => {
                    format!("{}{}", verify.secret_prefix.as_deref().unwrap_or_default(), hex::encode(bytes))
                }
            }
        };
        let secret = |(index, tenant): (usize, Option<String>)| ResolvedSecret {
            key: format!("secrets[{index}]"),
            tenant,
            value: SecretString::from(text(index)),
            until_ms: None,
        };
        let tenants = whole.tenants.iter().map(|tenant| Some(tenant.name().to_owned()));
        let secrets: Vec<ResolvedSecret> = std::iter::once(None).chain(tenants).enumerate().map(secret).collect();
        let by_tenant = whole.tenant.as_deref().is_some_and(|place| !place.starts_with("body:")) && secrets.len() > 1;
        let shared = Self::compile(spec, &secrets[..1]);
        if by_tenant { Self::compile(spec, &secrets[1..]).or(shared) } else { shared }
    }

    /// Reads a recorded request as if its signature had held.
    pub fn read_recorded(&self, request: &Request<'_>, ids: &dyn Fn() -> EventId) -> Result<Reading, Reason> {
        let tenant = self.claimed_tenant(request)?;
        Ok(self.read(request, &Verified { tenant, secret: 0 }, ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::presets;

    #[test]
    fn every_preset_reads_without_its_secret() {
        for name in presets::names() {
            let spec = SourceSpec { name: "x".to_owned(), preset: Some(name.to_owned()), ..SourceSpec::default() };
            assert!(Source::compile_to_read(&spec).is_ok(), "{name}");
        }
    }
}
