//! What a person does with a request in quarantine, over the admin listener: runs it again, or gives it up.
//!
//! Promises that a request leaves quarantine only after what became of it is durable, so that a crash in between
//! ends in a duplicate and never in a loss; that it is judged by the settings of now under the time it came
//! first; and that what is given up is told in the log with its reason. Knows nothing of the store's tables.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use tidegate_actors::Refused;
use tidegate_actors::ports::{QuarantineRow, StoreError};
use tidegate_actors::rules::event::EventId;
use tracing::{info, warn};
use uuid::Uuid;

use super::admin::AdminParts;
use super::batch::{self, Taken};
use super::operate::asked;
use super::problem::{self, Document};
use super::public::{Edge, Entrance};
use crate::source::{Reading, Source};
use crate::telemetry::{Happening, emit};

/// The path of [`retry`].
pub(crate) const RETRY: &str = "/api/quarantine/retry";
/// The path of [`give_up`].
pub(crate) const DROP: &str = "/api/quarantine/drop";
/// The longest reason.
const REASON_BYTES_MAX: usize = 512;

/// A request by its name.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) id: String,
    /// Why it is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// What became of a request that was run again.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Retried {
    /// A verdict, `batch`, `dropped`, `handshake`, or `quarantined` where it still cannot be used.
    pub(crate) status: String,
    /// Of a batch: how many items went in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<usize>,
    /// Where it still cannot be used: the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// The same for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Named {
    fn id(&self) -> Result<EventId, &'static Document> {
        self.id.parse::<Uuid>().map(EventId).map_err(|_| &problem::NOT_A_REQUEST)
    }
}

impl Retried {
    fn said(status: &str) -> Self {
        Self { status: status.to_owned(), items: None, code: None, reason: None }
    }
}

/// `POST /api/quarantine/retry`
pub(super) async fn retry(
    parts: Data<AdminParts>,
    edge: Data<Edge>,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let done = async {
        let named: Named = asked(&request, payload, &problem::NOT_A_REQUEST).await?;
        let row = parts.reader.quarantined(named.id()?).await.map_err(|error| store(&error))?;
        let row = row.ok_or(&problem::NOT_IN_QUARANTINE)?;
        let entrance = edge.gate.entrance(&row.source);
        let source = entrance.source.as_ref().ok_or(&problem::SOURCE_GONE)?;
        run_again(&edge, entrance, source, &row).await
    };
    done.await.map_or_else(Document::answer, |retried: Retried| HttpResponse::Ok().json(retried))
}

async fn run_again(
    edge: &Edge,
    entrance: &Entrance,
    source: &Source,
    row: &QuarantineRow,
) -> Result<Retried, &'static Document> {
    let clock = &*edge.gate.clock;
    let permit = edge.ingress.reserve(row.body.as_ref().map_or(0, Vec::len)).map_err(|refused| engine(&refused))?;
    let retried = match source.read_again(row, &|| clock.event_id()) {
        Reading::Event(event) => {
            let receipt = edge.ingress.take(event, permit).await.map_err(|refused| engine(&refused))?;
            entrance.figures.answered(&receipt);
            Retried::said(receipt.verdict.word())
        }
        Reading::Batch(items) => {
            let taken = batch::take(edge, entrance, items, permit).await.map_err(|refused| engine(&refused))?;
            let went_in = taken.iter().filter(|item| matches!(item, Taken::Receipt(_))).count();
            Retried { items: Some(went_in), ..Retried::said("batch") }
        }
        Reading::Greeting(_) => Retried::said("handshake"),
        Reading::Unusable(unusable) => {
            let (code, reason) = (Some(unusable.code.to_owned()), Some(unusable.reason));
            return Ok(Retried { code, reason, ..Retried::said("quarantined") });
        }
        Reading::Empty => return Err(&problem::BODY_EMPTY),
    };
    let engine = &edge.gate.engine;
    engine.discharge(row.id).await.map_err(|error| store(&error))?;
    emit(RunAgain { row, status: &retried.status });
    Ok(retried)
}

/// `POST /api/quarantine/drop`
pub(super) async fn give_up(parts: Data<AdminParts>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let done = async {
        let named: Named = asked(&request, payload, &problem::NOT_A_REQUEST).await?;
        let reason = named.reason.as_deref().map(str::trim).unwrap_or_default();
        if reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.chars().any(char::is_control) {
            return Err(&problem::NOT_A_REQUEST);
        }
        let row = parts.reader.quarantined(named.id()?).await.map_err(|error| store(&error))?;
        let row = row.ok_or(&problem::NOT_IN_QUARANTINE)?;
        if !parts.gate.engine.discharge(row.id).await.map_err(|error| store(&error))? {
            return Err(&problem::NOT_IN_QUARANTINE);
        }
        emit(GivenUp { row: &row, reason });
        Ok(Retried::said("dropped"))
    };
    done.await.map_or_else(Document::answer, |retried: Retried| HttpResponse::Ok().json(retried))
}

fn store(error: &StoreError) -> &'static Document {
    match error {
        StoreError::Unknown(_) => &problem::COMMIT_UNKNOWN,
        _ => &problem::STORE_UNAVAILABLE,
    }
}

fn engine(refused: &Refused) -> &'static Document {
    match refused {
        Refused::Overloaded => &problem::OVERLOADED,
        Refused::Draining => &problem::DRAINING,
        Refused::Unavailable(_) => &problem::STORE_UNAVAILABLE,
        Refused::Unknown(_) => &problem::COMMIT_UNKNOWN,
        Refused::TooLate => &problem::TOO_LATE,
        Refused::EffectFailed => &problem::EFFECT_FAILED,
        Refused::Rejected(_) => &problem::REJECTED,
    }
}

/// A person ran a request again, and it left quarantine.
struct RunAgain<'a> {
    row: &'a QuarantineRow,
    status: &'a str,
}

impl Happening for RunAgain<'_> {
    fn emit(self) {
        let QuarantineRow { id, source, code, .. } = self.row;
        info!(%id, source, code, status = self.status, "a request was run again and left quarantine");
    }
}

/// A person gave a request up; its bytes are gone.
struct GivenUp<'a> {
    row: &'a QuarantineRow,
    reason: &'a str,
}

impl Happening for GivenUp<'_> {
    fn emit(self) {
        let QuarantineRow { id, source, tenant, code, times, .. } = self.row;
        let bytes = self.row.body.as_ref().map_or(0, Vec::len);
        warn!(%id, source, tenant, code, times, bytes, reason = self.reason, "a request in quarantine was given up");
    }
}
