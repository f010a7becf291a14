//! One request with several events: each is taken as an event of its own, and answered together.
//!
//! Promises that the 2xx is written only when every item is durable, in the log or in quarantine (I1); that
//! items go in in the order they stand; and that one bad item costs its neighbours nothing (I14). At most
//! [`UNDER_WAY`] items of one request are in the engine at once, and no more than its smallest mailbox holds, so a
//! large batch pushes nobody out and a small engine takes it too.
//! When one item is not taken, the rest is not sent on and the answer is 503: the retry finds what is durable
//! as duplicates and goes on behind it.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use tidegate_actors::rules::event::{Event, EventId, Receipt, Unusable};
use tidegate_actors::{Permit, Refused};
use tokio::time::{Instant, timeout_at};

use super::figures::{BatchTaken, ItemsQuarantined};
use super::public::{Edge, Entrance};
use crate::source::Item;
use crate::telemetry::emit;

/// Items of one request in the engine at once: no more than wait for one resource by default.
const UNDER_WAY: usize = 64;

/// What became of one item.
pub(super) enum Taken {
    /// It went in.
    Receipt(Receipt),
    /// It is kept in quarantine.
    Quarantined { id: EventId, code: &'static str },
}

/// Takes all items in, or says why the sender is to come again. What was taken by then is durable.
pub(super) async fn take(
    edge: &Edge,
    entrance: &Entrance,
    items: Vec<Item>,
    mut permit: Permit,
) -> Result<Vec<Taken>, Refused> {
    let until = Instant::now() + edge.gate.answer_within;
    let count = items.len();
    let at_once = UNDER_WAY.min(edge.gate.engine.at_once());
    // the permit of the whole body is held to the end: each item holds on to the whole buffer
    let under_way = stream::iter(items).map(|item| one(edge, item, &mut permit)).buffered(at_once);
    let taken: Vec<Taken> = timeout_at(until, under_way.try_collect()).await.unwrap_or(Err(Refused::TooLate))?;
    emit(BatchTaken { figures: &edge.gate.figures, items: count });
    for item in &taken {
        if let Taken::Receipt(receipt) = item {
            entrance.figures.answered(receipt);
        }
    }
    let mut bad = taken.iter().filter_map(|item| match item {
        Taken::Quarantined { id, code } => Some((*id, *code)),
        Taken::Receipt(_) => None,
    });
    if let Some((id, code)) = bad.next() {
        emit(ItemsQuarantined { figures: &entrance.figures, code, id, count: bad.count() + 1 });
    }
    Ok(taken)
}

/// Hands one item over at once; the future only waits.
fn one<'e>(edge: &'e Edge, item: Item, permit: &mut Permit) -> impl Future<Output = Result<Taken, Refused>> + use<'e> {
    match item {
        Item::Event(event) => {
            let (spare, room) = (Spare::of(&event), permit.split(0));
            let taken = edge.ingress.take(event, permit.split(0));
            async move {
                match taken.await {
                    // it would be refused for ever, and its neighbours with it
                    Err(Refused::Rejected(why)) => quarantined(edge, spare.unusable(&why), room).await,
                    answered => answered.map(Taken::Receipt),
                }
            }
            .left_future()
        }
        Item::Unusable(unusable) => quarantined(edge, unusable, permit.split(0)).right_future(),
    }
}

fn quarantined(
    edge: &Edge,
    unusable: Unusable,
    permit: Permit,
) -> impl Future<Output = Result<Taken, Refused>> + use<'_> {
    let code = unusable.code;
    let kept = edge.ingress.quarantine(unusable, permit);
    async move { kept.await.map(|id| Taken::Quarantined { id, code }) }
}

/// What of an event is needed to keep it in quarantine, should the store refuse it.
struct Spare(Unusable);

impl Spare {
    fn of(event: &Event) -> Self {
        Self(Unusable {
            id: event.id,
            received_at_ms: event.received_at_ms,
            source: event.source.clone(),
            tenant: event.tenant.clone(),
            code: "store-rejected",
            reason: String::new(),
            digest: event.digest,
            headers: event.headers.clone(),
            body: Bytes::clone(&event.body),
        })
    }

    fn unusable(self, why: &str) -> Unusable {
        Unusable { reason: format!("the store refuses this event of a batch: {why}"), ..self.0 }
    }
}
