//! Loads what the rules need of resources: their rows, what is held of them, and the store's clock.

use std::collections::HashMap;

use serde::Deserialize;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::fields::Fields;
use tidegate_actors::rules::judge::{State, Subject};
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::rules::plan::{Held, Known, Loaded};
use tidegate_actors::rules::version::Version;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify, describe};

/// What was loaded, with the revision of each row.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) loaded: Loaded,
    pub(crate) revs: HashMap<ResourceHash, i64>,
}

/// A hold as `load.sql` tells it.
#[derive(Deserialize)]
struct StoredHold {
    id: String,
    until_ms: Option<i64>,
    parked_in: Option<i64>,
    fetch: Option<i64>,
    subject: String,
}

/// Reads the rows of these resources, in one snapshot.
pub(crate) async fn load(
    connection: &mut PgConnection,
    resources: impl Iterator<Item = ResourceHash>,
    with_fetches: bool,
) -> Result<Read, Fault> {
    let hashes: Vec<Uuid> = resources.map(|hash| Uuid::from_bytes(hash.0)).collect();
    if hashes.is_empty() {
        return Ok(Read::default());
    }
    let rows = sqlx::query(include_str!("statements/load.sql"))
        .bind(&hashes)
        .bind(with_fetches)
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Open))?;
    read(&rows).map_err(|error| match error {
        // Coming again does not help: the part of the batch that needs it is refused.
        sqlx::Error::Decode(_) => Fault::Ends(StoreError::Refused(describe(&error))),
        _ => classify(&error, Phase::Open),
    })
}

fn read(rows: &[PgRow]) -> Result<Read, sqlx::Error> {
    let mut read = Read::default();
    read.loaded.resources.reserve(rows.len());
    read.revs.reserve(rows.len());
    for row in rows {
        let rev = row.try_get(1)?;
        match row.try_get::<Option<Uuid>, _>(0)? {
            None => read.loaded.now_ms = rev,
            Some(hash) => {
                let hash = ResourceHash(hash.into_bytes());
                read.loaded.resources.insert(hash, known(row)?);
                read.revs.insert(hash, rev);
            }
        }
    }
    Ok(read)
}

/// Whether one of the events is the answer of a fetch, which counts only under the newest claim.
pub(crate) fn answers_a_fetch(events: &[&Event]) -> bool {
    events.iter().any(|event| event.fetched.is_some())
}

fn known(row: &PgRow) -> Result<Known, sqlx::Error> {
    let bytes: Option<&[u8]> = row.try_get(2)?;
    let version = match bytes {
        Some(bytes) => Some(Version::stored(bytes, row.try_get(3)?)),
        None => None,
    };
    let fields: Option<&str> = row.try_get(7)?;
    let state = State {
        version,
        epoch: row.try_get(4)?,
        step: row.try_get(5)?,
        deleted: row.try_get(6)?,
        fields: fields.map(Fields::from_stored).transpose().map_err(unreadable)?,
        event: row.try_get::<Option<Uuid>, _>(8)?.map(EventId),
        applied_at_ms: row.try_get(9)?,
        applied: row.try_get(10)?,
        held: row.try_get(11)?,
    };
    let holds: Option<Vec<String>> = row.try_get(13)?;
    let held = holds.unwrap_or_default().iter().map(|text| hold(text)).collect::<Result<_, _>>()?;
    Ok(Known { state, held, fetch: row.try_get(12)? })
}

fn hold(text: &str) -> Result<Held, sqlx::Error> {
    let stored: StoredHold = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let StoredHold { id, until_ms, parked_in, fetch, subject } = stored;
    let id = Uuid::parse_str(&id).map_err(|error| unreadable(error.to_string()))?;
    let subject = Subject::from_stored(&subject).map_err(unreadable)?;
    Ok(Held { id: EventId(id), subject, until_ms, parked_in, fetch })
}

fn unreadable(why: String) -> sqlx::Error {
    sqlx::Error::Decode(why.into())
}
