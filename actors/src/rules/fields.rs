//! States put together from partial updates: each member of the state object keeps the version that set it,
//! so partial updates may come in any order. `null` is a value; a member left out is untouched.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::order::Tie;
use super::version::Version;

/// The most members a resource may have.
pub const MEMBERS_MAX: usize = 1_000;

/// The members one event sets: name and exact JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(pub Vec<(String, String)>);

/// One member of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    #[serde(rename = "version", skip_serializing_if = "Option::is_none", default)]
    set_by: Option<Version>,
    /// JSON text, as it came.
    value: String,
}

/// The members of a resource's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    members: BTreeMap<String, Member>,
    /// The newest delete: what is not above it stays away.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    floor: Option<Version>,
}

/// What a partial update did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It set at least one member, or deleted.
    Changed {
        /// Some member had the same version, and the tie rule let it be set.
        tie: bool,
    },
    /// Every member of it is older than what is there.
    Unchanged {
        /// Some member had the same version.
        tie: bool,
    },
    /// The resource would have more than [`MEMBERS_MAX`] members. Nothing changed.
    TooMany,
}

impl Fields {
    /// Sets the members that this version may set.
    pub fn merge(&mut self, patch: &Patch, version: Option<&Version>, tie_rule: Tie) -> Merged {
        if version.is_some() && self.floor.as_ref() > version {
            return Merged::Unchanged { tie: false };
        }
        let new = |name: &&(String, String)| !self.members.contains_key(&name.0);
        if self.members.len() + patch.0.iter().filter(new).count() > MEMBERS_MAX {
            return Merged::TooMany;
        }
        let (mut changed, mut tie) = (patch.0.is_empty() && self.members.is_empty(), false);
        for (name, value) in &patch.0 {
            let before = self.members.get(name).map(|member| member.set_by.as_ref());
            let (sets, equal) = match (before, version) {
                (Some(Some(before)), Some(version)) => {
                    (version > before || (version == before && tie_rule == Tie::Apply), version == before)
                }
                _ => (true, false),
            };
            tie |= equal;
            if sets {
                let set_by = version.or(before.flatten()).cloned();
                self.members.insert(name.clone(), Member { set_by, value: value.clone() });
                changed = true;
            }
        }
        if changed { Merged::Changed { tie } } else { Merged::Unchanged { tie } }
    }

    /// Removes the members that are not above this version, and keeps older updates away. Without a version
    /// everything goes.
    pub fn delete(&mut self, version: Option<&Version>) -> Merged {
        let Some(version) = version else {
            self.members.clear();
            return Merged::Changed { tie: false };
        };
        if self.floor.as_ref() >= Some(version) {
            return Merged::Unchanged { tie: self.floor.as_ref() == Some(version) };
        }
        self.members.retain(|_, member| member.set_by.as_ref() > Some(version));
        self.floor = Some(version.clone());
        Merged::Changed { tie: false }
    }

    /// Nothing is left of the state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A new epoch: versions start again, the members stay until they are set again.
    pub fn begin_epoch(&mut self) {
        self.floor = None;
        for member in self.members.values_mut() {
            member.set_by = None;
        }
    }

    /// The state as one JSON object, members by name, values as they came.
    #[must_use]
    pub fn document(&self) -> String {
        let mut text = String::from("{");
        for (place, (name, member)) in self.members.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(&member.value);
        }
        text.push('}');
        text
    }

    /// What the store keeps.
    #[must_use]
    pub fn stored(&self) -> String {
        // a map of texts: there is nothing in it that could fail
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Read back from the store.
    pub fn from_stored(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the stored fields of a resource cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(number: u32) -> Version {
        Version::integer(&number.to_string()).expect("a version")
    }

    fn patch(members: &[(&str, &str)]) -> Patch {
        Patch(members.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn left_out_is_not_null_and_older_is_not_useless() {
        let mut fields = Fields::default();
        fields.merge(&patch(&[("plan", "\"pro\""), ("seats", "3")]), Some(&version(1)), Tie::Keep);
        fields.merge(&patch(&[("plan", "null")]), Some(&version(3)), Tie::Keep);
        let late = fields.merge(&patch(&[("seats", "5")]), Some(&version(2)), Tie::Keep);
        assert_eq!(late, Merged::Changed { tie: false });
        assert_eq!(fields.document(), r#"{"plan":null,"seats":5}"#);
        assert_eq!(Fields::from_stored(&fields.stored()), Ok(fields));
    }

    #[test]
    fn a_late_delete_takes_only_what_is_older() {
        let mut fields = Fields::default();
        fields.merge(&patch(&[("a", "1"), ("b", "1")]), Some(&version(1)), Tie::Keep);
        fields.merge(&patch(&[("a", "5")]), Some(&version(5)), Tie::Keep);
        assert_eq!(fields.delete(Some(&version(3))), Merged::Changed { tie: false });
        assert_eq!(fields.document(), r#"{"a":5}"#);
        let late = fields.merge(&patch(&[("b", "2")]), Some(&version(2)), Tie::Keep);
        assert_eq!(late, Merged::Unchanged { tie: false });
    }

    #[test]
    fn members_are_bounded() {
        let mut fields = Fields::default();
        let many = Patch((0..MEMBERS_MAX).map(|n| (n.to_string(), "1".to_owned())).collect());
        assert_eq!(fields.merge(&many, None, Tie::Keep), Merged::Changed { tie: false });
        assert_eq!(fields.merge(&patch(&[("one more", "1")]), None, Tie::Keep), Merged::TooMany);
        assert_eq!(fields.merge(&patch(&[("7", "2")]), None, Tie::Keep), Merged::Changed { tie: false });
    }

    proptest! {
        #[test]
        fn any_order_of_partial_updates_and_deletes_ends_in_one_state(
            updates in proptest::collection::vec((proptest::option::weighted(0.8, proptest::collection::vec(0_u8..4, 0..4)), 0_u8..9), 1..8),
            seed in any::<u64>(),
        ) {
            let run = |order: &[usize]| {
                let mut fields = Fields::default();
                for &place in order {
                    let version = version(place as u32 + 1);
                    match &updates[place].0 {
                        None => { fields.delete(Some(&version)); }
                        Some(names) => {
                            let members = names.iter().map(|name| (name.to_string(), updates[place].1.to_string()));
                            fields.merge(&Patch(members.collect()), Some(&version), Tie::Keep);
                        }
                    }
                }
                fields
            };
            let sorted: Vec<usize> = (0..updates.len()).collect();
            let mut shuffled = sorted.clone();
            shuffled.sort_by_key(|&place| (place as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            prop_assert_eq!(run(&sorted), run(&shuffled));
        }
    }
}
