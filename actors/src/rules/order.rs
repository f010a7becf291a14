//! The policies of order: what a policy means is said here and nowhere else. Stores either call
//! [`decide_resource`] or must agree with it; the store suite runs both over the same events.

use super::version::Version;

/// How events of a resource are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// What is newer than the stored version applies, what is older is stale.
    Newest {
        /// What becomes of an event whose version equals the stored one.
        tie: Tie,
    },
    /// Every event applies, in the order it came. The stored version still never goes back (I5).
    Arrival,
}

/// What becomes of an event whose version equals the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tie {
    /// It applies: the default for times, whose ties are two happenings.
    Apply,
    /// The stored state stays: the default for integers, whose ties are repeats.
    Keep,
}

/// What the rule says of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It becomes the resource's state.
    Apply {
        /// Its version equalled the stored one.
        tie: bool,
    },
    /// It is recorded and changes nothing.
    Stale {
        /// Its version equalled the stored one.
        tie: bool,
    },
}

/// One event of a resource, as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The event's policy.
    pub policy: Policy,
    /// The event's version, if it has one.
    pub version: Option<&'a Version>,
}

/// Decides about one event against the stored version.
#[must_use]
pub fn decide(stored: Option<&Version>, event: Candidate<'_>) -> Decision {
    let (Policy::Newest { tie }, Some(stored), Some(version)) = (event.policy, stored, event.version) else {
        return Decision::Apply { tie: false };
    };
    match version.cmp(stored) {
        std::cmp::Ordering::Greater => Decision::Apply { tie: false },
        std::cmp::Ordering::Less => Decision::Stale { tie: false },
        std::cmp::Ordering::Equal if tie == Tie::Apply => Decision::Apply { tie: true },
        std::cmp::Ordering::Equal => Decision::Stale { tie: true },
    }
}

/// What became of a resource in a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Decided<'a> {
    /// One decision for each event, in the order the events were given.
    pub decisions: Vec<Decision>,
    /// Index of the event whose body is the state now; `None` when none applied.
    pub state: Option<usize>,
    /// The stored version afterwards; never below the one before.
    pub version: Option<&'a Version>,
}

/// Decides about all events of one resource in a batch, given in the order they came. They are taken in
/// version order (equal versions in the order they came, those without a version last), so that
/// reordering inside a batch heals.
#[must_use]
pub fn decide_resource<'a>(stored: Option<&'a Version>, events: &[Candidate<'a>]) -> Decided<'a> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&index| (events[index].version.is_none(), events[index].version));

    let mut decisions = vec![Decision::Stale { tie: false }; events.len()];
    let mut state = None;
    let mut version = stored;
    for index in order {
        let event = events[index];
        decisions[index] = decide(version, event);
        if matches!(decisions[index], Decision::Apply { .. }) {
            state = Some(index);
            version = version.max(event.version);
        }
    }
    Decided { decisions, state, version }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const APPLY: Policy = Policy::Newest { tie: Tie::Apply };
    const KEEP: Policy = Policy::Newest { tie: Tie::Keep };

    fn version(number: u32) -> Version {
        Version::integer(&number.to_string()).expect("a version")
    }

    fn run(stored: Option<u32>, policy: Policy, numbers: &[Option<u32>]) -> (Vec<Decision>, Option<usize>) {
        let stored = stored.map(version);
        let versions: Vec<_> = numbers.iter().map(|number| number.map(version)).collect();
        let events: Vec<_> = versions.iter().map(|version| Candidate { policy, version: version.as_ref() }).collect();
        let decided = decide_resource(stored.as_ref(), &events);
        (decided.decisions, decided.state)
    }

    #[test]
    fn newer_applies_older_is_stale() {
        let (decisions, state) = run(Some(5), KEEP, &[Some(4), Some(6)]);
        assert_eq!(decisions, [Decision::Stale { tie: false }, Decision::Apply { tie: false }]);
        assert_eq!(state, Some(1));
    }

    #[test]
    fn a_tie_is_decided_by_its_rule_and_said() {
        assert_eq!(run(Some(5), KEEP, &[Some(5)]).0, [Decision::Stale { tie: true }]);
        assert_eq!(run(Some(5), APPLY, &[Some(5)]).0, [Decision::Apply { tie: true }]);
    }

    #[test]
    fn reordering_inside_a_batch_heals() {
        let (decisions, state) = run(None, KEEP, &[Some(3), Some(1), Some(2)]);
        assert_eq!(decisions, [Decision::Apply { tie: false }; 3]);
        assert_eq!(state, Some(0));
    }

    #[test]
    fn equal_versions_in_a_batch_are_taken_in_the_order_they_came() {
        assert_eq!(run(None, APPLY, &[Some(1), Some(1)]).1, Some(1));
        assert_eq!(run(None, KEEP, &[Some(1), Some(1)]).1, Some(0));
    }

    #[test]
    fn an_event_without_a_version_applies_and_leaves_the_stored_version() {
        let stored = version(7);
        let events = [Candidate { policy: KEEP, version: None }];
        let decided = decide_resource(Some(&stored), &events);
        assert_eq!(decided.state, Some(0));
        assert_eq!(decided.version, Some(&stored));
    }

    proptest! {
        #[test]
        fn the_stored_version_never_goes_back(
            stored in proptest::option::of(0u32..8),
            numbers in proptest::collection::vec(proptest::option::of(0u32..8), 0..12),
            arrival in any::<bool>(),
        ) {
            let stored = stored.map(version);
            let versions: Vec<_> = numbers.iter().map(|number| number.map(version)).collect();
            let policy = if arrival { Policy::Arrival } else { KEEP };
            let events: Vec<_> = versions.iter().map(|version| Candidate { policy, version: version.as_ref() }).collect();
            let decided = decide_resource(stored.as_ref(), &events);
            prop_assert!(decided.version >= stored.as_ref());
        }

        #[test]
        fn any_split_into_batches_ends_in_the_newest(
            numbers in proptest::collection::vec(0u32..20, 1..16),
            cut in 0usize..16,
        ) {
            let versions: Vec<_> = numbers.iter().copied().map(version).collect();
            let events: Vec<_> = versions.iter().map(|version| Candidate { policy: KEEP, version: Some(version) }).collect();
            let (first, second) = events.split_at(cut.min(events.len()));
            let between = decide_resource(None, first).version;
            let split = decide_resource(between, second).version;
            prop_assert_eq!(split, decide_resource(None, &events).version);
            prop_assert_eq!(split, versions.iter().max());
        }
    }
}
