//! What secrets look like that were pasted in the wrong place: allowed, but should be known. No text of a secret is
//! in any warning.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;

use super::layers::joined;
use super::{Problem, SourceEntry};

/// What keys of a sender's test mode begin with.
const TEST_KEYS: [&str; 7] = ["sk_test_", "rk_test_", "pk_test_", "test_", "whsec_test_", "FLWSECK_TEST", "sandbox_"];
/// What keys begin with that everybody may know.
const PUBLIC_KEYS: [&str; 4] = ["pk_live_", "pk_test_", "pk_", "FLWPUBK"];
/// Words that stand where a secret should.
const PLACEHOLDERS: [&str; 8] =
    ["changeme", "change-me", "change_me", "your-secret", "your_secret", "yoursecret", "placeholder", "xxxxxxxx"];

/// What should be known of the secrets of all sources that are on.
pub(super) fn of(entries: &[SourceEntry]) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let mut known: BTreeMap<&str, &SourceEntry> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.enabled) {
        for secret in &entry.secrets {
            let key = joined(&entry.key, &secret.key);
            let text = secret.value.expose_secret();
            if let Some(message) = looks_wrong(text) {
                warnings.push(Problem::new(&key, message));
            }
            let first = *known.entry(text).or_insert(entry);
            if sender(first) != sender(entry) {
                let other = &first.spec.name;
                let message = format!(
                    "is also a secret of the source {other}, which is another sender: who knows it can sign for both, \
                     so ask each sender for one of its own"
                );
                warnings.push(Problem::new(key, message));
            }
        }
    }
    warnings
}

/// Whose secret it is: sources of one preset may share theirs, as the webhooks of one app do.
fn sender(entry: &SourceEntry) -> &str {
    entry.spec.preset.as_deref().unwrap_or(&entry.spec.name)
}

fn looks_wrong(text: &str) -> Option<&'static str> {
    let begins = |all: &[&str]| all.iter().any(|start| text.starts_with(start));
    let lower = text.to_ascii_lowercase();
    let in_place = (text.starts_with('<') && text.ends_with('>')) || text.starts_with("${") || text.starts_with("$(");
    if in_place || PLACEHOLDERS.iter().any(|word| lower.contains(word)) {
        return Some("looks like a placeholder: put the sender's secret in its place");
    }
    if begins(&PUBLIC_KEYS) {
        return Some("looks like a public key, which everybody may know: the signing secret is another one");
    }
    if begins(&TEST_KEYS) {
        return Some("looks like a key of the sender's test mode: live events are signed with another one");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_wrong_is_told_apart() {
        for (text, expected) in [
            ("<your secret here>", Some("placeholder")),
            ("${WEBHOOK_SECRET}", Some("placeholder")),
            ("ChangeMe-ChangeMe-1", Some("placeholder")),
            ("pk_live_0123456789abcdef", Some("public key")),
            ("sk_test_0123456789abcdef", Some("test mode")),
            ("whsec_0123456789abcdef", None),
            ("sk_live_0123456789abcdef", None),
        ] {
            let found = looks_wrong(text);
            assert_eq!(found.is_some(), expected.is_some(), "{text}");
            assert!(expected.is_none_or(|word| found.is_some_and(|message| message.contains(word))), "{text}");
        }
    }
}
