//! Asks the owners of keys: certificates by their address, JWKs by their id.
//!
//! Promises: https only, no redirects, an answer bounded in time and size. Which addresses may be asked, and how
//! often, is the source's business; what an answer is worth too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode};

use super::{CONNECT_WITHIN, IDLE_MAX, OpenError, Provider, header_map};
use crate::source::{KeyPort, KeyQuestion};

/// How long an answer may take. Senders wait for us meanwhile.
const WITHIN: Duration = Duration::from_secs(4);
/// The most bytes of an answer.
const ANSWER_MAX: usize = 64 * 1024;

/// Makes the adapter, with what each source sends along.
pub fn open_keys(providers: &[Provider]) -> Result<Arc<dyn KeyPort>, OpenError> {
    let mut headers = HashMap::new();
    for Provider { source, key_headers, .. } in providers {
        let failed = |why: String| OpenError { source_name: source.name().to_string(), why };
        headers.insert(Arc::clone(source.name()), header_map(key_headers.clone()).map_err(failed)?);
    }
    // An error: the process has a provider of TLS already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .https_only(true)
        .connect_timeout(CONNECT_WITHIN.min(WITHIN))
        .timeout(WITHIN)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(IDLE_MAX)
        .build()
        .map_err(|error| OpenError { source_name: "*".to_owned(), why: error.to_string() })?;
    Ok(Arc::new(HttpKeys { client, headers }))
}

struct HttpKeys {
    client: Client,
    headers: HashMap<Arc<str>, HeaderMap>,
}

#[async_trait]
impl KeyPort for HttpKeys {
    async fn ask(&self, source: &str, question: &KeyQuestion) -> Result<Bytes, String> {
        let headers = self.headers.get(source).cloned().unwrap_or_default();
        let request = match &question.body {
            None => self.client.get(&question.url),
            Some(body) => {
                let json = HeaderValue::from_static("application/json");
                self.client.post(&question.url).header(CONTENT_TYPE, json).body(body.clone())
            }
        };
        let response = request.headers(headers).send().await.map_err(innermost)?;
        // that there is no such key is an answer too
        let unknown = response.status() == StatusCode::NOT_FOUND;
        if !response.status().is_success() && !unknown {
            return Err(response.status().to_string());
        }
        read(response).await
    }
}

async fn read(mut response: Response) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(innermost)? {
        if body.len() + chunk.len() > ANSWER_MAX {
            return Err(format!("the answer is longer than {ANSWER_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("no answer: {cause}")
}
