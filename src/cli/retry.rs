//! `quarantine retry` and `quarantine drop`: asks the running server to run requests again, or to give one up.

use std::io::{self, Write as _};

use serde::Serialize;
use tidegate_actors::ports::QuarantineRow;
use uuid::Uuid;

use super::admin::Admin;
use super::args::{DropArgs, RetryArgs};
use super::{Exit, Failure, output, read};
use crate::config::Config;
use crate::http::quarantine::{DROP, Named, RETRY, Retried};

/// What became of one request, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    #[serde(flatten)]
    retried: &'a Retried,
}

/// Runs requests again, the oldest first.
pub(super) async fn retry(args: &RetryArgs, config: &Config) -> Result<Exit, Failure> {
    let ids = match &args.source {
        Some(source) => of_source(source, config).await?,
        None => args.ids.clone(),
    };
    if ids.is_empty() {
        let message = "nothing to run again: `tidegate quarantine` lists what there is";
        return Err(Failure::NotFound(message.to_owned()));
    }
    let admin = Admin::of(args.admin.as_deref(), config)?;
    let mut exit = Exit::Good;
    for id in ids {
        let named = Named { id: id.to_string(), reason: None };
        let retried: Retried = admin.ask(RETRY, &named).await?.map_err(Failure::from)?;
        if retried.status == "quarantined" {
            exit = Exit::No;
        }
        print(id, &retried, args.json)?;
    }
    Ok(exit)
}

/// Gives one up.
pub(super) async fn give_up(args: &DropArgs, config: &Config) -> Result<Exit, Failure> {
    let named = Named { id: args.id.to_string(), reason: Some(args.reason.clone()) };
    let admin = Admin::of(args.admin.as_deref(), config)?;
    let dropped: Retried = admin.ask(DROP, &named).await?.map_err(Failure::from)?;
    print(args.id, &dropped, args.json)?;
    Ok(Exit::Good)
}

async fn of_source(source: &str, config: &Config) -> Result<Vec<Uuid>, Failure> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = read::quarantine_page(config, after).await?;
        let mine = |row: &QuarantineRow| (row.source == source).then_some(row.id.0);
        ids.extend(page.rows.iter().filter_map(mine));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    ids.reverse();
    Ok(ids)
}

fn print(id: Uuid, retried: &Retried, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if json {
        output::json(&mut out, &Line { id: id.to_string(), retried })?;
        return Ok(());
    }
    write!(out, "{id}  {}", output::cell(&retried.status))?;
    if let Some(items) = retried.items {
        write!(out, "  {items} items went in")?;
    }
    if let Some(reason) = &retried.reason {
        write!(out, "  {}", output::cell(reason))?;
    }
    writeln!(out)?;
    Ok(())
}
