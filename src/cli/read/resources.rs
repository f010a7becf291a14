//! `resources [SOURCE [TYPE]]`: the list. One resource is in [`timeline`].

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{ResourceFilter, ResourceRow};

use super::super::args::{ResourceArgs, ResourcesArgs, ResourcesCommand};
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::{PageJson, open, say_next, timeline, unread};
use crate::config::Config;

/// A resource as JSON.
#[derive(Serialize)]
pub(super) struct ResourceJson {
    source: String,
    tenant: String,
    #[serde(rename = "type")]
    kind: String,
    id: String,
    version: Option<String>,
    epoch: i64,
    step: Option<String>,
    deleted: bool,
    held: i64,
    event: Option<String>,
    applied_at: Option<String>,
    applied: i64,
}

impl From<ResourceRow> for ResourceJson {
    fn from(row: ResourceRow) -> Self {
        let applied_at_ms = row.event.map(|_| row.applied_at_ms);
        Self {
            source: row.source,
            tenant: row.tenant,
            kind: row.kind,
            id: row.id,
            version: row.version,
            epoch: row.epoch,
            step: row.step,
            deleted: row.deleted,
            held: row.held,
            event: row.event.map(|event| event.to_string()),
            applied_at: applied_at_ms.map(output::time),
            applied: row.applied,
        }
    }
}

/// Lists resources, or does what else was asked for.
pub(in super::super) async fn run(args: &ResourcesArgs, config: &Config) -> Result<Exit, Failure> {
    match &args.command {
        Some(ResourcesCommand::Show(show)) => return timeline::run(&show.resource, &show.list, config).await,
        Some(ResourcesCommand::Release(release)) => return super::super::release::run(release, config).await,
        None => {}
    }
    if let (Some(source), Some(kind), Some(id)) = (&args.source, &args.kind, &args.id) {
        let tenant = args.tenant.clone();
        let resource = ResourceArgs { source: source.clone(), kind: kind.clone(), id: id.clone(), tenant };
        return timeline::run(&resource, &args.list, config).await;
    }
    let reader = open(config).await?;
    let filter = ResourceFilter { source: args.source.clone(), kind: args.kind.clone(), id: None };
    let page = reader.resources(&filter, args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
    let mut out = io::stdout().lock();
    if args.list.json {
        let rows: Vec<ResourceJson> = page.rows.into_iter().map(ResourceJson::from).collect();
        output::json(&mut out, &PageJson { rows, next: page.next.map(|id| id.to_string()) })?;
    } else {
        table(&mut out, &page.rows)?;
        say_next(&mut out, page.next)?;
    }
    Ok(Exit::Good)
}

fn table(out: &mut impl Write, rows: &[ResourceRow]) -> io::Result<()> {
    let cells: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            [
                cell(&row.source),
                cell(&row.tenant),
                cell(&row.kind),
                cell(&row.id),
                cell(row.version.as_deref().unwrap_or_default()),
                state(row),
                row.applied.to_string(),
                row.event.map_or_else(|| NONE.to_owned(), |_| output::time(row.applied_at_ms)),
            ]
        })
        .collect();
    output::table(out, ["SOURCE", "TENANT", "TYPE", "ID", "VERSION", "STATE", "APPLIED", "LAST"], &cells)
}

/// What there is of it, and how much of it waits.
pub(super) fn state(row: &ResourceRow) -> String {
    let state = match (row.event, row.deleted) {
        (None, _) => "nothing yet",
        (Some(_), true) => "deleted",
        (Some(_), false) => "live",
    };
    if row.held == 0 { state.to_owned() } else { format!("{state}, {} held", row.held) }
}
