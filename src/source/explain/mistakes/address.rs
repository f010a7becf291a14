//! An address that a proxy changed, where the sender signs it.

use actix_web::http::header::HeaderMap;

use super::super::super::spec::{Scheme, SignedSpec, VerifySpec};
use super::{Change, Finder, Mistake};

/// The most hosts, ports and targets that are tried together.
const CHOICES_MAX: usize = 12;
/// Where a proxy tells what the address was.
const HOSTS: [&str; 4] = ["host", "x-forwarded-host", "x-original-host", "x-host"];
const TARGETS: [&str; 6] = [
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-envoy-original-path",
    "x-forwarded-uri",
    "x-forwarded-path",
];
const PREFIXES: [&str; 4] = ["/webhooks", "/webhook", "/hooks", "/api"];

/// An address as the sender may have signed it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    scheme: String,
    host: String,
    /// With its colon, or empty.
    port: String,
    /// The path before `/in`.
    prefix: String,
    target: String,
}

/// The sender signed another address.
pub(super) fn public(finder: &mut Finder<'_>) {
    if !signs_address(&finder.verify) {
        return;
    }
    let own = Address::of(finder.verify.origin.as_deref().unwrap_or_default(), &finder.sent().target);
    let headers = finder.sent().headers.clone();
    let (hosts, ports, targets) = (own.hosts(&headers), own.ports(&headers), own.targets(&headers));
    let schemes = [own.scheme.clone(), if own.scheme == "https" { "http" } else { "https" }.to_owned()];
    let mut all = Vec::new();
    for (host, own_port) in &hosts {
        for scheme in &schemes {
            for port in std::iter::once(own_port).chain(&ports) {
                for (prefix, target) in &targets {
                    let address = Address {
                        scheme: scheme.clone(),
                        host: host.clone(),
                        port: port.clone(),
                        prefix: prefix.clone(),
                        target: target.clone(),
                    };
                    if address != own && !all.contains(&address) {
                        all.push(address);
                    }
                }
            }
        }
    }
    // the fewest differences first: they are what was most likely done
    all.sort_by_key(|address| address.differs(&own));
    for address in all {
        let mut change = finder.rules(|verify: &mut VerifySpec| verify.origin = Some(address.origin()));
        change.sent = finder.request(|sent| sent.target.clone_from(&address.target)).sent;
        if try_one(finder, &own, &address, &change) {
            return;
        }
    }
}

fn try_one(finder: &mut Finder<'_>, own: &Address, address: &Address, change: &Change) -> bool {
    let (mine, theirs) = (own.shown(), address.shown());
    let (code, fix) = if address.target != own.target && address.origin() == own.origin() {
        let code = if path(&address.target) == path(&own.target) { "address-query" } else { "address-path" };
        (code, "let the proxy hand on path and query as they come".to_owned())
    } else {
        let code = match () {
            () if address.scheme != own.scheme => "address-scheme",
            () if address.host != own.host => "address-host",
            () if address.port != own.port => "address-port",
            () => "address-path",
        };
        let path = if address.target == own.target { "" } else { ", and let the proxy hand on the path as it comes" };
        (code, format!("state `origin = \"{}\"` in the source's `verify`{path}", address.origin()))
    };
    finder.attempt(change, || {
        Mistake::certain(code, format!("the sender signed the address {theirs}, and this source reads {mine}"), fix)
    })
}

fn signs_address(verify: &VerifySpec) -> bool {
    if verify.scheme == Some(Scheme::HttpSignature) || verify.scheme == Some(Scheme::Contentful) {
        return true;
    }
    let reads = |text: &String| ["{url", "{path}", "{target}", "{query:"].iter().any(|piece| text.contains(piece));
    match &verify.signed {
        None => false,
        Some(SignedSpec::Any(texts)) => texts.all().iter().any(reads),
        Some(SignedSpec::ByField(by_field)) => by_field.when.values().any(reads),
    }
}

fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

