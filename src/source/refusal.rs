//! Why a request is refused before anything of it is kept: one answer outside, a stable label inside.

use std::fmt;

/// Why a request does not count as its sender's. Outside all of them look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No source of this name.
    UnknownSource,
    /// No tenant of this name, or a tenant where none belongs.
    UnknownTenant,
    /// A header the signature depends on came twice: two readers may see two values.
    DuplicateHeader,
    /// No signature.
    MissingSignature,
    /// No id where the scheme signs one.
    MissingId,
    /// No time where the scheme signs one.
    MissingTimestamp,
    /// A header the scheme signs is not there.
    MissingHeader,
    /// The signature header is not laid out as the scheme says, is too long, or holds too many signatures.
    MalformedSignature,
    /// Signatures, but none of a version this source accepts.
    UnsupportedVersion,
    /// The id cannot be part of signed text.
    MalformedId,
    /// The time is not a time in the scheme's unit.
    MalformedTimestamp,
    /// A part of the body that the scheme reads is not there, or is not what it should be.
    MalformedBody,
    /// The signature covers less than the source asks for.
    InsufficientCoverage,
    /// The address of the key is not one that this source's keys come from.
    UntrustedKeyUrl,
    /// The key's owner knows no key of this id.
    UnknownKey,
    /// The key has to be fetched first, and was not yet: our own trouble, not the sender's.
    KeyMissing,
    /// No live secret made any of the signatures.
    WrongSignature,
    /// The signature holds for a hash that is not this body's.
    BodyHashMismatch,
    /// The signature holds, and its time is too long ago.
    OutsideWindowPast,
    /// The signature holds, and its time lies too far ahead.
    OutsideWindowFuture,
}

impl Reason {
    /// Every reason, for metrics.
    pub const ALL: [Self; 20] = [
        Self::UnknownSource,
        Self::UnknownTenant,
        Self::DuplicateHeader,
        Self::MissingSignature,
        Self::MissingId,
        Self::MissingTimestamp,
        Self::MissingHeader,
        Self::MalformedSignature,
        Self::UnsupportedVersion,
        Self::MalformedId,
        Self::MalformedTimestamp,
        Self::MalformedBody,
        Self::InsufficientCoverage,
        Self::UntrustedKeyUrl,
        Self::UnknownKey,
        Self::KeyMissing,
        Self::WrongSignature,
        Self::BodyHashMismatch,
        Self::OutsideWindowPast,
        Self::OutsideWindowFuture,
    ];

    /// A stable label for metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::UnknownSource => "unknown-source",
            Self::UnknownTenant => "unknown-tenant",
            Self::DuplicateHeader => "duplicate-header",
            Self::MissingSignature => "missing-signature",
            Self::MissingId => "missing-id",
            Self::MissingTimestamp => "missing-timestamp",
            Self::MissingHeader => "missing-header",
            Self::MalformedSignature => "malformed-signature",
            Self::UnsupportedVersion => "unsupported-version",
            Self::MalformedId => "malformed-id",
            Self::MalformedTimestamp => "malformed-timestamp",
            Self::MalformedBody => "malformed-body",
            Self::InsufficientCoverage => "insufficient-coverage",
            Self::UntrustedKeyUrl => "untrusted-key-url",
            Self::UnknownKey => "unknown-key",
            Self::KeyMissing => "key-missing",
            Self::WrongSignature => "wrong-signature",
            Self::BodyHashMismatch => "body-hash-mismatch",
            Self::OutsideWindowPast => "outside-window-past",
            Self::OutsideWindowFuture => "outside-window-future",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {reason}")]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
}

impl Refusal {
    /// The signature holds and only the time is off: if this node's own clock is in doubt, that is 503 and
    /// not 401 (I13).
    #[must_use]
    pub const fn only_window(&self) -> bool {
        matches!(self.reason, Reason::OutsideWindowPast | Reason::OutsideWindowFuture)
    }

    /// The key has to be fetched before this request can be judged; while it cannot be, that is 503 and not 401.
    #[must_use]
    pub const fn wants_key(&self) -> bool {
        matches!(self.reason, Reason::KeyMissing)
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason }
    }
}
