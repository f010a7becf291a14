//! Fetches the addresses that handshakes name.
//!
//! Promises: one GET, within [`WITHIN`], no redirect followed, at most [`AT_ONCE`] under way, nothing of the
//! answer read. Whether the host is the provider's was judged before.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Url};
use tokio::sync::Semaphore;

use super::is_here;

/// The longest that one may take.
const WITHIN: Duration = Duration::from_secs(5);
/// The most under way at once.
const AT_ONCE: usize = 4;

/// The client for it.
pub struct Confirmer {
    outside: Client,
    here: Client,
    slots: Semaphore,
}

impl Confirmer {
    /// Makes it.
    pub fn open() -> Result<Self, String> {
        // An error: the process has a provider of TLS already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let none = reqwest::redirect::Policy::none();
            Client::builder().timeout(WITHIN).connect_timeout(WITHIN).redirect(none).referer(false)
        };
        let made = |error: reqwest::Error| error.to_string();
        Ok(Self {
            outside: builder().build().map_err(made)?,
            here: builder().no_proxy().build().map_err(made)?,
            slots: Semaphore::new(AT_ONCE),
        })
    }

    /// GETs an address; only a 2xx is good.
    pub async fn get(&self, url: &str) -> Result<(), String> {
        let Ok(_slot) = self.slots.try_acquire() else { return Err("too many are under way".to_owned()) };
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let client = if is_here(&url) { &self.here } else { &self.outside };
        let response = client.get(url).send().await.map_err(|error| error.without_url().to_string())?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

#[async_trait(?Send)]
impl crate::source::Confirm for Confirmer {
    async fn get(&self, url: &str) -> Result<(), String> {
        Self::get(self, url).await
    }
}
