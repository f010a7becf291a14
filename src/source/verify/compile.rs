//! A `verify` table as a [`Verifier`], or everything that is wrong with it.

mod check;
mod places;

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use smallvec::SmallVec;

use super::super::pattern::Patterns;
use super::super::spec::{
    Encoding, Format, Scheme, SecretForm, SignedSpec, SourceSpec, Span, Texts, TimeUnit, VerifySpec,
};
use super::super::{Problem, ResolvedConfig, ResolvedSecret};
use super::canonical::any_port;
use super::header::{Coding, ED25519_VERSION};
use super::key::{Forming, Key};
use super::keys::{Fetched, Origin};
use super::place::{Needs, Place};
use super::public::{algorithm_of, signature_bytes};
use super::signature::{Methods, Signature, Signed};
use super::template::{Making, Piece, Template};
use super::{Keys, Plan, SECRETS_MAX, Verifier, certificate, jwt, message};

/// The most algorithms of one source.
const METHODS_MAX: usize = 8;

impl Verifier {
    pub(in super::super) fn compile(
        spec: &SourceSpec,
        secrets: &[ResolvedSecret],
        config: &ResolvedConfig,
    ) -> Result<Self, Vec<Problem>> {
        let Some(verify) = spec.verify.as_ref() else {
            return Err(vec![Problem::new(
                "verify",
                "is missing: state a `preset` or a `verify` table, since a source without a verifier takes anything from anyone",
            )]);
        };
        let Some(scheme) = verify.scheme else {
            return Err(vec![Problem::new("verify.scheme", "is missing: state standard-webhooks or hmac-sha256")]);
        };
        let verify = with_defaults(verify, scheme);
        let mut compiler = Compiler {
            verify: &verify,
            scheme,
            config: config.iter().filter_map(first_of).collect(),
            needs: Needs::default(),
            problems: Vec::new(),
        };
        compiler.misplaced();
        let (plan, schemes) = match scheme {
            Scheme::JwtEs256 => (compiler.jwt().map(|plan| Plan::Jwt(Box::new(plan))), vec![scheme]),
            Scheme::HttpSignature => {
                let plan = compiler.message();
                let schemes = plan.as_ref().map_or_else(Vec::new, |plan| vec![plan.algorithm]);
                (plan.map(|plan| Plan::Message(Box::new(plan))), schemes)
            }
            _ => {
                let schemes = compiler.schemes();
                (compiler.signature().map(|plan| Plan::Signature(Box::new(plan))), schemes)
            }
        };
        let fetched = compiler.fetched(plan.as_ref(), &schemes);
        let own = compiler.own_keys(spec, &schemes, secrets, fetched.is_some());
        match plan {
            Some(plan) if compiler.problems.is_empty() => Ok(Self { plan, keys: Keys { own, fetched } }),
            _ => Err(compiler.problems),
        }
    }
}

fn first_of((name, texts): (&String, &Vec<SecretString>)) -> Option<(String, String)> {
    texts.first().map(|text| (name.clone(), text.expose_secret().to_owned()))
}

/// The parts of a scheme that are the scheme's own and not the sender's.
fn with_defaults(verify: &VerifySpec, scheme: Scheme) -> VerifySpec {
    let mut verify = verify.clone();
    let text = |text: &str| Texts::One(text.to_owned());
    let no_place = verify.header.is_none() && verify.from.is_none();
    let seconds = |seconds| Span(std::time::Duration::from_secs(seconds));
    match scheme {
        Scheme::StandardWebhooks => {
            verify.header = verify.header.or_else(|| no_place.then(|| text("webhook-signature")));
            verify.id.get_or_insert_with(|| text("webhook-id"));
            verify.timestamp.get_or_insert_with(|| text("header:webhook-timestamp"));
            verify.signed.get_or_insert_with(|| SignedSpec::Any(text("{id}.{timestamp}.{body}")));
            verify.format.get_or_insert_with(|| Format::Versions(vec!["v1".to_owned(), ED25519_VERSION.to_owned()]));
            verify.encoding.get_or_insert(Encoding::Base64);
            verify.secret.get_or_insert(SecretForm::WhsecBase64);
            verify.window.get_or_insert(seconds(300));
        }
        Scheme::Basic => verify.header = verify.header.or_else(|| no_place.then(|| text("authorization"))),
        Scheme::Contentful => {
            verify.header = verify.header.or_else(|| no_place.then(|| text("x-contentful-signature")));
            verify.timestamp.get_or_insert_with(|| text("header:x-contentful-timestamp"));
            verify.unit.get_or_insert(TimeUnit::Ms);
            verify.window.get_or_insert(seconds(30));
        }
        Scheme::JwtEs256 => {
            verify.timestamp.get_or_insert_with(|| text("claim:iat"));
            verify.secret.get_or_insert(SecretForm::Jwks);
        }
        _ => {}
    }
    verify
}

