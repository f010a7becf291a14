//! Asking a provider over a socket: what is sent, what is taken for an answer, and what is not.
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the report")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use secrecy::SecretString;
use tidegate::clock::SystemClock;
use tidegate::fetch::{Provider, open};
use tidegate::source::{ResolvedSecret, Source};
use tidegate_actors::ports::{FetchClaim, FetchOutcome, Fetcher};
use tidegate_actors::rules::event::Event;
use tidegate_actors::rules::key::ResourceHash;

const TOKEN: &str = "canary-7d1f-token";

/// A provider that gives one answer, byte for byte, and tells what it was asked.
fn provider(answer: impl Into<Vec<u8>>) -> (SocketAddr, Receiver<String>) {
    let (answer, listener) = (answer.into(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let (asked, told) = sync_channel(4);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0; 1]);
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            if asked.send(String::from_utf8(head).unwrap()).is_err() || stream.write_all(&answer).is_err() {
                return;
            }
            if answer.is_empty() {
                // never answers: held open until the other side has had enough
                let _ = stream.read(&mut byte);
            }
        }
    });
    (address, told)
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

fn fetcher(address: SocketAddr, more: &str) -> Arc<dyn Fetcher> {
    let text = format!(
        "name = 'things'\nverify = {{ scheme = 'hmac-sha256', header = 'x-signature' }}\nkey = 'body:/id'\n\
         resource = {{ type = 'literal:thing', id = 'body:/thing' }}\norder = {{ policy = 'refetch' }}\n\
         [refetch]\nurl = 'http://{address}/api/{{type}}/{{id}}?of={{tenant}}'\n\
         version = [{{ from = 'body:/v | header:x-version', as = 'integer' }}]\n{more}"
    );
    let value = SecretString::from("a-secret-of-more-than-16-bytes");
    let secret = ResolvedSecret { key: "secrets[0]".to_owned(), tenant: None, value, until_ms: None };
    let source = Source::compile(&toml::from_str(&text).unwrap(), &[secret]).expect("a source");
    let headers = vec![("authorization".to_owned(), SecretString::from(format!("Bearer {TOKEN}")))];
    let provider = Provider { source: Arc::new(source), headers, key_headers: Vec::new() };
    open(vec![provider], Arc::new(SystemClock::new())).expect("a fetcher")
}

fn claim(id: &str) -> FetchClaim {
    FetchClaim {
        resource: ResourceHash::of("things", "acme", "thing", id),
        source: "things".to_owned(),
        tenant: "acme".to_owned(),
        kind: "thing".to_owned(),
        id: id.to_owned(),
        epoch: 3,
        attempt: 1,
    }
}

fn ask(fetcher: &Arc<dyn Fetcher>, claim: &FetchClaim) -> FetchOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fetcher.fetch(claim))
}

fn state(outcome: FetchOutcome) -> Event {
    match outcome {
        FetchOutcome::State(event) => *event,
        other => panic!("no state: {other:?}"),
    }
}

