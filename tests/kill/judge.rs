//! Holds the rows against what the senders were told.

use std::collections::{BTreeMap, HashMap};

use crate::senders::{Ledger, RESOURCES};
use crate::support::fault::Outsider;

/// The newest version seen of each resource; none may go back.
#[derive(Default)]
pub(crate) struct Watch(HashMap<String, u64>);

impl Watch {
    /// Looks at the rows once more.
    pub(crate) fn look(&mut self, outsider: &mut Outsider) {
        for (resource, version) in stored_versions(outsider) {
            let before = self.0.insert(resource.clone(), version).unwrap_or(0);
            assert!(version >= before, "{resource} went back from {before} to {version}");
        }
    }
}

fn stored_versions(outsider: &mut Outsider) -> BTreeMap<String, u64> {
    let rows = outsider.texts("SELECT id || ' ' || version_text FROM resources");
    rows.iter()
        .map(|row| {
            let (id, version) = row.split_once(' ').expect("two texts");
            (id.to_owned(), version.parse().expect("a version"))
        })
        .collect()
}

/// Nothing answered 2xx is lost (I1), nothing took effect twice (I3), versions are the newest (I5).
pub(crate) fn judge(ledger: &Ledger, outsider: &mut Outsider) {
    let answered = ledger.answered.lock().expect("answers");
    let mut kept: HashMap<String, u64> = HashMap::new();
    for key in outsider.texts("SELECT key FROM events WHERE conflicts_with IS NULL") {
        *kept.entry(key).or_default() += 1;
    }
    for key in answered.keys() {
        assert_eq!(kept.get(key), Some(&1), "{key} was answered 2xx, and is recorded once");
    }
    assert_eq!(kept.len(), answered.len(), "every delivery was repeated until it was answered");
    assert_eq!(outsider.number("SELECT count(*) FROM events WHERE conflicts_with IS NOT NULL"), 0);

    let mut newest: HashMap<u64, u64> = HashMap::new();
    for &(resource, version) in answered.values() {
        let known = newest.entry(resource).or_default();
        *known = version.max(*known);
    }
    let stored = stored_versions(outsider);
    for resource in 0..RESOURCES {
        assert_eq!(stored.get(&format!("r{resource}")), newest.get(&resource), "r{resource} is at its newest version");
    }
    let applied = outsider.number("SELECT CAST(sum(applied) AS bigint) FROM resources");
    let recorded = outsider.number("SELECT count(*) FROM events WHERE verdict = 'applied'");
    assert_eq!(applied, recorded, "as many effects as events recorded as applied");
}
