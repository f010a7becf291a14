//! Reads typed settings out of the layers, and gathers every problem on the way.
//!
//! A value that is wrong is reported and replaced by its default, so that reading goes on and the next
//! problem is found too.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use secrecy::SecretString;
use toml::Value;

use super::Problem;
use super::layers::{Layers, Origin};
use super::redact;
use super::secret::{Environment, SecretRef};
use super::units::{self, DURATION_FORM, RATE_FORM, SIZE_FORM, ShowDuration, ShowSize};

/// A reader of one configuration.
pub(crate) struct Reader<'a> {
    layers: &'a Layers,
    pub(crate) environment: &'a Environment,
    pub(crate) problems: Vec<Problem>,
    /// Every key asked for: the test that each documented setting is read.
    pub(crate) asked: BTreeSet<String>,
}

/// How a value that was refused may be shown.
#[derive(Clone, Copy)]
enum Shown {
    Plain,
    Url,
    Hidden,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(layers: &'a Layers, environment: &'a Environment) -> Self {
        Self { layers, environment, problems: Vec::new(), asked: BTreeSet::new() }
    }

    pub(crate) fn problem(&mut self, key: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(key, message.into()));
    }

    /// A list of tables, as it stands.
    pub(crate) fn list(&self, key: &str) -> Option<&'a Value> {
        self.layers.value(key)
    }

    /// Where a setting came from, for a problem's text: empty for a default.
    pub(crate) fn origin(&self, key: &str) -> String {
        self.layers.origin(key).map_or_else(String::new, |origin| format!(" (in {origin})"))
    }

    pub(crate) fn text(&mut self, key: &str) -> String {
        self.take(key, Shown::Plain, &"a text", |value| value.as_str().map(str::to_owned))
    }

    /// A text that is shown only without user and password.
    pub(crate) fn url(&mut self, key: &str, schemes: &'static [&'static str]) -> String {
        let form = format!("a URL that starts with {}", either(schemes.iter().copied()));
        self.take(key, Shown::Url, &form, |value| {
            let text = value.as_str()?;
            let fits = schemes.iter().any(|scheme| text.starts_with(scheme) && text.len() > scheme.len());
            (fits || (text.is_empty() && schemes.contains(&""))).then(|| text.to_owned())
        })
    }

    pub(crate) fn address(&mut self, key: &str) -> SocketAddr {
        let form = "an IP address with a port, such as \"127.0.0.1:8080\" or \"[::]:8080\"";
        self.take(key, Shown::Plain, &form, |value| value.as_str()?.parse().ok())
    }

    pub(crate) fn duration(&mut self, key: &str, bounds: RangeInclusive<Duration>) -> Duration {
        let form = format!("{DURATION_FORM}, {} to {}", ShowDuration(*bounds.start()), ShowDuration(*bounds.end()));
        self.take(key, Shown::Plain, &form, |value| within(units::duration(value.as_str()?)?, &bounds))
    }

    pub(crate) fn size(&mut self, key: &str, bounds: RangeInclusive<u64>) -> u64 {
        let form = format!("{SIZE_FORM}, {} to {}", ShowSize(*bounds.start()), ShowSize(*bounds.end()));
        self.take(key, Shown::Plain, &form, |value| within(units::size(value.as_str()?)?, &bounds))
    }

    pub(crate) fn rate(&mut self, key: &str, bounds: RangeInclusive<u64>) -> u64 {
        let form = format!("{RATE_FORM}, {}/s to {}/s", ShowSize(*bounds.start()), ShowSize(*bounds.end()));
        self.take(key, Shown::Plain, &form, |value| within(units::rate(value.as_str()?)?, &bounds))
    }

    pub(crate) fn count(&mut self, key: &str, bounds: RangeInclusive<usize>) -> usize {
        let form = format!("a whole number, {} to {}", bounds.start(), bounds.end());
        let number = |value: &Value| usize::try_from(value.as_integer()?).ok();
        self.take(key, Shown::Plain, &form, |value| within(number(value)?, &bounds))
    }

    /// A count, or `"auto"`, which is `None`.
    pub(crate) fn count_or_auto(&mut self, key: &str, bounds: RangeInclusive<usize>) -> Option<usize> {
        let form = format!("\"auto\" or a whole number, {} to {}", bounds.start(), bounds.end());
        self.take(key, Shown::Plain, &form, |value| match value {
            Value::String(text) if text == "auto" => Some(None),
            value => within(usize::try_from(value.as_integer()?).ok()?, &bounds).map(Some),
        })
    }

    pub(crate) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        let form = either(choices.iter().map(|(name, _)| *name));
        self.take(key, Shown::Plain, &form, |value| {
            let text = value.as_str()?;
            choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice)
        })
    }

    /// A secret, or `None` where the setting is `""`.
    pub(crate) fn secret(&mut self, key: &str) -> Option<SecretString> {
        let form = "\"\", \"env:NAME\" or \"file:/path\"";
        let reference = self.take(key, Shown::Hidden, &form, |value| match value.as_str()? {
            "" => Some(None),
            text => SecretRef::parse(text).filter(|reference| !reference.is_demo()).map(Some),
        })?;
        match reference.resolve(self.environment) {
            Ok(secret) => Some(secret),
            Err(reason) => {
                self.problem(key, format!("{reason}{}", self.origin(key)));
                None
            }
        }
    }

    /// The value in force if it parses; else a problem and the default.
    fn take<T>(&mut self, key: &str, shown: Shown, form: &dyn Display, parse: impl Fn(&Value) -> Option<T>) -> T {
        self.asked.insert(key.to_owned());
        let layers = self.layers;
        if let Some(value) = layers.value(key) {
            if let Some(parsed) = parse(&self.typed(key, value)) {
                return parsed;
            }
            let message = format!("must be {form}, got {}{}", show(value, shown), self.origin(key));
            self.problem(key, message);
        }
        let default = layers.default(key).and_then(&parse);
        default.unwrap_or_else(|| panic!("config.toml has no valid default for `{key}`: a test reads every one"))
    }

    /// Numbers and booleans of the environment come as text.
    fn typed(&self, key: &str, value: &Value) -> Value {
        let from_env = matches!(self.layers.origin(key), Some(Origin::Env(_)));
        match (value, self.layers.default(key)) {
            (Value::String(text), Some(default)) if from_env && !default.is_str() => {
                text.trim().parse().map_or_else(|_| value.clone(), Value::Integer)
            }
            (Value::String(text), Some(Value::String(auto))) if from_env && auto == "auto" => {
                text.trim().parse().map_or_else(|_| value.clone(), Value::Integer)
            }
            _ => value.clone(),
        }
    }
}

fn within<T: PartialOrd + Debug>(value: T, bounds: &RangeInclusive<T>) -> Option<T> {
    bounds.contains(&value).then_some(value)
}

fn show(value: &Value, shown: Shown) -> String {
    match (shown, value) {
        (Shown::Hidden, _) => "something else (not shown)".to_owned(),
        (Shown::Url, Value::String(text)) => format!("\"{}\"", redact::url(text)),
        (Shown::Plain, Value::String(text)) => format!("\"{}\"", redact::printable(text, 80)),
        (_, Value::Integer(number)) => number.to_string(),
        (_, Value::Float(number)) => number.to_string(),
        (_, Value::Boolean(truth)) => truth.to_string(),
        (_, Value::Datetime(time)) => time.to_string(),
        (_, Value::Array(_)) => "a list".to_owned(),
        (_, Value::Table(_)) => "a section".to_owned(),
    }
}

fn either<'b>(names: impl Iterator<Item = &'b str>) -> String {
    let quoted: Vec<String> = names.filter(|name| !name.is_empty()).map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
