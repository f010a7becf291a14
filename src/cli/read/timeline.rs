//! `resources show SOURCE TYPE ID`: one resource, what came for it and what became of that, what waits, and what
//! its provider last said.

use std::io::{self, Write};

use serde::Serialize;
use tidegate_actors::ports::{EventFilter, EventRow, FetchRow, HeldFilter, HeldRow, Page, Reader, ResourceRow};
use tidegate_actors::rules::key::ResourceHash;
use uuid::Uuid;

use super::super::args::{ListArgs, ResourceArgs};
use super::super::output::{self, NONE, cell};
use super::super::{Exit, Failure};
use super::events::{EventJson, verdict};
use super::held::{self, HeldJson};
use super::resources::{ResourceJson, state};
use super::{open, unread};
use crate::config::Config;

/// The most waiting events that are shown.
const HELD_SHOWN_MAX: u32 = 100;

/// Everything about one resource.
struct Timeline {
    resource: ResourceRow,
    /// In the order they came, the newest of them.
    events: Vec<EventRow>,
    /// There are older ones: hand this in as `--after`.
    older: Option<Uuid>,
    held: Page<HeldRow>,
    fetch: Option<FetchRow>,
}

#[derive(Serialize)]
struct TimelineJson {
    resource: ResourceJson,
    /// The state put together from partial updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<serde_json::Value>,
    events: Vec<EventJson>,
    next: Option<String>,
    held: Vec<HeldJson>,
    fetch: Option<FetchJson>,
}

#[derive(Serialize)]
struct FetchJson {
    attempts: i64,
    due_at: Option<String>,
    last_error: Option<String>,
}

/// Shows one resource.
pub(super) async fn run(args: &ResourceArgs, list: &ListArgs, config: &Config) -> Result<Exit, Failure> {
    let reader = open(config).await?;
    let timeline = read(&*reader, args, list).await?;
    let mut out = io::stdout().lock();
    if list.json {
        output::json(&mut out, &TimelineJson::from(timeline))?;
    } else {
        print(&mut out, &timeline)?;
    }
    Ok(Exit::Good)
}

async fn read(reader: &dyn Reader, args: &ResourceArgs, list: &ListArgs) -> Result<Timeline, Failure> {
    let ResourceArgs { source, kind, id, tenant } = args;
    let hash = ResourceHash::of(source, tenant, kind, id);
    let resource = reader.resource(hash).await.map_err(|error| unread(&error))?;
    let resource = resource.ok_or_else(|| {
        Failure::NotFound(format!(
            "no resource {kind} {id} of {source}: `tidegate resources {source}` lists what there is"
        ))
    })?;
    let filter = EventFilter { of: Some(hash), ..EventFilter::default() };
    let page = reader.events(&filter, list.after, list.limit).await.map_err(|error| unread(&error))?;
    let filter = HeldFilter { of: Some(hash), ..HeldFilter::default() };
    let held = reader.held(&filter, None, HELD_SHOWN_MAX).await.map_err(|error| unread(&error))?;
    let fetch = reader.fetch(hash).await.map_err(|error| unread(&error))?;
    let (mut events, older) = (page.rows, page.next);
    events.reverse();
    Ok(Timeline { resource, events, older, held, fetch })
}

impl From<Timeline> for TimelineJson {
    fn from(timeline: Timeline) -> Self {
        let Timeline { mut resource, events, older, held, fetch } = timeline;
        let fields = resource.fields.take();
        Self {
            resource: resource.into(),
            fields: fields.and_then(|fields| serde_json::from_str(&fields).ok()),
            events: events.into_iter().map(EventJson::from).collect(),
            next: older.map(|id| id.to_string()),
            held: held.rows.into_iter().map(HeldJson::from).collect(),
            fetch: fetch.map(|fetch| FetchJson {
                attempts: fetch.attempts,
                due_at: fetch.due_ms.map(output::time),
                last_error: fetch.last_error,
            }),
        }
    }
}

fn print(out: &mut impl Write, timeline: &Timeline) -> io::Result<()> {
    let row = &timeline.resource;
    let or_none = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or(NONE).to_owned();
    let mut fields = vec![
        ("source", row.source.clone()),
        ("tenant", or_none(Some(&row.tenant))),
        ("type", row.kind.clone()),
        ("id", row.id.clone()),
        ("version", or_none(row.version.as_deref())),
        ("state", state(row)),
    ];
    if row.epoch > 1 {
        fields.push(("epoch", row.epoch.to_string()));
    }
    if let Some(step) = &row.step {
        fields.push(("step", step.clone()));
    }
    if let Some(event) = row.event {
        fields.push(("from event", event.to_string()));
        fields.push(("applied at", output::time(row.applied_at_ms)));
    }
    fields.push(("applied", row.applied.to_string()));
    if let Some(fetch) = &timeline.fetch {
        fields.push(("fetch", fetched(fetch)));
        fields.extend(fetch.last_error.as_ref().map(|error| ("last error", error.clone())));
    }
    output::fields(out, &fields)?;
    if let Some(state) = &row.fields {
        writeln!(out, "\nfields")?;
        output::body(out, state.as_bytes())?;
    }
    writeln!(out)?;
    events(out, &timeline.events)?;
    if let Some(older) = timeline.older {
        writeln!(out, "\nolder: --after {older}")?;
    }
    if !timeline.held.rows.is_empty() {
        writeln!(out, "\nwaiting")?;
        held::table(out, &timeline.held.rows)?;
    }
    if timeline.held.next.is_some() {
        writeln!(out, "\nand more: `tidegate events --held` lists all")?;
    }
    Ok(())
}

fn fetched(fetch: &FetchRow) -> String {
    match fetch.due_ms {
        Some(due_ms) => format!("due {}, after {} tries", output::time(due_ms), fetch.attempts),
        None => format!("rests, after {} tries", fetch.attempts),
    }
}

/// What came, in the order it came, and what became of it.
fn events(out: &mut impl Write, rows: &[EventRow]) -> io::Result<()> {
    let cells: Vec<[String; 7]> = rows
        .iter()
        .map(|row| {
            [
                output::time(row.received_at_ms),
                cell(&row.kind),
                cell(row.version.as_deref().unwrap_or_default()),
                verdict(row),
                cell(row.why.as_deref().unwrap_or_default()),
                row.settled_at_ms.map_or_else(|| NONE.to_owned(), output::time),
                row.id.to_string(),
            ]
        })
        .collect();
    output::table(out, ["RECEIVED", "TYPE", "VERSION", "VERDICT", "WHY", "SETTLED", "ID"], &cells)
}
