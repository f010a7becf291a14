//! Keeping what is authentic but unusable.

use std::collections::{BTreeMap, HashMap};

use sqlx::postgres::PgConnection;
use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::event::{EventId, Unusable};
use tidegate_actors::rules::key::BodyDigest;
use uuid::Uuid;

use super::errors::{Fault, Phase, classify};
use super::rows::text;

/// What makes two requests the same: bytes, source, tenant.
type Same = (BodyDigest, String, String);

/// Keeps requests; the same bytes again are counted on the first row. Returns that row's id for each item.
pub(crate) async fn keep(connection: &mut PgConnection, items: &[Unusable]) -> Result<Vec<EventId>, Fault> {
    // Sorted, so that two writers lock rows in one order; the same bytes twice in one call count twice.
    let mut folded: BTreeMap<Same, (&Unusable, i64)> = BTreeMap::new();
    for item in items {
        folded.entry(same(item)).or_insert((item, 0)).1 += 1;
    }
    let each = || folded.values().map(|(item, _)| *item);
    let rows: Vec<(Uuid, Uuid, String, String)> = sqlx::query_as(include_str!("statements/quarantine.sql"))
        .bind(each().map(|item| item.id.0).collect::<Vec<_>>())
        .bind(each().map(|item| item.received_at_ms).collect::<Vec<_>>())
        .bind(each().map(|item| text(&item.source)).collect::<Vec<_>>())
        .bind(each().map(|item| text(&item.tenant)).collect::<Vec<_>>())
        .bind(each().map(|item| item.code).collect::<Vec<_>>())
        .bind(each().map(|item| text(&item.reason)).collect::<Vec<_>>())
        .bind(each().map(|item| Uuid::from_bytes(item.digest.0)).collect::<Vec<_>>())
        .bind(folded.values().map(|&(_, times)| times).collect::<Vec<_>>())
        .bind(each().map(|item| item.headers.as_ref()).collect::<Vec<&[u8]>>())
        .bind(each().map(|item| item.body.as_ref()).collect::<Vec<&[u8]>>())
        .fetch_all(connection)
        .await
        .map_err(|error| classify(&error, Phase::Committing))?;
    let kept: HashMap<Same, Uuid> = rows
        .into_iter()
        .map(|(id, digest, source, tenant)| ((BodyDigest(digest.into_bytes()), source, tenant), id))
        .collect();
    let id = |item: &Unusable| kept.get(&same(item)).copied().map(EventId);
    let missing = || StoreError::Unknown("the statement did not answer about every request".to_owned());
    items.iter().map(|item| id(item).ok_or_else(|| Fault::Ends(missing()))).collect()
}

/// Takes one out.
pub(crate) async fn discharge(connection: &mut PgConnection, id: EventId) -> Result<bool, Fault> {
    let done = sqlx::query(include_str!("statements/discharge.sql")).bind(id.0).execute(connection).await;
    Ok(done.map_err(|error| classify(&error, Phase::Committing))?.rows_affected() > 0)
}

fn same(item: &Unusable) -> Same {
    (item.digest, text(&item.source).into_owned(), text(&item.tenant).into_owned())
}
