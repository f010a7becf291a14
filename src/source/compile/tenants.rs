//! Tenants: where their names stand, and whose secrets show that they are theirs.

use secrecy::ExposeSecret as _;

use super::{Compiler, NAME_BYTES_MAX, is_name};
use crate::source::rules::TenantRule;
use crate::source::spec::SourceSpec;
use crate::source::verify::Verifier;
use crate::source::{Problem, ResolvedSecret};

impl Compiler {
    /// The name of the source, and where the tenant's name stands. Where nobody signs it, it is read first, and
    /// the signature has to be by a secret of that tenant.
    pub(super) fn tenant(&mut self, spec: &SourceSpec, verifier: Option<&Verifier>) -> TenantRule {
        match spec.tenant.as_deref() {
            None => TenantRule::None,
            Some("path") => TenantRule::Path,
            Some(text) => {
                let Some(reference) = self.reference("tenant", text) else { return TenantRule::None };
                let header = reference.headers().find(|name| !verifier.is_some_and(|known| known.signs_header(name)));
                if header.is_none() && !reference.reads_query() {
                    return TenantRule::Signed(reference);
                }
                if !reference.is_of_head() {
                    let message = "has alternatives in the body beside one that nobody signs: name one place";
                    self.problem("tenant", message.to_owned());
                }
                TenantRule::Unsigned(reference)
            }
        }
    }

    /// The names, and the secrets where a request could else be moved from one tenant to another.
    pub(super) fn names(&mut self, spec: &SourceSpec, secrets: &[ResolvedSecret], rule: &TenantRule) {
        if !is_name(&spec.name) {
            self.problem(
                "name",
                format!("is {:?}: use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` or `.`", spec.name),
            );
        }
        let by_path = matches!(rule, TenantRule::Path);
        let unsigned = by_path || matches!(rule, TenantRule::Unsigned(_));
        let place = spec.tenant.as_deref().unwrap_or_default();
        let with_secrets: std::collections::HashSet<&str> =
            secrets.iter().filter_map(|secret| secret.tenant.as_deref()).collect();
        let mut seen = std::collections::HashSet::new();
        for (index, tenant) in spec.tenants.iter().enumerate() {
            let key = format!("tenants[{index}]");
            if tenant.name().trim().is_empty() || tenant.name().len() > 255 {
                self.problem(&key, "has a blank or overlong name: correct it".to_owned());
            }
            if by_path && !is_name(tenant.name()) {
                self.problem(
                    &key,
                    format!("is {:?}, which cannot stand in a path: use letters, digits, `-`, `_`, `.`", tenant.name()),
                );
            }
            if !seen.insert(tenant.name()) {
                self.problem(&key, format!("repeats {:?}: leave one out", tenant.name()));
            }
            if unsigned && !with_secrets.contains(tenant.name()) {
                let message = format!(
                    "has no secret of its own: with `tenant = {place:?}`, which nobody signs, a request signed for one \
                     tenant would pass for another"
                );
                self.problem(&key, message);
            }
            if !unsigned && !tenant.secrets().is_empty() {
                let message = "has secrets of its own, which needs a tenant that is known before the signature: \
                               `tenant = \"path\"`, a header or the query";
                self.problem(&key, message.to_owned());
            }
        }
        if !spec.tenants.is_empty() && spec.tenant.is_none() {
            self.problem("tenant", "is missing although `tenants` are listed: say where the tenant stands".to_owned());
        }
        if spec.secrets_file.is_some() && !unsigned && spec.tenant.is_some() {
            let message =
                "needs a tenant that is known before the signature: `tenant = \"path\"`, a header or the query";
            self.problem("secrets_file", message.to_owned());
        }
        if unsigned && spec.tenants.is_empty() {
            let message = format!("is empty although `tenant = {place:?}`: list the tenants with their secrets");
            self.problem("tenants", message);
        }
        self.shared_secrets(unsigned, secrets);
    }

    fn shared_secrets(&mut self, unsigned: bool, secrets: &[ResolvedSecret]) {
        let mut first = std::collections::HashMap::new();
        for secret in secrets {
            if unsigned && secret.tenant.is_none() {
                self.problem(&secret.key, "is shared by all tenants: move it to the tenant it belongs to".to_owned());
            }
            match first.entry(secret.value.expose_secret()) {
                std::collections::hash_map::Entry::Occupied(same) => {
                    let same: &String = same.get();
                    self.problem(&secret.key, format!("is the same secret as `{same}`: leave one out"));
                }
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(secret.key.clone());
                }
            }
        }
    }

    /// A text that nobody signed may not choose whose state changes.
    pub(super) fn unsigned_resources(&mut self, rules: &super::Rules, verifier: &Verifier) {
        let narrowed = rules.narrow.iter().filter_map(|(_, rule)| rule.resource.as_ref());
        let also = rules.also.iter().map(|also| &also.resource);
        let mut found = Vec::new();
        for resource in rules.general.resource.iter().chain(narrowed).chain(also) {
            for reference in resource.id.iter().chain(&resource.kind) {
                let header = reference.headers().find(|name| !verifier.signs_header(name));
                let what = match header {
                    Some(name) => format!("the header `{name}`"),
                    None if reference.reads_query() => "the query".to_owned(),
                    None => continue,
                };
                let message =
                    format!("comes from {what}, which the signature does not cover: read it from the signed body");
                found.push(Problem::new("resource", message));
            }
        }
        self.problems.extend(found);
    }
}
