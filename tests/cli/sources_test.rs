//! `sources test`: a newcomer's way with a sender that has no preset, and each mistake on it.
//!
//! Source and request are those of docs/sources.md, whose commands tests/docs runs.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::{ended, folder, stderr, stdout, tidegate};

const SECRET: &str = "parcel-secret-of-your-own";
const AT: &str = "2026-03-02T12:00:00Z";

/// The first block of this language in the section about senders without a preset.
fn block(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sources.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, section) = text.split_once("## A sender without a preset").expect("the section");
    let (_, rest) = section.split_once(&format!("```{language}")).expect("a block");
    let (_, block) = rest.split_once('\n').expect("its text");
    block.split_once("\n```").expect("its end").0.to_owned()
}

fn test(settings: &str, request: &str, secret: &str, more: &[&str]) -> Output {
    let folder = folder();
    std::fs::write(folder.path().join("my.toml"), settings).expect("written");
    std::fs::write(folder.path().join("request.http"), request).expect("written");
    let mut all = vec!["--config", "my.toml", "sources", "test", "parcel", "--file", "request.http"];
    all.extend(more);
    let output = tidegate(folder.path(), &all, &[("PARCEL_SECRET", secret), ("OTHER", SECRET)]);
    for secret in [secret, SECRET] {
        assert!(!stdout(&output).contains(secret) && !stderr(&output).contains(secret), "{}", stdout(&output));
    }
    output
}

fn told(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn a_source_of_under_ten_lines_takes_what_its_sender_sends() {
    let (settings, request) = (block("toml"), block("http"));
    assert!(settings.lines().count() < 10, "{settings}");
    let output = test(&settings, &request, SECRET, &["--at", AT]);
    assert_eq!(ended(&output), (Some(0), String::new()), "{}", stdout(&output));
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 100), "{}", stdout(&output));
    let told = told(&test(&settings, &request, SECRET, &["--at", AT, "--json"]));
    assert_eq!(told["answer"]["status"], 200);
    assert_eq!(told["mistakes"], serde_json::json!([]));
}

#[test]
fn each_mistake_on_the_way_is_explained() {
    let (settings, request) = (block("toml"), block("http"));
    let settings_with = |from: &str, to: &str| (changed(&settings, from, to), request.clone(), SECRET);
    let request_with = |from: &str, to: &str| (settings.clone(), changed(&request, from, to), SECRET);
    let hex = "73697874656e2d627974652d6b65792d68657265";
    let cases = [
        ("the dot is forgotten", settings_with("{timestamp}.{body}", "{timestamp}{body}"), "signed"),
        ("another algorithm", settings_with("hmac-sha256", "hmac-sha512"), "algorithm"),
        ("base64 for hexadecimal", settings_with("window =", "encoding = \"base64\", window ="), "encoding"),
        ("the prefix is forgotten", settings_with("format = { prefix = \"sha256=\" }, ", ""), "format"),
        ("another header", settings_with("x-parcel-signature", "x-parcel-sign"), "header-renamed"),
        ("another header of the time", settings_with("header:x-parcel-time", "header:x-time"), "header-renamed"),
        ("milliseconds for seconds", settings_with("window =", "unit = \"ms\", window ="), "unit"),
        ("the secret as base64", settings_with("window =", "secret = \"hex\", window ="), "secret-form"),
        ("a body written anew", request_with("\":", "\": "), "body-written-anew"),
        (
            "a proxy's name for the header",
            request_with("X-Parcel-Signature", "HTTP_X_PARCEL_SIGNATURE"),
            "header-renamed",
        ),
        ("no signature", request_with("X-Parcel-Signature", "X-Nothing: x\nX-Else"), "header-renamed"),
    ];
    for (what, (settings, request, secret), code) in cases {
        let (request, secret) = match code {
            "secret-form" => (signed_with_text(&request, hex), hex),
            _ => (without_length(&request), secret),
        };
        let output = test(&settings, &request, secret, &["--at", AT, "--json"]);
        let told = told(&output);
        assert_eq!(told["mistakes"][0]["code"], code, "{what}: {told:#}");
        assert_eq!(told["mistakes"][0]["certain"], true, "{what}");
        assert_eq!((told["answer"]["status"].as_i64(), output.status.code()), (Some(401), Some(1)), "{what}");
    }
}

fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "nothing to change: {from}");
    text.replace(from, to)
}

