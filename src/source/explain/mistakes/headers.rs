//! Headers that were renamed, doubled, folded or rewritten on their way.

use actix_web::http::header::{HeaderName, HeaderValue};

use super::super::super::verify::Seen;
use super::{Finder, Mistake};

/// The most headers that are taken for a missing one.
const CANDIDATES_MAX: usize = 64;

/// The headers that the scheme reads, with what they are to it.
pub(super) fn wanted(finder: &Finder<'_>) -> Vec<(&'static str, HeaderName)> {
    let request = finder.sent().request();
    let tenant = finder.case.source.claimed_tenant(&request).ok().flatten();
    let seen = finder.case.source.verifier.trace(&request, tenant.as_deref());
    let named = |seen: &Seen| match seen {
        Seen::Place { what, place, .. } => Some((*what, place.strip_prefix("header:")?.parse().ok()?)),
        _ => None,
    };
    let mut all: Vec<(&'static str, HeaderName)> = seen.iter().filter_map(named).collect();
    let signed = match &finder.verify.signed {
        Some(super::super::super::spec::SignedSpec::Any(texts)) => texts.all().concat(),
        _ => String::new(),
    };
    let pieces = signed.split("{header:").skip(1).filter_map(|rest| rest.split('}').next());
    all.extend(pieces.filter_map(|name| Some(("signed header", name.trim_end_matches('?').parse().ok()?))));
    all
}

/// The header is there, and its text is not as it was.
pub(super) fn values(finder: &mut Finder<'_>) {
    for (what, name) in wanted(finder) {
        let values: Vec<HeaderValue> = finder.sent().headers.get_all(&name).cloned().collect();
        let texts: Vec<&str> = values.iter().filter_map(|value| value.to_str().ok()).collect();
        let (Some(first), Some(last)) = (texts.first().copied(), texts.last().copied()) else { continue };
        let twice = texts.len() > 1;
        for (code, says, text) in rewritten(first, last, twice) {
            let Ok(value) = HeaderValue::from_str(&text) else { continue };
            if !twice && text == first {
                continue;
            }
            let change = finder.request(|sent| drop(sent.headers.insert(name.clone(), value)));
            finder.attempt(&change, || {
                let fix = "let what stands between hand on this header as it comes";
                Mistake::certain(code, format!("the {what} `{name}` {says}"), fix)
            });
        }
    }
}

fn rewritten(first: &str, last: &str, twice: bool) -> Vec<(&'static str, &'static str, String)> {
    let mut all = Vec::new();
    if twice {
        all.push(("header-twice", "came twice, and the first of them is the sender's", first.to_owned()));
        all.push(("header-twice", "came twice, and the last of them is the sender's", last.to_owned()));
    }
    let mut add = |code, says, text: String| all.push((code, says, text));
    if let Some((one, rest)) = first.split_once(',') {
        add("header-folded", "holds two values in one, of which the first is the sender's", one.trim().to_owned());
        add("header-folded", "holds two values in one, of which the last is the sender's", rest.trim().to_owned());
    }
    add("header-quoted", "came in quotes", first.trim_matches(['"', '\'']).to_owned());
    add("header-escaped", "came with escapes of addresses (%3D)", unescaped(first));
    add("header-blanks", "came with blanks where `+` stood", first.replace(' ', "+"));
    add("header-blanks", "came with blanks in it", first.replace([' ', '\t'], ""));
    add("header-case", "came in upper case", first.to_ascii_lowercase());
    add("header-case", "came in lower case", first.to_ascii_uppercase());
    if let Some((_, rest)) = first.split_once(": ") {
        add("header-named", "holds its own name once more", rest.to_owned());
    }
    if let Some((_, rest)) = first.split_once(' ') {
        add("header-word", "begins with a word, such as `Bearer`, that this source does not expect", rest.to_owned());
    }
    for word in ["Bearer", "Basic", "Token"] {
        add("header-word", "lacks the word before it, such as `Bearer`", format!("{word} {first}"));
    }
    add("padding", "came without the `=` at its end", format!("{first}="));
    add("padding", "came without the `==` at its end", format!("{first}=="));
    add("padding", "came with `=` at its end", first.trim_end_matches('=').to_owned());
    all
}

/// A text with escapes such as `%3D` undone.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| byte == b'%').and_then(|digits| hex::decode(digits).ok());
        match escape {
            Some(decoded) => {
                out.extend(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A header is not there, and another holds what it should.
pub(super) fn names(finder: &mut Finder<'_>) {
    let headers = &finder.sent().headers;
    let missing: Vec<_> = wanted(finder).into_iter().filter(|(_, name)| !headers.contains_key(name)).collect();
    if missing.is_empty() {
        return;
    }
    // all that are missing may have been renamed alike
    let alike = |wanted: &HeaderName| {
        let found = headers.keys().find(|name| *name != wanted && core(name.as_str()) == core(wanted.as_str()));
        found.map(|name| (wanted.clone(), name.clone()))
    };
    let renamed: Vec<_> = missing.iter().filter_map(|(_, wanted)| alike(wanted)).collect();
    if let Some((wanted, name)) = renamed.first() {
        let change = finder.request(|sent| {
            for (wanted, name) in &renamed {
                let value = sent.headers.get(name).cloned();
                value.map(|value| sent.headers.insert(wanted.clone(), value));
            }
        });
        let told = finder.attempt(&change, || renamed_as(wanted, name));
        if told {
            return;
        }
    }
    for (_, wanted) in &missing {
        let others: Vec<HeaderName> = headers.keys().take(CANDIDATES_MAX).cloned().collect();
        for name in others {
            let Some(value) = headers.get(&name).cloned() else { continue };
            let change = finder.request(|sent| drop(sent.headers.insert(wanted.clone(), value)));
            finder.attempt(&change, || renamed_as(wanted, &name));
        }
    }
}

fn renamed_as(wanted: &HeaderName, name: &HeaderName) -> Mistake {
    Mistake::certain(
        "header-renamed",
        format!("`{wanted}` is not there, and `{name}` holds what belongs in it"),
        format!(
            "let what stands between hand on `{wanted}` under its name; if the sender calls it `{name}`, name that in `verify`"
        ),
    )
}

/// A header's name without what proxies and gateways put around it.
pub(super) fn core(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let mut rest = name.as_str();
    for prefix in ["http-", "x-forwarded-", "x-original-", "x-"] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    rest.replace('-', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_gateways_make_have_the_same_core() {
        for name in
            ["X-Hub-Signature-256", "HTTP_X_HUB_SIGNATURE_256", "x_hub_signature_256", "x-original-hub-signature-256"]
        {
            assert_eq!(core(name), "hubsignature256", "{name}");
        }
    }

    #[test]
    fn what_happens_to_values_is_undone() {
        let undone =
            |first: &str| rewritten(first, first, false).into_iter().map(|(_, _, text)| text).collect::<Vec<_>>();
        assert!(undone("\"abc\"").contains(&"abc".to_owned()));
        assert!(undone("a%2Bb%3D").contains(&"a+b=".to_owned()));
        assert!(undone("a b=").contains(&"a+b=".to_owned()));
        assert!(undone("abc, abc").contains(&"abc".to_owned()));
    }
}
