//! `quarantine [ID]`.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{Page, QuarantineRow};
use tidegate_actors::rules::event::EventId;
use uuid::Uuid;

use super::super::args::{QuarantineArgs, QuarantineCommand};
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::{BodyJson, PageJson, open, say_next, unread};
use crate::config::Config;

/// A quarantined request as JSON.
#[derive(Serialize)]
struct QuarantineJson {
    id: String,
    received_at: String,
    source: String,
    tenant: String,
    code: String,
    reason: String,
    times: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<BodyJson>,
}

impl From<QuarantineRow> for QuarantineJson {
    fn from(row: QuarantineRow) -> Self {
        Self {
            id: row.id.to_string(),
            received_at: output::time(row.received_at_ms),
            source: row.source,
            tenant: row.tenant,
            code: row.code,
            reason: row.reason,
            times: row.times,
            body: row.body.map(|body| BodyJson::of(&body)),
        }
    }
}

/// Lists the quarantine, or shows one request.
pub(in super::super) async fn run(args: &QuarantineArgs, config: &Config) -> Result<Exit, Failure> {
    match &args.command {
        Some(QuarantineCommand::Retry(retry)) => return super::super::retry::retry(retry, config).await,
        Some(QuarantineCommand::Drop(dropped)) => return super::super::retry::give_up(dropped, config).await,
        None => {}
    }
    let reader = open(config).await?;
    let Some(id) = args.id else {
        let page = reader.quarantine(args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
        let mut out = io::stdout().lock();
        if args.list.json {
            let rows: Vec<QuarantineJson> = page.rows.into_iter().map(QuarantineJson::from).collect();
            output::json(&mut out, &PageJson { rows, next: page.next.map(|id| id.to_string()) })?;
        } else {
            table(&mut out, &page.rows)?;
            say_next(&mut out, page.next)?;
        }
        return Ok(Exit::Good);
    };
    let row = reader.quarantined(EventId(id)).await.map_err(|error| unread(&error))?;
    let row = row.ok_or_else(|| {
        Failure::NotFound(format!("no request {id} in quarantine: `tidegate quarantine` lists what there is"))
    })?;
    let mut out = io::stdout().lock();
    if args.raw {
        out.write_all(row.body.as_deref().unwrap_or_default())?;
    } else if args.list.json {
        output::json(&mut out, &QuarantineJson::from(row))?;
    } else {
        show(&mut out, &row)?;
    }
    Ok(Exit::Good)
}

/// A page of the list, as many rows as one has.
pub(in super::super) async fn page(config: &Config, after: Option<Uuid>) -> Result<Page<QuarantineRow>, Failure> {
    open(config).await?.quarantine(after, 1_000).await.map_err(|error| unread(&error))
}

fn table(out: &mut impl Write, rows: &[QuarantineRow]) -> io::Result<()> {
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|row| {
            [
                row.id.to_string(),
                output::time(row.received_at_ms),
                cell(&row.source),
                cell(&row.code),
                row.times.to_string(),
                cell(&row.reason),
            ]
        })
        .collect();
    output::table(out, ["ID", "RECEIVED", "SOURCE", "CODE", "TIMES", "REASON"], &cells)
}

fn show(out: &mut impl Write, row: &QuarantineRow) -> io::Result<()> {
    let fields = [
        ("id", row.id.to_string()),
        ("received", output::time(row.received_at_ms)),
        ("source", row.source.clone()),
        ("tenant", if row.tenant.is_empty() { NONE.to_owned() } else { row.tenant.clone() }),
        ("code", row.code.clone()),
        ("reason", row.reason.clone()),
        ("times", row.times.to_string()),
    ];
    output::fields(out, &fields)?;
    let body = row.body.as_deref().unwrap_or_default();
    writeln!(out, "\nbody, {} bytes", body.len())?;
    output::body(out, body)
}
