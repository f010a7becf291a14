//! Rules of the scheme that are not the sender's: algorithm, encoding, layout, and what is signed.

use super::super::super::spec::{
    Encoding, Format, Pairs, Scheme, SecretForm, SignedSpec, Span, Texts, TimeUnit, VerifySpec,
};
use super::{Finder, Mistake, word};

const MACS: [Scheme; 4] = [Scheme::HmacSha256, Scheme::HmacSha1, Scheme::HmacSha512, Scheme::HmacSha384];
const ENCODINGS: [Encoding; 4] = [Encoding::Hex, Encoding::Base64, Encoding::Base64url, Encoding::Base64Hex];
const FORMS: [SecretForm; 4] = [SecretForm::Utf8, SecretForm::Base64, SecretForm::WhsecBase64, SecretForm::Hex];
/// What senders sign, the most usual first.
const TEMPLATES: [&str; 16] = [
    "{body}",
    "{timestamp}.{body}",
    "{timestamp}{body}",
    "{timestamp}:{body}",
    "{id}.{timestamp}.{body}",
    "{body}{timestamp}",
    "{body}.{timestamp}",
    "v0:{timestamp}:{body}",
    "v1:{timestamp}:{body}",
    "{id}{timestamp}{body}",
    "{timestamp}.{id}.{body}",
    "{timestamp}|{body}",
    "{timestamp}\n{body}",
    "{body.sha256hex}",
    "{url}{body}",
    "{method}{url}{body}",
];
/// Names of headers that hold a time.
const TIMES: [&str; 3] = ["timestamp", "time", "date"];
/// How far a time may lie off where nothing is stated yet; what lies outside is told apart all the same.
const ANY_TIME: Span = Span(std::time::Duration::from_secs(300));

/// One rule that is done otherwise.
struct Other {
    code: &'static str,
    says: String,
    fix: String,
    change: Box<dyn Fn(&mut VerifySpec)>,
}

impl Other {
    fn new(code: &'static str, says: String, fix: String, change: impl Fn(&mut VerifySpec) + 'static) -> Self {
        Self { code, says, fix, change: Box::new(change) }
    }
}

/// One rule at a time.
pub(super) fn single(finder: &mut Finder<'_>) {
    if !finder.has_mac() {
        return;
    }
    let lists = [algorithms(finder), encodings(finder), formats(finder), templates(finder)];
    for other in lists.into_iter().flatten() {
        let change = finder.rules(|verify| (other.change)(verify));
        finder.attempt(&change, || Mistake::certain(other.code, other.says, other.fix));
    }
}

/// Several rules at once: a source that is written for the first time.
pub(super) fn several(finder: &mut Finder<'_>) {
    if !finder.has_mac() {
        return;
    }
    let with_none = |others: Vec<Other>| std::iter::once(None).chain(others.into_iter().map(Some)).collect::<Vec<_>>();
    let formats = with_none(formats(finder));
    let (algorithms, encodings) = (with_none(algorithms(finder)), with_none(encodings(finder)));
    let (templates, forms) = (with_none(templates(finder)), with_none(forms(finder)));
    for format in &formats {
        for algorithm in &algorithms {
            for encoding in &encodings {
                for template in &templates {
                    for form in &forms {
                        let all = [format, algorithm, encoding, template, form];
                        let changed: Vec<&Other> = all.into_iter().flatten().collect();
                        let change = finder.rules(|verify| changed.iter().for_each(|other| (other.change)(verify)));
                        let join = |text: fn(&Other) -> &str| {
                            changed.iter().map(|other| text(other)).collect::<Vec<_>>().join("; ")
                        };
                        let found = finder.attempt(&change, || {
                            Mistake::certain("several", join(|other| &other.says), join(|other| &other.fix))
                        });
                        if found {
                            return;
                        }
                    }
                }
            }
        }
    }
}

fn algorithms(finder: &Finder<'_>) -> Vec<Other> {
    let own = finder.scheme();
    let others = MACS.into_iter().filter(|scheme| MACS.contains(&own) && *scheme != own);
    others
        .map(|scheme| {
            let (name, own) = (word(scheme), word(own));
            Other::new(
                "algorithm",
                format!("the sender signs with {name}, and this source reads {own}"),
                format!("state `scheme = \"{name}\"`"),
                move |verify| verify.scheme = Some(scheme),
            )
        })
        .collect()
}

fn encodings(finder: &Finder<'_>) -> Vec<Other> {
    let own = finder.encoding();
    let others = ENCODINGS.into_iter().filter(|encoding| *encoding != own);
    others
        .map(|encoding| {
            let (name, own) = (word(encoding), word(own));
            Other::new(
                "encoding",
                format!("the signature is written in {name}, and this source reads {own}"),
                format!("state `encoding = \"{name}\"`"),
                move |verify| verify.encoding = Some(encoding),
            )
        })
        .collect()
}

fn forms(finder: &Finder<'_>) -> Vec<Other> {
    let own = finder.form();
    let others = FORMS.into_iter().filter(|form| *form != own);
    others
        .map(|form| {
            let (name, own) = (word(form), word(own));
            Other::new(
                "secret-form",
                format!("the sender reads the secret as {name}, and this source as {own}"),
                format!("state `secret = \"{name}\"`"),
                move |verify| {
                    verify.secret = Some(form);
                    (verify.secret_prefix, verify.key_prefix) = (None, None);
                },
            )
        })
        .collect()
}

