//! `events --failed`: events of which an effect failed and that have not gone well since.

use std::io;

use serde::Serialize;
use tidegate_actors::ports::{FailureRow, Reader};

use super::super::args::EventsArgs;
use super::super::output::{self, cell};
use super::super::{Exit, Failure};
use super::{PageJson, say_next, unread};

/// A failure as JSON.
#[derive(Serialize)]
struct FailedJson {
    id: String,
    source: String,
    tenant: String,
    key: String,
    #[serde(rename = "type")]
    kind: String,
    effect: String,
    error: String,
    held: bool,
    failures: i64,
    first_at: String,
    last_at: String,
}

impl From<FailureRow> for FailedJson {
    fn from(row: FailureRow) -> Self {
        Self {
            id: row.event.to_string(),
            source: row.source,
            tenant: row.tenant,
            key: row.key,
            kind: row.kind,
            effect: row.effect,
            error: row.error,
            held: row.held,
            failures: row.failures,
            first_at: output::time(row.first_at_ms),
            last_at: output::time(row.last_at_ms),
        }
    }
}

/// Lists what failed.
pub(super) async fn run(args: &EventsArgs, reader: &dyn Reader) -> Result<Exit, Failure> {
    let page = reader.failures(args.list.after, args.list.limit).await.map_err(|error| unread(&error))?;
    let mut out = io::stdout().lock();
    let wanted = |row: &FailureRow| args.source.as_ref().is_none_or(|source| *source == row.source);
    let rows: Vec<FailureRow> = page.rows.into_iter().filter(wanted).collect();
    if args.list.json {
        let rows: Vec<FailedJson> = rows.into_iter().map(FailedJson::from).collect();
        output::json(&mut out, &PageJson { rows, next: page.next.map(|id| id.to_string()) })?;
        return Ok(Exit::Good);
    }
    let cells: Vec<[String; 7]> = rows
        .iter()
        .map(|row| {
            [
                cell(&row.key),
                cell(&row.source),
                cell(&row.kind),
                row.failures.to_string(),
                output::time(row.last_at_ms),
                if row.held { "held" } else { "not taken" }.to_owned(),
                cell(&format!("{}: {}", row.effect, row.error)),
            ]
        })
        .collect();
    output::table(&mut out, ["KEY", "SOURCE", "TYPE", "TIMES", "LAST", "NOW", "WHY"], &cells)?;
    say_next(&mut out, page.next)?;
    Ok(Exit::Good)
}
