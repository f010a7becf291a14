//! `events [ID]`.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{EventFilter, EventRow, Reader};
use tidegate_actors::rules::event::{EventId, Verdict};

use super::super::args::EventsArgs;
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::{BodyJson, PageJson, failed, held, open, say_next, unread};
use crate::config::Config;

/// Rows that an export reads at once.
const EXPORT_PAGE: u32 = 500;

/// An event as JSON.
#[derive(Serialize)]
pub(super) struct EventJson {
    id: String,
    received_at: String,
    source: String,
    tenant: String,
    key: String,
    #[serde(rename = "type")]
    kind: String,
    resource: Option<ResourceName>,
    version: Option<String>,
    verdict: Verdict,
    tie: bool,
    why: Option<String>,
    settled_at: Option<String>,
    conflicts_with: Option<String>,
    body_bytes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<BodyJson>,
}

#[derive(Serialize)]
struct ResourceName {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

impl From<EventRow> for EventJson {
    fn from(row: EventRow) -> Self {
        Self {
            id: row.id.to_string(),
            received_at: output::time(row.received_at_ms),
            source: row.source,
            tenant: row.tenant,
            key: row.key,
            kind: row.kind,
            resource: row.resource.map(|(kind, id)| ResourceName { kind, id }),
            version: row.version,
            verdict: row.verdict,
            tie: row.tie,
            why: row.why,
            settled_at: row.settled_at_ms.map(output::time),
            conflicts_with: row.conflicts_with.map(|id| id.to_string()),
            body_bytes: row.body_bytes,
            headers: row.headers.and_then(|headers| serde_json::from_slice(&headers).ok()),
            body: row.body.map(|body| BodyJson::of(&body)),
        }
    }
}

/// Lists events, or shows one.
pub(in super::super) async fn run(args: &EventsArgs, config: &Config) -> Result<Exit, Failure> {
    let reader = open(config).await?;
    if args.failed {
        return failed::run(args, &*reader).await;
    }
    if args.held {
        return held::run(args, &*reader).await;
    }
    let Some(id) = args.id else {
        let filter = EventFilter {
            of: None,
            source: args.source.clone(),
            verdict: args.verdict,
            key: args.key.clone(),
            resource: args.resource.as_deref().and_then(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone()))),
        };
        if args.export {
            return export(&*reader, &filter).await;
        }
        let page = reader.events(&filter, args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
        let mut out = io::stdout().lock();
        if args.list.json {
            let rows: Vec<EventJson> = page.rows.into_iter().map(EventJson::from).collect();
            output::json(&mut out, &PageJson { rows, next: page.next.map(|id| id.to_string()) })?;
        } else {
            table(&mut out, &page.rows)?;
            say_next(&mut out, page.next)?;
        }
        return Ok(Exit::Good);
    };
    let row = reader.event(EventId(id)).await.map_err(|error| unread(&error))?;
    let row = row.ok_or_else(|| Failure::NotFound(format!("no event {id}: `tidegate events` lists what there is")))?;
    let mut out = io::stdout().lock();
    if args.raw {
        out.write_all(row.body.as_deref().unwrap_or_default())?;
    } else if args.list.json {
        output::json(&mut out, &EventJson::from(row))?;
    } else {
        show(&mut out, &row)?;
    }
    Ok(Exit::Good)
}

/// Every event that fits, newest first, one a line with headers and body.
async fn export(reader: &dyn Reader, filter: &EventFilter) -> Result<Exit, Failure> {
    let mut after = None;
    loop {
        let page = reader.events(filter, after, EXPORT_PAGE).await.map_err(|error| unread(&error))?;
        for row in page.rows {
            // between the list and now it may have been pruned
            let Some(row) = reader.event(row.id).await.map_err(|error| unread(&error))? else { continue };
            output::json_line(&mut io::stdout().lock(), &EventJson::from(row))?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(Exit::Good);
        }
    }
}

/// Events as a table.
pub(super) fn table(out: &mut impl Write, rows: &[EventRow]) -> io::Result<()> {
    let cells: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            let resource = row.resource.as_ref().map_or_else(String::new, |(kind, id)| format!("{kind} {id}"));
            [
                row.id.to_string(),
                output::time(row.received_at_ms),
                cell(&row.source),
                verdict(row),
                cell(&row.kind),
                cell(&resource),
                cell(row.version.as_deref().unwrap_or_default()),
                cell(&row.key),
            ]
        })
        .collect();
    output::table(out, ["ID", "RECEIVED", "SOURCE", "VERDICT", "TYPE", "RESOURCE", "VERSION", "KEY"], &cells)
}

pub(super) fn verdict(row: &EventRow) -> String {
    match (row.conflicts_with, row.tie) {
        // one that repeats an effect says so itself
        (Some(_), _) if row.why.is_none() => format!("{} (conflict)", row.verdict),
        (Some(_), _) => row.verdict.to_string(),
        (None, true) => format!("{} (tie)", row.verdict),
        (None, false) => row.verdict.to_string(),
    }
}

fn show(out: &mut impl Write, row: &EventRow) -> io::Result<()> {
    let or_none = |text: &str| if text.is_empty() { NONE.to_owned() } else { text.to_owned() };
    let (kind, id) = row.resource.clone().unwrap_or_default();
    let mut fields = vec![
        ("id", row.id.to_string()),
        ("received", output::time(row.received_at_ms)),
        ("source", row.source.clone()),
        ("tenant", or_none(&row.tenant)),
        ("key", row.key.clone()),
        ("type", or_none(&row.kind)),
        ("resource type", or_none(&kind)),
        ("resource id", or_none(&id)),
        ("version", or_none(row.version.as_deref().unwrap_or_default())),
        ("verdict", verdict(row)),
    ];
    if let Some(why) = &row.why {
        fields.push(("why", why.clone()));
    }
    if let Some(settled_at_ms) = row.settled_at_ms {
        fields.push(("settled", output::time(settled_at_ms)));
    }
    if let Some(first) = row.conflicts_with {
        fields.push((if row.why.is_none() { "conflicts with" } else { "repeats" }, first.to_string()));
    }
    output::fields(out, &fields)?;
    if let Some(headers) = &row.headers {
        writeln!(out, "\nheaders")?;
        output::body(out, headers)?;
    }
    writeln!(out, "\nbody, {} bytes", row.body_bytes)?;
    output::body(out, row.body.as_deref().unwrap_or_default())
}
