//! What the public listener counts, and the things that happen there.
//!
//! Owns one bundle of figures per source, made once at start so that counting an answer is a few atomic
//! adds. Promises that labels are bounded: source names from the configuration, reasons from the code,
//! never a byte that a sender chose. A log line about refusals is written at most once in ten seconds per
//! source, with the number of those it stands for. Cannot fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tidegate_actors::Refused;
use tidegate_actors::rules::event::{EventId, Receipt, Verdict};
use tracing::{debug, error, warn};

use crate::telemetry::Happening;

/// Refusals of one source are logged at most this often.
const REFUSAL_LOG_EVERY_MS: u64 = 10_000;
/// The label of requests to sources that do not exist.
pub(super) const UNKNOWN: &str = "(unknown)";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: Arc<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVerdict {
    source: Arc<String>,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    source: Arc<String>,
    reason: &'static str,
}

/// Every source's figures.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    verdicts: Family<OfVerdict, Counter>,
    ties: Family<OfSource, Counter>,
    conflicts: Family<OfSource, Counter>,
    handshakes: Family<OfSource, Counter>,
    refusals: Family<OfReason, Counter>,
    seconds: Family<OfSource, Histogram, fn() -> Histogram>,
    body_bytes: Family<OfSource, Counter>,
    batches: Histogram,
    panics: Counter,
}

impl Figures {
    /// Registers them.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            verdicts: Family::default(),
            ties: Family::default(),
            conflicts: Family::default(),
            handshakes: Family::default(),
            refusals: Family::default(),
            seconds: Family::new_with_constructor(answer_buckets),
            body_bytes: Family::default(),
            batches: Histogram::new([0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]),
            panics: Counter::default(),
        };
        let http = registry.sub_registry_with_prefix("tidegate_http");
        http.register("verdicts", "Events answered, by verdict", figures.verdicts.clone());
        http.register("ties", "Events whose version equalled the stored one", figures.ties.clone());
        http.register("conflicts", "Duplicates whose bytes differ from the first", figures.conflicts.clone());
        http.register("handshakes", "Handshakes answered, of which nothing is kept", figures.handshakes.clone());
        http.register("refusals", "Requests refused, by reason", figures.refusals.clone());
        http.register("answer_seconds", "From the request's head to its verdict", figures.seconds.clone());
        http.register("body_bytes", "Bytes of bodies read", figures.body_bytes.clone());
        http.register("batch_items", "Events in one request of a source with batches", figures.batches.clone());
        http.register("handler_panics", "Requests answered 500 for a fault in this program", figures.panics.clone());
        figures
    }

    /// The figures of one source.
    pub(super) fn of(&self, source: &str) -> SourceFigures {
        let source = Arc::new(source.to_owned());
        let of_source = OfSource { source: Arc::clone(&source) };
        let verdict = |verdict: Verdict| {
            self.verdicts.get_or_create_owned(&OfVerdict { source: Arc::clone(&source), verdict: verdict.word() })
        };
        SourceFigures {
            verdicts: Verdict::ALL.map(verdict),
            ties: self.ties.get_or_create_owned(&of_source),
            conflicts: self.conflicts.get_or_create_owned(&of_source),
            handshakes: self.handshakes.get_or_create_owned(&of_source),
            seconds: self.seconds.get_or_create_owned(&of_source),
            body_bytes: self.body_bytes.get_or_create_owned(&of_source),
            refusals: self.refusals.clone(),
            refusals_unlogged: AtomicU64::new(0),
            refusal_logged_at_ms: AtomicU64::new(0),
            source,
        }
    }

    /// Counts a caught panic.
    pub(super) fn panicked(&self) -> HandlerPanicked<'_> {
        HandlerPanicked(&self.panics)
    }
}

fn answer_buckets() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0])
}

/// One source's figures: handles, no look-up.
#[derive(Debug)]
pub(super) struct SourceFigures {
    source: Arc<String>,
    verdicts: [Counter; Verdict::ALL.len()],
    ties: Counter,
    conflicts: Counter,
    /// How many handshakes were answered.
    pub(super) handshakes: Counter,
    /// How long answers take.
    pub(super) seconds: Histogram,
    /// How much was read.
    pub(super) body_bytes: Counter,
    refusals: Family<OfReason, Counter>,
    refusals_unlogged: AtomicU64,
    refusal_logged_at_ms: AtomicU64,
}

impl SourceFigures {
    /// Counts a verdict.
    pub(super) fn answered(&self, receipt: &Receipt) {
        self.verdict(receipt.verdict);
        if receipt.tie {
            self.ties.inc();
        }
        if receipt.conflict {
            self.conflicts.inc();
        }
    }

    fn verdict(&self, verdict: Verdict) {
        if let Some(counter) = self.verdicts.get(verdict as usize) {
            counter.inc();
        }
    }

    /// The number of refusals to tell of now, if it is time for a line; their count starts again.
    fn refusals_to_log(&self, now_ms: u64) -> Option<u64> {
        self.refusals_unlogged.fetch_add(1, Ordering::Relaxed);
        let logged_at_ms = self.refusal_logged_at_ms.load(Ordering::Relaxed);
        if logged_at_ms != 0 && now_ms < logged_at_ms.saturating_add(REFUSAL_LOG_EVERY_MS) {
            return None;
        }
        self.refusal_logged_at_ms
            .compare_exchange(logged_at_ms, now_ms.max(1), Ordering::Relaxed, Ordering::Relaxed)
            .ok()
            .map(|_| self.refusals_unlogged.swap(0, Ordering::Relaxed))
    }
}

