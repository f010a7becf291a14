//! The right secret, read or copied in the wrong way.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};

use super::super::super::ResolvedSecret;
use super::super::super::spec::SecretForm;
use super::{Change, Finder, Mistake, word};

/// The secret's text is right, and becomes another key.
pub(super) fn forms(finder: &mut Finder<'_>) {
    if !finder.has_mac() {
        return;
    }
    let own = finder.form();
    for form in [SecretForm::Utf8, SecretForm::Base64, SecretForm::WhsecBase64, SecretForm::Hex, SecretForm::Sha1Utf8] {
        if form == own {
            continue;
        }
        let change = finder.rules(|verify| {
            verify.secret = Some(form);
            (verify.secret_prefix, verify.key_prefix) = (None, None);
        });
        let (form, own) = (word(form), word(own));
        finder.attempt(&change, || {
            Mistake::certain(
                "secret-form",
                format!("the sender reads the secret as `{form}`, and this source as `{own}`"),
                format!("state `secret = \"{form}\"` in the source's `verify`"),
            )
        });
    }
}

/// The secret was copied with something more, or without something.
pub(super) fn texts(finder: &mut Finder<'_>) {
    for at in 0..finder.case.configured.secrets.len() {
        let text = finder.case.configured.secrets[at].value.expose_secret();
        for (what, key) in variants(text) {
            let Some(change) = with_key(finder, at, &key) else { continue };
            let named = finder.case.configured.secrets[at].key.clone();
            finder.attempt(&change, || {
                Mistake::certain(
                    "secret-text",
                    format!("the sender's secret is that of `{named}` {what}"),
                    "copy it again, whole and as it is, to both sides".to_owned(),
                )
            });
        }
    }
}

/// The source with this key in place of one of its secrets.
fn with_key(finder: &Finder<'_>, at: usize, key: &[u8]) -> Option<Change> {
    let (mac, value) =
        if finder.has_mac() { (true, STANDARD.encode(key)) } else { (false, String::from_utf8(key.to_vec()).ok()?) };
    let change = finder.rules(|verify| {
        (verify.secret_prefix, verify.key_prefix) = (None, None);
        if mac {
            verify.secret = Some(SecretForm::Base64);
        }
    });
    // the others stand in their own form, which would not be read
    let own = finder.case.configured.secrets.get(at)?.clone();
    let secrets = vec![ResolvedSecret { value: SecretString::from(value), ..own }];
    Some(Change { secrets: Some(secrets), ..change })
}

/// What could have become of a secret on its way, as keys.
fn variants(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&'static str, Vec<u8>)> = Vec::new();
    let mut add = |what, key: &[u8]| all.push((what, key.to_vec()));
    for (what, before, after) in [
        ("with a line end behind it", "", "\n"),
        ("with a line end (CRLF) behind it", "", "\r\n"),
        ("with a blank behind it", "", " "),
        ("with a blank before it", " ", ""),
        ("in double quotes", "\"", "\""),
        ("in single quotes", "'", "'"),
        ("with `whsec_` before it", "whsec_", ""),
    ] {
        add(what, format!("{before}{text}{after}").as_bytes());
    }
    let unquoted = text.trim_matches(['"', '\'']);
    if unquoted != text {
        add("without the quotes around it", unquoted.as_bytes());
    }
    for prefix in ["whsec_", "v1,whsec_", "sk_", "whsk_", "Bearer ", "Basic "] {
        let Some(rest) = text.strip_prefix(prefix) else { continue };
        add("without its prefix", rest.as_bytes());
        if let Ok(key) = STANDARD.decode(rest) {
            add("without its prefix, read as base64", &key);
        }
    }
    add("in lower case", text.to_ascii_lowercase().as_bytes());
    add("in upper case", text.to_ascii_uppercase().as_bytes());
    add("with its last character missing", &text.as_bytes()[..text.len().saturating_sub(1)]);
    add("with its first character missing", text.as_bytes().get(1..).unwrap_or_default());
    add("encoded to base64", STANDARD.encode(text).as_bytes());
    add("encoded to hexadecimal", hex::encode(text).as_bytes());
    let bare = text.strip_prefix("whsec_").unwrap_or(text);
    for key in [URL_SAFE.decode(bare), URL_SAFE_NO_PAD.decode(bare), STANDARD_NO_PAD.decode(bare)].into_iter().flatten()
    {
        add("read as base64 of the URL alphabet or without padding", &key);
    }
    all.retain(|(_, key)| !key.is_empty() && key != text.as_bytes());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_tried_as_it_is_pasted_by_mistake() {
        let all = variants("whsec_c2l4dGVlbi1ieXRlLWtleQ==");
        let key = |what: &str| all.iter().find(|(known, _)| *known == what).map(|(_, key)| key.clone());
        assert_eq!(key("without its prefix, read as base64").as_deref(), Some(&b"sixteen-byte-key"[..]));
        assert_eq!(key("with a line end behind it").as_deref(), Some(&b"whsec_c2l4dGVlbi1ieXRlLWtleQ==\n"[..]));
        assert!(variants("\"quoted\"").iter().any(|(_, key)| key == b"quoted"));
    }
}
