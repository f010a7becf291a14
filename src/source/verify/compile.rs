//! A `verify` table as a [`Verifier`], or everything that is wrong with it.

use actix_web::http::header::HeaderName;

use super::super::spec::{Encoding, Format, Scheme, SecretForm, SourceSpec, Texts, TimeUnit, VerifySpec};
use super::super::{Problem, ResolvedSecret};
use super::header::ED25519_VERSION;
use super::key::Key;
use super::template::{Piece, Template};
use super::time::Window;
use super::{Names, SECRETS_MAX, TimeFrom, Verifier};

/// The widest window; a request outside it is a replay, not a delay.
const WINDOW_MAX_MS: i64 = 24 * 60 * 60 * 1000;

impl Verifier {
    pub(in super::super) fn compile(spec: &SourceSpec, secrets: &[ResolvedSecret]) -> Result<Self, Vec<Problem>> {
        let Some(verify) = spec.verify.as_ref() else {
            return Err(vec![Problem::new(
                "verify",
                "is missing: state a `preset` or a `verify` table, since a source without a verifier takes anything from anyone",
            )]);
        };
        let Some(scheme) = verify.scheme else {
            return Err(vec![Problem::new("verify.scheme", "is missing: state standard-webhooks or hmac-sha256")]);
        };
        let mut problems = Vec::new();
        let verify = with_defaults(verify, scheme);
        let mut keep = |problem: Problem| problems.push(problem);
        let signed =
            Template::parse(verify.signed.as_deref().unwrap_or("{body}")).map_err(&mut keep).unwrap_or_default();
        let names = names(&verify, &signed).map_err(&mut keep).unwrap_or_default();
        let window = window(&verify, &signed, &names).map_err(&mut keep).ok().flatten();
        check_pieces(&verify, &signed, &names, &mut keep);
        let keys = keys(spec, &verify, scheme, secrets, &mut keep);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            scheme,
            format: verify.format.unwrap_or(Format::Bare),
            encoding: verify.encoding.unwrap_or(Encoding::Hex),
            signed,
            window,
            names,
            origin: verify.origin.unwrap_or_default(),
            keys,
        })
    }
}

/// The parts of a scheme that are the scheme's own and not the sender's.
fn with_defaults(verify: &VerifySpec, scheme: Scheme) -> VerifySpec {
    let mut verify = verify.clone();
    if scheme == Scheme::StandardWebhooks {
        let text = |text: &str| Texts::One(text.to_owned());
        verify.header.get_or_insert_with(|| text("webhook-signature"));
        verify.id.get_or_insert_with(|| text("webhook-id"));
        verify.timestamp.get_or_insert_with(|| text("header:webhook-timestamp"));
        verify.signed.get_or_insert_with(|| "{id}.{timestamp}.{body}".to_owned());
        verify.format.get_or_insert_with(|| Format::Versions(vec!["v1".to_owned(), ED25519_VERSION.to_owned()]));
        verify.encoding.get_or_insert(Encoding::Base64);
        verify.secret.get_or_insert(SecretForm::WhsecBase64);
        verify.window.get_or_insert(super::super::spec::Span(std::time::Duration::from_secs(300)));
    }
    verify
}

/// The sets of header names; a list of one serves every set.
fn names(verify: &VerifySpec, signed: &Template) -> Result<Vec<Names>, Problem> {
    let Some(headers) = &verify.header else {
        return Err(Problem::new("verify.header", "is missing: name the header that holds the signature"));
    };
    let headers = headers.all();
    if headers.is_empty() {
        return Err(Problem::new("verify.header", "is empty: name the header that holds the signature"));
    }
    let at = |texts: &Option<Texts>, key: &str, index: usize| -> Result<Option<String>, Problem> {
        let Some(texts) = texts else { return Ok(None) };
        match texts.all() {
            [only] => Ok(Some(only.clone())),
            several if several.len() == headers.len() => Ok(Some(several[index].clone())),
            several => Err(Problem::new(
                key,
                format!(
                    "has {} entries for {} in `verify.header`: state one, or one for each",
                    several.len(),
                    headers.len()
                ),
            )),
        }
    };
    let mut all = Vec::with_capacity(headers.len());
    for (index, header) in headers.iter().enumerate() {
        let time = match at(&verify.timestamp, "verify.timestamp", index)? {
            Some(text) => Some(time_from(&text, verify)?),
            None => implied_time(verify, signed),
        };
        let id = at(&verify.id, "verify.id", index)?;
        all.push(Names {
            signature: header_name(header, "verify.header")?,
            time,
            id: id.map(|name| header_name(&name, "verify.id")).transpose()?,
        });
    }
    Ok(all)
}

fn header_name(text: &str, key: &str) -> Result<HeaderName, Problem> {
    text.parse().map_err(|_| Problem::new(key, format!("names {text:?}, which cannot be a header: correct it")))
}

