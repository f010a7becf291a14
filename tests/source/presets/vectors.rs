//! The published and computed vectors of a scheme, under the preset as it is.

use tidegate::source::{Source, SourceSpec};

use super::super::common::{secret, try_source};
use super::super::stated::Entry;
use super::super::vectors::vector::{self, Vector};
use super::Wrong;

/// The vectors of these schemes.
pub(crate) fn of_schemes(schemes: &[String]) -> impl Iterator<Item = Vector> {
    // hex in capitals is refused only by a source that states so
    let ours = |vector: &Vector| vector.policy.as_deref() != Some("strict-lower-hex");
    vector::all().into_iter().filter(move |vector| schemes.contains(&vector.scheme) && ours(vector))
}

/// The preset as the vector's receiver has set it up: public address, settings and window.
pub(crate) fn settings_of(entry: &Entry, vector: &Vector) -> toml::Table {
    let mut own: toml::Table = entry.own.parse().expect("settings");
    own.insert("preset".to_owned(), entry.name.as_str().into());
    own.insert("allow_weak_secret".to_owned(), true.into());
    let mut verify = own.remove("verify").map_or_else(toml::Table::new, |verify| verify.try_into().expect("a table"));
    if verify.contains_key("origin") {
        verify.insert("origin".to_owned(), vector.origin().into());
    }
    if let Some(window) = vector.tolerance.filter(|window| i64::try_from(*window).ok() != entry.window) {
        verify.insert("window".to_owned(), format!("{window}s").into());
    }
    if let Some(config) = vector.cfg.as_object().filter(|_| own.contains_key("config")) {
        let text = |value: &serde_json::Value| toml::Value::from(value.as_str().expect("a text"));
        let config: toml::Table = config.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        own.insert("config".to_owned(), config.into());
    }
    if !verify.is_empty() {
        own.insert("verify".to_owned(), verify.into());
    }
    own
}

/// The same with the secrets.
pub(super) fn source_of(entry: &Entry, vector: &Vector) -> Source {
    let mut own = settings_of(entry, vector);
    // some handshakes know of no secret, and some bring it
    let own_secret = || vec![if vector.secret.is_empty() { entry.secret() } else { vector.secret.clone() }];
    let texts = vector.secrets.clone().unwrap_or_else(own_secret);
    let secrets: Vec<_> = if entry.fetched { Vec::new() } else { texts.iter().map(|text| secret(text)).collect() };
    if vector.secret.is_empty() && learns(&own) {
        let setup: toml::Table = "secret_to = '/nowhere/secret'".parse().expect("TOML");
        own.insert("setup".to_owned(), setup.into());
    }
    try_source(&own.to_string(), &secrets)
        .unwrap_or_else(|problems| panic!("{} for {}: {problems:?}", entry.name, vector.id))
}

/// Whether a handshake of this source brings its secret.
fn learns(settings: &toml::Table) -> bool {
    let spec: SourceSpec = settings.clone().try_into().expect("settings");
    let spec = spec.with_preset().expect("a preset");
    spec.handshake.iter().flatten().any(|handshake| handshake.learn.is_some())
}

#[test]
fn every_vector_of_its_scheme_is_taken_or_refused_by_the_preset() {
    let mut wrong = Wrong::default();
    for entry in Entry::all() {
        let mut judged = 0;
        for vector in of_schemes(&entry.vectors) {
            judged += 1;
            let found = vector.taken().verdict(&source_of(&entry, &vector), &vector.key());
            if found.is_ok() != (vector.expect == "valid") {
                wrong.add(&entry, format!("{}: {found:?} in place of {}", vector.id, vector.expect));
            }
        }
        if judged == 0 && !entry.vectors.is_empty() {
            wrong.add(&entry, "no vector of its scheme");
        }
    }
    wrong.none();
}
