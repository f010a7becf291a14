//! Certificates named by the request: which addresses they may come from, and which of them count.
//!
//! Promises: an address is taken only over https, on a listed host, without port, credentials or query; a
//! certificate counts only inside its own dates, and where the source asks for it only under a public root and for
//! the stated name.

use rustls::pki_types::pem::{PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use smallvec::SmallVec;
use webpki::{EndEntityCert, KeyUsage};

use super::super::spec::{CertificateSpec, Scheme};
use super::super::{Problem, Reason};
use super::der;
use super::key::Made;
use super::keys::Wanted;
use super::public::PublicKey;

/// The most bytes of an address.
const URL_BYTES_MAX: usize = 512;
/// The most bytes of an answer, and the most certificates in it.
const PEM_BYTES_MAX: usize = 64 * 1024;
const CERTIFICATES_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Rule {
    hosts: Vec<String>,
    suffix: String,
    chain: bool,
    name: Option<ServerName<'static>>,
}

impl Rule {
    pub(super) fn compile(spec: &CertificateSpec) -> Result<Self, Problem> {
        if spec.hosts.is_empty() {
            return Err(Problem::new(
                "verify.certificate.hosts",
                "is empty: name the hosts that certificates come from",
            ));
        }
        for host in &spec.hosts {
            let labels: Vec<&str> = host.split('.').collect();
            let fixed = labels.iter().rev().take_while(|label| **label != "*").count();
            let fits = labels.iter().all(|label| *label == "*" || is_label(label));
            if !fits || fixed < 2 {
                return Err(Problem::new(
                    "verify.certificate.hosts",
                    format!(
                        "has {host:?}: write a lower-case host whose last two labels are fixed, such as \"sns.*.amazonaws.com\""
                    ),
                ));
            }
        }
        let name = spec.name.as_ref().map(|name| ServerName::try_from(name.clone())).transpose();
        let name = name.map_err(|_| Problem::new("verify.certificate.name", "is no host's name: correct it"))?;
        Ok(Self { hosts: spec.hosts.clone(), suffix: spec.suffix.clone().unwrap_or_default(), chain: spec.chain, name })
    }

    /// The address, if certificates may come from there.
    pub(super) fn wanted(&self, url: &[u8]) -> Result<Wanted, Reason> {
        let text = std::str::from_utf8(url).map_err(|_| Reason::UntrustedKeyUrl)?;
        if self.trusts(text) { Ok(Wanted(text.to_owned())) } else { Err(Reason::UntrustedKeyUrl) }
    }

    fn trusts(&self, url: &str) -> bool {
        let Some((host, path)) = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')) else {
            return false;
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        url.len() <= URL_BYTES_MAX
            && path.bytes().all(plain)
            && !path.split('/').any(|part| part == ".." || part == ".")
            && path.ends_with(&self.suffix)
            && self.hosts.iter().any(|pattern| host_fits(pattern, host))
    }

    /// The keys of an answer and the time they end.
    pub(super) fn read(&self, answer: &[u8], schemes: &[Scheme], now_ms: i64) -> Option<(SmallVec<[Made; 1]>, i64)> {
        if answer.len() > PEM_BYTES_MAX {
            return None;
        }
        let mut sections = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(answer).take(CERTIFICATES_MAX) {
            sections.push(section.ok()?);
        }
        let made = |key: &dyn Fn(Scheme) -> Result<PublicKey, String>| {
            schemes.iter().map(|&scheme| key(scheme).ok().map(Made::Public)).collect::<Option<SmallVec<_>>>()
        };
        match sections.first()? {
            (SectionKind::PublicKey, _) if !self.chain && self.name.is_none() => {
                let text = std::str::from_utf8(answer).ok()?;
                Some((made(&|scheme| PublicKey::pem(text, scheme))?, i64::MAX))
            }
            (SectionKind::Certificate, bytes) => {
                let found = der::certificate(bytes)?;
                if now_ms < found.not_before_ms || now_ms > found.not_after_ms || !self.holds(&sections, now_ms) {
                    return None;
                }
                let keys = made(&|scheme| PublicKey::raw(scheme, found.algorithm, found.key))?;
                Some((keys, found.not_after_ms))
            }
            _ => None,
        }
    }

    fn holds(&self, sections: &[(SectionKind, Vec<u8>)], now_ms: i64) -> bool {
        let certificates: Vec<CertificateDer<'_>> =
            sections.iter().map(|(_, bytes)| CertificateDer::from(bytes.as_slice())).collect();
        let Some((leaf, others)) = certificates.split_first() else { return false };
        let Ok(leaf) = EndEntityCert::try_from(leaf) else { return false };
        let named = self.name.as_ref().is_none_or(|name| leaf.verify_is_valid_for_subject_name(name).is_ok());
        let now = std::time::Duration::from_millis(u64::try_from(now_ms).unwrap_or(0));
        let rooted = || {
            leaf.verify_for_usage(
                webpki::ALL_VERIFICATION_ALGS,
                webpki_roots::TLS_SERVER_ROOTS,
                others,
                UnixTime::since_unix_epoch(now),
                KeyUsage::server_auth(),
                None,
                None,
            )
            .is_ok()
        };
        named && (!self.chain || rooted())
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a host is the pattern's; `*` stands for one label.
fn host_fits(pattern: &str, host: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('.'), host.split('.'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some("*"), Some(label)) if is_label(label) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        let hosts = vec!["sns.*.amazonaws.com".to_owned()];
        let spec =
            CertificateSpec { from: String::new(), hosts, suffix: Some(".pem".to_owned()), chain: false, name: None };
        Rule::compile(&spec).expect("a rule")
    }

    #[test]
    fn only_listed_hosts_are_trusted() {
        let trusted = |url: &str| rule().wanted(url.as_bytes()).is_ok();
        assert!(trusted("https://sns.us-east-2.amazonaws.com/SimpleNotificationService-7ff5.pem"));
        for url in [
            "http://sns.us-east-2.amazonaws.com/a.pem",
            "https://sns.us-east-2.amazonaws.com.evil.example/a.pem",
            "https://evil.example/https://sns.us-east-2.amazonaws.com/a.pem",
            "https://sns.a.b.amazonaws.com/a.pem",
            "https://sns..amazonaws.com/a.pem",
            "https://x@sns.us-east-2.amazonaws.com/a.pem",
            "https://sns.us-east-2.amazonaws.com:8443/a.pem",
            "https://sns.us-east-2.amazonaws.com/a.key",
            "https://sns.us-east-2.amazonaws.com/a?b=.pem",
            "https://sns.us-east-2.amazonaws.com/../a.pem",
            "https://sns.us-east-2.amazonaws.com/%2e%2e/a.pem",
            "https://SNS.us-east-2.amazonaws.com/a.pem",
            "https://sns.us-east-2.amazonaws.com",
            "https://evil.example\\sns.us-east-2.amazonaws.com/a.pem",
            "",
        ] {
            assert!(!trusted(url), "{url}");
        }
    }

    #[test]
    fn a_list_that_takes_any_host_is_refused() {
        for host in ["*", "*.com", "sns.*", "", "a..com", "A.example.com", "a.example.com/x"] {
            let hosts = vec![host.to_owned()];
            let spec = CertificateSpec { from: String::new(), hosts, suffix: None, chain: false, name: None };
            assert!(Rule::compile(&spec).is_err(), "{host}");
        }
    }
}
