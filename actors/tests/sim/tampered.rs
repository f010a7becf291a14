//! A store whose reader says what is not so: what is asked at the end must find it out.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_actors::ports::{
    Clock, Counts, EventFilter, EventRow, FetchRow, HeldFilter, HeldRow, Page, QuarantineRow, Reader, ResourceFilter,
    ResourceRow, StoreError,
};
use tidegate_actors::rules::event::{EventId, Verdict};
use tidegate_actors::rules::key::ResourceHash;
use tidegate_actors::sim::{Backend, MemoryBackend, Opened, Place, RunOptions, Scenario, generate, run};
use uuid::Uuid;

/// What the reader changes.
#[derive(Clone, Copy, Debug)]
enum Tamper {
    Nothing,
    /// One row is gone.
    Loses,
    /// One row is there under two names.
    Doubles,
    /// One row has other bytes.
    Changes,
    /// One row has another verdict.
    Recasts,
    /// One event more is counted.
    Miscounts,
    /// Each resource is in the state of another event.
    Mistakes,
}

struct Tampering(Tamper);

struct TamperedPlace(Box<dyn Place>, Tamper);

struct Tampered(Arc<dyn Reader>, Tamper);

impl Backend for Tampering {
    fn fresh(&self, clock: Arc<dyn Clock>) -> Result<Box<dyn Place>, StoreError> {
        Ok(Box::new(TamperedPlace(MemoryBackend.fresh(clock)?, self.0)))
    }
}

#[async_trait(?Send)]
impl Place for TamperedPlace {
    async fn open(&self) -> Result<Opened, StoreError> {
        let Opened { store, reader } = self.0.open().await?;
        Ok(Opened { store, reader: Arc::new(Tampered(reader, self.1)) })
    }
}

#[async_trait(?Send)]
impl Reader for Tampered {
    async fn events(
        &self,
        filter: &EventFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<EventRow>, StoreError> {
        let mut page = self.0.events(filter, after, limit).await?;
        let place = page.rows.iter().position(|row| row.verdict == Verdict::Applied).unwrap_or(0);
        match self.1 {
            Tamper::Loses => drop(page.rows.remove(place)),
            Tamper::Doubles => page.rows.push(EventRow { id: page.rows[place + 1].id, ..page.rows[place].clone() }),
            Tamper::Recasts => page.rows[place].verdict = Verdict::Stale,
            _ => {}
        }
        Ok(page)
    }

    async fn event(&self, id: EventId) -> Result<Option<EventRow>, StoreError> {
        let mut row = self.0.event(id).await?;
        if let (Tamper::Changes, Some(row)) = (self.1, &mut row) {
            row.body = row.body.take().map(|body| [body.as_slice(), b"!"].concat());
        }
        Ok(row)
    }

    async fn resources(
        &self,
        filter: &ResourceFilter,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Page<ResourceRow>, StoreError> {
        let mut page = self.0.resources(filter, after, limit).await?;
        if matches!(self.1, Tamper::Mistakes) {
            page.rows.iter_mut().for_each(|row| row.event = Some(EventId(Uuid::nil())));
        }
        Ok(page)
    }

    async fn resource(&self, hash: ResourceHash) -> Result<Option<ResourceRow>, StoreError> {
        self.0.resource(hash).await
    }

    async fn held(&self, filter: &HeldFilter, after: Option<Uuid>, limit: u32) -> Result<Page<HeldRow>, StoreError> {
        self.0.held(filter, after, limit).await
    }

    async fn fetch(&self, resource: ResourceHash) -> Result<Option<FetchRow>, StoreError> {
        self.0.fetch(resource).await
    }

    async fn quarantine(&self, after: Option<Uuid>, limit: u32) -> Result<Page<QuarantineRow>, StoreError> {
        self.0.quarantine(after, limit).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let mut counts = self.0.counts().await?;
        if matches!(self.1, Tamper::Miscounts) {
            counts.events[0].1 += 1;
        }
        Ok(counts)
    }
}

#[test]
fn what_is_asked_at_the_end_finds_what_is_not_so() {
    let plan = generate(&Scenario::default(), 5);
    let broken = |tamper| {
        let run = run(&plan, &Tampering(tamper), &RunOptions::default());
        run.violations.into_iter().map(|violation| violation.invariant).collect::<Vec<_>>()
    };
    assert!(broken(Tamper::Nothing).is_empty());
    let wanted = [
        (Tamper::Loses, "I4"),
        (Tamper::Doubles, "I3"),
        (Tamper::Changes, "I2"),
        (Tamper::Recasts, "I4"),
        (Tamper::Miscounts, "I16"),
        (Tamper::Mistakes, "I17"),
    ];
    for (tamper, promise) in wanted {
        let broken = broken(tamper);
        assert!(broken.iter().any(|found| found == promise), "{tamper:?} must break {promise}: {broken:?}");
    }
}
