//! A small model of what each policy promises, made from what was claimed and in which order. It knows
//! nothing of the engine's rules: it says which state must be there in the end, and which verdicts were right.

use super::ledger::Claim;
use super::policy::{PolicyChoice, TieChoice};
use super::prepared::Prepared;
use crate::ports::Outcome;
use crate::rules::event::EventId;

/// An event that was taken, as one resource sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken<'a> {
    pub(super) claim: &'a Claim,
    /// Its version for this resource, as bytes that compare.
    pub(super) version: Option<&'a [u8]>,
    /// The resource is its first.
    pub(super) first: bool,
    pub(super) deletes: bool,
}

/// What must be stored of a resource in the end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) version: Option<Vec<u8>>,
    /// The event whose body is the state.
    pub(super) event: Option<EventId>,
    pub(super) deleted: bool,
}

/// Everything that was taken for a resource, in the order of its commits.
pub(super) fn taken<'a>(prepared: &'a Prepared, claims: &'a [Claim], resource: u32) -> Vec<Taken<'a>> {
    let of = |claim: &'a Claim| {
        let planned = prepared.planned(claim.event);
        if planned.ignored {
            return None;
        }
        let place = planned.guards.iter().position(|guard| guard.resource == resource)?;
        let version = prepared.template(claim.event).guards[place].version.as_ref();
        let version = version.map(crate::rules::version::Version::bytes);
        Some(Taken { claim, version, first: place == 0, deletes: planned.deletes })
    };
    claims.iter().filter_map(of).collect()
}

/// What must be stored after these, under a policy where all of them were decided as they came.
pub(super) fn expected(policy: &PolicyChoice, taken: &[Taken<'_>]) -> Expected {
    let newest = taken.iter().filter_map(|taken| taken.version).max();
    let state = match policy {
        PolicyChoice::Arrival { .. } => last_come(taken),
        PolicyChoice::Newest { tie, .. } => {
            let mut tied = taken.iter().filter(|taken| taken.version == newest);
            match tie {
                TieChoice::Keep => tied.next(),
                TieChoice::Apply => tied.next_back(),
            }
        }
        _ => taken.iter().find(|taken| taken.version == newest),
    };
    Expected {
        version: newest.map(<[u8]>::to_vec),
        event: state.map(|taken| taken.claim.first),
        deleted: state.is_some_and(|taken| taken.deletes),
    }
}

/// The last of the last commit; within a commit events are taken in version order, those without one last.
fn last_come<'a, 'b>(taken: &'b [Taken<'a>]) -> Option<&'b Taken<'a>> {
    let last = taken.last()?.claim.batch;
    let together = taken.iter().filter(|taken| taken.claim.batch == last);
    together.max_by_key(|taken| (taken.version.is_none(), taken.version))
}

/// Verdicts that cannot be right under `newest`, in words: older over newer, and newer called stale.
pub(super) fn wrong_verdicts(taken: &[Taken<'_>]) -> Vec<(u32, String)> {
    let mut wrong = Vec::new();
    for (place, one) in taken.iter().enumerate().filter(|(_, one)| one.first) {
        let Some(version) = one.version else { continue };
        let before = || taken[..place].iter().filter(|other| other.claim.batch < one.claim.batch);
        let newer_before = before().filter_map(|other| other.version).any(|other| other > version);
        let no_older = || {
            let together = taken.iter().filter(|other| other.claim.batch <= one.claim.batch);
            together.filter(|other| other.claim.first != one.claim.first).filter_map(|other| other.version)
        };
        match one.claim.outcome {
            Outcome::Applied { .. } if newer_before => {
                wrong.push((one.claim.event, "was applied over a newer version".to_owned()));
            }
            Outcome::Stale { .. } if no_older().all(|other| other < version) => {
                wrong.push((one.claim.event, "was called stale and is newer than all before it".to_owned()));
            }
            _ => {}
        }
    }
    wrong
}