/// A request was refused before anything was kept.
#[derive(Debug)]
pub(super) struct RequestRefused<'a> {
    /// Whose.
    pub(super) figures: &'a SourceFigures,
    /// Stable label of the reason; the sender may be told less.
    pub(super) reason: &'static str,
    /// Milliseconds since this process started to serve.
    pub(super) now_ms: u64,
}

impl Happening for RequestRefused<'_> {
    fn emit(self) {
        let Self { figures, reason, now_ms } = self;
        figures.refusals.get_or_create(&OfReason { source: Arc::clone(&figures.source), reason }).inc();
        let source = figures.source.as_str();
        match figures.refusals_to_log(now_ms) {
            Some(count) => warn!(source, reason, count, "requests refused; the reason is that of the last one"),
            None => debug!(source, reason, "request refused"),
        }
    }
}

/// The engine did not take an event; its sender was told to send again.
#[derive(Debug)]
pub(super) struct EventNotTaken<'a> {
    /// Whose.
    pub(super) figures: &'a SourceFigures,
    /// Stable label.
    pub(super) reason: &'static str,
    /// What the engine said.
    pub(super) refused: &'a Refused,
    /// Milliseconds since this process started to serve.
    pub(super) now_ms: u64,
}

impl Happening for EventNotTaken<'_> {
    fn emit(self) {
        let Self { figures, reason, refused, now_ms } = self;
        figures.refusals.get_or_create(&OfReason { source: Arc::clone(&figures.source), reason }).inc();
        let source = figures.source.as_str();
        if matches!(refused, Refused::Rejected(_)) {
            error!(source, reason, %refused, "an event was refused by the store");
            return;
        }
        match figures.refusals_to_log(now_ms) {
            Some(count) => {
                warn!(source, reason, %refused, count, "events not taken; the reason is that of the last one");
            }
            None => debug!(source, reason, %refused, "event not taken"),
        }
    }
}

/// An authentic request was kept in quarantine.
#[derive(Debug)]
pub(super) struct EventQuarantined<'a> {
    /// Whose.
    pub(super) figures: &'a SourceFigures,
    /// Stable code of what is missing.
    pub(super) code: &'static str,
    /// Where it is kept.
    pub(super) id: EventId,
}

impl Happening for EventQuarantined<'_> {
    fn emit(self) {
        self.figures.verdict(Verdict::Quarantined);
        let source = self.figures.source.as_str();
        warn!(source, code = self.code, id = %self.id, "an authentic request cannot be used and is kept in quarantine");
    }
}

/// Every event of a batch is durable.
#[derive(Debug)]
pub(super) struct BatchTaken<'a> {
    /// Of all sources.
    pub(super) figures: &'a Figures,
    /// How many events it had.
    pub(super) items: usize,
}

impl Happening for BatchTaken<'_> {
    fn emit(self) {
        // a count far below what a float holds exactly
        self.figures.batches.observe(u32::try_from(self.items).map_or(f64::INFINITY, f64::from));
    }
}

/// Items of a batch were kept in quarantine; its other items went in.
#[derive(Debug)]
pub(super) struct ItemsQuarantined<'a> {
    /// Whose.
    pub(super) figures: &'a SourceFigures,
    /// Stable code of what the first of them lacks.
    pub(super) code: &'static str,
    /// Where that one is kept.
    pub(super) id: EventId,
    /// How many.
    pub(super) count: usize,
}

impl Happening for ItemsQuarantined<'_> {
    fn emit(self) {
        let Self { figures, code, id, count } = self;
        for _ in 0..count {
            figures.verdict(Verdict::Quarantined);
        }
        let source = figures.source.as_str();
        warn!(source, code, %id, count, "items of a batch cannot be used and are kept in quarantine; code and id are those of the first");
    }
}

/// A handler panicked; its sender got a 500 and the process lives.
#[derive(Debug)]
pub(super) struct HandlerPanicked<'a>(&'a Counter);

impl Happening for HandlerPanicked<'_> {
    fn emit(self) {
        self.0.inc();
        error!("a request met a fault in this program; the panic message above says where");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_logged_once_in_ten_seconds_with_their_number() {
        let figures = Figures::new(&mut Registry::default()).of("s");
        assert_eq!(figures.refusals_to_log(5), Some(1));
        assert_eq!(figures.refusals_to_log(6), None);
        assert_eq!(figures.refusals_to_log(10_004), None);
        assert_eq!(figures.refusals_to_log(10_005), Some(3));
    }

    #[test]
    fn a_verdict_is_counted_under_its_word() {
        let mut registry = Registry::default();
        let figures = Figures::new(&mut registry).of("s");
        let receipt = Receipt { verdict: Verdict::Stale, id: EventId(uuid::Uuid::nil()), tie: true, conflict: false };
        figures.answered(&receipt);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        assert!(text.contains(r#"tidegate_http_verdicts_total{source="s",verdict="stale"} 1"#), "{text}");
        assert!(text.contains(r#"tidegate_http_ties_total{source="s"} 1"#), "{text}");
    }
}
