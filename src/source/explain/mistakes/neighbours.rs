//! Secrets and rules of the neighbours: another tenant, another source, another preset.

use secrecy::ExposeSecret as _;

use super::super::super::{ResolvedSecret, Source, SourceSpec, presets};
use super::{Change, Finder, Mistake, Sent, holds};

/// A secret of this source that does not count here: another tenant's, or one whose time is over.
pub(super) fn own(finder: &mut Finder<'_>) {
    let secrets = finder.case.configured.secrets;
    let now_ms = finder.sent().now_ms;
    for secret in secrets {
        let ended = secret.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let change = with_secret(finder, secret);
        finder.attempt(&change, || {
            let named = &secret.key;
            match (ended, &secret.tenant) {
                (true, _) => Mistake::certain(
                    "secret-ended",
                    format!("`{named}` made the signature, and its time is over"),
                    "tell the sender the new secret, or move `until` to a later time".to_owned(),
                ),
                (false, Some(tenant)) => Mistake::certain(
                    "secret-of-tenant",
                    format!("`{named}`, the secret of the tenant {tenant:?}, made the signature"),
                    "correct the tenant in the sender's address, or its secret".to_owned(),
                ),
                (false, None) => Mistake::certain(
                    "secret-of-tenant",
                    format!("`{named}` made the signature, and does not count for this tenant"),
                    "correct the tenant in the sender's address, or its secret".to_owned(),
                ),
            }
        });
    }
}

/// Another source takes the request, or its secret made the signature.
pub(super) fn others(finder: &mut Finder<'_>) {
    for other in finder.case.others {
        let name = &other.spec.name;
        let own = |secret: &&ResolvedSecret| {
            let same = |own: &ResolvedSecret| own.value.expose_secret() == secret.value.expose_secret();
            !finder.case.configured.secrets.iter().any(same)
        };
        let strangers: Vec<&ResolvedSecret> = other.secrets.iter().filter(own).collect();
        for secret in strangers {
            let change = with_secret(finder, secret);
            finder.attempt(&change, || {
                Mistake::certain(
                    "secret-of-source",
                    format!("`{}` of the source {name:?} made the signature", secret.key),
                    format!("the sender has the secret of {name:?}: correct it there, or let it call /in/{name}"),
                )
            });
        }
        let whole = Source::compile_with(other.spec, other.secrets, other.config);
        if whole.is_ok_and(|source| holds(&source, &Sent { path_tenant: None, ..finder.sent().clone() })) {
            finder.add(Mistake::certain(
                "source",
                format!("the source {name:?} takes this request as it is"),
                format!("let the sender call /in/{name}"),
            ));
        }
    }
}

/// The rules of another preset make the signature hold, under the same secret.
pub(super) fn presets(finder: &mut Finder<'_>) {
    let own = finder.case.configured.spec;
    for name in presets::names().filter(|name| own.preset.as_deref() != Some(*name)) {
        let mut spec = SourceSpec {
            preset: Some(name.to_owned()),
            verify: None,
            allow_weak_secret: Some(true),
            name: own.name.clone(),
            config: own.config.clone(),
            ..SourceSpec::default()
        };
        if let Some(origin) = finder.verify.origin.clone() {
            let verify = super::VerifySpec { origin: Some(origin), ..Default::default() };
            spec.verify = Some(verify);
        }
        let change = Change { spec: Some(spec), ..Change::default() };
        finder.attempt(&change, || {
            Mistake::certain(
                "preset",
                format!("by the preset {name:?} the signature holds, under the same secret"),
                format!("state `preset = \"{name}\"`: `tidegate sources show {name}` tells its rules"),
            )
        });
    }
}

/// The source with this secret in place of all that count for the request.
fn with_secret(finder: &Finder<'_>, secret: &ResolvedSecret) -> Change {
    let claimed = finder.case.source.claimed_tenant(&finder.sent().request()).ok().flatten();
    let claimed = claimed.as_deref().map(str::to_owned);
    // the other tenants are left out: two of them may not have the same secret
    let mut spec = finder.whole.clone();
    spec.tenants.retain(|tenant| claimed.as_deref().is_none_or(|claimed| tenant.name() == claimed));
    spec.secrets_file = None;
    let secrets = vec![ResolvedSecret { tenant: claimed, until_ms: None, ..secret.clone() }];
    Change { spec: Some(spec), secrets: Some(secrets), ..Change::default() }
}

impl Finder<'_> {
    fn add(&mut self, mistake: Mistake) {
        if self.found.len() < super::FOUND_MAX && !self.found.iter().any(|found| found.code == mistake.code) {
            self.found.push(mistake);
        }
    }
}
