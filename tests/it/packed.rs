//! Bodies that come compressed: taken where the source says what is signed, bounded, and refused otherwise.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::support::gate::Gate;
use crate::support::http::{Request, Response};
use crate::support::signing::{KEY, now_s, signature, signed};

fn gate(encoding: &str) -> Gate {
    Gate::start(&format!(
        "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\nkey = \"body:/id\"\n\
         max_body = \"200KiB\"\n{encoding}\n"
    ))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

/// Sends one text and signs another.
fn send(gate: &Gate, encoding: &str, body: Vec<u8>, signed_bytes: &[u8]) -> Response {
    let at_s = now_s().to_string();
    let request = Request::post("/in/things", body)
        .header("content-type", "application/json")
        .header("content-encoding", encoding)
        .header("webhook-id", "evt")
        .header("webhook-timestamp", &at_s)
        .header("webhook-signature", signature(KEY, "evt", &at_s, signed_bytes));
    gate.call(&request)
}

fn body_of(gate: &Gate) -> Vec<u8> {
    let id = gate.events().last().expect("an event").id;
    gate.ask(move |reader| async move {
        reader.event(id).await.expect("a reader").expect("the event").body.expect("a body")
    })
}

#[test]
fn where_the_packed_bytes_are_signed_they_are_what_is_kept_and_the_unpacked_are_read() {
    let gate = gate("content_encoding = { gzip = \"signed-encoded\" }");
    let packed = gzip(br#"{"id":"a"}"#);
    assert_eq!(send(&gate, "gzip", packed.clone(), &packed).verdict(), "applied");
    assert_eq!((gate.events()[0].key.as_str(), body_of(&gate)), ("a", packed.clone()));
    assert_eq!(send(&gate, "gzip", packed.clone(), br#"{"id":"a"}"#).status, 401);
    assert_eq!(
        gate.call(&signed("/in/things", "evt_2", r#"{"id":"b"}"#)).verdict(),
        "applied",
        "plain ones are taken too"
    );
    let cut = packed[..packed.len() - 3].to_vec();
    let answer = send(&gate, "gzip", cut.clone(), &cut);
    assert_eq!((answer.status, answer.code().as_str()), (422, "body-not-unpacked"), "authentic, so it is kept");
    assert_eq!(gate.quarantined().len(), 1);
}

#[test]
fn a_retry_that_was_packed_anew_is_a_repeat_and_no_conflict() {
    let gate = gate("content_encoding = { gzip = \"signed-encoded\" }");
    let packed = |level| {
        let mut packer = GzEncoder::new(Vec::new(), level);
        packer.write_all(br#"{"id":"a","text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#).expect("packed");
        packer.finish().expect("packed")
    };
    let (first, second) = (packed(Compression::best()), packed(Compression::none()));
    assert_eq!(send(&gate, "gzip", first.clone(), &first).verdict(), "applied");
    let answer = send(&gate, "gzip", second.clone(), &second);
    assert_eq!((answer.verdict().as_str(), answer.json().get("conflict")), ("duplicate", None));
}

#[test]
fn where_the_unpacked_bytes_are_signed_they_are_what_is_kept() {
    let gate = gate("content_encoding = { gzip = \"signed-decoded\", deflate = \"signed-decoded\" }");
    let text = br#"{"id":"a"}"#;
    assert_eq!(send(&gate, "gzip", gzip(text), text).verdict(), "applied");
    assert_eq!(body_of(&gate), text);
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(br#"{"id":"b"}"#).expect("packed");
    assert_eq!(send(&gate, "deflate", packer.finish().expect("packed"), br#"{"id":"b"}"#).verdict(), "applied");
    assert_eq!(send(&gate, "gzip", gzip(text), &gzip(text)).status, 401);
    assert_eq!(send(&gate, "gzip", b"nonsense".to_vec(), b"nonsense").status, 401, "signed by nobody");
}

#[test]
fn a_bomb_is_refused_at_its_bound_whoever_signed_it() {
    let bomb = gzip(&vec![b' '; 32 * 1024 * 1024]);
    let encoded = gate("content_encoding = { gzip = \"signed-encoded\" }");
    let answer = send(&encoded, "gzip", bomb.clone(), &bomb);
    assert_eq!((answer.status, answer.code().as_str()), (422, "body-not-unpacked"));
    let decoded = gate("content_encoding = { gzip = \"signed-decoded\" }");
    let answer = send(&decoded, "gzip", bomb.clone(), &bomb);
    assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"), "before a byte of it is believed");
    decoded.assert_empty();
}

#[test]
fn what_the_source_does_not_name_is_415_as_ever() {
    let gate = gate("content_encoding = { gzip = \"signed-encoded\" }");
    let plain = br#"{"id":"a"}"#.to_vec();
    for encoding in ["br", "deflate", "gzip, gzip", "identity, gzip", "x-gzip", ""] {
        assert_eq!(send(&gate, encoding, plain.clone(), &plain).status, 415, "{encoding:?}");
    }
    assert_eq!(send(&gate, "identity", plain.clone(), &plain).verdict(), "applied");
}
