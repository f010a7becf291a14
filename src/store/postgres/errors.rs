//! What an error of the database means for the batch.
//!
//! The server's own ERROR about a statement means that nothing of its transaction is stored. Everything else that
//! happens while a commit may be under way (connection gone, FATAL, timeout) means that nobody knows (I1).

use std::time::Duration;

use sqlx::postgres::{PgDatabaseError, PgSeverity};
use tidegate_actors::ports::StoreError;

/// How far the work was when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No statement was sent that commits: surely not stored.
    Open,
    /// A statement that commits was sent.
    Committing,
}

/// An error, by what is to be done about it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Rolled back because of a rival: do it again.
    Redo(String),
    /// Ends the batch.
    Ends(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Ends(error)
    }
}

/// What `error` means in `phase`.
pub(crate) fn classify(error: &sqlx::Error, phase: Phase) -> Fault {
    let text = describe(error);
    let Some(answer) = database(error) else {
        return match (phase, error) {
            // Raised before anything is sent: a value that cannot be encoded.
            (_, sqlx::Error::Encode(_)) => Fault::Ends(StoreError::Refused(text)),
            (Phase::Open, _) => Fault::Ends(StoreError::Unavailable(text)),
            (Phase::Committing, _) => Fault::Ends(StoreError::Unknown(text)),
        };
    };
    let fatal = !matches!(answer.severity(), PgSeverity::Error);
    match (answer.code(), fatal) {
        // A FATAL may also be said between the commit and its confirmation.
        (_, true) if phase == Phase::Committing => Fault::Ends(StoreError::Unknown(text)),
        ("40003", _) => Fault::Ends(StoreError::Unknown(text)),
        ("40P01" | "40001" | "55P03", false) => Fault::Redo(text),
        (code, _) if is_about_data(code) => Fault::Ends(StoreError::Refused(text)),
        _ => Fault::Ends(StoreError::Unavailable(text)),
    }
}

/// What an error of one of the user's statements is to its event: the text of a failure, or `None` where the event is
/// not to blame. A rival is met by doing all again.
pub(crate) fn of_statement(error: &sqlx::Error, within: Duration) -> Result<Option<String>, Fault> {
    let Some(answer) = database(error) else {
        return Ok(matches!(error, sqlx::Error::Encode(_)).then(|| describe(error)));
    };
    if !matches!(answer.severity(), PgSeverity::Error) {
        return Ok(None);
    }
    match answer.code() {
        "40P01" | "40001" | "55P03" => Err(Fault::Redo(describe(error))),
        "57014" => Ok(Some(format!("it took longer than {within:?}"))),
        // the server has no room, is stopped, or meets a fault of its own
        code if matches!(code.get(..2), Some("53" | "57" | "58" | "XX")) => Ok(None),
        _ => Ok(Some(describe(error))),
    }
}

/// The same for a single read, which stores nothing.
pub(crate) fn unavailable(error: &sqlx::Error) -> StoreError {
    StoreError::Unavailable(describe(error))
}

/// An error in one line. sqlx shows no URL in any of them.
pub(crate) fn describe(error: &sqlx::Error) -> String {
    match database(error) {
        Some(answer) => format!("{} (SQLSTATE {})", answer.message(), answer.code()),
        None => error.to_string(),
    }
}

fn database(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    match error {
        sqlx::Error::Database(answer) => answer.try_downcast_ref::<PgDatabaseError>(),
        _ => None,
    }
}

/// Classes 21, 22 and 23 (wrong, oversized or unfit values) and a row or field beyond the server's limits.
fn is_about_data(code: &str) -> bool {
    matches!(code.get(..2), Some("21" | "22" | "23")) || matches!(code, "54000")
}
