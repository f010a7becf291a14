//! What SQLite's result codes mean to the engine.
//!
//! Promises: nothing is called unavailable that may have been stored, and no fault of the disk is blamed on
//! the data. A fault also says whether the connection can go on.

use tidegate_actors::ports::StoreError;
use tidegate_actors::rules::judge::Unjudged;

const ERROR: u32 = 1;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const INTERRUPT: u32 = 9;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const TOOBIG: u32 = 18;
const CONSTRAINT: u32 = 19;
const MISMATCH: u32 = 20;
const RANGE: u32 = 25;
const NOTADB: u32 = 26;

/// A failure, and what it does to the connection it came from.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    /// The connection must not be used again.
    pub(super) dead: bool,
    /// The disk failed: what is in the write-ahead log may not be on it, though it reads back well.
    pub(super) disk: bool,
}

impl Fault {
    /// A failure before COMMIT was asked for: nothing is stored.
    pub(super) fn before_commit(doing: &str, error: &sqlx::Error) -> Self {
        let code = primary_code(error);
        let text = describe(doing, code, error);
        let refused = matches!(code, Some(TOOBIG | CONSTRAINT | MISMATCH)) || matches!(error, sqlx::Error::Encode(_));
        let error = if refused { StoreError::Refused(text) } else { StoreError::Unavailable(text) };
        // a full disk may heal, and busy passes; what else broke is not worth trusting
        let dead = !refused && !matches!(code, Some(BUSY | LOCKED | FULL | INTERRUPT));
        Self { error, dead, disk: code == Some(IOERR) }
    }

    /// A failure of COMMIT itself. Only "busy" leaves the transaction open and surely not stored: after a
    /// failed write or sync, the frames may be in the log, and a recovery may find them.
    pub(super) fn at_commit(error: &sqlx::Error) -> Self {
        let code = primary_code(error);
        let text = describe("commit", code, error);
        if matches!(code, Some(BUSY | LOCKED)) {
            return Self { error: StoreError::Unavailable(text), dead: false, disk: false };
        }
        if code == Some(CONSTRAINT) {
            // one of the user's tables, checked as late as it could be: the transaction is still open
            return Self { error: StoreError::Refused(text), dead: false, disk: false };
        }
        Self { error: StoreError::Unknown(text), dead: true, disk: true }
    }

    /// The rules refuse the batch: nothing is stored, and the connection is as good as before.
    pub(super) fn unjudged(unjudged: Unjudged) -> Self {
        Self { error: unjudged.into(), dead: false, disk: false }
    }

    /// Something in the database is not what this program writes.
    pub(super) fn odd(text: String) -> Self {
        Self { error: StoreError::Unavailable(text), dead: true, disk: false }
    }
}

/// Who is to blame for an error of one of the user's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The statement, or what it was given.
    Statement,
    /// It took too long; SQLite has rolled the transaction back.
    TooLong,
    /// The disk, the file or the connection.
    Store,
}

/// Who that is.
pub(super) fn blame(error: &sqlx::Error) -> Blame {
    match primary_code(error) {
        Some(ERROR | TOOBIG | CONSTRAINT | MISMATCH | RANGE) => Blame::Statement,
        Some(INTERRUPT) => Blame::TooLong,
        None if matches!(error, sqlx::Error::Encode(_)) => Blame::Statement,
        _ => Blame::Store,
    }
}

/// The error of a read, or of anything that needs no COMMIT.
pub(super) fn unavailable(doing: &str, error: &sqlx::Error) -> StoreError {
    StoreError::Unavailable(describe(doing, primary_code(error), error))
}

fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let extended: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

fn describe(doing: &str, code: Option<u32>, error: &sqlx::Error) -> String {
    let hint = match code {
        Some(BUSY | LOCKED) => "; something else holds the database's write lock: stop it, such as a shell or a backup",
        Some(READONLY) => "; the database file, its folder or its file system is read-only: make it writable",
        Some(INTERRUPT) => "; it took too long: narrow it down or ask for fewer rows",
        Some(IOERR) => "; the disk failed: look at the system's log before going on",
        Some(CORRUPT | NOTADB) => {
            "; the file is damaged or no database: restore it from a backup, or set `store.url` to another file"
        }
        Some(FULL) => "; free some space or move `store.url` to a larger disk",
        Some(CANTOPEN) => "; see that the folder exists and this user may write to it",
        _ => "",
    };
    format!("cannot {doing}: {error}{hint}")
}
