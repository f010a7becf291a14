//! One node in one of its lives: the real engine over wrapped ports, and the requests it serves.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use prometheus_client::registry::Registry;

use super::backend::Opened;
use super::cache::{Shared, SimCache};
use super::clock::NodeClock;
use super::plan::Gate;
use super::prepared::Prepared;
use super::provider::SimFetcher;
use super::scenario::Span;
use super::senders::Heard;
use super::store::{Ground, SimStore};
use crate::admission::Refused;
use crate::engine::{Engine, EngineSettings, Ports};
use crate::ingress::Ingress;
use crate::ports::Clock;
use crate::rules::event::{Event, EventId, Receipt, Unusable, Verdict};
use crate::rules::lookup::LookupMode;

/// Events of one request that go through the engine at once.
const AT_ONCE: usize = 60;

/// Between two parts of one request.
const MOMENT: Duration = Duration::from_millis(1);

/// A running node.
pub(super) struct Node {
    pub(super) ground: Arc<Ground>,
    pub(super) engine: Engine,
    pub(super) clock: Arc<NodeClock>,
    ingress: Rc<Ingress>,
    _registry: Registry,
}

/// What stands between an engine and its ports, and between it and those it answers: nothing, but in tests of
/// the checker.
pub(super) trait Wrapping {
    /// The ports as the engine gets them.
    fn ports(&self, ports: Ports) -> Ports {
        ports
    }

    /// The answer as its sender gets it.
    fn answer(&self, _id: EventId, answer: Result<Receipt, Refused>) -> Result<Receipt, Refused> {
        answer
    }
}

/// Nothing stands between.
pub(super) struct Plain;

impl Wrapping for Plain {}

/// What a node is started with.
pub(super) struct Start<'a> {
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) ground: Ground,
    pub(super) opened: Opened,
    pub(super) cache: Arc<Shared>,
    pub(super) clock: NodeClock,
    pub(super) takes_real_time: bool,
    pub(super) wrapping: &'a dyn Wrapping,
}

impl Node {
    /// Starts the engine inside the present life.
    pub(super) fn start(start: Start<'_>) -> Self {
        let Start { prepared, ground, opened, cache, clock, takes_real_time, wrapping } = start;
        let (ground, clock, gate) = (Arc::new(ground), Arc::new(clock), &prepared.plan.gate);
        let store = SimStore {
            ground: Arc::clone(&ground),
            opened,
            takes_real_time,
            commit_ms: Span::new(gate.commit_ms.0, gate.commit_ms.1),
            seed: prepared.plan.seed,
        };
        let cache = SimCache { ground: Arc::clone(&ground), shared: cache };
        let of_engine: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let fetcher =
            SimFetcher { ground: Arc::clone(&ground), prepared: Arc::clone(prepared), clock: Arc::clone(&of_engine) };
        let ports =
            Ports { store: Arc::new(store), cache: Arc::new(cache), clock: of_engine, fetcher: Arc::new(fetcher) };
        let mut registry = Registry::default();
        let engine = Engine::start(settings(gate), wrapping.ports(ports), &mut registry);
        let ingress = Rc::new(engine.ingress());
        Self { ground, engine, clock, ingress, _registry: registry }
    }

    /// From now on it does and hears nothing more.
    pub(super) fn kill(&self) {
        self.ground.alive.store(false, Ordering::Relaxed);
    }

    /// Takes the events of one request; ends when all of them are answered. A killed node never answers.
    pub(super) fn serve(
        &self,
        prepared: &Prepared,
        events: &[u32],
        copy: bool,
    ) -> impl Future<Output = Answers> + use<> {
        let (ground, ingress) = (Arc::clone(&self.ground), Rc::clone(&self.ingress));
        if copy {
            ground.ledger.see("sent again unasked");
        }
        let events: Vec<(Event, bool)> = events
            .iter()
            .map(|&index| {
                let id = self.clock.event_id();
                ground.ledger.arrived(index, id, ground.node);
                (prepared.deliver(index, id, self.clock.now_ms()), prepared.planned(index).unusable)
            })
            .collect();
        // what would fill tiny bounds by itself goes one by one
        let at_once = if prepared.plan.gate.tight.is_some() { 1 } else { AT_ONCE };
        async move {
            let ids: Vec<_> = events.iter().map(|(event, _)| event.id).collect();
            let mut answers = Vec::with_capacity(ids.len());
            let mut events = events.into_iter();
            while answers.len() < ids.len() {
                if !answers.is_empty() {
                    // between an answer and the next event lies a moment, in which the actors end their work
                    tokio::time::sleep(MOMENT).await;
                }
                answers.extend(
                    join_all(events.by_ref().take(at_once).map(|(event, unusable)| take(&ingress, event, unusable)))
                        .await,
                );
            }
            ground.lives().await;
            ids.into_iter().zip(answers).collect()
        }
    }
}

async fn take(ingress: &Ingress, event: Event, unusable: bool) -> Result<Receipt, Refused> {
    let permit = ingress.reserve(event.body.len())?;
    if !unusable {
        return ingress.take(event, permit).await;
    }
    let item = Unusable {
        id: event.id,
        received_at_ms: event.received_at_ms,
        source: event.source,
        tenant: event.tenant,
        code: "key-blank",
        reason: "the key is blank".to_owned(),
        digest: event.digest,
        headers: event.headers,
        body: event.body,
    };
    let id = ingress.quarantine(item, permit).await?;
    Ok(Receipt { verdict: Verdict::Quarantined, id, tie: false, conflict: false })
}

/// What a request was answered, event by event.
pub(super) type Answers = Vec<(EventId, Result<Receipt, Refused>)>;

/// What the sender makes of the answers to its request.
pub(super) fn heard(answers: &Answers) -> Heard {
    if answers.iter().all(|(_, answer)| answer.is_ok()) {
        Heard::Well
    } else if answers.iter().any(|(_, answer)| matches!(answer, Err(Refused::Rejected(_)))) {
        Heard::Rejected
    } else {
        Heard::Badly
    }
}

/// The engine's own settings, on one thread, with tiny bounds where the plan says so.
fn settings(gate: &Gate) -> EngineSettings {
    let mut settings = EngineSettings {
        own_arbiters: false,
        shards: gate.shards as usize,
        answer_within: Duration::from_millis(gate.answer_within_ms),
        lookup: if gate.lookups { LookupMode::Always } else { LookupMode::Auto },
        resource_idle: Duration::from_secs(2),
        fetch_lease: Duration::from_secs(5),
        fetch_pause_min: Duration::from_millis(200),
        fetch_pause_max: Duration::from_secs(5),
        ..EngineSettings::default()
    };
    let Some(tight) = gate.tight else { return settings };
    let tight = tight as usize;
    for size in [
        &mut settings.ingress_mailbox,
        &mut settings.dedup_mailbox,
        &mut settings.dedup_waiting,
        &mut settings.ordering_mailbox,
        &mut settings.resource_mailbox,
        &mut settings.resource_waiting,
        &mut settings.writer_mailbox,
        &mut settings.writer_waiting,
        &mut settings.batch_events,
        &mut settings.lookup_batch,
        &mut settings.facts_waiting,
        &mut settings.live_resources,
    ] {
        *size = tight;
    }
    settings.in_flight_events = tight * 6;
    settings.recent_keys = tight * 4;
    settings
}

/// The ground of a node that lives.
pub(super) const fn alive() -> AtomicBool {
    AtomicBool::new(true)
}
