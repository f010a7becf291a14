//! Bodies and framing: too large, too slow, compressed, cut short, ambiguous. Nothing of them is kept.

use crate::support::gate::{Gate, SOURCES, until};
use crate::support::http::{Framing, Request};
use crate::support::signing::{signed, thing};

const SMALL: &str = "max_body = \"4KiB\"";

fn small() -> Gate {
    Gate::start(&SOURCES.replace("[[source]]", &format!("[[source]]\n{SMALL}")))
}

#[test]
fn a_body_declared_too_large_is_413_before_a_byte_of_it_is_sent() {
    let gate = small();
    let mut client = gate.client();
    client.send(&signed("/in/things", "evt_1", vec![b'x'; 5_000]).head()).expect("sent");
    let answer = client.response().expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"));
    assert_eq!(answer.header("connection"), Some("close"));
    gate.assert_empty();
}

#[test]
fn a_body_that_grows_too_large_while_streaming_is_413_and_never_cut_short_and_accepted() {
    let gate = small();
    let whole = signed("/in/things", "evt_1", vec![b'x'; 4_097]).framed(Framing::Chunked(100));
    let answer = gate.call(&whole);
    assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"));
    assert_eq!(answer.header("connection"), Some("close"));
    // endless: the answer comes although the sender never stops
    let mut client = gate.client();
    client.send(&Request { body: Vec::new(), ..whole }.framed(Framing::Chunked(1)).head()).expect("sent");
    for _ in 0..5 {
        client.send(format!("3e8\r\n{}\r\n", "y".repeat(1_000)).as_bytes()).ok();
    }
    assert_eq!(client.response().expect("an answer").status, 413);
    gate.assert_empty();
}

#[test]
fn a_chunked_body_within_the_limit_is_as_good_as_any() {
    let gate = small();
    for size in [1, 7, 4_096] {
        let request = signed("/in/things", &format!("evt_{size}"), thing("t1", size)).framed(Framing::Chunked(size));
        assert_eq!(gate.call(&request).verdict(), "applied", "chunks of {size}");
    }
    assert_eq!(gate.events().len(), 3);
}

#[test]
fn a_compressed_body_is_415_whatever_it_would_unpack_to() {
    let gate = Gate::start("");
    for encoding in ["gzip", "br", "zstd", "deflate", "identity, gzip", "x-unheard-of"] {
        let answer = gate.call(&signed("/in/things", "evt_1", thing("t1", 1)).header("content-encoding", encoding));
        assert_eq!((answer.status, answer.code().as_str()), (415, "encoding-unsupported"), "{encoding}");
    }
    gate.assert_empty();
    let plain = signed("/in/things", "evt_1", thing("t1", 1)).header("content-encoding", "Identity");
    assert_eq!(gate.call(&plain).verdict(), "applied");
}

#[test]
fn a_content_type_that_the_source_does_not_take_is_415_only_to_whoever_is_authentic() {
    let gate = Gate::start(&SOURCES.replace("[[source]]", "[[source]]\ncontent_types = [\"application/json\"]"));
    let request =
        signed("/in/things", "evt_1", thing("t1", 1)).without("content-type").header("content-type", "text/xml");
    assert_eq!(gate.call(&request).code(), "content-type-unsupported");
    assert_eq!(gate.call(&request.without("webhook-signature")).code(), "unauthorized");
    gate.assert_empty();
}

#[test]
fn a_stalled_body_is_408_in_time_and_keeps_nothing() {
    let gate = Gate::start("[server]\nbody_timeout = \"300ms\"");
    let request = signed("/in/things", "evt_1", thing("t1", 1));
    for sent in [0, 10] {
        let mut client = gate.client();
        client.send(&request.head()).expect("sent");
        client.send(&request.body[..sent]).expect("sent");
        let answer = client.response().expect("an answer");
        assert_eq!((answer.status, answer.code().as_str()), (408, "body-slow"));
        assert_eq!(answer.header("connection"), Some("close"));
    }
    gate.assert_empty();
    assert_eq!(gate.call(&request).verdict(), "applied");
}

#[test]
fn a_trickling_body_is_408_although_every_byte_is_prompt() {
    let gate = Gate::start("[server]\nbody_timeout = \"60s\"\nbody_rate = \"1MiB/s\"");
    let request = signed("/in/things", "evt_1", vec![b'x'; 100_000]);
    let mut client = gate.client();
    client.send(&request.head()).expect("sent");
    client.send(&request.body[..100]).expect("sent");
    assert_eq!(client.response().expect("an answer").code(), "body-slow");
    gate.assert_empty();
}

#[test]
fn a_body_cut_short_is_never_answered_2xx_and_keeps_nothing() {
    let gate = Gate::start("");
    let request = signed("/in/things", "evt_1", thing("t1", 1));
    let bytes = request.bytes();
    for cut in [bytes.len() - 1, bytes.len() - request.body.len() + 1, bytes.len() - request.body.len()] {
        let mut client = gate.client();
        client.send(&bytes[..cut]).expect("sent");
        client.finish().expect("FIN");
        if let Ok(answer) = client.response() {
            assert!(answer.status >= 400, "{answer:?}");
        }
    }
    let chunked = request.framed(Framing::Chunked(10)).bytes();
    let mut client = gate.client();
    client.send(&chunked[..chunked.len() - 5]).expect("sent");
    client.finish().expect("FIN");
    if let Ok(answer) = client.response() {
        assert!(answer.status >= 400, "{answer:?}");
    }
    gate.assert_empty();
}

