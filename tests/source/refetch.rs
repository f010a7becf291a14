//! Where a source asks for a resource's current state, and how it reads the answer.

use bytes::Bytes;
use tidegate::source::{Answered, Source};
use tidegate_actors::ports::FetchClaim;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::order::{Merge, Policy, Tie};
use uuid::Uuid;

use super::common::{NOW_MS, SECRET, headers, plain, secret, try_source};

const BASE: &str = "key = 'body:/id'\nresource = { type = 'literal:thing', id = 'body:/thing' }\n\
                    version = [{ from = 'body:/at', as = 'rfc3339' }]\norder = { policy = 'refetch' }";

fn asking(refetch: &str) -> Source {
    plain(&format!("{BASE}\n[refetch]\nurl = 'https://api.example.com/{{type}}s/{{id}}'\n{refetch}"))
}

fn claim(id: &str) -> FetchClaim {
    FetchClaim {
        resource: ResourceHash::of("test", "acme", "thing", id),
        source: "test".to_owned(),
        tenant: "acme".to_owned(),
        kind: "thing".to_owned(),
        id: id.to_owned(),
        epoch: 7,
        attempt: 1,
    }
}

fn read(source: &Source, body: &str) -> Result<Event, String> {
    let headers = headers(&[("content-type", "application/json")]);
    let body = Bytes::copy_from_slice(body.as_bytes());
    let answer = Answered { headers: &headers, body: &body, gone: body.is_empty(), now_ms: NOW_MS };
    source.fetched(&claim("t1"), &answer, EventId(Uuid::from_u128(9)))
}

#[test]
fn the_address_holds_each_part_of_the_resource_escaped_as_one_part() {
    let source = asking("");
    let url = |id: &str| source.fetch_url(&claim(id));
    assert_eq!(url("t1").as_deref(), Ok("https://api.example.com/things/t1"));
    assert_eq!(
        url("a/b?c#d%2f é&x=..").as_deref(),
        Ok("https://api.example.com/things/a%2Fb%3Fc%23d%252f%20%C3%A9%26x%3D..")
    );
    for segment in [".", "..", ""] {
        assert!(url(segment).is_err(), "{segment:?} would be another place");
    }
}

#[test]
fn an_answer_is_an_event_with_its_own_version_and_bytes() {
    let source = asking("");
    let body = r#"{"at":"2026-03-02T12:00:00.5Z", "name": "x"}"#;
    let event = read(&source, body).expect("an event");
    assert_eq!((event.kind.as_str(), event.fetched), ("tidegate.fetched", Some(7)));
    assert_eq!(event.key.text, format!("refetch:{}:7", hex::encode(claim("t1").resource.0)));
    assert_eq!(event.guards[0].resource.hash, claim("t1").resource);
    assert_eq!(event.guards[0].version.as_ref().map(|version| version.text()), Some("2026-03-02T12:00:00.5Z"));
    assert_eq!((&*event.body, &*event.tenant), (body.as_bytes(), "acme"));
    assert_eq!(event.order.policy, Policy::Newest { tie: Tie::Apply });
    assert!(!event.is_plain() && !event.deletes);
}

#[test]
fn an_answer_without_its_version_is_none() {
    let source = asking("version = [{ from = 'body:/data/seq | header:x-seq', as = 'integer' }]");
    assert!(read(&source, r#"{"data":{"seq":5}}"#).is_ok());
    for (body, said) in [
        (r#"{"at":"2026-03-02T12:00:00Z"}"#, "the version at `body:/data/seq | header:x-seq` is missing"),
        (r#"{"data":{"seq":"x"}}"#, "is not a whole number"),
        ("<html>", "not JSON"),
    ] {
        let why = read(&source, body).expect_err("no event");
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn members_are_read_from_where_the_answer_has_them() {
    let source = plain(
        "key = 'body:/id'\nresource = { type = 'literal:thing', id = 'body:/thing' }\n\
         version = [{ from = 'body:/n', as = 'integer' }]\nmerge = 'fields'\nstate = 'body:/thing'\n\
         order = { policy = 'sequence', on_gap = 'refetch' }\n\
         [refetch]\nurl = 'http://127.0.0.1:9/{id}'\nstate = 'body:'",
    );
    let event = read(&source, r#"{"n":3,"a":1.0}"#).expect("an event");
    assert_eq!(event.order.merge, Merge::Fields);
    assert_eq!(event.patch.map(|patch| patch.0.len()), Some(2));
}

#[test]
fn what_is_gone_is_a_delete_where_the_source_says_so() {
    let source = asking("on_gone = 'delete'");
    assert!(source.fetch_limits().is_some_and(|limits| limits.gone_deletes));
    let event = read(&source, "").expect("an event");
    assert!(event.deletes && event.guards[0].version.is_none());
}

#[test]
fn settings_that_cannot_be_asked_by_are_refused_at_load() {
    let verify = "verify = { scheme = 'hmac-sha256', header = 'x-signature' }";
    let with = |refetch: &str| format!("{verify}\n{BASE}\n[refetch]\n{refetch}");
    for (text, expected) in [
        (with("url = 'http://api.example.com/{id}'"), "`refetch.url` must begin with https://"),
        (with("url = 'ftp://127.0.0.1/{id}'"), "`refetch.url` must begin with https://"),
        (with("url = '/things/{id}'"), "`refetch.url` must be a whole address"),
        (with("url = 'https://{id}.example.com/x'"), "`refetch.url` has a part of an event in its host"),
        (with("url = 'https://me:pw@api.example.com/{id}'"), "`refetch.url` holds a user or a password"),
        (with("url = 'https://api.example.com/things'"), "`refetch.url` names no {id}"),
        (with("url = 'https://api.example.com/{id}/{name}'"), "`refetch.url` names {name}"),
        (with("url = 'https://api.example.com/{id'"), "`refetch.url` has a `{` without its `}`"),
        (with("url = 'https://a.example/{id}'\ntimeout = '5m'"), "`refetch.timeout` must be a duration, 100ms to 20s"),
        (with("url = 'https://a.example/{id}'\nmax_answer = '64MiB'"), "`refetch.max_answer` must be a size"),
        (with("url = 'https://a.example/{id}'\nheaders = { host = 'x' }"), "`refetch.headers.host` is no header"),
        (with("url = 'https://a.example/{id}'\nstate = 'body:/x'"), "`refetch.state` belongs to `merge"),
        (
            format!("{verify}\n{BASE}\n[refetch]\nurl = 'https://a.example/{{id}}'").replace("'refetch' }", "'newest' }"),
            "`refetch` is stated, and nothing asks",
        ),
        (
            format!(
                "{verify}\n{BASE}\n[refetch]\nurl = 'https://a.example/{{id}}'\nversion = [{{ from = 'body:/t', as = 'rfc3339' }}]"
            )
            .replace("'refetch' }", "'sequence', on_gap = 'refetch' }")
            .replace("as = 'rfc3339' }]\norder", "as = 'integer' }]\norder"),
            "`refetch.version` has parts of time, and the events' version has integer",
        ),
    ] {
        let problems = try_source(&text, &[secret(SECRET)]).expect_err("problems");
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{text}\n{found:#?}");
        assert!(!format!("{found:?}").contains("me:pw"));
    }
}
