//! `resources [SOURCE [TYPE [ID]]]`.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{EventFilter, EventRow, ResourceFilter, ResourceRow};
use tidegate_actors::rules::key::ResourceHash;

use super::super::args::ResourcesArgs;
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::events::EventJson;
use super::{PageJson, events, open, say_next, unread};
use crate::config::Config;

/// A resource as JSON.
#[derive(Serialize)]
struct ResourceJson {
    source: String,
    tenant: String,
    #[serde(rename = "type")]
    kind: String,
    id: String,
    version: Option<String>,
    deleted: bool,
    event: String,
    applied_at: String,
    applied: i64,
}

impl From<ResourceRow> for ResourceJson {
    fn from(row: ResourceRow) -> Self {
        Self {
            source: row.source,
            tenant: row.tenant,
            kind: row.kind,
            id: row.id,
            version: row.version,
            deleted: row.deleted,
            event: row.event.map_or_else(String::new, |event| event.to_string()),
            applied_at: output::time(row.applied_at_ms),
            applied: row.applied,
        }
    }
}

/// A resource with its newest events.
#[derive(Serialize)]
struct Timeline {
    resource: ResourceJson,
    events: Vec<EventJson>,
}

/// Lists resources, or shows one.
pub(in super::super) async fn run(args: &ResourcesArgs, config: &Config) -> Result<Exit, Failure> {
    if let (Some(source), Some(kind), Some(id)) = (&args.source, &args.kind, &args.id) {
        return show(args, config, source, kind, id).await;
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

async fn show(args: &ResourcesArgs, config: &Config, source: &str, kind: &str, id: &str) -> Result<Exit, Failure> {
    let reader = open(config).await?;
    let hash = ResourceHash::of(source, &args.tenant, kind, id);
    let row = reader.resource(hash).await.map_err(|error| unread(&error))?;
    let row = row.ok_or_else(|| {
        Failure::NotFound(format!(
            "no resource {kind} {id} of {source}: `tidegate resources {source}` lists what there is"
        ))
    })?;
    let filter = EventFilter {
        source: Some(source.to_owned()),
        resource: Some((kind.to_owned(), id.to_owned())),
        ..EventFilter::default()
    };
    let page = reader.events(&filter, args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
    let next = page.next;
    // The same type and id may live under several tenants.
    let events: Vec<EventRow> = page.rows.into_iter().filter(|event| event.tenant == args.tenant).collect();
    let mut out = io::stdout().lock();
    if args.list.json {
        let events = events.into_iter().map(EventJson::from).collect();
        output::json(&mut out, &Timeline { resource: row.into(), events })?;
        return Ok(Exit::Good);
    }
    let fields = [
        ("source", row.source.clone()),
        ("tenant", if row.tenant.is_empty() { NONE.to_owned() } else { row.tenant.clone() }),
        ("type", row.kind.clone()),
        ("id", row.id.clone()),
        ("version", row.version.clone().unwrap_or_else(|| NONE.to_owned())),
        ("state", state(&row).to_owned()),
        ("from event", row.event.map_or_else(String::new, |event| event.to_string())),
        ("applied at", output::time(row.applied_at_ms)),
        ("applied", row.applied.to_string()),
    ];
    output::fields(&mut out, &fields)?;
    writeln!(out)?;
    events::table(&mut out, &events)?;
    say_next(&mut out, next)?;
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
                state(row).to_owned(),
                row.applied.to_string(),
                output::time(row.applied_at_ms),
            ]
        })
        .collect();
    output::table(out, ["SOURCE", "TENANT", "TYPE", "ID", "VERSION", "STATE", "APPLIED", "LAST"], &cells)
}

fn state(row: &ResourceRow) -> &'static str {
    if row.deleted { "deleted" } else { "live" }
}
