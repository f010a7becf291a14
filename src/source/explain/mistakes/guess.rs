//! What it may have been where no single change makes the signature hold.

use super::super::super::Reason;
use super::super::super::verify::Seen;
use super::super::super::watch::Held;
use super::{Finder, Mistake};

/// Names of headers that may hold a signature.
const SIGNATURES: [&str; 6] = ["signature", "hmac", "sign", "digest", "token", "authorization"];
/// The most headers that are named.
const NAMED_MAX: usize = 6;

/// Adds guesses, the best first.
pub(super) fn guesses(finder: &mut Finder<'_>, reason: Option<Reason>) {
    let Some(reason) = reason else { return };
    let mistakes = match reason {
        Reason::UnknownTenant => vec![tenant(finder)],
        Reason::MissingSignature | Reason::MissingTimestamp | Reason::MissingId | Reason::MissingHeader => {
            vec![missing(finder)]
        }
        Reason::UnsupportedVersion => vec![version(finder)],
        Reason::MalformedSignature => vec![length(finder)],
        Reason::KeyMissing => vec![Mistake::guess(
            "key-not-fetched",
            "the key that signed this is not configured, but fetched, and was not fetched here",
            "run this again with --fetch: it asks the key's owner, as the gate would",
        )],
        Reason::WrongSignature => wrong(finder),
        _ => Vec::new(),
    };
    finder.found.extend(mistakes);
}

fn tenant(finder: &Finder<'_>) -> Mistake {
    let place = finder.whole.tenant.clone().unwrap_or_else(|| "nowhere".to_owned());
    Mistake::guess(
        "tenant-unknown",
        format!("the tenant of this request, which stands at `{place}`, is none of this source's"),
        "add it to `tenants` with its secrets, or correct the address the sender calls",
    )
}

fn missing(finder: &Finder<'_>) -> Mistake {
    let headers = &finder.sent().headers;
    let like = headers.keys().filter(|name| SIGNATURES.iter().any(|word| name.as_str().contains(word)));
    let like: Vec<String> = like.take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    let wanted = super::headers::wanted(finder);
    let gone: Vec<String> =
        wanted.iter().filter(|(_, name)| !headers.contains_key(name)).map(|(_, name)| format!("`{name}`")).collect();
    let gone = if gone.is_empty() { "what the scheme reads".to_owned() } else { gone.join(", ") };
    if like.is_empty() {
        return Mistake::guess(
            "header-stripped",
            format!("{gone} is not there, and no other header looks like a signature"),
            "see that the sender has a secret and signs, and that no proxy strips the header",
        );
    }
    Mistake::guess(
        "header-other",
        format!("{gone} is not there, and there are {}", like.join(", ")),
        "see whether this is the right preset, or name the header in `verify`; the signature does not hold under it as \
         it is",
    )
}

fn version(finder: &Finder<'_>) -> Mistake {
    let text = signature_text(finder).unwrap_or_default();
    if text.contains("v0=") {
        return Mistake::guess(
            "version-test",
            "there are only signatures of the version `v0`, which some senders give to test messages",
            "send an event of the real mode",
        );
    }
    Mistake::guess(
        "version",
        "the signature is of another version or layout than this source accepts",
        "see whether this is the right preset, and compare `format` and `require` with the sender's documents",
    )
}

fn length(finder: &Finder<'_>) -> Mistake {
    let text = signature_text(finder).unwrap_or_default();
    let bare = text.rsplit(['=', ',', ' ']).find(|part| !part.is_empty()).unwrap_or_default();
    let letters = text.bytes().filter(|byte| byte.is_ascii_hexdigit()).count();
    let like = match (bare.len(), bare.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        (40, true) => ": 40 hexadecimal digits are what SHA-1 gives",
        (64, true) => ": 64 hexadecimal digits are what SHA-256 gives",
        (96, true) => ": 96 hexadecimal digits are what SHA-384 gives",
        (128, true) => ": 128 hexadecimal digits are what SHA-512 gives",
        _ => "",
    };
    Mistake::guess(
        "signature-length",
        format!(
            "the signature has {} characters ({letters} of them hexadecimal digits), which does not fit{like}",
            text.len()
        ),
        "see whether it was cut on its way, and compare `encoding`, `format` and `scheme` with the sender's documents",
    )
}

fn wrong(finder: &Finder<'_>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if finder.sent().body.is_empty() {
        mistakes.push(Mistake::guess(
            "body-missing",
            "the body is empty: it was read before, or left out when the request was captured",
            "capture the request with its raw body",
        ));
    }
    mistakes.push(Mistake::guess(
        "secret-other",
        format!("none of {} changes makes the signature hold: most often the secret is another one", finder.tries),
        "compare it with the one the sender shows for this very address: each endpoint, and test and live mode, have \
         their own; else the body was changed on its way",
    ));
    mistakes
}

fn signature_text(finder: &Finder<'_>) -> Option<String> {
    let request = finder.sent().request();
    let tenant = finder.case.source.claimed_tenant(&request).ok().flatten();
    finder.case.source.verifier.trace(&request, tenant.as_deref()).into_iter().find_map(|seen| match seen {
        Seen::Place { what: "signature", held: Held::Text(text), .. } => Some(text),
        _ => None,
    })
}
