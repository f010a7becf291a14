//! Asks the admin listener of the running server to do something.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Failure, innermost, reachable};
use crate::config::Config;

/// How long it may take, the store's part included.
const WITHIN: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Why the server did not do it.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    /// The status.
    #[serde(default)]
    pub(super) status: u16,
    /// The stable code.
    pub(super) code: String,
    /// The same for people.
    detail: String,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, detail, .. } = refusal;
        if status == 404 { Self::NotFound(detail) } else { Self::Unreachable(format!("{status}: {detail}")) }
    }
}

/// The admin listener of one server.
pub(super) struct Admin {
    base: String,
    client: reqwest::Client,
}

impl Admin {
    /// The one that is stated, or that of the settings.
    pub(super) fn of(stated: Option<&str>, config: &Config) -> Result<Self, Failure> {
        let base = stated.map_or_else(|| format!("http://{}", reachable(config.admin.listen)), str::to_owned);
        if !reqwest::Url::parse(&base).is_ok_and(|url| url.has_host()) {
            return Err(Failure::Usage("--admin must be such as http://127.0.0.1:9090".to_owned()));
        }
        let client = reqwest::Client::builder()
            .timeout(WITHIN)
            .connect_timeout(CONNECT_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let client = client.map_err(|error| Failure::Unreachable(error.to_string()))?;
        Ok(Self { base: base.trim_end_matches('/').to_owned(), client })
    }

    /// Asks for one thing; the inner error is the server's no.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &impl Serialize,
    ) -> Result<Result<T, Refusal>, Failure> {
        let body = serde_json::to_vec(what).map_err(|error| Failure::Usage(error.to_string()))?;
        let request = self.client.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        let response = request.body(body).send().await.map_err(|error| self.unreachable(&innermost(&error)))?;
        let status = response.status();
        let answer = response.bytes().await.map_err(|error| self.unreachable(&innermost(&error)))?;
        if status.is_success() {
            return serde_json::from_slice(&answer).map(Ok).map_err(|error| self.unreachable(&error));
        }
        let refusal: Refusal = serde_json::from_slice(&answer).map_err(|_| self.unreachable(&status))?;
        Ok(Err(Refusal { status: status.as_u16(), ..refusal }))
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> Failure {
        let base = &self.base;
        Failure::Unreachable(format!(
            "the admin listener at {base} cannot be asked: {error}; is `tidegate serve` running?"
        ))
    }
}
