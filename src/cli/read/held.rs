//! `events --held`: what waits, for what, until when.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{HeldFilter, HeldRow, Reader};

use super::super::args::EventsArgs;
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::{PageJson, say_next, unread};

/// A held event as JSON.
#[derive(Serialize)]
pub(super) struct HeldJson {
    id: String,
    received_at: String,
    source: String,
    tenant: String,
    #[serde(rename = "type")]
    kind: String,
    resource: NameJson,
    version: Option<String>,
    waits_for: String,
    until: Option<String>,
    parked: bool,
}

#[derive(Serialize)]
struct NameJson {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

impl From<HeldRow> for HeldJson {
    fn from(row: HeldRow) -> Self {
        let (kind, id) = row.resource;
        Self {
            id: row.event.to_string(),
            received_at: output::time(row.received_at_ms),
            source: row.source,
            tenant: row.tenant,
            kind: row.kind,
            resource: NameJson { kind, id },
            version: row.version,
            waits_for: row.why,
            until: row.until_ms.map(output::time),
            parked: row.parked,
        }
    }
}

/// Lists what waits.
pub(super) async fn run(args: &EventsArgs, reader: &dyn Reader) -> Result<Exit, Failure> {
    let filter = HeldFilter { source: args.source.clone(), of: None };
    let page = reader.held(&filter, args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
    let mut out = io::stdout().lock();
    if args.list.json {
        let rows: Vec<HeldJson> = page.rows.into_iter().map(HeldJson::from).collect();
        output::json(&mut out, &PageJson { rows, next: page.next.map(|id| id.to_string()) })?;
    } else {
        table(&mut out, &page.rows)?;
        say_next(&mut out, page.next)?;
    }
    Ok(Exit::Good)
}

/// Held events as a table.
pub(super) fn table(out: &mut impl Write, rows: &[HeldRow]) -> io::Result<()> {
    let cells: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            let (kind, id) = &row.resource;
            [
                row.event.to_string(),
                output::time(row.received_at_ms),
                cell(&row.source),
                cell(&row.kind),
                cell(&format!("{kind} {id}")),
                cell(row.version.as_deref().unwrap_or_default()),
                cell(&row.why),
                until(row),
            ]
        })
        .collect();
    output::table(out, ["ID", "RECEIVED", "SOURCE", "TYPE", "RESOURCE", "VERSION", "WAITS", "UNTIL"], &cells)
}

fn until(row: &HeldRow) -> String {
    match row.until_ms {
        Some(until_ms) => output::time(until_ms),
        None if row.parked => "released by hand".to_owned(),
        None => NONE.to_owned(),
    }
}
