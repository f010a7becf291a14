//! Hosts of addresses that senders ask to be fetched.

use std::net::IpAddr;

use reqwest::Url;

/// The hosts an address may have.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    /// Reads a list; the error is to be read after the setting's key.
    pub(crate) fn parse(hosts: &[String]) -> Result<Self, String> {
        if hosts.is_empty() {
            return Err("is empty: name the provider's hosts, so that nobody can have another one fetched".to_owned());
        }
        for host in hosts {
            let labels: Vec<&str> = host.split('.').collect();
            let fits =
                |label: &&str| *label == "*" || label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            let ends_in_two = labels.len() >= 2 && labels.iter().rev().take(2).all(|label| *label != "*");
            if !is_here(host) && (!ends_in_two || !labels.iter().all(|label| fits(label) && !label.is_empty())) {
                return Err(format!(
                    "has {host:?}: name whole labels, `*` for one of them, and never for the last two"
                ));
            }
        }
        Ok(Self(hosts.iter().map(|host| host.to_ascii_lowercase()).collect()))
    }

    /// Whether an address may be fetched: over TLS at its usual port, or on this machine where that is named.
    pub(crate) fn take(&self, text: &str) -> bool {
        let Ok(url) = Url::parse(text) else { return false };
        let Some(host) = url.host_str() else { return false };
        let named = self.0.iter().any(|pattern| fits(pattern, host));
        let plain = url.username().is_empty() && url.password().is_none();
        let here = is_here(host) && matches!(url.scheme(), "http" | "https");
        named && plain && (here || (url.scheme() == "https" && url.port().is_none()))
    }
}

fn fits(pattern: &str, host: &str) -> bool {
    let (mut labels, mut of_host) = (pattern.split('.'), host.split('.'));
    loop {
        match (labels.next(), of_host.next()) {
            (None, None) => return true,
            (Some("*"), Some(label)) if !label.is_empty() => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[&str]) -> Result<Hosts, String> {
        Hosts::parse(&list.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_providers_hosts_over_tls_are_taken() {
        let sns = hosts(&["sns.*.amazonaws.com"]).expect("hosts");
        assert!(sns.take("https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=1"));
        assert!(sns.take("https://SNS.eu-central-1.amazonaws.com:443/x"));
        for url in [
            "http://sns.us-west-2.amazonaws.com/",
            "https://sns.us-west-2.amazonaws.com.evil.example/",
            "https://evil.example/sns.us-west-2.amazonaws.com",
            "https://sns.us-west-2.amazonaws.com@evil.example/",
            "https://user@sns.us-west-2.amazonaws.com/",
            "https://sns.us-west-2.amazonaws.com:8443/",
            "https://sns.a.b.amazonaws.com/",
            "https://sns..amazonaws.com/",
            "https://sns.amazonaws.com/",
            "https://127.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "",
        ] {
            assert!(!sns.take(url), "{url}");
        }
    }

    #[test]
    fn this_machine_is_asked_only_where_it_is_named() {
        assert!(hosts(&["127.0.0.1"]).expect("hosts").take("http://127.0.0.1:8080/x"));
        assert!(!hosts(&["127.0.0.1"]).expect("hosts").take("http://127.0.0.2:8080/x"));
    }

    #[test]
    fn a_list_that_would_take_anything_is_refused() {
        for list in [&[][..], &["*"], &["*.com"], &["a.*"], &["sns.*"], &["a.*.com"], &["a..com"], &["s*s.example.com"]]
        {
            assert!(hosts(list).is_err(), "{list:?}");
        }
    }
}
