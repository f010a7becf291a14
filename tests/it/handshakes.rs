//! Handshakes over HTTP: answered as the sender wants, and nothing of them kept.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::gate::Gate;
use crate::support::http::Request;
use crate::support::provider::Provider;
use crate::support::signing::signed;

const SOURCE: &str = "[[source]]\nname = \"things\"\npreset = \"standard-webhooks\"\nsecrets = [\"env:TEST_SECRET\"]\nkey = \"body:/id\"\n";

fn gate(rules: &str) -> Gate {
    Gate::start(&format!("{SOURCE}{rules}"))
}

#[test]
fn a_probe_of_the_address_is_answered_with_what_its_sender_wants() {
    let gate = gate(
        "config = { token = \"env:OTHER_SECRET\" }\n[[source.handshake]]\nname = \"hub\"\nmethod = \"GET\"\n\
         when = { \"query:hub.mode\" = \"subscribe\" }\nrequire = { \"query:hub.verify_token\" = \"config:token\" }\n\
         answer = { text = \"{query:hub.challenge}\" }\n[[source.handshake]]\nname = \"origin\"\nmethod = \"OPTIONS\"\n\
         when = { \"header:webhook-request-origin\" = \"*\" }\n\
         answer = { headers = { webhook-allowed-origin = \"{header:webhook-request-origin}\" } }\n",
    );
    let secret = crate::support::signing::secret(crate::support::signing::OTHER_KEY);
    let secret = secret.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let ask = |token: &str, challenge: &str| {
        let target = format!("/in/things?hub.mode=subscribe&hub.verify_token={token}&hub.challenge={challenge}");
        gate.call(&Request::new("GET", &target))
    };
    let answer = ask(&secret, "1158201444");
    assert_eq!((answer.status, answer.text().as_str()), (200, "1158201444"));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let wrong = ask("wrong", "1158201444");
    assert_eq!((wrong.status, wrong.code().as_str()), (403, "handshake-refused"));
    let script = ask(&secret, "%3Cscript%3E");
    assert_eq!((script.status, script.code().as_str()), (400, "handshake-malformed"));

    let options = gate.call(&Request::new("OPTIONS", "/in/things").header("webhook-request-origin", "events.example"));
    assert_eq!((options.status, options.header("webhook-allowed-origin")), (200, Some("events.example")));
    assert_eq!(gate.call(&Request::new("GET", "/in/things")).status, 200, "others who look are told it is there");
    assert_eq!(gate.call(&Request::new("GET", "/in/nobody?hub.mode=subscribe")).status, 404);
    gate.assert_empty();
    let metrics = gate.admin_get("/metrics").text();
    assert!(metrics.contains(r#"tidegate_http_handshakes_total{source="things"} 2"#), "{metrics}");
}

#[test]
fn an_unsigned_greeting_is_answered_and_an_unsigned_event_is_not() {
    let gate = gate(
        "[[source.handshake]]\nname = \"challenge\"\nverify = false\nwhen = { \"body:/challenge\" = \"*\", \"body:/event\" = \"\" }\n\
         answer = { json = { challenge = \"{body:/challenge}\" } }\n",
    );
    let post = |body: &str| gate.call(&Request::post("/in/things", body));
    let answer = post(r#"{"challenge":"3eZbrw1aBmwBYN7SYeT"}"#);
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"challenge":"3eZbrw1aBmwBYN7SYeT"}"#));
    assert_eq!(post(r#"{"challenge":"x","event":{"id":1}}"#).status, 401);
    assert_eq!(post("nonsense").status, 401);
    gate.assert_empty();
    assert_eq!(gate.call(&signed("/in/things", "evt_1", r#"{"id":"a","event":{}}"#)).verdict(), "applied");
}

#[test]
fn a_learned_secret_is_written_once_for_its_owner_alone_and_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("asana.secret");
    let source = format!(
        "[[source]]\nname = \"things\"\nkey = \"raw:sha256\"\nverify = {{ scheme = \"hmac-sha256\", header = \"x-hook-signature\" }}\n\
         setup = {{ secret_to = {file:?} }}\n[[source.handshake]]\nname = \"hook-secret\"\nverify = false\n\
         when = {{ \"header:x-hook-secret\" = \"*\" }}\nlearn = \"header:x-hook-secret\"\n\
         answer = {{ headers = {{ x-hook-secret = \"{{header:x-hook-secret}}\" }} }}\n"
    );
    let gate = Gate::start(&source);
    let greet = |secret: &str| gate.call(&Request::post("/in/things", "{}").header("x-hook-secret", secret));
    let answer = greet("b537207f20cbfa02357cf448134da559");
    assert_eq!((answer.status, answer.header("x-hook-secret")), (200, Some("b537207f20cbfa02357cf448134da559")));
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "b537207f20cbfa02357cf448134da559");
    let mode = std::fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(greet("00000000000000000000000000000000").status, 403, "a stranger cannot take its place");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "b537207f20cbfa02357cf448134da559");
    assert_eq!(gate.call(&Request::post("/in/things", "{}")).status, 401, "no event passes without a secret");
    gate.assert_empty();
    drop(gate);

    let secrets = format!("secrets = [\"file:{}\"]", file.display());
    let gate = Gate::start(&source.replace(&format!("setup = {{ secret_to = {file:?} }}"), &secrets));
    let answer =
        gate.call(&Request::post("/in/things", "{}").header("x-hook-secret", "11111111111111111111111111111111"));
    assert_eq!(answer.status, 401, "set up, it learns nothing any more");
}

#[test]
fn a_confirmation_is_fetched_before_the_answer_and_only_where_it_is_the_providers() {
    let provider = Provider::start("{}");
    let port = provider.address.port();
    let gate = gate(
        "[[source.handshake]]\nname = \"subscribe\"\nwhen = { \"body:/Type\" = \"SubscriptionConfirmation\" }\n\
         get = { url = \"body:/SubscribeURL\", hosts = [\"127.0.0.1\"] }\n",
    );
    let ask = |url: &str| {
        let body = format!(r#"{{"Type":"SubscriptionConfirmation","SubscribeURL":"{url}"}}"#);
        gate.call(&signed("/in/things", "evt_1", body))
    };
    assert_eq!(ask(&format!("http://127.0.0.1:{port}/?Token=1")).status, 200);
    assert_eq!(provider.asked(), ["/?Token=1"]);
    assert_eq!(ask(&format!("http://localhost:{port}/?Token=2")).status, 403, "not a host that is named");
    assert_eq!(ask("http://169.254.169.254/latest/meta-data").status, 403);
    assert_eq!(provider.asked().len(), 1);
    let unsigned =
        Request::post("/in/things", r#"{"Type":"SubscriptionConfirmation","SubscribeURL":"http://127.0.0.1/"}"#);
    assert_eq!(gate.call(&unsigned).status, 401);
    let gone = ask("http://127.0.0.1:1/?Token=3");
    assert_eq!((gone.status, gone.code().as_str()), (503, "handshake-unfinished"), "the sender asks again");
    gate.assert_empty();
}
