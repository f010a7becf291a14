//! `[[effect]]` as it is written down.

use serde::Deserialize;

/// An effect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectSpec {
    /// Of which events.
    #[serde(default)]
    pub on: OnSpec,
    /// What makes the tables it writes to, run at each start.
    #[serde(default, deserialize_with = "one_or_more")]
    pub setup: Vec<String>,
    /// What is run: one statement, or several one behind the other.
    #[serde(deserialize_with = "one_or_more")]
    pub sql: Vec<String>,
}

/// Which events; what is left out matches all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnSpec {
    /// Names of sources.
    #[serde(default, deserialize_with = "some_or_more")]
    pub source: Option<Vec<String>>,
    /// Patterns of event types, such as `customer.*`.
    #[serde(default, deserialize_with = "some_or_more")]
    pub types: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn one_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = match OneOrMore::deserialize(deserializer) {
        Ok(OneOrMore::One(text)) => vec![text],
        Ok(OneOrMore::More(texts)) => texts,
        Err(_) => return Err(serde::de::Error::custom("must be a text or a list of texts")),
    };
    if texts.is_empty() { Err(serde::de::Error::custom("must not be an empty list")) } else { Ok(texts) }
}

fn some_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    one_or_more(deserializer).map(Some)
}