#[test]
fn ambiguous_framing_is_400_and_keeps_nothing() {
    let gate = Gate::start("");
    let good = signed("/in/things", "evt_1", thing("t1", 1)).framed(Framing::Unsaid);
    let length = good.body.len().to_string();
    let with = |headers: &[(&str, &str)]| {
        headers.iter().fold(good.clone(), |request, (name, value)| request.header(name, value)).bytes()
    };
    let line = |from: &str, to: &str| {
        let text = with(&[("content-length", &length)]);
        let at = text.windows(from.len()).position(|part| part == from.as_bytes()).expect("the line");
        [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat()
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("length and chunked", with(&[("content-length", &length), ("transfer-encoding", "chunked")])),
        ("two lengths", with(&[("content-length", &length), ("content-length", "5")])),
        ("two equal lengths", with(&[("content-length", &length), ("content-length", &length)])),
        ("a length with a sign", with(&[("content-length", &format!("+{length}"))])),
        ("a negative length", with(&[("content-length", "-1")])),
        ("a list of lengths", with(&[("content-length", &format!("{length}, {length}"))])),
        ("two transfer encodings", with(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")])),
        ("chunked and not last", with(&[("transfer-encoding", "chunked, identity")])),
        ("an unknown transfer encoding", with(&[("transfer-encoding", "xchunked")])),
        ("chunked over HTTP/1.0", {
            let text = with(&[("transfer-encoding", "chunked")]);
            String::from_utf8_lossy(&text).replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()
        }),
        ("no host", line("host: gate.test\r\n", "")),
        ("two hosts", line("host: gate.test\r\n", "host: gate.test\r\nhost: other.test\r\n")),
        ("a folded header", line("host: gate.test\r\n", "host: gate.test\r\nx-folded: a\r\n b\r\n")),
        ("a blank before the colon", line("host: gate.test\r\n", "host: gate.test\r\ncontent-length : 5\r\n")),
        ("a bare line feed in the head", line("host: gate.test\r\n", "host: gate.test\r\nx: a\rb\r\n")),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("HTTP/2 by prior knowledge", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in cases {
        let mut client = gate.client();
        client.send(&bytes).expect("sent");
        client.finish().ok();
        match client.response() {
            Ok(answer) => assert!((400..500).contains(&answer.status), "{what}: {answer:?}"),
            Err(error) => assert!(error.kind() != std::io::ErrorKind::WouldBlock, "{what}: no end"),
        }
        gate.assert_empty();
    }
    assert_eq!(gate.call(&good.framed(Framing::Length)).verdict(), "applied");
}

#[test]
fn too_many_or_too_large_headers_are_431() {
    let gate = Gate::start("");
    let many = (0..120).fold(signed("/in/things", "evt_1", thing("t1", 1)), |request, number| {
        request.header(&format!("x-{number}"), "1")
    });
    let large = signed("/in/things", "evt_1", thing("t1", 1)).header("x-large", "x".repeat(200_000));
    for request in [many, large] {
        assert_eq!(gate.call(&request).status, 431);
    }
    gate.assert_empty();
}

#[test]
fn a_head_that_never_ends_is_408_in_time() {
    let gate = Gate::start("[server]\nheader_timeout = \"200ms\"");
    let mut client = gate.client();
    client.send(b"POST /in/things HTTP/1.1\r\nhost: gate.test\r\nx-slow: ").expect("sent");
    assert_eq!(client.response().expect("an answer").status, 408);
}

#[test]
fn a_sender_that_waits_for_100_continue_gets_the_checks_first() {
    let gate = small();
    let expecting = |request: Request| request.header("expect", "100-continue");

    let mut client = gate.client();
    client.send(&expecting(signed("/in/things", "evt_1", vec![b'x'; 5_000])).head()).expect("sent");
    assert_eq!(client.response().expect("an answer").code(), "too-large");

    let mut client = gate.client();
    let compressed = signed("/in/things", "evt_1", thing("t1", 1)).header("content-encoding", "gzip");
    client.send(&expecting(compressed).head()).expect("sent");
    assert_eq!(client.response().expect("an answer").code(), "encoding-unsupported");

    let mut client = gate.client();
    let good = expecting(signed("/in/things", "evt_1", thing("t1", 1)));
    client.send(&good.head()).expect("sent");
    assert_eq!(client.response().expect("an interim answer").status, 100);
    client.send(&good.body).expect("sent");
    assert_eq!(client.response().expect("an answer").verdict(), "applied");
}

#[test]
fn a_sender_that_resets_mid_request_harms_nobody() {
    let gate = Gate::start("");
    let request = signed("/in/things", "evt_cut", thing("t9", 1));
    for cut in 0..50 {
        let bytes = request.bytes();
        let mut client = gate.client();
        client.send(&bytes[..bytes.len() * cut / 50]).expect("sent");
        client.reset().expect("RST");
    }
    gate.assert_empty();
    for number in 0..50 {
        let mut client = gate.client();
        client.send(&signed("/in/things", &format!("evt_{number}"), thing("t1", number)).bytes()).expect("sent");
        client.reset().expect("RST");
    }
    // each of these was sent whole: it may be taken or not, and all else goes on
    assert_eq!(gate.post("evt_last", &thing("t1", 1_000)).verdict(), "applied");
    until("nothing is in flight", || gate.admin_get("/status").json()["in_flight_events"]["now"] == 0);
    assert_eq!(gate.resources()[0].version.as_deref(), Some("1000"));
    let status = gate.admin_get("/status").json();
    assert_eq!(status["in_flight_bytes"]["now"], 0, "{status}");
}