/// Layouts that the signature's own text suggests.
fn formats(finder: &Finder<'_>) -> Vec<Other> {
    let mut found: Vec<Format> = vec![Format::Bare];
    for (what, name) in super::headers::wanted(finder) {
        let text = finder.sent().headers.get(&name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if what == "signature" {
            found.extend(suggested(text));
        }
    }
    found.retain(|format| finder.verify.format.as_ref().unwrap_or(&Format::Bare) != format);
    let other = |format: Format| {
        let shown = super::super::super::verify::layout(&format);
        let written = serde_json::to_value(&format).map_or_else(|_| String::new(), |value| inline(&value));
        Other::new(
            "format",
            format!("the signature's text is laid out otherwise: {shown}"),
            format!("state `format = {written}`"),
            move |verify| verify.format = Some(format.clone()),
        )
    };
    found.into_iter().map(other).collect()
}

fn suggested(text: &str) -> Vec<Format> {
    let mut found = Vec::new();
    let is_name = |name: &str| {
        (1..=12).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if let Some((name, _)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
        found.push(Format::Prefix(format!("{name}=")));
    }
    for separator in [',', ';'] {
        let pairs = text.split(separator).filter_map(|pair| pair.trim().split_once('='));
        let names: Vec<String> = pairs.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect();
        if text.contains(separator) && !names.is_empty() && names.len() <= 8 {
            found.push(Format::Pairs(Pairs { separator, names, groups: None }));
        }
    }
    let versions = text.split(' ').filter_map(|entry| entry.split_once(',')).map(|(version, _)| version.to_owned());
    let versions: Vec<String> = versions.filter(|version| is_name(version)).take(8).collect();
    if !versions.is_empty() {
        found.push(Format::Versions(versions));
    }
    found
}

/// A value as TOML writes it on one line.
fn inline(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name} = {}", inline(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Other things to sign, with a time where one is to be had.
fn templates(finder: &Finder<'_>) -> Vec<Other> {
    let own: &[String] = match &finder.verify.signed {
        Some(SignedSpec::Any(texts)) => texts.all(),
        Some(SignedSpec::ByField(_)) => return Vec::new(),
        None => &[],
    };
    let own_text = own.first().map_or("{body}", String::as_str);
    let time = time_place(finder);
    let mut others = Vec::new();
    for template in TEMPLATES.into_iter().filter(|template| *template != own_text) {
        let needs_time = template.contains("{timestamp}");
        let fits = (!needs_time || time.is_some())
            && (!template.contains("{id}") || finder.verify.id.is_some())
            && (!template.contains("{url}") || finder.verify.origin.is_some());
        if !fits {
            continue;
        }
        let time = time.clone().filter(|_| needs_time);
        let mut fix = format!("state `signed = {template:?}`");
        if let (Some((place, unit)), None) = (&time, &finder.verify.timestamp) {
            fix.push_str(&format!(", `timestamp = \"{place}\"`, `unit = \"{}\"` and a `window`", word(unit)));
        }
        let says = format!("the sender signs {template:?}, and this source {own_text:?}");
        others.push(Other::new("signed", says, fix, move |verify| {
            verify.signed = Some(SignedSpec::Any(Texts::One(template.to_owned())));
            verify.window = time.as_ref().map(|_| verify.window.unwrap_or(ANY_TIME));
            verify.unit = time.as_ref().map(|(_, unit)| *unit);
            verify.timestamp = time.as_ref().map(|(place, _)| Texts::One(place.clone()));
        }));
    }
    others
}

/// Where a time stands: as stated, or in a header that is called like one, or in the signature's text.
fn time_place(finder: &Finder<'_>) -> Option<(String, TimeUnit)> {
    let headers = &finder.sent().headers;
    if let Some(stated) = finder.verify.timestamp.as_ref().and_then(|places| places.all().first()) {
        return Some((stated.clone(), finder.verify.unit.unwrap_or(TimeUnit::S)));
    }
    let unit_of = |text: &str| match (text.parse::<u64>(), text.len()) {
        (Ok(_), 9..=10) => Some(TimeUnit::S),
        (Ok(_), 12..=13) => Some(TimeUnit::Ms),
        (Ok(_), 15..=16) => Some(TimeUnit::Us),
        (Err(_), _) => text.parse::<jiff::Timestamp>().ok().map(|_| TimeUnit::Iso),
        _ => None,
    };
    let mut named = headers.iter().filter(|(name, _)| TIMES.iter().any(|word| name.as_str().contains(word)));
    named.find_map(|(name, value)| Some((format!("header:{name}"), unit_of(value.to_str().ok()?.trim())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_signature_suggests_its_layout() {
        assert_eq!(suggested("sha256=ab"), [Format::Prefix("sha256=".to_owned())]);
        assert!(
            suggested("t=5,v1=ab")
                .iter()
                .any(|format| matches!(format, Format::Pairs(pairs) if pairs.names == ["t", "v1"]))
        );
        assert!(suggested("v1,ab== v2,cd==").contains(&Format::Versions(vec!["v1".to_owned(), "v2".to_owned()])));
        assert_eq!(suggested("abcdef"), []);
    }

    #[test]
    fn a_layout_is_written_as_the_settings_have_it() {
        let format = serde_json::to_value(Format::Prefix("sha256=".to_owned())).expect("JSON");
        assert_eq!(inline(&format), "{ prefix = \"sha256=\" }");
    }
}
