//! Sources: who may send, how they prove it, and what is read out of what they send.
//!
//! Owns verification, extraction, presets and signing. Promises: nothing is read beyond what verification
//! needs before the signature holds (`read` wants the `Verified` that only `verify` makes); signatures are
//! compared in constant time over the raw bytes; no input panics. Knows no store and no web server beyond
//! its header map. On failure `verify` gives a [`Refusal`], the same outside for every reason, and `read`
//! gives an `Unusable` with a stable code and a text that says what to do.

mod again;
mod batch;
mod canonical;
mod compile;
mod decode;
mod digest;
mod encoding;
pub mod explain;
mod form;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod handshake;
mod json;
mod parts;
mod pattern;
pub mod presets;
mod read;
mod recorded;
mod reference;
mod refetch;
mod refusal;
mod rules;
#[expect(clippy::module_inception, reason = "the type the module is named after")]
mod source;
pub mod spec;
mod step;
mod times;
mod verify;
mod wants;
mod watch;
mod xml;

use std::fmt;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use secrecy::SecretString;
use tidegate_actors::rules::event::{Event, Unusable};

pub use compile::ResolvedConfig;
pub(crate) use decode::json_of;
pub use encoding::UnpackFault;
pub use handshake::{Confirm, Greeted, Greeting};
pub(crate) use pattern::Patterns;
pub use refetch::{Answered, FETCHED, FetchLimits};
pub use refusal::{Reason, Refusal};
pub use source::{Signing, Source, Verified};
pub use spec::SourceSpec;
pub use verify::{Draft, KeyPort, KeyQuestion, NoKeys, SignError};
pub use watch::{Held, Sight, Tried};

/// The longest body taken when a source states nothing else.
pub const MAX_BODY_DEFAULT: usize = 256 * 1024;

/// One fault in a settings file: which key, what is wrong, and what to do. Never holds a secret's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {message}")]
pub struct Problem {
    /// Path of the key, below the source, such as `verify.signed`.
    pub key: String,
    /// What is wrong with it, and what to do.
    pub message: String,
}

impl Problem {
    /// A fault at a key.
    pub fn new(key: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { key: key.into(), message: message.to_string() }
    }
}

/// A secret as the settings resolved it.
#[derive(Clone, Debug)]
pub struct ResolvedSecret {
    /// Path of its key below the source, such as `secrets[0]`: what a [`Problem`] names.
    pub key: String,
    /// The tenant it belongs to; `None` when all tenants share it.
    pub tenant: Option<String>,
    /// The text.
    pub value: SecretString,
    /// Milliseconds since 1970 from which it no longer counts.
    pub until_ms: Option<i64>,
}

/// What came in, as received.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// The tenant the path names, if it names one.
    pub path_tenant: Option<&'a str>,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The raw body.
    pub body: &'a Bytes,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// What was read out of a verified request.
#[expect(clippy::large_enum_variant, reason = "nearly all are events, and there is one for a request")]
#[derive(Debug)]
pub enum Reading {
    /// An event.
    Event(Event),
    /// Several, in the order they stand; none at all where the array is empty.
    Batch(Vec<Item>),
    /// A handshake: nothing is kept.
    Greeting(Greeting),
    /// Authentic, and not usable.
    Unusable(Unusable),
    /// Authentic, and without a body: 400.
    Empty,
}

/// One item of a batch.
#[expect(clippy::large_enum_variant, reason = "nearly all are events")]
#[derive(Debug)]
pub enum Item {
    /// An event; its body is the item's exact bytes.
    Event(Event),
    /// An item that cannot be used; the others can.
    Unusable(Unusable),
}

/// The 2xx a sender wants in place of the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, 2xx.
    pub status: u16,
    /// A fixed body; `None`: the receipt.
    pub body: Option<(String, Bytes)>,
    /// Headers to add.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}