fn failed(outcome: FetchOutcome) -> (String, Option<Duration>, bool) {
    match outcome {
        FetchOutcome::Failed { why, retry_after, last } => (why, retry_after, last),
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn the_resource_is_asked_for_with_its_headers_and_the_answer_is_its_state() {
    let (address, asked) = provider(http("200 OK", "content-type: application/json\r\n", r#"{"v": 12, "n":1.50}"#));
    let event = state(ask(&fetcher(address, ""), &claim("a/b c")));
    assert_eq!(event.body, r#"{"v": 12, "n":1.50}"#.as_bytes());
    assert_eq!(event.guards[0].version.as_ref().map(|version| version.text()), Some("12"));
    assert_eq!((event.fetched, event.guards[0].resource.hash), (Some(3), claim("a/b c").resource));
    let asked = asked.recv().unwrap();
    assert!(asked.starts_with("GET /api/thing/a%2Fb%20c?of=acme HTTP/1.1\r\n"), "{asked}");
    let asked = asked.to_ascii_lowercase();
    for header in [format!("authorization: bearer {TOKEN}"), "accept: application/json".to_owned()] {
        assert!(asked.contains(&format!("{header}\r\n")), "{asked}");
    }
    assert!(asked.contains("user-agent: tidegate/"), "{asked}");
}

#[test]
fn a_version_may_stand_in_a_header_of_the_answer() {
    let (address, _asked) = provider(http("200 OK", "X-Version: 7\r\n", "{}"));
    let event = state(ask(&fetcher(address, ""), &claim("t1")));
    assert_eq!(event.guards[0].version.as_ref().map(|version| version.text()), Some("7"));
}

#[test]
fn whatever_is_no_answer_says_why_and_when_to_come_again() {
    let long = "x".repeat(2000);
    for (answer, said, retry_after_s) in [
        (http("500 Internal Server Error", "", "{}"), "500 Internal Server Error", None),
        (http("429 Too Many Requests", "Retry-After: 17\r\n", ""), "429 Too Many Requests", Some(17)),
        (http("503 Service Unavailable", "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n", ""), "503", Some(0)),
        (http("302 Found", "location: /elsewhere\r\n", ""), "302 Found: redirects are not followed", None),
        (http("401 Unauthorized", "", ""), "401 Unauthorized: see `refetch.headers`", None),
        (http("404 Not Found", "", ""), "404 Not Found: there is no such resource", None),
        (http("204 No Content", "", ""), "204 No Content without a body", None),
        (http("200 OK", "", "<html>"), "the answer: the body is not JSON", None),
        (http("200 OK", "", r#"{"w":1}"#), "the answer: the version at `body:/v | header:x-version` is missing", None),
        (http("200 OK", "", &long), "the answer is longer than `refetch.max_answer` (1024 bytes)", None),
        ("no HTTP at all\r\n\r\n".to_owned(), "no answer: ", None),
        ("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"v\":1".to_owned(), "no answer: ", None),
    ] {
        // closing ends an answer that is shorter than it says
        let (address, _asked) = provider(answer.clone());
        let (why, retry_after, last) =
            failed(ask(&fetcher(address, "max_answer = '1KiB'\ntimeout = '500ms'"), &claim("t1")));
        let why_not = format!("{answer:.60}: {why}");
        assert!(why.starts_with(said) || (said == "no answer: " && why.starts_with("no answer")), "{why_not}");
        assert_eq!(retry_after.map(|wait| wait.as_secs()), retry_after_s, "{why_not}");
        assert!(!last && !why.contains(TOKEN) && !why.contains("/api/"), "{why_not}");
    }
}

#[test]
fn a_provider_that_does_not_answer_costs_no_more_than_the_timeout() {
    let (address, _asked) = provider("");
    let (why, ..) = failed(ask(&fetcher(address, "timeout = '100ms'"), &claim("t1")));
    assert_eq!(why, "no answer within 100 ms");
}

#[test]
fn a_provider_that_is_not_there_is_a_failure_like_any_other() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (why, _, last) = failed(ask(&fetcher(address, ""), &claim("t1")));
    assert!(why.starts_with("no answer: ") && !last, "{why}");
}

#[test]
fn a_resource_that_is_gone_is_deleted_where_the_source_says_so() {
    for status in ["404 Not Found", "410 Gone"] {
        let (address, _asked) = provider(http(status, "", "gone"));
        let event = state(ask(&fetcher(address, "on_gone = 'delete'"), &claim("t1")));
        assert!(event.deletes && event.body.is_empty());
    }
}

#[test]
fn what_no_try_can_help_is_the_last_failure() {
    let (address, _asked) = provider(http("200 OK", "", r#"{"v":1}"#));
    let fetcher = fetcher(address, "");
    let of_another = FetchClaim { source: "gone".to_owned(), ..claim("t1") };
    assert_eq!(failed(ask(&fetcher, &of_another)), ("source gone has no `refetch` settings".to_owned(), None, true));
    let (why, _, last) = failed(ask(&fetcher, &claim("..")));
    assert!(last && why.contains("no part of a path"), "{why}");
}
