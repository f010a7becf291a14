//! One vector as data, as a request and as a source.

use std::collections::BTreeMap;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tidegate::source::{KeyPort, KeyQuestion, Problem, Reason, Request, Source};

use super::super::common::{secret, try_source};
use super::sources::{self, Described};

const VECTORS: &str = include_str!("../../data/signatures.json");

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) scheme: String,
    method: String,
    path: String,
    url: Option<String>,
    pub(crate) headers: BTreeMap<String, Value>,
    #[serde(default)]
    body: String,
    body_base64: Option<String>,
    pub(crate) secret: String,
    pub(crate) secrets: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) cfg: Value,
    pub(crate) policy: Option<String>,
    now: i64,
    pub(crate) tolerance: Option<u64>,
    pub(crate) expect: String,
    pub(crate) expect_response: Option<Value>,
}

pub(crate) fn all() -> Vec<Vector> {
    serde_json::from_str(VECTORS).expect("vectors")
}

/// A request with what it borrows.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) now_ms: i64,
}

impl Taken {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.target,
            path_tenant: None,
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
        }
    }

    /// The verdict, after a key was fetched where one is missing.
    pub(crate) fn verdict(&self, source: &Source, keys: &dyn KeyPort) -> Result<(), Reason> {
        let first = source.verify(&self.request()).map(drop);
        match first {
            Err(refusal) if refusal.wants_key() => {
                block_on(source.fetch_key(&self.request(), keys));
                source.verify(&self.request()).map(drop).map_err(|refusal| refusal.reason)
            }
            other => other.map_err(|refusal| refusal.reason),
        }
    }
}

/// Runs a future that waits for nothing.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

/// Knows one key, wherever it is asked for.
pub(crate) struct OneKey(pub(crate) Bytes);

#[async_trait::async_trait]
impl KeyPort for OneKey {
    async fn ask(&self, _: &str, _: &KeyQuestion) -> Result<Bytes, String> {
        Ok(self.0.clone())
    }
}

impl Vector {
    /// Scheme and host of the address the sender called.
    pub(crate) fn origin(&self) -> String {
        let url = self.url.as_deref().unwrap_or("https://hooks.example.com/");
        let (scheme, rest) = url.split_once("://").expect("an address");
        format!("{scheme}://{}", rest.split('/').next().expect("a host"))
    }

    pub(crate) fn taken(&self) -> Taken {
        let mut headers = HeaderMap::new();
        for (name, values) in &self.headers {
            let name: HeaderName = name.parse().expect("a header name");
            let values = values.as_array().map_or_else(|| vec![values.clone()], Clone::clone);
            for value in values {
                let value = HeaderValue::from_bytes(value.as_str().expect("a value").as_bytes());
                headers.append(name.clone(), value.expect("a header value"));
            }
        }
        let body = match &self.body_base64 {
            Some(text) => STANDARD.decode(text).expect("base64"),
            None => self.body.as_bytes().to_vec(),
        };
        let target = match &self.url {
            Some(url) => url[self.origin().len()..].to_owned(),
            None => self.path.clone(),
        };
        Taken {
            method: self.method.parse().expect("a method"),
            target,
            headers,
            body: body.into(),
            now_ms: self.now * 1000,
        }
    }

    pub(crate) fn source(&self) -> Result<Source, Vec<Problem>> {
        let Described { text, fetched } = sources::of(self);
        let texts = self.secrets.clone().unwrap_or_else(|| vec![self.secret.clone()]);
        let secrets: Vec<_> = if fetched { Vec::new() } else { texts.iter().map(|text| secret(text)).collect() };
        try_source(&format!("allow_weak_secret = true\n{text}"), &secrets)
    }

    pub(crate) fn key(&self) -> OneKey {
        OneKey(Bytes::from(self.secret.clone()))
    }

    pub(crate) fn verdict(&self) -> Result<Result<(), Reason>, Vec<Problem>> {
        Ok(self.taken().verdict(&self.source()?, &self.key()))
    }
}
