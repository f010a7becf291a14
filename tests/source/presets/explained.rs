//! What is explained of every preset's requests: the same as happens, and without a secret.

use secrecy::SecretString;
use tidegate::source::explain::{Case, Configured, End, Explanation, Mark, Sent, explain};
use tidegate::source::{ResolvedConfig, ResolvedSecret, Source, SourceSpec};

use super::super::stated::{Entry, Sent as Stated};
use super::Wrong;

/// One preset of so many is explained under a wrong secret too: that tries thousands of changes.
const REFUSED_EVERY: usize = 12;

fn explained(entry: &Entry, source: &Source, secret: &str, stated: &Stated) -> Explanation {
    let spec: SourceSpec = toml::from_str(&entry.settings()).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    let value = SecretString::from(secret);
    let secret = ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value, until_ms: None };
    let secrets: &[ResolvedSecret] = if entry.fetched { &[] } else { &[secret] };
    let values = |texts: &[String]| texts.iter().map(|text| SecretString::from(text.as_str())).collect();
    let config: ResolvedConfig =
        spec.config.iter().map(|(name, texts)| (name.clone(), values(texts.0.all()))).collect();
    let request = stated.request();
    let sent = Sent {
        method: request.method.clone(),
        target: request.target.to_owned(),
        path_tenant: None,
        headers: request.headers.clone(),
        body: request.body.clone(),
        now_ms: request.now_ms,
    };
    explain(&Case {
        source,
        configured: Configured { spec: &spec, secrets, config: &config },
        others: &[],
        sent: &sent,
    })
}

/// A secret that would be told is one of more than a few letters.
fn tells(explained: &Explanation, secret: &str) -> bool {
    let all = format!("{explained:?}");
    secret.len() > 8 && !secret.starts_with("-----BEGIN") && all.contains(secret.trim_start_matches("whsec_"))
}

#[test]
fn what_is_explained_of_a_good_request_is_what_becomes_of_it() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let source = entry.source();
        for sample in &entry.samples {
            let sent = super::sent(sample, &source);
            // fetches its key, where there is one to fetch
            let _ = entry.verify(&source, &sent);
            let explained = explained(&entry, &source, &entry.secret(), &sent);
            let bad: Vec<_> = explained.steps.iter().filter(|step| step.mark == Mark::Bad).collect();
            let is_good = matches!(explained.end, End::Event | End::Batch { unusable: 0, .. });
            // of several headers that may hold the signature one is enough
            if !is_good || bad.iter().any(|step| step.what != "signature") || !explained.mistakes.is_empty() {
                wrong.add(&entry, format!("{}: {:?}: {bad:?}", sample.file, explained.end));
            }
            if tells(&explained, &entry.secret()) {
                wrong.add(&entry, format!("{}: the secret is told: {explained:?}", sample.file));
            }
        }
    }
    wrong.none();
}

#[test]
fn what_is_explained_of_a_wrong_secret_tells_neither_of_the_two() {
    let mut wrong = Wrong::default();
    for entry in Entry::all().into_iter().filter(|entry| !entry.fetched).step_by(REFUSED_EVERY) {
        let (source, other) = (entry.source(), entry.other_secret());
        let stranger = entry.source_under(&other);
        let sent = super::sent(&entry.samples[0], &source);
        let explained = explained(&entry, &stranger, &other, &sent);
        if !matches!(explained.end, End::Refused(_)) || explained.mistakes.is_empty() {
            wrong.add(&entry, format!("{:?} {:?}", explained.end, explained.mistakes));
        }
        if explained.mistakes.iter().any(|mistake| mistake.certain) {
            wrong.add(&entry, format!("a mistake that nobody made: {:?}", explained.mistakes));
        }
        for secret in [entry.secret(), other] {
            if tells(&explained, &secret) {
                wrong.add(&entry, format!("a secret is told: {explained:?}"));
            }
        }
    }
    wrong.none();
}