impl Address {
    fn of(origin: &str, target: &str) -> Self {
        let (scheme, rest) = origin.split_once("://").unwrap_or(("https", origin));
        let (authority, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = host_and_port(authority);
        Self { scheme: scheme.to_owned(), host, port, prefix: prefix.to_owned(), target: target.to_owned() }
    }

    fn origin(&self) -> String {
        format!("{}://{}{}{}", self.scheme, self.host, self.port, self.prefix)
    }

    /// For people: a query may hold a token.
    fn shown(&self) -> String {
        let query = if self.target.contains('?') { "?…" } else { "" };
        format!("{}{}{query}", self.origin(), path(&self.target))
    }

    fn differs(&self, own: &Self) -> usize {
        let same = [
            self.scheme == own.scheme,
            self.host == own.host,
            self.port == own.port,
            self.prefix == own.prefix,
            self.target == own.target,
        ];
        same.iter().filter(|same| !**same).count()
    }

    /// Hosts with the ports they come with.
    fn hosts(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let mut hosts = vec![(self.host.clone(), self.port.clone())];
        let named = HOSTS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
        let forwarded = headers.get("forwarded").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let forwarded = forwarded.split([';', ',']).filter_map(|part| part.trim().strip_prefix("host="));
        for authority in named.chain(forwarded) {
            let authority = authority.split(',').next().unwrap_or_default().trim().trim_matches('"');
            hosts.push(host_and_port(&authority.to_ascii_lowercase()));
        }
        bounded(hosts)
    }

    fn ports(&self, headers: &HeaderMap) -> Vec<String> {
        let mut ports = vec![self.port.clone(), String::new(), ":443".to_owned(), ":80".to_owned()];
        let stated = headers.get("x-forwarded-port").and_then(|port| port.to_str().ok());
        ports.extend(stated.map(|port| format!(":{port}")));
        ports.extend([":8080", ":8443"].map(str::to_owned));
        bounded(ports)
    }

    /// Prefixes and targets.
    fn targets(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let (prefix, target) = (&self.prefix, &self.target);
        let (path, query) = target.split_once('?').map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
        let with = |path: &str| query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let mut targets = vec![(prefix.clone(), target.clone())];
        let mut add = |prefix: &str, target: String| targets.push((prefix.to_owned(), target));
        add(
            prefix,
            match path.strip_suffix('/') {
                Some(bare) => with(bare),
                None => with(&format!("{path}/")),
            },
        );
        if let Some(query) = query {
            add(prefix, path.to_owned());
            let mut fields: Vec<&str> = query.split('&').collect();
            fields.sort_unstable();
            add(prefix, format!("{path}?{}", fields.join("&")));
            fields.reverse();
            add(prefix, format!("{path}?{}", fields.join("&")));
        }
        for name in TARGETS {
            let Some(told) = headers.get(name).and_then(|value| value.to_str().ok()) else { continue };
            let told = told.split_once("://").map_or(told, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
            add("", told.to_owned());
        }
        if let Some(told) = headers.get("x-forwarded-prefix").and_then(|value| value.to_str().ok()) {
            add(told.trim_end_matches('/'), target.clone());
        }
        if !prefix.is_empty() {
            add("", target.clone());
        }
        for other in PREFIXES {
            add(other, target.clone());
            if let Some(rest) = target.strip_prefix("/in/") {
                add("", format!("{other}/{rest}"));
            }
        }
        targets.dedup();
        targets.truncate(2 * CHOICES_MAX);
        targets
    }
}

fn bounded<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut some: Vec<T> = Vec::new();
    for one in all {
        if some.len() < CHOICES_MAX && !some.contains(&one) {
            some.push(one);
        }
    }
    some
}

fn host_and_port(authority: &str) -> (String, String) {
    // the port of [::1]:80 stands behind the bracket
    let from = authority.rfind(']').unwrap_or(0);
    match authority[from..].find(':') {
        Some(at) => (authority[..from + at].to_owned(), authority[from + at..].to_owned()),
        None => (authority.to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_put_together() {
        for origin in ["https://a.example", "http://a.example:8080/x", "https://[::1]:443", "https://[::1]/y"] {
            assert_eq!(Address::of(origin, "/in/a").origin(), origin);
        }
        assert_eq!(Address::of("https://a.example", "/in/a?token=secret").shown(), "https://a.example/in/a?…");
    }

    #[test]
    fn what_a_proxy_tells_is_tried() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-host".parse().expect("a name"), "b.example:444".parse().expect("a value"));
        headers.insert("x-original-uri".parse().expect("a name"), "/old?b=1".parse().expect("a value"));
        let address = Address::of("https://a.example", "/in/a?b=1&a=2");
        assert!(address.hosts(&headers).contains(&("b.example".to_owned(), ":444".to_owned())));
        let targets: Vec<String> = address.targets(&headers).into_iter().map(|(_, target)| target).collect();
        for expected in ["/in/a/?b=1&a=2", "/in/a", "/in/a?a=2&b=1", "/old?b=1", "/webhooks/a?b=1&a=2"] {
            assert!(targets.iter().any(|target| target == expected), "{expected}: {targets:?}");
        }
    }
}
