//! The settings from outside: defaults, layers, and every problem at once.

mod defaults;
mod effects;
mod layers;
mod order;
mod problems;
mod secrets;
mod tenants;

use std::io::Write as _;

use tidegate::config::{Config, Environment, Problem};

/// An environment of these variables.
fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Loads a file with this text.
fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("the settings written");
    Config::load(Some(file.path()), &environment(variables))
}

/// What is wrong with a file of this text, a line a problem, with its path shortened to `FILE`.
fn problems(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("the settings written");
    let path = file.path().display().to_string();
    match Config::load(Some(file.path()), &environment(variables)) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.to_string().replace(&path, "FILE")).collect(),
    }
}
