//! `resources release SOURCE TYPE ID`: asks the running server to end the waiting of a resource.

use std::io::{self, Write as _};

use super::admin::Admin;
use super::args::{ReleaseArgs, ResourceArgs};
use super::{Exit, Failure, output};
use crate::config::Config;
use crate::http::operate::{Named, RELEASE, Released};

pub(super) async fn run(args: &ReleaseArgs, config: &Config) -> Result<Exit, Failure> {
    let ResourceArgs { source, kind, id, tenant } = &args.resource;
    let named = Named { source: source.clone(), tenant: tenant.clone(), kind: kind.clone(), id: id.clone() };
    match Admin::of(args.admin.as_deref(), config)?.ask(RELEASE, &named).await? {
        Ok(released) => print(args, &released),
        Err(refusal) if refusal.code == "nothing-waits" => Err(Failure::NotFound(format!(
            "nothing of {kind} {id} of {source} waits: `tidegate events --held` lists what does"
        ))),
        Err(refusal) => Err(refusal.into()),
    }
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