/// The body is what follows the head, however long it has become.
fn without_length(request: &str) -> String {
    let lines: Vec<&str> = request.lines().filter(|line| !line.starts_with("Content-Length")).collect();
    lines.join("\n")
}

/// The request as its sender signs it under this text.
fn signed_with_text(request: &str, secret: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let (_, body) = request.split_once("\n\n").expect("a body");
    let mut mac: Hmac<sha2::Sha256> = Hmac::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(format!("1772452800.{}", body.trim_end()).as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    let lines = request.lines().map(|line| match line.split_once(": sha256=") {
        Some((name, _)) => format!("{name}: sha256={signature}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_secret_of_another_source_a_clock_and_an_old_capture_are_told() {
    let (settings, request) = (block("toml"), block("http"));
    let both = format!("{settings}\n[[source]]\nname = \"live\"\npreset = \"github\"\nsecrets = [\"env:OTHER\"]\n");
    let told_at = |settings: &str, secret: &str, at: &str| {
        told(&test(settings, &request, secret, &["--at", at, "--json"]))["mistakes"][0]["code"].clone()
    };
    assert_eq!(told_at(&both, "the-secret-of-the-test-mode", AT), "secret-of-source");
    assert_eq!(told_at(&settings, "the-secret-of-the-test-mode", AT), "secret-other");
    assert_eq!(told_at(&settings, SECRET, "2026-03-02T14:00:03Z"), "clock-zone");
    assert_eq!(told_at(&settings, SECRET, "2026-05-02T14:00:03Z"), "capture-old");
}

#[test]
fn another_path_and_another_method_are_what_the_gate_would_answer() {
    let (settings, request) = (block("toml"), block("http"));
    for (from, to, status) in [
        ("POST /in/parcel", "POST /webhooks/parcel", 404),
        ("POST /in/parcel", "POST /in/other", 401),
        ("POST /in/parcel", "POST /in/parcel/tenant", 401),
        ("POST /in/parcel", "PUT /in/parcel", 405),
        ("POST /in/parcel", "GET /in/parcel", 200),
        ("Content-Type", "Content-Encoding: br\nContent-Type", 415),
        ("Content-Length: 7", "Content-Length: 17", 400),
    ] {
        let output = test(&settings, &changed(&request, from, to), SECRET, &["--at", AT, "--json"]);
        assert_eq!(told(&output)["answer"]["status"], status, "{to}: {}", stdout(&output));
    }
}

#[test]
fn what_cannot_be_used_is_told_by_its_code_and_what_was_looked_at() {
    let (settings, request) = (block("toml"), block("http"));
    let settings = changed(&settings, "body:/event_id", "body:/id | header:x-id");
    let output = test(&settings, &request, SECRET, &["--at", AT]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    for expected in
        ["key-missing", "key body:/id is not there", "key header:x-id is not there", "answer 422 key-missing"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_file_that_is_no_request_ends_with_2_and_says_why() {
    let settings = block("toml");
    for (file, expected) in [("{\"id\":1}", "a body alone"), ("curl http://x\n\n", "a command"), ("", "it is empty")] {
        let output = test(&settings, file, SECRET, &[]);
        let (exit, complaint) = ended(&output);
        assert!(exit == Some(2) && complaint.contains(expected), "{complaint}");
    }
}

#[test]
fn a_preset_is_tried_with_a_secret_from_elsewhere_and_no_settings() {
    let folder = folder();
    let body = "{\"id\":1}";
    let file = format!(
        "POST /in/github HTTP/1.1\nX-GitHub-Event: ping\nX-GitHub-Delivery: d1\nX-Hub-Signature-256: {}\n\n{body}",
        github(body)
    );
    std::fs::write(folder.path().join("request.http"), file).expect("written");
    let arguments =
        ["sources", "test", "gitlab-token", "--file", "request.http", "--secret-from", "env:OTHER", "--json"];
    let output = tidegate(folder.path(), &arguments, &[("OTHER", SECRET)]);
    let told = self::told(&output);
    assert!(told["mistakes"].as_array().is_some_and(|all| all.iter().any(|one| one["code"] == "preset")), "{told:#}");
    let literal = ["sources", "test", "github", "--file", "request.http", "--secret-from", SECRET];
    let (exit, complaint) = ended(&tidegate(folder.path(), &literal, &[]));
    assert!(exit == Some(2) && !complaint.contains(SECRET), "{complaint}");
}

fn github(body: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let mut mac: Hmac<sha2::Sha256> = Hmac::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}