fn time_from(text: &str, verify: &VerifySpec) -> Result<TimeFrom, Problem> {
    let bad = |message: String| Problem::new("verify.timestamp", message);
    match text.split_once(':') {
        Some(("header", name)) => Ok(TimeFrom::Header(header_name(name, "verify.timestamp")?)),
        Some(("pair", name)) if matches!(verify.format, Some(Format::Pairs(_))) => Ok(TimeFrom::Pair(name.to_owned())),
        Some(("pair", _)) => Err(bad("names a pair, but `verify.format` is not `pairs`: use `header:name`".to_owned())),
        _ => Err(bad(format!("is {text:?}: use `header:name` or `pair:name`"))),
    }
}

/// With a window and no `timestamp`, the only header that is signed is the time.
fn implied_time(verify: &VerifySpec, signed: &Template) -> Option<TimeFrom> {
    verify.window?;
    let mut headers = signed.headers();
    let (only, more) = (headers.next()?, headers.next());
    more.is_none().then(|| TimeFrom::Header(only.clone()))
}

fn window(verify: &VerifySpec, signed: &Template, names: &[Names]) -> Result<Option<Window>, Problem> {
    let Some(time) = names.first().and_then(|names| names.time.as_ref()) else {
        return match verify.window {
            Some(_) => Err(Problem::new("verify.window", "needs a time: state `verify.timestamp`")),
            None => Ok(None),
        };
    };
    let by_header = matches!(time, TimeFrom::Header(name) if signed.headers().any(|signed| signed == name));
    if !by_header && !signed.has(&Piece::Timestamp) {
        return Err(Problem::new(
            "verify.signed",
            "leaves out the time, so anyone could refresh an old request: add `{timestamp}` as the sender signs it",
        ));
    }
    let window_ms = verify.window.map(|window| i64::try_from(window.0.as_millis()).unwrap_or(i64::MAX));
    if window_ms.is_some_and(|window_ms| window_ms == 0 || window_ms > WINDOW_MAX_MS) {
        return Err(Problem::new("verify.window", "must be more than nothing and at most 24h: most senders mean 5m"));
    }
    if window_ms.is_none() {
        return Err(Problem::new(
            "verify.window",
            "is missing although the time is signed: state it, most senders mean 5m",
        ));
    }
    Ok(Some(Window { unit: verify.unit.unwrap_or(TimeUnit::S), window_ms }))
}

fn check_pieces(verify: &VerifySpec, signed: &Template, names: &[Names], keep: &mut impl FnMut(Problem)) {
    if signed.has(&Piece::Timestamp) && names.iter().any(|names| names.time.is_none()) {
        keep(Problem::new("verify.timestamp", "is missing although `{timestamp}` is signed: say where it stands"));
    }
    if signed.has(&Piece::Id) && names.iter().any(|names| names.id.is_none()) {
        keep(Problem::new("verify.id", "is missing although `{id}` is signed: name its header"));
    }
    if verify.id.is_some() && !signed.has(&Piece::Id) {
        keep(Problem::new("verify.id", "is stated, but `verify.signed` has no `{id}`: leave it out, or sign it"));
    }
    let origin = verify.origin.as_deref().unwrap_or_default();
    if signed.has(&Piece::Url) && !(origin.starts_with("https://") || origin.starts_with("http://")) {
        keep(Problem::new(
            "verify.origin",
            "is missing although `{url}` is signed: state scheme and host as the sender calls them, such as https://hooks.example.com",
        ));
    }
    match &verify.format {
        Some(Format::Pairs(pairs)) if pairs.names.is_empty() => {
            keep(Problem::new("verify.format", "names no pair that holds a signature: add one to `names`"));
        }
        Some(Format::Versions(versions)) if versions.is_empty() => {
            keep(Problem::new("verify.format", "accepts no version: add one"));
        }
        Some(Format::Prefix(prefix)) if prefix.is_empty() => {
            keep(Problem::new("verify.format", "has an empty prefix: use `bare`"));
        }
        _ => {}
    }
}

fn keys(
    spec: &SourceSpec,
    verify: &VerifySpec,
    scheme: Scheme,
    secrets: &[ResolvedSecret],
    keep: &mut impl FnMut(Problem),
) -> Vec<Key> {
    if secrets.is_empty() {
        keep(Problem::new("secrets", "is empty: add the secret the sender shows, such as `env:NAME`"));
    }
    for (index, secret) in secrets.iter().enumerate() {
        let same_tenant = |other: &&ResolvedSecret| other.tenant == secret.tenant;
        if secrets[..index].iter().filter(same_tenant).count() == SECRETS_MAX {
            keep(Problem::new(&secret.key, format!("is one too many: at most {SECRETS_MAX} at a time")));
        }
    }
    let form = verify.secret.unwrap_or(SecretForm::Utf8);
    let allow_weak = spec.allow_weak_secret.unwrap_or(false);
    let make = |secret| Key::make(secret, scheme, form, verify.secret_prefix.as_deref(), allow_weak);
    secrets.iter().filter_map(|secret| make(secret).map_err(&mut *keep).ok()).collect()
}
