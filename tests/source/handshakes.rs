//! Handshakes: every one that a sender documents, answered from data; and what must not be answered.

use actix_web::http::Method;
use bytes::Bytes;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tidegate::source::{Greeted, Greeting, Reading, Request, Source};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::common::{headers, plain, preset, secret, sent, try_source};

const VECTORS: &str = include_str!("../data/handshakes.json");
const HMAC: &str = "key = 'raw:sha256'\nverify = { scheme = 'hmac-sha256', header = 'x-signature' }\n";

/// What a source of this sender states.
fn rules(scheme: &str) -> String {
    let one = |name: &str, rest: &str| format!("{HMAC}[[handshake]]\nname = '{name}'\n{rest}");
    match scheme {
        "meta-hub" => "config = { verify_token = 'meatyhamhock' }\n".to_owned()
            + &one(
                "hub",
                "method = 'GET'\nwhen = { 'query:hub.mode' = 'subscribe' }\n\
                 require = { 'query:hub.verify_token' = 'config:verify_token' }\nanswer = { text = '{query:hub.challenge}' }",
            ),
        "strava-hub" => "config = { verify_token = 'STRAVA' }\n".to_owned()
            + &one(
                "hub",
                "method = 'GET'\nwhen = { 'query:hub.mode' = 'subscribe' }\n\
                 require = { 'query:hub.verify_token' = 'config:verify_token' }\n\
                 answer = { json = { 'hub.challenge' = '{query:hub.challenge}' } }",
            ),
        "websub-intent" => "config = { topic = ['https://example.com/other', 'https://example.com/feed'] }\n".to_owned()
            + &one(
                "intent",
                "method = 'GET'\nwhen = { 'query:hub.mode' = ['subscribe', 'unsubscribe'] }\n\
                 require = { 'query:hub.topic' = 'config:topic' }\nrefuse = 404\nanswer = { text = '{query:hub.challenge}' }",
            ),
        "zoom-url-validation" => one(
            "url_validation",
            "verify = false\nwhen = { 'body:/event' = 'endpoint.url_validation' }\n\
             answer = { json = { plainToken = '{body:/payload/plainToken}', \
             encryptedToken = '{hex(hmac-sha256(secret, body:/payload/plainToken))}' } }",
        ),
        "twitter-crc" => one(
            "crc",
            "method = 'GET'\nwhen = { 'query:crc_token' = '*' }\n\
             answer = { json = { response_token = 'sha256={base64(hmac-sha256(secret, query:crc_token))}' } }",
        ),
        "msgraph-validation" => one(
            "validation",
            "verify = false\nguard = 'text'\nwhen = { 'query:validationToken' = '*' }\n\
             answer = { text = '{query:validationToken}' }",
        ),
        "dropbox-challenge" | "nylas-challenge" => {
            one("challenge", "method = 'GET'\nwhen = { 'query:challenge' = '*' }\nanswer = { text = '{query:challenge}' }")
        }
        "okta-challenge" => one(
            "challenge",
            "method = 'GET'\nguard = 'text'\nwhen = { 'header:x-okta-verification-challenge' = '*' }\n\
             answer = { json = { verification = '{header:x-okta-verification-challenge}' } }",
        ),
        "asana-hook-secret" => "setup = { secret_to = '/nowhere/asana' }\n".to_owned()
            + &one(
                "hook-secret",
                "verify = false\nwhen = { 'header:x-hook-secret' = '*' }\nlearn = 'header:x-hook-secret'\n\
                 answer = { headers = { x-hook-secret = '{header:x-hook-secret}' } }",
            ),
        "notion-verification-token" => "setup = { secret_to = '/nowhere/notion' }\n".to_owned()
            + &one(
                "verification",
                "verify = false\nwhen = { 'body:/verification_token' = '*' }\nlearn = 'body:/verification_token'",
            ),
        "trello-head" => HMAC.to_owned(),
        "cloudevents-options" => one(
            "abuse-protection",
            "method = 'OPTIONS'\nwhen = { 'header:webhook-request-origin' = '*' }\nanswer = { headers = { \
             webhook-allowed-origin = '{header:webhook-request-origin}', \
             webhook-allowed-rate = '{header:webhook-request-rate}', allow = 'POST' } }",
        ),
        "linkedin-challenge" => one(
            "challenge",
            "method = 'GET'\nwhen = { 'query:challengeCode' = '*' }\nguard = { chars = 'token', min = 1, max = 64 }\n\
             answer = { json = { challengeCode = '{query:challengeCode}', \
             challengeResponse = '{hex(hmac-sha256(secret, query:challengeCode))}' } }",
        ),
        "ebay-challenge" => format!(
            "config = {{ token = '71745723-d031-455c-bfa5-f90d11b4f20a-000' }}\n{}",
            one(
                "challenge",
                "method = 'GET'\nwhen = { 'query:challenge_code' = '*' }\nanswer = { json = { challengeResponse = \
                 '{hex(sha256(query:challenge_code + config:token + url))}' } }",
            )
            .replace("header = 'x-signature' }", "header = 'x-signature', origin = 'https://hooks.example.com' }")
        ),
        "smartcar-verify" => one(
            "verify",
            "verify = false\nwhen = { 'body:/eventType' = 'VERIFY' }\n\
             answer = { json = { challenge = '{hex(hmac-sha256(secret, body:/data/challenge))}' } }",
        ),
        "braintree-challenge" => "config = { public_key = 'integration_public_key' }\n".to_owned()
            + &one(
                "challenge",
                "method = 'GET'\nguard = 'lower-hex'\nwhen = { 'query:bt_challenge' = '*' }\n\
                 answer = { text = '{config:public_key}|{hex(hmac-sha1(sha1(secret), query:bt_challenge))}' }",
            ),
        "monday-challenge" => one(
            "challenge",
            "verify = false\nwhen = { 'body:/challenge' = '*', 'body:/event' = '' }\n\
             answer = { json = { challenge = '{body:/challenge}' } }",
        ),
        "xero-itr" => "key = 'item:/id'\nbatch = 'body:/events'\nanswer = { body = '' }\n\
             verify = { scheme = 'hmac-sha256', header = 'x-xero-signature', encoding = 'base64' }"
            .to_owned(),
        "twitch-callback" => "key = 'header:twitch-eventsub-message-id'\n\
             verify = { scheme = 'hmac-sha256', header = 'twitch-eventsub-message-signature', format = { prefix = 'sha256=' }, \
             id = 'twitch-eventsub-message-id', timestamp = 'header:twitch-eventsub-message-timestamp', unit = 'iso', \
             window = '10m', signed = '{id}{timestamp}{body}' }\n\
             [[handshake]]\nname = 'callback'\n\
             when = { 'header:twitch-eventsub-message-type' = 'webhook_callback_verification' }\n\
             answer = { text = '{body:/challenge}' }"
            .to_owned(),
        "discord-interaction-ping" | "discord-event-ping" => "key = 'body:/id'\n\
             verify = { scheme = 'ed25519', header = 'x-signature-ed25519', secret = 'hex', window = '5m', \
             timestamp = 'header:x-signature-timestamp', signed = '{timestamp}{body}' }\n\
             [[handshake]]\nname = 'interaction'\nwhen = { 'body:/type' = '1' }\nanswer = { json = { type = 1 } }\n\
             [[handshake]]\nname = 'event'\nwhen = { 'body:/type' = '0' }\nanswer = { status = 204 }"
            .to_owned(),
        "sns-confirm" => "key = 'body:/MessageId'\n[verify]\nscheme = 'rsa-pkcs1-sha256'\nfrom = 'body:/Signature'\n\
             encoding = 'base64'\nsecret = 'pem'\npartial = true\n\
             signed = '{lines:Message,MessageId,SubscribeURL,Timestamp,Token,TopicArn,Type}'\n\
             [[handshake]]\nname = 'subscribe'\nwhen = { 'body:/Type' = 'SubscriptionConfirmation' }\n\
             get = { url = 'body:/SubscribeURL', hosts = ['sns.*.amazonaws.com'] }"
            .to_owned(),
        "slack-url-verification" => "preset = 'slack'".to_owned(),
        other => panic!("no rules for {other}"),
    }
}

