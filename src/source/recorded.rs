//! Recorded requests, read by the same rules as those that come in, with no signature to check: for the
//! simulator, which stores nothing and answers nobody.

use std::collections::BTreeMap;

use actix_web::http::header::HeaderName;
use secrecy::SecretString;
use tidegate_actors::rules::event::EventId;

use super::spec::{
    ConfigSpec, OnGapSpec, OrderSpec, PolicySpec, RefetchSpec, Scheme, SignedSpec, SourceSpec, Texts, VerifySpec,
};
use super::{Problem, Reading, Reason, Request, ResolvedSecret, Source, Verified};

/// Bytes of a secret that stands in for one of the source. It signs and verifies nothing.
const SECRET_BYTES: usize = 24;

impl Source {
    /// Compiles a source that only reads: its own secrets, and what else its verification needs, are not asked for.
    pub fn compile_to_read(spec: &SourceSpec) -> Result<Self, Vec<Problem>> {
        let whole = spec.with_preset().map_err(|problem| vec![problem])?;
        let mut spec = SourceSpec { verify: Some(stand_in(whole.verify.as_ref())), ..spec.clone() };
        let narrowed = whole.narrow.iter().flatten().filter_map(|narrow| narrow.order.as_ref());
        let asks =
            |order: &OrderSpec| order.policy == Some(PolicySpec::Refetch) || order.on_gap == Some(OnGapSpec::Refetch);
        if whole.refetch.is_none() && whole.order.iter().chain(narrowed).any(asks) {
            // nobody is asked
            spec.refetch = Some(RefetchSpec { url: "https://localhost/{id}".to_owned(), ..RefetchSpec::default() });
        }
        for name in whole.config_help.iter().flat_map(BTreeMap::keys) {
            spec.config.entry(name.clone()).or_insert_with(|| ConfigSpec(Texts::One("unknown".to_owned())));
        }
        let text = |index: usize| {
            let bytes = [u8::try_from(index % 251).unwrap_or(0); SECRET_BYTES].map(|byte: u8| byte.wrapping_add(1));
            hex::encode([&bytes[..], &index.to_be_bytes()].concat())
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
        let shared = Self::compile(&spec, &secrets[..1]);
        if by_tenant { Self::compile(&spec, &secrets[1..]).or(shared) } else { shared }
    }

    /// Reads a recorded request as if its signature had held.
    pub fn read_recorded(&self, request: &Request<'_>, ids: &dyn Fn() -> EventId) -> Result<Reading, Reason> {
        let tenant = self.claimed_tenant(request)?;
        Ok(self.read(request, &Verified { tenant, secret: 0 }, ids))
    }
}

/// A scheme that asks for nothing and signs the same headers: which those are decides what may be read of them.
fn stand_in(verify: Option<&VerifySpec>) -> VerifySpec {
    let mut texts: Vec<String> = Vec::new();
    let mut headers: Vec<String> = Vec::new();
    if let Some(verify) = verify {
        match &verify.signed {
            Some(SignedSpec::Any(any)) => texts.extend(any.all().iter().cloned()),
            Some(SignedSpec::ByField(by_field)) => texts.extend(by_field.when.values().cloned()),
            None => {}
        }
        headers.extend(verify.id.iter().flat_map(Texts::all).map(|name| name.trim_start_matches("header:").to_owned()));
        if verify.scheme == Some(Scheme::StandardWebhooks) && verify.id.is_none() {
            headers.push("webhook-id".to_owned());
        }
        headers.extend(verify.components.iter().flatten().filter(|name| !name.starts_with('@')).cloned());
    }
    for text in &texts {
        let named = text.split("{header:").skip(1).filter_map(|rest| rest.split_once('}'));
        headers.extend(named.map(|(name, _)| name.trim_end_matches('?').to_owned()));
    }
    headers.retain(|name| name.parse::<HeaderName>().is_ok());
    let signed: String = headers.iter().map(|name| format!("{{header:{name}}}")).collect();
    VerifySpec {
        scheme: Some(Scheme::HmacSha256),
        header: Some(Texts::One("tidegate-recorded".to_owned())),
        signed: Some(SignedSpec::Any(Texts::One(format!("{{body}}{signed}")))),
        ..VerifySpec::default()
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
            assert_eq!(Source::compile_to_read(&spec).err(), None, "{name}");
        }
    }
}
