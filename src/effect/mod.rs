//! Effects: what an applied event does to the user's own tables, in the transaction of its key.
//!
//! Owns the settings of effects and the reading of their SQL. Promises that a statement knows nothing but named
//! parameters, is one statement, and neither ends the transaction it runs in nor writes to the tables of the gate.
//! Knows no database: stores prepare and run what is described here. What is wrong is said with its place.

mod failure;
mod lex;
mod parameter;
mod spec;
mod statement;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use failure::{Pardon, pardon};
pub use parameter::{Parameter, checked_json, instant};
pub use spec::{EffectSpec, OnSpec};
pub use statement::{Dialect, Statement};

use crate::source::{Patterns, Problem};

/// The most effects there may be.
pub const EFFECTS_MAX: usize = 1_000;

/// All effects of the settings, for one kind of database.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    all: Vec<Effect>,
    /// Which of them may want events of a source.
    by_source: HashMap<Arc<str>, Vec<usize>>,
    /// Those that name no source.
    of_any: Vec<usize>,
    /// The longest one statement may take.
    pub statement_within: Duration,
}

/// One effect.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// Where it stands in the settings.
    pub key: String,
    /// What makes its tables, run at each start.
    pub setup: Vec<String>,
    /// What is run, one behind the other.
    pub statements: Vec<Statement>,
    types: Option<Patterns>,
}

impl Effects {
    /// Compiles what the settings say; on failure, everything that is wrong with it.
    pub fn compile(
        specs: &[(String, EffectSpec)],
        dialect: Dialect,
        statement_within: Duration,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut effects = Self { statement_within, ..Self::default() };
        for (index, (key, spec)) in specs.iter().enumerate() {
            let mut told = |list: &[String], name: &str, number: usize, why: String| {
                let place = if list.len() == 1 { name.to_owned() } else { format!("{name}[{number}]") };
                problems.push(Problem::new(format!("{key}.{place}"), why));
            };
            let mut effect =
                Effect { types: spec.on.types.as_deref().map(Patterns::new), key: key.clone(), ..Effect::default() };
            for (number, text) in spec.setup.iter().enumerate() {
                match statement::read_setup(text, dialect) {
                    Ok(setup) => effect.setup.push(setup),
                    Err(why) => told(&spec.setup, "setup", number, why),
                }
            }
            for (number, text) in spec.sql.iter().enumerate() {
                match Statement::read(text, dialect) {
                    Ok(statement) => effect.statements.push(statement),
                    Err(why) => told(&spec.sql, "sql", number, why),
                }
            }
            match &spec.on.source {
                None => effects.of_any.push(index),
                Some(names) => {
                    for name in names {
                        effects.by_source.entry(Arc::from(name.as_str())).or_default().push(index);
                    }
                }
            }
            effects.all.push(effect);
        }
        if problems.is_empty() { Ok(effects) } else { Err(problems) }
    }

    /// The sources that effects name, each with the effect's place.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let places = self.by_source.iter().flat_map(|(name, places)| places.iter().map(move |place| (place, name)));
        places.map(|(&place, name)| (self.all[place].key.as_str(), &**name))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, in the order of the settings.
    #[must_use]
    pub fn all(&self) -> &[Effect] {
        &self.all
    }

    /// The effects of an event, in the order of the settings.
    pub fn of(&self, source: &str, kind: &str) -> impl Iterator<Item = &Effect> {
        let named = self.by_source.get(source).map_or(&[][..], Vec::as_slice);
        let mut places: Vec<usize> = named.iter().chain(&self.of_any).copied().collect();
        places.sort_unstable();
        places.into_iter().map(|place| &self.all[place]).filter(move |effect| effect.wants(kind))
    }

    /// Whether an event has effects.
    #[must_use]
    pub fn want(&self, source: &str, kind: &str) -> bool {
        let named = self.by_source.get(source).map_or(&[][..], Vec::as_slice);
        named.iter().chain(&self.of_any).any(|&place| self.all[place].wants(kind))
    }
}

impl Effect {
    fn wants(&self, kind: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.matches(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(toml: &str) -> Effects {
        #[derive(serde::Deserialize)]
        struct Settings {
            effect: Vec<EffectSpec>,
        }
        let settings: Settings = toml::from_str(toml).expect("TOML");
        let named = settings.effect.into_iter().enumerate().map(|(index, spec)| (format!("effect[{index}]"), spec));
        Effects::compile(&named.collect::<Vec<_>>(), Dialect::Sqlite, Duration::from_secs(1)).expect("effects")
    }

    #[test]
    fn an_event_has_the_effects_of_its_source_and_type_in_the_order_they_were_written() {
        let effects = effects(
            "[[effect]]\non = { types = ['*.deleted'] }\nsql = 'DELETE FROM a WHERE id = :resource'\n\
             [[effect]]\non = { source = 'shop', types = ['order.*'] }\nsql = 'DELETE FROM b WHERE id = :resource'\n\
             [[effect]]\non = { source = ['shop', 'bank'] }\nsql = 'DELETE FROM c WHERE id = :resource'\n",
        );
        let of = |source: &str, kind: &str| -> Vec<&str> {
            effects.of(source, kind).map(|effect| effect.key.as_str()).collect()
        };
        assert_eq!(of("shop", "order.deleted"), ["effect[0]", "effect[1]", "effect[2]"]);
        assert_eq!(of("bank", "order.created"), ["effect[2]"]);
        assert_eq!(of("mail", "order.deleted"), ["effect[0]"]);
        assert!(of("mail", "order.created").is_empty());
        assert!(effects.want("mail", "x.deleted") && !effects.want("mail", "x.created"));
    }
}
