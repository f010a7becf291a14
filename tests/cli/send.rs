//! `send`: signs like the sender, counts the answers, tries again when asked to.

use serde_json::Value;

use super::receiver::Receiver;
use super::{ended, folder, stderr, stdout, tidegate};

fn report(receiver: &Receiver, arguments: &[&str]) -> Value {
    let url = receiver.url();
    let mut all = vec!["send", "demo", "--json", "--url", &url];
    all.extend(arguments);
    let output = tidegate(folder().path(), &all, &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn every_request_is_signed_and_every_duplicate_is_one() {
    let receiver = Receiver::start(0);
    let told = report(&receiver, &["--count", "40", "--duplicate", "0.25", "--shuffle", "--concurrency", "4"]);
    assert_eq!(receiver.refused(), 0);
    assert_eq!(told["sent"], 50);
    assert_eq!(told["answers"]["applied"], 40);
    assert_eq!(told["answers"]["duplicate"], 10);
    assert_eq!(told["statuses"]["200"], 50);
    assert!(told["latency_ms"]["p99"].as_f64().is_some_and(|ms| ms > 0.0), "{told}");
}

#[test]
fn the_same_seed_sends_the_same_events() {
    let receiver = Receiver::start(0);
    report(&receiver, &["--count", "20", "--seed", "7", "--concurrency", "1"]);
    let again = report(&receiver, &["--count", "20", "--seed", "7", "--concurrency", "1"]);
    assert_eq!(again["answers"]["duplicate"], 20);
    let bodies = receiver.bodies();
    assert_eq!(bodies[..20], bodies[20..]);
}

#[test]
fn a_busy_server_is_asked_again() {
    let receiver = Receiver::start(3);
    let told = report(&receiver, &["--count", "5", "--concurrency", "1"]);
    assert_eq!(told["answers"]["applied"], 5);
    assert_eq!(told["retries"], 3);
}

#[test]
fn a_file_is_sent_byte_for_byte() {
    let (receiver, folder) = (Receiver::start(0), folder());
    std::fs::write(folder.path().join("body.json"), b"{ \"type\":\t\"x\" }\n").expect("written");
    let output = tidegate(folder.path(), &["send", "demo", "--file", "body.json", "--url", &receiver.url()], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    assert_eq!(receiver.bodies(), [&b"{ \"type\":\t\"x\" }\n"[..]]);
}

#[test]
fn refusals_are_counted_by_their_code_and_end_with_1() {
    let (receiver, folder) = (Receiver::start(0), folder());
    let source = "[[source]]\nname = \"demo\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:OTHER\"]\n";
    std::fs::write(folder.path().join("my.toml"), source).expect("written");
    let secret = "whsec_b3RoZXItc2VjcmV0LXRoYXQtaXMtbG9uZy1lbm91Z2g=";
    let arguments = ["send", "demo", "--config", "my.toml", "--url", &receiver.url()];
    let output = tidegate(folder.path(), &arguments, &[("OTHER", secret)]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("ANSWER        STATUS  EVENTS  SHARE\nunauthorized     401       1  100.0%\n"));
    assert_eq!(receiver.refused(), 1);
    assert!(!stdout(&output).contains(secret));
}

#[test]
fn a_server_that_is_not_there_ends_the_run_with_3() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let url = format!("http://{}", address.expect("a port that is free again"));
    let output = tidegate(folder().path(), &["send", "demo", "--count", "1000", "--url", &url], &[]);
    let (exit, told) = ended(&output);
    assert_eq!(exit, Some(3));
    assert!(told.starts_with(&format!("error: {url}/in/demo did not answer: ")), "{told}");
}

#[test]
fn a_source_that_is_unknown_or_off_ends_with_2() {
    let unknown = tidegate(folder().path(), &["send", "shop"], &[]);
    assert_eq!(
        ended(&unknown),
        (
            Some(2),
            "error: no source is named shop in the settings (on: demo); `tidegate check` lists what there is\n"
                .to_owned()
        )
    );
    let off = tidegate(folder().path(), &["send", "stripe"], &[]);
    let expected = "error: the source stripe is off, so its secret was not read: set enabled = true in a settings file (on: demo)\n";
    assert_eq!(ended(&off), (Some(2), expected.to_owned()));
}

#[test]
fn a_dry_run_prints_the_requests_signed_and_sends_nothing() {
    let output = tidegate(folder().path(), &["send", "demo", "--seed", "7", "--dry-run"], &[]);
    assert_eq!(ended(&output), (Some(0), String::new()));
    let text = stdout(&output);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("POST /in/demo HTTP/1.1"));
    let lines: Vec<&str> = lines.collect();
    assert!(lines.contains(&format!("content-length: {}", body.len()).as_str()), "{head}");
    assert!(lines.iter().any(|line| line.starts_with("webhook-signature: v1,")), "{head}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["type"], "contact.created");
}

/// A key pair for tests alone.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRHeoUDHGDAiH5pQb
9H2AtZ9iflkGgDHHpnv9isBl7yGhRANCAARvk9VxepiiP9i2C7xQbTdLemj/Bn9N
Lt17XfEluzsuqNvmg0DSu7X9DEegef5wXnMEbySsuZnJ3TtXPQPocCi8
-----END PRIVATE KEY-----\n";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEb5PVcXqYoj/Ytgu8UG03S3po/wZ/
TS7de13xJbs7Lqjb5oNA0ru1/QxHoHn+cF5zBG8krLmZyd07Vz0D6HAovA==
-----END PUBLIC KEY-----";

#[test]
fn a_source_that_knows_a_public_key_is_signed_for_with_its_private_partner() {
    let folder = folder();
    let source = "[[source]]\nname = 'mail'\nsecrets = ['env:PUBLIC']\nkey = 'body:/id'\ntype = 'body:/type'\n\
                  verify = { scheme = 'ecdsa-p256-sha256', header = 'x-signature', encoding = 'base64', secret = 'pem' }\n";
    std::fs::write(folder.path().join("my.toml"), source).expect("written");
    std::fs::write(folder.path().join("key.pem"), PRIVATE).expect("written");
    let send = |more: &[&str]| {
        let arguments = [&["send", "mail", "--config", "my.toml", "--dry-run"], more].concat();
        tidegate(folder.path(), &arguments, &[("PUBLIC", PUBLIC)])
    };
    let told = "error: mail cannot be signed for: no live secret that can sign: a public key only checks, its private \
                partner signs (`send --sign-with FILE` takes it as PEM)\n";
    assert_eq!(ended(&send(&[])), (Some(2), told.to_owned()));
    let signed = send(&["--sign-with", "key.pem"]);
    assert_eq!(ended(&signed), (Some(0), String::new()));
    assert!(stdout(&signed).contains("x-signature: "), "{}", stdout(&signed));
}