/// What a request is answered: a status and, where it is answered by a handshake, the answer.
fn answered(source: &Source, request: &Request<'_>) -> (u16, Option<Greeted>) {
    let greeting = match source.greet(request) {
        Some(greeting) => greeting,
        None if *request.method != Method::POST => return (200, None),
        None => match source.verify(request) {
            Err(_) => return (401, None),
            Ok(verified) => match source.read(request, &verified, &|| EventId(Uuid::nil())) {
                Reading::Greeting(greeting) => greeting,
                Reading::Batch(items) if items.is_empty() => return (200, None),
                other => panic!("{other:?}"),
            },
        },
    };
    match greeting {
        Greeting::Answer(greeted) => (greeted.status, Some(*greeted)),
        Greeting::Refused { status, .. } => (status, None),
    }
}

fn check(vector: &Value) -> Result<(), String> {
    let scheme = vector["scheme"].as_str().and_then(|scheme| scheme.strip_prefix("handshake/")).expect("a scheme");
    let secrets: Vec<_> = vector["secret"].as_str().filter(|text| !text.is_empty()).map(secret).into_iter().collect();
    let setup = rules(scheme).contains("setup =");
    let secrets = if secrets.is_empty() && !setup { vec![secret("a-secret-of-more-than-16-bytes")] } else { secrets };
    let source = try_source(&format!("allow_weak_secret = true\n{}", rules(scheme)), &secrets)
        .map_err(|problems| format!("{problems:?}"))?;
    let pairs: Vec<(&str, &str)> = vector["headers"]
        .as_object()
        .expect("headers")
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().expect("a value")))
        .collect();
    let body = Bytes::from(vector["body"].as_str().expect("a body").to_owned());
    let method: Method = vector["method"].as_str().expect("a method").parse().expect("a method");
    let request = Request {
        method: &method,
        target: vector["path"].as_str().expect("a path"),
        path_tenant: None,
        headers: &headers(&pairs),
        body: &body,
        now_ms: vector["now"].as_i64().expect("a time") * 1000,
    };
    let (status, greeted) = answered(&source, &request);
    let expected = &vector["expect_response"];
    // one answer for whatever is not authentic
    let forged = vector["id"].as_str().is_some_and(|id| id.ends_with("-forged")) && status == 401;
    if let Some(action) = expected["action"].as_str() {
        let url = greeted.as_ref().and_then(|greeted| greeted.get.as_deref()).unwrap_or_default();
        if action != format!("GET {url}") {
            return Err(format!("{url} is to be fetched in place of {action}"));
        }
    }
    if expected["status"] != status && !forged {
        return Err(format!("{status} in place of {}", expected["status"]));
    }
    let body = greeted.as_ref().and_then(|greeted| greeted.body.clone());
    if let Some(text) = expected["body"].as_str() {
        let (content_type, body) = body.clone().ok_or("no body")?;
        if body != text.as_bytes() || !content_type.starts_with("text/plain") {
            return Err(format!("{content_type}: {body:?}"));
        }
    }
    if let Some(json) = expected.get("json") {
        let (content_type, body) = body.ok_or("no body")?;
        if serde_json::from_slice::<Value>(&body).ok().as_ref() != Some(json) || content_type != "application/json" {
            return Err(format!("{content_type}: {body:?}"));
        }
    }
    for (name, value) in
        expected["headers"].as_object().into_iter().flatten().filter(|(name, _)| *name != "x-content-type-options")
    {
        let greeted = greeted.as_ref().ok_or("no answer")?;
        let found = greeted.headers.iter().find(|(known, _)| known == name.as_str());
        if found.and_then(|(_, value)| value.to_str().ok()) != value.as_str() {
            return Err(format!("{name}: {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_handshake_is_answered_as_its_sender_wants() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).expect("vectors");
    let wrong: Vec<String> = vectors
        .iter()
        .filter_map(|vector| check(vector).err().map(|error| format!("{}: {error}", vector["id"])))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn greeting(source: &Source, method: &Method, target: &str, body: &str) -> Option<Greeting> {
    let body = Bytes::from(body.to_owned());
    let headers = headers(&[]);
    source.greet(&Request { method, target, path_tenant: None, headers: &headers, body: &body, now_ms: 0 })
}

#[test]
fn a_keyed_answer_signs_nothing_that_could_be_a_message() {
    let source = try_source(&rules("twitter-crc"), &[secret("a-secret-of-more-than-16-bytes")]).expect("a source");
    for token in ["{}", "v0:1700000000:x", "a b", "a%22b", "%00", "%C3%A9", "", &"x".repeat(257)] {
        let found = greeting(&source, &Method::GET, &format!("/in/test?crc_token={token}"), "");
        assert!(!matches!(found, Some(Greeting::Answer(_))), "{token}: {found:?}");
    }
    let twice = greeting(&source, &Method::GET, "/in/test?crc_token=a&crc_token=b", "");
    assert!(twice.is_none(), "two readers could see two values: {twice:?}");
}

#[test]
fn a_signed_handshake_echoes_only_a_token_and_only_under_its_signature() {
    let slack = preset("slack");
    let body = |challenge: &str| format!(r#"{{"type":"url_verification","challenge":"{challenge}"}}"#);
    let Reading::Greeting(Greeting::Answer(answer)) = sent(&slack, &body("3eZbrw1aBm2rZgRNFdxV")).read(&slack) else {
        panic!("no answer")
    };
    assert_eq!(answer.body.expect("a body").1, "3eZbrw1aBm2rZgRNFdxV");
    for bad in ["", "<script>", "a b", &"x".repeat(513)] {
        let found = sent(&slack, &body(bad)).read(&slack);
        assert!(matches!(found, Reading::Greeting(Greeting::Refused { status: 400, .. })), "{bad}: {found:?}");
    }
    assert!(greeting(&slack, &Method::POST, "/in/test", &body("3eZbrw1aBm2rZgRNFdxV")).is_none());
}

#[test]
fn a_secret_is_learned_only_while_the_source_is_being_set_up() {
    let rules = rules("notion-verification-token");
    let body = r#"{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZG"}"#;
    let source = try_source(&rules, &[]).expect("a source");
    let Some(Greeting::Answer(greeted)) = greeting(&source, &Method::POST, "/in/test", body) else {
        panic!("no answer")
    };
    assert_eq!(greeted.learn.expect("a secret").expose_secret(), "secret_tMrlL1qK5vuQAh1b6cZG");
    assert!(
        source.verify(&sent(&plain("key = 'raw:sha256'"), body).request()).is_err(),
        "nothing passes without a secret"
    );

    let set_up = rules.lines().skip(1).collect::<Vec<_>>().join("\n");
    let source = try_source(&set_up, &[secret("a-secret-of-more-than-16-bytes")]).expect("a source");
    assert!(greeting(&source, &Method::POST, "/in/test", body).is_none(), "a stranger could replace the key");
    assert!(try_source(&set_up, &[]).is_err(), "without setup a source has a secret");
}

#[test]
fn an_address_is_fetched_only_on_the_providers_hosts() {
    let source = plain(
        "key = 'body:/MessageId'\n[[handshake]]\nname = 'subscribe'\nwhen = { 'body:/Type' = 'SubscriptionConfirmation' }\n\
         get = { url = 'body:/SubscribeURL', hosts = ['sns.*.amazonaws.com'] }",
    );
    let ask = |url: &str| {
        let body = format!(r#"{{"Type":"SubscriptionConfirmation","SubscribeURL":"{url}"}}"#);
        match sent(&source, &body).read(&source) {
            Reading::Greeting(greeting) => greeting,
            other => panic!("{other:?}"),
        }
    };
    let good = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=2336412f37";
    let Greeting::Answer(greeted) = ask(good) else { panic!("no answer") };
    assert_eq!(greeted.get.as_deref(), Some(good));
    for bad in ["https://sns.us-west-2.amazonaws.com.evil.example/", "http://169.254.169.254/", ""] {
        assert!(matches!(ask(bad), Greeting::Refused { .. }), "{bad}");
    }
}

#[test]
fn only_short_bodies_are_looked_at_before_their_signature() {
    let source = try_source(&rules("monday-challenge"), &[secret("a-secret-of-more-than-16-bytes")]).expect("a source");
    let body = |blanks: usize| format!(r#"{{"challenge":"abc"{}}}"#, " ".repeat(blanks));
    assert!(greeting(&source, &Method::POST, "/in/test", &body(10)).is_some());
    assert!(greeting(&source, &Method::POST, "/in/test", &body(9_000)).is_none());
    for body in ["", "nonsense", "[", "{\"challenge\":1,\"challenge\":2}", "\u{0}"] {
        assert!(greeting(&source, &Method::POST, "/in/test", body).is_none(), "{body}");
    }
    assert!(greeting(&source, &Method::PUT, "/in/test", &body(1)).is_none());
}

#[test]
fn what_cannot_be_meant_is_refused_at_load() {
    let one = |rest: &str| format!("{HMAC}[[handshake]]\nname = 'x'\n{rest}");
    for (text, message) in [
        (one("when = {}"), "`handshake[0].when` is empty"),
        (
            one(
                "when = { 'body:/a' = '*' }\nguard = 'text'\nanswer = { text = '{hex(hmac-sha256(secret, body:/a))}' }",
            ),
            "`handshake[0].guard` is `text`, and the answer signs",
        ),
        (one("when = { 'body:/a' = '*' }\nanswer = { text = '{secret}' }"), "says `secret` where it is no key"),
        (
            one("when = { 'body:/a' = '*' }\nanswer = { text = '{hex(sha256(secret))}' }"),
            "says `secret` where it is no key",
        ),
        (
            one("when = { 'body:/a' = '*' }\nanswer = { text = '{hex(hmac-sha256(body:/a, secret))}' }"),
            "says `secret` where it is no key",
        ),
        (one("when = { 'body:/a' = '*' }\nanswer = { text = '{sha256(body:/a)}' }"), "bytes where text belongs"),
        (one("when = { 'body:/a' = '*' }\nanswer = { text = '{md5(body:/a)}' }"), "none of hex(x)"),
        (one("when = { 'body:/a' = '*' }\nanswer = { text = '{body:/a' }"), "without `}`"),
        (one("when = { 'body:/a' = '*' }\nanswer = { text = '{url}' }"), "`verify.origin` is missing"),
        (one("when = { 'body:/a' = '*' }\nanswer = { status = 302 }"), "is answered 2xx"),
        (one("when = { 'body:/a' = '*' }\nrefuse = 500"), "state 403 or 404"),
        (one("when = { 'body:/a' = 'config:b' }"), "refers to `config.b`, which is missing"),
        (one("when = { 'query:a' = '*' }\nmethod = 'GET'\nverify = true"), "only a POST is ever signed"),
        (one("when = { 'query:a' = '*' }\nmethod = 'PUT'"), "use GET, HEAD, OPTIONS or POST"),
        (one("when = { 'body:/a' = '*' }\nget = { url = 'body:/a', hosts = ['*'] }"), "`handshake[0].get.hosts`"),
        (format!("setup = {{ secret_to = '/x' }}\n{HMAC}"), "there is nothing to set up"),
    ] {
        let problems = try_source(&text, &[secret("a-secret-of-more-than-16-bytes")]).expect_err(&text);
        let said = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(said.contains(message), "{text}\n{said}");
    }
}
