//! What the gate would answer, in the words of its own documents.

use crate::http::problem::{self, Document};
use crate::source::explain::End;
use crate::source::spec::OnUnusable;
use crate::source::{Reason, Source};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The code of its document, or a word for what is done.
    pub(super) code: String,
    /// More of it.
    pub(super) says: String,
}

impl Answer {
    pub(super) fn new(status: u16, code: impl Into<String>, says: impl Into<String>) -> Self {
        Self { status, code: code.into(), says: says.into() }
    }

    pub(super) fn document(document: &Document) -> Self {
        Self::new(document.status, document.code, "nothing is kept")
    }

    pub(super) const fn is_good(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// What a request that ends so is answered.
    pub(super) fn of(end: &End, source: &Source) -> Self {
        let good = source.answer().status;
        match end {
            End::Encoding => Self::document(&problem::ENCODING_UNSUPPORTED),
            End::TooLarge => Self::document(&problem::TOO_LARGE),
            End::Refused(Reason::KeyMissing) => Self::document(&problem::KEY_UNAVAILABLE),
            End::NotUnpacked | End::Refused(_) => Self::document(&problem::UNAUTHORIZED),
            End::ContentType => Self::document(&problem::CONTENT_TYPE_UNSUPPORTED),
            End::Empty => Self::document(&problem::BODY_EMPTY),
            End::Greeted(status) => Self::new(*status, "handshake", "nothing is kept"),
            End::GreetingRefused(status, word) => Self::new(*status, *word, "nothing is kept"),
            End::Probe => Self::new(200, "probe", "nothing is kept"),
            End::Event => Self::new(good, "event", "once it is durable, with its verdict: a repeat is one too"),
            End::Batch { items: 0, .. } => Self::new(good, "batch", "there is nothing to keep"),
            End::Batch { unusable: 0, .. } => Self::new(good, "batch", "once all of its items are durable"),
            End::Batch { unusable, .. } => {
                Self::new(good, "batch", format!("once all are durable, {unusable} of them in quarantine"))
            }
            End::Unusable(code) => match source.on_unusable() {
                OnUnusable::Accept => Self::new(202, *code, "it is kept in quarantine"),
                OnUnusable::Refuse => Self::new(422, *code, "it is kept in quarantine"),
            },
        }
    }
}
