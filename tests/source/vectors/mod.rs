//! Signatures published by senders, or computed after their documents: every one is taken, or refused for its own
//! reason. `sources` says how each scheme is written down.

mod flipped;
mod handshakes;
mod settings;
mod signed;
pub(crate) mod sources;
pub(crate) mod vector;

use std::collections::BTreeSet;

use tidegate::source::Reason;
use vector::Vector;

/// Handshakes that come before anything is signed, or whose answer is no verdict on a signature: their own tests
/// judge them.
const UNSIGNED: [&str; 25] = [
    "handshake-meta-hub",
    "handshake-meta-hub-wrong-token",
    "handshake-strava-hub",
    "handshake-websub-intent",
    "handshake-websub-unknown-topic",
    "handshake-zoom-url-validation",
    "handshake-twitter-crc",
    "handshake-msgraph-validation",
    "handshake-okta-challenge",
    "handshake-asana-hook-secret",
    "handshake-dropbox-challenge",
    "handshake-nylas-challenge",
    "handshake-braintree-challenge",
    "handshake-trello-head",
    "handshake-cloudevents-options",
    "handshake-linkedin-challenge",
    "handshake-ebay-challenge",
    "handshake-smartcar-verify",
    "handshake-monday-challenge",
    "handshake-zoom-url-validation-signing-oracle",
    "handshake-twitter-crc-signing-oracle",
    "handshake-linkedin-challenge-signing-oracle",
    "handshake-smartcar-verify-signing-oracle",
    "handshake-braintree-challenge-not-hex",
    "handshake-notion-verification-token",
];

fn reason_of(word: &str) -> Reason {
    match word {
        "signature-mismatch" => Reason::WrongSignature,
        "timestamp-too-old" => Reason::OutsideWindowPast,
        "timestamp-in-future" => Reason::OutsideWindowFuture,
        other => {
            *Reason::ALL.iter().find(|reason| reason.label() == other).unwrap_or_else(|| panic!("no reason {other}"))
        }
    }
}

/// What the signature alone decides.
pub(crate) fn wanted(vector: &Vector) -> Option<Result<(), Reason>> {
    if UNSIGNED.contains(&vector.id.as_str()) {
        return None;
    }
    let refused =
        vector.expect_response.as_ref().is_some_and(|answer| matches!(answer["status"].as_u64(), Some(401 | 403)));
    Some(match vector.expect.strip_prefix("invalid:") {
        Some(word) => Err(reason_of(word)),
        None if refused && vector.id.ends_with("-unsigned") => Err(Reason::MissingSignature),
        None if refused => Err(Reason::WrongSignature),
        None => Ok(()),
    })
}

#[test]
fn every_vector_is_taken_or_refused_for_its_own_reason() {
    let vectors = vector::all();
    assert_eq!(vectors.len(), 536);
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for vector in &vectors {
        let Some(wanted) = wanted(vector) else { continue };
        judged += 1;
        match vector.verdict() {
            Ok(found) if found == wanted => {}
            Ok(found) => wrong.push(format!("{}: {found:?} in place of {wanted:?}", vector.id)),
            Err(problems) => wrong.push(format!("{}: no source: {problems:?}", vector.id)),
        }
    }
    assert!(wrong.is_empty(), "{} of {judged} vectors:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(judged, 511);
}

#[test]
fn what_is_left_to_the_handshakes_is_among_the_vectors() {
    let known: BTreeSet<String> = vector::all().into_iter().map(|vector| vector.id).collect();
    for id in UNSIGNED {
        assert!(known.contains(id), "{id}");
    }
}
