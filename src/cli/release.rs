//! `resources release SOURCE TYPE ID`: asks the running server to end the waiting of a resource.

use std::io::{self, Write as _};
use std::time::Duration;

use serde::Deserialize;

use super::args::{ReleaseArgs, ResourceArgs};
use super::{Exit, Failure, innermost, output, reachable};
use crate::config::Config;
use crate::http::operate::{Named, RELEASE, Released};

/// How long it may take, the store's part included.
const WITHIN: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What is read of a refusal.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    detail: String,
}

pub(super) async fn run(args: &ReleaseArgs, config: &Config) -> Result<Exit, Failure> {
    let base = args.admin.clone().unwrap_or_else(|| format!("http://{}", reachable(config.admin.listen)));
    let url = format!("{}{RELEASE}", base.trim_end_matches('/'));
    let url = reqwest::Url::parse(&url).ok().filter(reqwest::Url::has_host);
    let url = url.ok_or_else(|| Failure::Usage("--admin must be such as http://127.0.0.1:9090".to_owned()))?;
    let unreachable = |error: &dyn std::fmt::Display| {
        Failure::Unreachable(format!(
            "the admin listener at {base} cannot be asked: {error}; is `tidegate serve` running?"
        ))
    };
    let client = reqwest::Client::builder()
        .timeout(WITHIN)
        .connect_timeout(CONNECT_WITHIN)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| unreachable(&error))?;
    let ResourceArgs { source, kind, id, tenant } = &args.resource;
    let named = Named { source: source.clone(), tenant: tenant.clone(), kind: kind.clone(), id: id.clone() };
    let body = serde_json::to_vec(&named).map_err(|error| Failure::Usage(error.to_string()))?;
    let request = client.post(url).header("content-type", "application/json").body(body);
    let response = request.send().await.map_err(|error| unreachable(&innermost(&error)))?;
    let status = response.status();
    let answer = response.bytes().await.map_err(|error| unreachable(&innermost(&error)))?;
    if status.is_success() {
        let released: Released = serde_json::from_slice(&answer).map_err(|error| unreachable(&error))?;
        return print(args, &released);
    }
    let refusal: Refusal = serde_json::from_slice(&answer).map_err(|_| unreachable(&status))?;
    Err(match (status.as_u16(), refusal.code.as_str()) {
        (404, "nothing-waits") => Failure::NotFound(format!(
            "nothing of {kind} {id} of {source} waits: `tidegate events --held` lists what does"
        )),
        _ => Failure::Unreachable(format!("{status}: {}", refusal.detail)),
    })
}

fn print(args: &ReleaseArgs, released: &Released) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    if args.json {
        output::json(&mut out, released)?;
    } else {
        let Released { applied, stale, expired } = released;
        writeln!(out, "{applied} applied, {stale} stale, {expired} expired")?;
    }
    Ok(Exit::Good)
}
