//! All presets as a table of Markdown: docs/providers.md.

use super::rules;
use crate::source::SourceSpec;
use crate::source::presets;
use crate::source::spec::{HandshakeSpec, Texts};

const HEAD: &str = "\
# Providers

Written by `tidegate sources list --markdown` out of the presets: change those, not this file.

A preset is a sender described as data. `preset = \"stripe\"` and a secret are all it takes for most of them;
`tidegate sources show stripe` shows every rule with what you have to state, and `tidegate sources show stripe --toml` the
reason of each. Every field can be overridden in your own `[[source]]`. A reference such as `body:/id` names where a text
stands; `a | b` takes the first that is there. The window says how far the signature's time may lie off.

";

/// The whole document.
pub(super) fn providers() -> String {
    let mut text = HEAD.to_owned();
    text.push_str(&format!("There are {} presets.\n\n", presets::names().count()));
    text.push_str(
        "| Provider | Preset | Scheme | Window | Key | Resource | Version | Order | Handshake | Documents |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    let mut names: Vec<&str> = presets::names().collect();
    names.sort_by_key(|name| presets::about(name).map(|about| about.title.to_lowercase()));
    for name in names {
        text.push_str(&row(name));
    }
    text.push_str("\n## Why each is ordered so\n\n");
    let mut names: Vec<&str> = presets::names().collect();
    names.sort_unstable();
    for name in names {
        let why = presets::about(name).map_or("", |about| about.order.as_str());
        text.push_str(&format!("- `{name}`: {why}\n"));
    }
    text
}

fn row(name: &str) -> String {
    let spec = SourceSpec { preset: Some(name.to_owned()), ..SourceSpec::default() };
    let Ok(spec) = spec.with_preset() else { return String::new() };
    let about = presets::about(name).cloned().unwrap_or_default();
    let window = spec.verify.as_ref().and_then(window).unwrap_or_else(|| "-".to_owned());
    let all = |texts: &Option<Texts>| texts.as_ref().map_or_else(String::new, |texts| codes(texts.all()));
    let resource = spec
        .resource
        .as_ref()
        .map_or_else(|| "-".to_owned(), |rule| format!("{} with {}", codes(rule.kind.all()), codes(rule.id.all())));
    let parts: Vec<String> = spec.version.iter().flatten().map(|part| part.from.clone()).collect();
    let version = if parts.is_empty() { "-".to_owned() } else { codes(&parts) };
    let handshakes: Vec<String> = spec.handshake.iter().flatten().map(greeting).collect();
    let handshakes = if handshakes.is_empty() { "-".to_owned() } else { handshakes.join(", ") };
    let documents: Vec<String> =
        about.docs.iter().enumerate().map(|(number, address)| format!("[{}]({address})", number + 1)).collect();
    format!(
        "| {} | `{name}` | {} | {window} | {} | {resource} | {version} | {} | {handshakes} | {} |\n",
        cell(&about.title),
        rules::scheme(&spec),
        all(&spec.key),
        spec.policies().join(", "),
        documents.join(" ")
    )
}

fn window(verify: &crate::source::spec::VerifySpec) -> Option<String> {
    let usual = match rules::word(verify.scheme).as_str() {
        "standard-webhooks" => Some("5m"),
        "contentful" => Some("30s"),
        _ => None,
    };
    rules::window(verify).or_else(|| usual.map(str::to_owned))
}

fn greeting(handshake: &HandshakeSpec) -> String {
    let method = handshake.method.as_ref().map_or_else(|| "POST".to_owned(), |methods| methods.all().join("/"));
    format!("{method} {}", cell(&handshake.name))
}

fn codes(texts: &[String]) -> String {
    texts.iter().map(|text| format!("`{}`", cell(text))).collect::<Vec<_>>().join(", ")
}

/// A text inside a table, where `|` parts the cells.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