/// Collects a plan, and what is wrong with it.
struct Compiler<'v> {
    verify: &'v VerifySpec,
    scheme: Scheme,
    config: BTreeMap<String, String>,
    needs: Needs,
    problems: Vec<Problem>,
}

impl Compiler<'_> {
    fn problem(&mut self, key: &str, message: impl std::fmt::Display) {
        self.problems.push(Problem::new(key, message));
    }

    fn kept<T>(&mut self, found: Result<T, Problem>) -> Option<T> {
        found.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn making<'m>(&'m mut self, key: &'m str) -> Making<'m> {
        Making { needs: &mut self.needs, config: &self.config, key }
    }

    fn place(&mut self, key: &str, text: &str) -> Option<Place> {
        let place = self.needs.place(text);
        if let Ok(Place::Numbered(_)) = place {
            self.problem(key, "names numbered headers, which only `verify.header` may: name one header");
            return None;
        }
        self.kept(place.map_err(|message| Problem::new(key, message)))
    }

    fn schemes(&mut self) -> Vec<Scheme> {
        let Some(methods) = &self.verify.methods else { return vec![self.scheme] };
        if methods.allow.is_empty() || methods.allow.len() > METHODS_MAX {
            self.problem("verify.methods.allow", format!("must name 1 to {METHODS_MAX} algorithms"));
        }
        if !methods.allow.values().any(|scheme| *scheme == self.scheme) {
            self.problem("verify.methods.allow", "leaves out `verify.scheme`: add it");
        }
        methods.allow.values().copied().collect()
    }

    fn signature(&mut self) -> Option<Signature> {
        let verify = self.verify;
        let each = verify.each.as_ref().and_then(|text| self.each(text));
        let sets = self.sets();
        let signed = self.signed();
        let also = self.also();
        let requires = self.requires();
        let body_hash = verify.body_hash.as_ref().and_then(|text| self.place("verify.body_hash", text));
        let methods = self.methods();
        let certificate = verify.certificate.as_ref().and_then(|spec| {
            let place = self.place("verify.certificate.from", &spec.from);
            let rule = self.kept(certificate::Rule::compile(spec));
            Some((place?, rule?))
        });
        let format = self.format();
        let (sets, signed) = (sets?, signed?);
        let window = self.window(&signed, &sets);
        self.check_pieces(&signed, &sets, body_hash.is_some());
        let reads_url = signed.all().any(|template| template.has(&Piece::Url) || template.has(&Piece::UrlHubspot));
        let origin = self.origin(reads_url, "`{url}` is signed");
        let origins = if verify.any_port == Some(true) { any_port(&origin) } else { vec![origin] };
        if verify.any_port == Some(true) && !reads_url {
            self.problem("verify.any_port", "is set, and no `{url}` is signed: leave it out");
        }
        self.check_each(each, &signed, &sets);
        Some(Signature {
            scheme: self.scheme,
            format: format?,
            coding: coding(self.scheme, verify.encoding.unwrap_or(Encoding::Hex)),
            signed,
            window,
            sets,
            also,
            origins,
            needs: std::mem::take(&mut self.needs),
            each,
            requires,
            body_hash,
            methods,
            certificate,
            reads_url,
        })
    }

    fn signed(&mut self) -> Option<Signed> {
        if matches!(self.scheme, Scheme::Token | Scheme::Basic) {
            return Some(Signed::Any(vec![Template::default()]));
        }
        if self.scheme == Scheme::Contentful {
            return Some(Signed::Any(vec![Template::contentful()]));
        }
        match &self.verify.signed {
            None => self.template("verify.signed", "{body}").map(|template| Signed::Any(vec![template])),
            Some(SignedSpec::Any(texts)) => {
                let texts = texts.all();
                if texts.is_empty() || texts.len() > METHODS_MAX {
                    self.problem("verify.signed", format!("must be 1 to {METHODS_MAX} templates"));
                }
                let all: Vec<_> = texts.iter().filter_map(|text| self.template("verify.signed", text)).collect();
                Some(Signed::Any(all))
            }
            Some(SignedSpec::ByField(by_field)) => {
                let place = self.place("verify.signed.from", &by_field.from);
                if by_field.when.is_empty() || by_field.when.len() > METHODS_MAX {
                    self.problem("verify.signed.when", format!("must name 1 to {METHODS_MAX} templates"));
                }
                let when = by_field.when.iter().filter_map(|(name, text)| {
                    Some((name.clone(), self.template(&format!("verify.signed.when.{name}"), text)?))
                });
                let when = when.collect();
                Some(Signed::ByField(place?, when))
            }
        }
    }

    fn template(&mut self, key: &str, text: &str) -> Option<Template> {
        let parsed = Template::parse(text, &mut self.making(key));
        self.kept(parsed)
    }

    fn requires(&mut self) -> Vec<(Place, Patterns)> {
        let mut all = Vec::new();
        for (index, require) in self.verify.require.iter().flatten().enumerate() {
            let key = format!("verify.require[{index}]");
            let place = self.place(&format!("{key}.from"), &require.from);
            if require.is.all().is_empty() {
                self.problem(&format!("{key}.is"), "is empty, so nothing would match: state a pattern");
            }
            let mut patterns = Vec::new();
            for text in require.is.all() {
                let text = self.making(&key).configured(text);
                patterns.extend(self.kept(text));
            }
            all.extend(place.map(|place| (place, Patterns::new(&patterns))));
        }
        all
    }

    fn methods(&mut self) -> Option<Methods> {
        let methods = self.verify.methods.as_ref()?;
        let encoding = self.verify.encoding.unwrap_or(Encoding::Hex);
        let all = methods.allow.iter().map(|(name, scheme)| (name.clone(), coding(*scheme, encoding))).collect();
        if methods.from == "prefix" {
            if self.verify.format.as_ref().is_some_and(|format| *format != Format::Bare) {
                self.problem("verify.format", "does not go with `methods.from = \"prefix\"`: leave it out");
            }
            return Some(Methods::Prefix(all));
        }
        self.place("verify.methods.from", &methods.from).map(|place| Methods::Field(place, all))
    }

    fn jwt(&mut self) -> Option<jwt::Jwt> {
        let verify = self.verify;
        let Some([header]) = verify.header.as_ref().map(Texts::all) else {
            self.problem("verify.header", "must name the one header that holds the JWT");
            return None;
        };
        let header = self.kept(places::header_name(header, "verify.header"));
        let claim =
            |text: Option<&String>| text.and_then(|text| text.strip_prefix("claim:")).map(|name| format!("/{name}"));
        let time = claim(verify.timestamp.as_ref().and_then(|texts| texts.all().first()));
        if time.is_none() {
            self.problem("verify.timestamp", "must name a claim: most senders mean `claim:iat`");
        }
        let hash = claim(verify.body_hash.as_ref());
        if hash.is_none() {
            self.problem(
                "verify.body_hash",
                "must name the claim that holds the body's hash, such as `claim:request_body_sha256`: a JWT covers no body of its own",
            );
        }
        let window = self.stated_window();
        Some(jwt::Jwt { header: header?, window: window?, time: time?, hash: hash? })
    }

    fn message(&mut self) -> Option<message::Message> {
        let algorithm = match self.verify.algorithm {
            Some(Scheme::EcdsaP256Sha256) => Scheme::EcdsaP256Sha256Raw,
            Some(
                algorithm @ (Scheme::HmacSha256
                | Scheme::Ed25519
                | Scheme::EcdsaP256Sha256Raw
                | Scheme::RsaPkcs1Sha256
                | Scheme::RsaPssSha512),
            ) => algorithm,
            _ => {
                let advice = "must be hmac-sha256, ed25519, ecdsa-p256-sha256, rsa-pkcs1-sha256 or rsa-pss-sha512";
                self.problem("verify.algorithm", advice);
                return None;
            }
        };
        let components: Vec<String> = self.verify.components.clone().unwrap_or_default();
        if !components.iter().any(|component| component == "content-digest") && self.verify.partial != Some(true) {
            self.problem(
                "verify.components",
                "leaves out \"content-digest\", so anyone could change the event: add it, or state `partial = true`",
            );
        }
        let upper = |component: &String| component.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'"');
        if components.iter().any(upper) {
            self.problem("verify.components", "are written in lower case and without quotes");
        }
        let window = self.stated_window();
        let origin = self.origin(true, "addresses may be signed");
        Some(message::Message { algorithm, components, window: window?, origin })
    }

    fn fetched(&mut self, plan: Option<&Plan>, schemes: &[Scheme]) -> Option<Fetched> {
        if let Some(Plan::Signature(plan)) = plan {
            let (_, rule) = plan.certificate.as_ref()?;
            return Some(Fetched::new(Origin::Certificate(rule.clone(), schemes.to_vec())));
        }
        let keys = self.verify.keys.as_ref()?;
        if !keys.url.starts_with("https://") || keys.url.len() > 512 {
            self.problem("verify.keys.url", "must begin with https://: a key from anywhere else proves nothing");
        }
        Some(Fetched::new(Origin::Jwk { url: keys.url.clone(), ask: keys.ask }))
    }

    fn own_keys(
        &mut self,
        spec: &SourceSpec,
        schemes: &[Scheme],
        secrets: &[ResolvedSecret],
        fetched: bool,
    ) -> Vec<Key> {
        if secrets.is_empty() && !fetched {
            self.problem("secrets", "is empty: add the secret the sender shows, such as `env:NAME`");
        }
        for (index, secret) in secrets.iter().enumerate() {
            let same_tenant = |other: &&ResolvedSecret| other.tenant == secret.tenant;
            if secrets[..index].iter().filter(same_tenant).count() == SECRETS_MAX {
                self.problem(&secret.key, format!("is one too many: at most {SECRETS_MAX} at a time"));
            }
        }
        let forming = Forming {
            form: self.verify.secret.unwrap_or(SecretForm::Utf8),
            prefix: self.verify.secret_prefix.as_deref(),
            stripped: self.verify.key_prefix.as_deref(),
            allow_weak: spec.allow_weak_secret.unwrap_or(false),
        };
        let schemes: SmallVec<[Scheme; 1]> = schemes.into();
        secrets.iter().filter_map(|secret| self.kept(Key::make(secret, &schemes, forming))).collect()
    }
}

/// How a scheme's signatures are written.
fn coding(scheme: Scheme, encoding: Encoding) -> Coding {
    match scheme {
        Scheme::Token => Coding::Text,
        Scheme::Basic => Coding::Basic,
        _ if algorithm_of(scheme).is_some() => match signature_bytes(scheme) {
            (true, bytes) => Coding::Exact(encoding, bytes),
            (false, bytes) => Coding::UpTo(encoding, bytes),
        },
        Scheme::HmacSha1 | Scheme::DigestSha1 => Coding::Exact(encoding, 20),
        Scheme::HmacSha384 => Coding::Exact(encoding, 48),
        Scheme::HmacSha512 => Coding::Exact(encoding, 64),
        _ => Coding::Exact(encoding, 32),
    }
}
