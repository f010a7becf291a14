//! Marks: what an arrival looks like, told apart by shape as well as by colour.
//!
//! Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart, darkened
//! for light paper where they are too pale for thin lines.

use serde::Serialize;
use tidegate_actors::sim::Arrival;

/// What an arrival looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Mark {
    Applied,
    Stale,
    Held,
    Expired,
    Duplicate,
    Ignored,
    Refused,
    Unheard,
}

impl Mark {
    pub(in super::super) const ALL: [Self; 8] = [
        Self::Applied,
        Self::Stale,
        Self::Held,
        Self::Expired,
        Self::Duplicate,
        Self::Ignored,
        Self::Refused,
        Self::Unheard,
    ];

    /// The mark of what became of an arrival in the end.
    pub(in super::super) fn of(arrival: &Arrival) -> Self {
        let word = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        match arrival.verdict.as_deref().or(arrival.answer.as_deref()).map(word).as_deref() {
            Some("applied") => Self::Applied,
            Some("stale") => Self::Stale,
            Some("held") => Self::Held,
            Some("expired") => Self::Expired,
            Some("duplicate" | "conflict") => Self::Duplicate,
            Some("ignored") => Self::Ignored,
            Some(_) => Self::Refused,
            None => Self::Unheard,
        }
    }

    pub(in super::super) const fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Stale => "stale",
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Duplicate => "duplicate",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
            Self::Unheard => "no answer",
        }
    }

    /// The class of its style, which is also how JSON names it.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Unheard => "unheard",
            other => other.word(),
        }
    }

    /// Its shape around (0, 0).
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Applied => "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
            Self::Stale => "M-4.5,-3.5H4.5L0,4.5Z",
            Self::Held => "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z",
            Self::Expired => "M0,-5.5L5.5,0L0,5.5L-5.5,0ZM-2.6,-2.6L2.6,2.6M2.6,-2.6L-2.6,2.6",
            Self::Duplicate => "M-3,-3L3,3M3,-3L-3,3",
            Self::Ignored => "M-3.5,-3.5H3.5V3.5H-3.5Z",
            Self::Refused => "M0,-4V4M-4,0H4",
            Self::Unheard => "M0,-4V4",
        }
    }
}

/// Colours for light and dark, and how each mark is drawn; for the drawing and for the page.
pub(super) const STYLE: &str = "\
:root{--paper:#ffffff;--ink:#1b1f24;--soft:#57606a;--line:#d7dce1;--band:#8a93a0;--applied:#0067a5;--stale:#b35900;\
--held:#007a5a;--expired:#a8246e;--duplicate:#6b7480;--ignored:#6b7480;--refused:#c23b00;--unheard:#9aa2ab}\
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6eaee;--soft:#a2acb6;--line:#323a43;--band:#8a93a0;\
--applied:#56b4e9;--stale:#f0a630;--held:#2cc295;--expired:#e58bc0;--duplicate:#98a2ad;--ignored:#98a2ad;\
--refused:#ff8552;--unheard:#6d7781}}\
.applied{fill:var(--applied);stroke:var(--paper);stroke-width:.8}\
.stale{fill:var(--stale);stroke:var(--paper);stroke-width:.8}\
.held{fill:var(--paper);stroke:var(--held);stroke-width:1.8}\
.expired{fill:var(--paper);stroke:var(--expired);stroke-width:1.6}\
.duplicate{fill:none;stroke:var(--duplicate);stroke-width:1.4}\
.ignored{fill:none;stroke:var(--ignored);stroke-width:1.4}\
.refused{fill:none;stroke:var(--refused);stroke-width:1.6}\
.unheard{fill:none;stroke:var(--unheard);stroke-width:1.6}\
.hold{stroke:var(--held);stroke-width:5;stroke-opacity:.38;stroke-linecap:butt;fill:none}\
.state{stroke:var(--applied);stroke-width:1.6;stroke-opacity:.5;fill:none}\
.lag{stroke:var(--applied);stroke-width:1.4;stroke-dasharray:2 2;fill:none}\
.band{fill:var(--band);fill-opacity:.16}.grid{stroke:var(--line);stroke-width:1}\
text{fill:var(--ink);font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
.soft{fill:var(--soft);font-size:11px}.small{fill:var(--soft);font-size:10px}\
.title{font-size:17px;font-weight:600}.name{font-weight:600}";
