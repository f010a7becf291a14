//! What a person has to state to use a preset, as TOML to paste.

use crate::source::spec::{PolicySpec, Scheme, SignedSpec, SourceSpec, VerifySpec};

/// The `[[source]]` of a preset, with everything that only its user knows.
pub(super) fn snippet(name: &str, spec: &SourceSpec) -> String {
    let mut lines = vec!["[[source]]".to_owned(), format!("name = {name:?}"), format!("preset = {name:?}")];
    let variable = name.to_ascii_uppercase().replace(['-', '.'], "_");
    let verify = spec.verify.clone().unwrap_or_default();
    let learns = spec.handshake.iter().flatten().any(|handshake| handshake.learn.is_some());
    if verify.certificate.is_none() && verify.keys.is_none() {
        let credential = if verify.secret.is_some_and(|form| super::rules::word(form) == "pem") {
            format!("\"file:/etc/tidegate/{name}.pem\"")
        } else {
            format!("\"env:{variable}_SECRET\"")
        };
        lines.push(format!("secrets = [{credential}]"));
    }
    if learns {
        lines.push("# until the handshake has brought the secret, in place of `secrets`:".to_owned());
        lines.push(format!("# setup = {{ secret_to = \"/etc/tidegate/{name}.secret\" }}"));
    }
    if let Some(keys) = &verify.keys {
        lines.push(format!(
            "verify = {{ keys = {{ url = {:?}, ask = \"{}\", headers = {{ }} }} }}   # the headers its owner asks for: --toml names them",
            keys.url,
            super::rules::word(keys.ask)
        ));
    } else if needs_origin(spec, &verify) {
        lines.push("verify = { origin = \"https://hooks.example.com\" }   # as the sender calls you".to_owned());
    }
    let missing: Vec<(&String, &String)> =
        spec.config_help.iter().flatten().filter(|(name, _)| !spec.config.contains_key(*name)).collect();
    if !missing.is_empty() {
        let values: Vec<String> = missing.iter().map(|(key, _)| format!("{key} = \"…\"")).collect();
        lines.extend(missing.iter().map(|(key, help)| format!("# {key}: {help}")));
        lines.push(format!("config = {{ {} }}", values.join(", ")));
    }
    let orders =
        std::iter::once(spec.order.as_ref()).chain(spec.narrow.iter().flatten().map(|narrow| narrow.order.as_ref()));
    let asks = orders.flatten().any(|order| order.policy == Some(PolicySpec::Refetch));
    if asks && spec.refetch.is_none() {
        lines.push(format!(
            "refetch = {{ url = \"https://api.example.com/{{type}}s/{{id}}\", headers = {{ authorization = \"Bearer env:{variable}_TOKEN\" }} }}"
        ));
    }
    lines.join("\n")
}

/// Whether the address that the sender calls has to be stated.
fn needs_origin(spec: &SourceSpec, verify: &VerifySpec) -> bool {
    let reads = |text: &String| text.contains("{url");
    let signed = match &verify.signed {
        None => false,
        Some(SignedSpec::Any(texts)) => texts.all().iter().any(reads),
        Some(SignedSpec::ByField(by_field)) => by_field.when.values().any(reads),
    };
    let greets = spec.handshake.iter().flatten().any(|handshake| {
        let answer = &handshake.answer;
        let json = answer.json.as_ref().map(super::rules::word);
        let names = |text: &str| text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "url");
        answer.text.iter().chain(&json).any(|text| names(&text.replace("body:/url", "")))
    });
    let all = signed || greets || verify.scheme == Some(Scheme::HttpSignature);
    all && verify.origin.is_none()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::source::{ResolvedSecret, Source, presets};

    #[test]
    fn what_a_preset_asks_its_user_for_is_all_that_it_needs() {
        for name in presets::names() {
            let preset = SourceSpec { preset: Some(name.to_owned()), ..SourceSpec::default() };
            let whole = preset.with_preset().expect("a preset");
            let text = snippet(name, &whole);
            let file: toml::Table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let source = file["source"].as_array().and_then(|all| all.first()).expect("a source").clone();
            let spec: SourceSpec = source.try_into().unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let secret = |text: &str| ResolvedSecret {
                key: "secrets[0]".to_owned(),
                tenant: None,
                value: SecretString::from(text),
                until_ms: None,
            };
            let secrets = [secret("a:secret-of-more-than-16-bytes")];
            let secrets: &[ResolvedSecret] = if spec.secrets.is_empty() { &[] } else { &secrets };
            let problems = Source::compile(&spec, secrets).err().unwrap_or_default();
            let other: Vec<_> = problems.iter().filter(|problem| !problem.key.starts_with("secrets")).collect();
            assert!(other.is_empty(), "{name}: {other:?}\n{text}");
        }
    }
}
