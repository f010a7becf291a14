//! Reading the tables in memory.

use async_trait::async_trait;
use uuid::Uuid;

use super::MemoryStore;
use crate::ports::{
    Counts, EventFilter, EventRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader, ResourceFilter,
    ResourceRow, StoreError,
};
use crate::rules::event::{EventId, Verdict};
use crate::rules::key::ResourceHash;

/// The most rows of one page.
const ROWS_MAX: u32 = 1_000;

#[async_trait(?Send)]
impl Reader for MemoryStore {
    async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<EventRow>, StoreError> {
        self.faults().reach()?;
        let state = self.state();
        let newest_first = state.events.values().rev().filter(|row| after.is_none_or(|after| row.id.0 < after));
        let rows = newest_first.filter(|row| matches_event(filter, row)).map(without_bytes);
        Ok(page(rows, limit, |row| row.id.0))
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        self.faults().reach()?;
        Ok(self.state().events.get(&id.0).cloned())
    }

    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError> {
        self.faults().reach()?;
        let state = self.state();
        let after = after.map(|after| ResourceHash(*after.as_bytes()));
        let rows = state.resources.iter().map(|(hash, stored)| stored.row(*hash));
        let rows = rows.filter(|row| after.is_none_or(|after| row.hash > after) && matches_resource(filter, row));
        Ok(page(rows, limit, |row| Uuid::from_bytes(row.hash.0)))
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        self.faults().reach()?;
        Ok(self.state().resources.get(&hash).map(|stored| stored.row(hash)))
    }

    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError> {
        self.faults().reach()?;
        let state = self.state();
        let rows = state.held_rows().filter(|(hash, row)| {
            filter.of.is_none_or(|of| of == *hash)
                && filter.source.as_ref().is_none_or(|source| *source == row.source)
                && after.is_none_or(|after| row.event.0 > after)
        });
        Ok(page(rows.map(|(_, row)| row), limit, |row| row.event.0))
    }

    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        self.faults().reach()?;
        Ok(self.state().fetches.get(&resource).map(super::waiting::Fetch::row))
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        self.faults().reach()?;
        let state = self.state();
        let rows = state.quarantine.values().rev().filter(|row| after.is_none_or(|after| row.id.0 < after));
        let rows = rows.map(|row| QuarantineRow { headers: None, body: None, ..row.clone() });
        Ok(page(rows, limit, |row| row.id.0))
    }

    async fn quarantined(&self, id: EventId) -> Result<Option<QuarantineRow>, StoreError> {
        self.faults().reach()?;
        Ok(self.state().quarantine.values().find(|row| row.id == id).cloned())
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.faults().reach()?;
        let state = self.state();
        let of = |verdict| match verdict {
            Verdict::Quarantined => state.quarantine.len() as i64,
            verdict => state.events.values().filter(|row| row.verdict == verdict).count() as i64,
        };
        Ok(Counts {
            events: Verdict::ALL.map(|verdict| (verdict, of(verdict))).to_vec(),
            keys: state.keys() as i64,
            resources: state.resources.len() as i64,
            held: state.held.len() as i64,
            fetches: state.fetches.values().filter(|fetch| fetch.is_open()).count() as i64,
        })
    }
}

fn without_bytes(row: &EventRow) -> EventRow {
    EventRow { headers: None, body: None, ..row.clone() }
}

fn matches_event(filter: &EventFilter, row: &EventRow) -> bool {
    let hash = |row: &EventRow| {
        let (kind, id) = row.resource.as_ref()?;
        Some(ResourceHash::of(&row.source, &row.tenant, kind, id))
    };
    filter.source.as_ref().is_none_or(|source| *source == row.source)
        && filter.verdict.is_none_or(|verdict| verdict == row.verdict)
        && filter.key.as_ref().is_none_or(|key| *key == row.key)
        && (filter.resource.is_none() || filter.resource == row.resource)
        && (filter.of.is_none() || filter.of == hash(row))
}

fn matches_resource(filter: &ResourceFilter, row: &ResourceRow) -> bool {
    filter.source.as_ref().is_none_or(|source| *source == row.source)
        && filter.kind.as_ref().is_none_or(|kind| *kind == row.kind)
        && filter.id.as_ref().is_none_or(|id| *id == row.id)
}

fn page<T>(mut rows: impl Iterator<Item = T>, limit: u32, cursor: impl Fn(&T) -> Uuid) -> Page<T> {
    let limit = limit.clamp(1, ROWS_MAX) as usize;
    let found: Vec<T> = rows.by_ref().take(limit).collect();
    let more = rows.next().is_some();
    let next = found.last().filter(|_| more).map(cursor);
    Page { rows: found, next }
}
