//! Handshakes that are signed like any other request.

use tidegate::source::{Greeting, Reading};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::vector;

#[test]
fn a_signed_handshake_is_answered_with_its_token() {
    let all = vector::all();
    let vector = all.iter().find(|vector| vector.id == "handshake-slack-url-verification").expect("a vector");
    let (source, taken) = (vector.source().expect("a source"), vector.taken());
    let verified = source.verify(&taken.request()).expect("a signed request");
    let Reading::Greeting(Greeting::Answer(answer)) =
        source.read(&taken.request(), &verified, &|| EventId(Uuid::nil()))
    else {
        panic!("no handshake");
    };
    let wanted = vector.expect_response.as_ref().expect("an answer");
    assert_eq!(answer.body.expect("a body").1, wanted["body"].as_str().expect("a body").as_bytes());
}
