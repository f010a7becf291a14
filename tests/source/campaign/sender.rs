//! Senders with their good requests: every preset with its samples, and every good vector. What a key has signed
//! is known from these; nothing else is authentic.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use secrecy::ExposeSecret as _;
use tidegate::source::{KeyPort, KeyQuestion, ResolvedSecret, Source, SourceSpec};
use toml::{Table, Value};

use super::super::common::{NOW_MS, secret};
use super::super::presets::vectors as of_presets;
use super::super::stated::Entry;
use super::super::vectors::{sources, vector};
use super::claim::Scheme;
use super::judge::{Facts, Outcome, outcome};
use super::wire::Wire;

/// The most seconds that the attempts of one sender lie apart.
const LATER_MS: i64 = 1000;

/// What was signed, and the signature.
type Signed = (Vec<u8>, Vec<u8>);

/// Everything that one key signs.
pub(crate) struct Sender {
    pub(crate) name: String,
    text: String,
    secrets: Vec<ResolvedSecret>,
    owner: Option<Owner>,
    source: Source,
    pub(crate) scheme: Scheme,
    pub(crate) goods: Vec<Good>,
    /// What was signed, with its signature, and the good request it stands in.
    known: HashMap<Signed, usize>,
    /// The same of every sender with this key.
    shared: Arc<HashSet<Signed>>,
    pub(crate) reads: Reads,
}

/// A request that its sender made.
pub(crate) struct Good {
    pub(crate) wire: Wire,
    pub(crate) facts: Facts,
}

/// What a source looks at besides the body, lower case.
#[derive(Default)]
pub(crate) struct Reads {
    /// Headers that verification or rules read.
    pub(crate) headers: BTreeSet<String>,
    /// Those among them that rules read.
    pub(crate) by_rules: BTreeSet<String>,
    /// Whether anything reads the address.
    pub(crate) target: bool,
    /// Whether rules read the query.
    pub(crate) query_by_rules: bool,
}

/// The owner of a key that is fetched: knows it by the addresses that the sender itself names.
struct Owner {
    key: Bytes,
    asked: Mutex<BTreeSet<String>>,
}

/// Asks the owner; a new address is learnt only from good requests.
struct Port<'o> {
    owner: &'o Owner,
    learns: bool,
}

#[async_trait::async_trait]
impl KeyPort for Port<'_> {
    async fn ask(&self, _: &str, question: &KeyQuestion) -> Result<Bytes, String> {
        let id = format!("{} {}", question.url, question.body.as_deref().unwrap_or_default());
        let mut asked = self.owner.asked.lock().map_err(|error| error.to_string())?;
        if self.learns {
            asked.insert(id.clone());
        }
        if asked.contains(&id) { Ok(self.owner.key.clone()) } else { Err("no such key".to_owned()) }
    }
}

impl Sender {
    fn new(name: &str, text: &str, secrets: Vec<ResolvedSecret>, owner: Option<Bytes>, wires: Vec<Wire>) -> Self {
        let table = whole(text.parse().expect("settings"));
        let owner = owner.map(|key| Owner { key, asked: Mutex::default() });
        let mut sender = Self {
            name: name.to_owned(),
            source: compiled(name, text, &secrets),
            text: text.to_owned(),
            secrets,
            owner,
            scheme: Scheme::of(&table),
            goods: Vec::new(),
            known: HashMap::new(),
            shared: Arc::default(),
            reads: Reads::of(&table),
        };
        for wire in wires {
            sender.take_in(wire);
        }
        sender
    }

    fn take_in(&mut self, wire: Wire) {
        let facts = match self.judged(&wire, true) {
            Outcome::Taken(facts) => facts,
            other => panic!("{}: a good request is not taken: {other:?}\n{}", self.name, wire.as_http()),
        };
        let claims = self.scheme.claims(&wire).unwrap_or_default();
        for claim in claims.into_iter().flatten() {
            for signature in claim.signatures {
                self.known.entry((claim.signed.clone(), signature)).or_insert(self.goods.len());
            }
        }
        self.goods.push(Good { wire, facts });
        let place = self.goods.len() - 1;
        assert!(self.authentic(&self.goods[place].wire).is_some(), "{}: its own signature is unknown", self.name);
    }

    /// What becomes of a request. Where keys are fetched nothing is remembered from one request to the next.
    pub(crate) fn outcome(&self, wire: &Wire) -> Outcome {
        self.judged(wire, false)
    }

    fn judged(&self, wire: &Wire, learns: bool) -> Outcome {
        let Some(owner) = &self.owner else { return outcome(&self.source, wire, None) };
        let source = compiled(&self.name, &self.text, &self.secrets);
        outcome(&source, wire, Some(&Port { owner, learns }))
    }

    /// Whether its key is asked for; then a good request may also find nobody to ask.
    pub(crate) const fn fetches(&self) -> bool {
        self.owner.is_some()
    }

    /// By how much a good request may come later or earlier without any of its keys having ended.
    pub(crate) const fn steady_ms(&self) -> u64 {
        if self.fetches() { 60_000 } else { u64::MAX }
    }

    /// The good requests whose signatures stand in this one over what they signed, one for each item; `None` where
    /// something is signed that its sender did not sign, or at another time.
    pub(crate) fn authentic(&self, wire: &Wire) -> Option<Vec<usize>> {
        let each = self.scheme.claims(wire)?.into_iter().map(|claims| {
            claims.into_iter().find_map(|claim| {
                if !self.in_time(claim.time.as_deref(), wire.now_ms) {
                    return None;
                }
                let known = |signature| self.known.get(&(claim.signed.clone(), signature)).copied();
                claim.signatures.into_iter().find_map(known)
            })
        });
        each.collect()
    }

    /// Whether the sender of another source signed what this request says, under the same key.
    pub(crate) fn signed_under_the_same_key(&self, wire: &Wire) -> bool {
        self.scheme.claims(wire).is_some_and(|items| {
            items.into_iter().all(|claims| {
                claims.into_iter().any(|claim| {
                    let mut signatures = claim.signatures.into_iter();
                    let known = signatures.any(|signature| self.shared.contains(&(claim.signed.clone(), signature)));
                    known && self.in_time(claim.time.as_deref(), wire.now_ms)
                })
            })
        })
    }

    fn key(&self) -> String {
        let own = self.secrets.iter().map(|secret| secret.value.expose_secret()).collect::<Vec<_>>().join("\n");
        self.owner.as_ref().map_or(own, |owner| String::from_utf8_lossy(&owner.key).into_owned())
    }

    fn in_time(&self, time: Option<&[u8]>, now_ms: i64) -> bool {
        let Some((past_ms, future_ms)) = self.scheme.window_ms() else { return true };
        let Some(time_ms) = time.and_then(|time| super::text::time_ms(time, self.scheme.unit())) else { return false };
        let age_ms = i128::from(now_ms) - time_ms;
        age_ms <= past_ms && future_ms.is_none_or(|future_ms| -age_ms <= future_ms)
    }
}

/// Lets senders with one key know what each of them signed.
pub(crate) fn share<'s>(senders: impl Iterator<Item = &'s mut Sender>) {
    let mut by_key: HashMap<String, Vec<&mut Sender>> = HashMap::new();
    for sender in senders {
        by_key.entry(sender.key()).or_default().push(sender);
    }
    for senders in by_key.into_values().filter(|senders| senders.len() > 1) {
        let all: HashSet<Signed> = senders.iter().flat_map(|sender| sender.known.keys().cloned()).collect();
        let all = Arc::new(all);
        senders.into_iter().for_each(|sender| sender.shared = Arc::clone(&all));
    }
}

fn compiled(name: &str, text: &str, secrets: &[ResolvedSecret]) -> Source {
    let spec: SourceSpec = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    Source::compile(&spec, secrets).unwrap_or_else(|problems| panic!("{name}: {problems:?}"))
}

/// The settings of a source with what its preset says, put together by hand.
fn whole(mut table: Table) -> Table {
    let Some(preset) = table.remove("preset") else { return table };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/source/presets");
    let preset = preset.as_str().expect("a name");
    let text = std::fs::read_to_string(format!("{folder}/{preset}.toml")).expect("a preset");
    let mut base = whole(text.parse().expect("a preset"));
    for (key, value) in table {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(known)), Value::Table(own)) if key == "verify" && !own.contains_key("scheme") => {
                known.extend(own);
            }
            (_, value) => drop(base.insert(key, value)),
        }
    }
    base
}

impl Reads {
    fn of(table: &Table) -> Self {
        let mut reads = Self::default();
        for (key, value) in table {
            let text = value.to_string();
            let named = named_headers(&text);
            if key != "verify" {
                reads.by_rules.extend(named.iter().cloned());
                reads.query_by_rules |= text.contains("query:");
            }
            reads.headers.extend(named);
            reads.target |=
                ["{url", "{target", "{path", "query:", "@", "contentful"].iter().any(|word| text.contains(word));
        }
        let verify = table.get("verify").and_then(Value::as_table).cloned().unwrap_or_default();
        for key in ["header", "also_header", "id", "components"] {
            let texts = verify.get(key).map(ToString::to_string).unwrap_or_default();
            let names =
                texts.split(|letter: char| !(letter.is_ascii_alphanumeric() || b"-_".contains(&(letter as u8))));
            reads.headers.extend(names.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase));
        }
        let usual =
            ["webhook-id", "webhook-timestamp", "webhook-signature", "authorization", "signature", "content-digest"];
        reads.headers.extend(usual.map(str::to_owned));
        reads.headers.extend(["signature-input", "content-type", "content-encoding"].map(str::to_owned));
        reads
    }

    /// Whether a header may matter.
    pub(crate) fn header(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        // numbered and listed headers are known by their beginning
        self.headers.contains(&name) || ["x-docusign-", "x-contentful-"].iter().any(|start| name.starts_with(start))
    }
}

fn named_headers(text: &str) -> BTreeSet<String> {
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    let names = text.split("header:").skip(1).map(|rest| rest.split(is_end).next().unwrap_or_default());
    names.map(str::to_ascii_lowercase).collect()
}

/// Every preset with its samples, signed twice and as they come again.
pub(crate) fn presets() -> Vec<Sender> {
    let all = Entry::all().into_iter().map(|entry| {
        let source = entry.source();
        let mut wires = Vec::new();
        for sample in &entry.samples {
            let mut bodies = vec![(sample.body(), NOW_MS)];
            bodies.push((sample.body_again(), NOW_MS + LATER_MS));
            for (body, now_ms) in bodies {
                let sent = sample.sent(&source, "/in/test", body, now_ms);
                let request = sent.request();
                let wire = Wire::of(request.method, request.target, request.headers, request.body, request.now_ms);
                if !wires.contains(&wire) {
                    wires.push(wire);
                }
            }
        }
        let (secrets, owner) = match entry.fetched {
            true => (Vec::new(), Some(entry.secret().into())),
            false => (vec![secret(&entry.secret())], None),
        };
        Sender::new(&entry.name, &entry.settings(), secrets, owner, wires)
    });
    all.collect()
}

/// Every good vector, under the settings that the vectors describe and under the presets it belongs to.
pub(crate) fn vectors() -> Vec<Sender> {
    let mut all = Vec::new();
    let of = |entry: &Entry| of_presets::of_schemes(&entry.vectors).map(|vector| vector.id).collect::<BTreeSet<_>>();
    let entries: Vec<_> = Entry::all().into_iter().map(|entry| (of(&entry), entry)).collect();
    for vector in vector::all().iter().filter(|vector| super::super::vectors::wanted(vector) == Some(Ok(()))) {
        let described = sources::of(vector);
        let mut settings = vec![(
            vector.id.clone(),
            format!("name = 'test'\nallow_weak_secret = true\n{}", described.text),
            described.fetched,
        )];
        let mine = entries.iter().filter(|(ids, _)| ids.contains(&vector.id));
        settings.extend(mine.map(|(_, entry)| {
            let text = format!("name = 'test'\n{}", of_presets::settings_of(entry, vector));
            (format!("{} under {}", vector.id, entry.name), text, entry.fetched)
        }));
        for (name, text, fetched) in settings {
            let texts = vector.secrets.clone().unwrap_or_else(|| vec![vector.secret.clone()]);
            let secrets = if fetched { Vec::new() } else { texts.iter().map(|text| secret(text)).collect() };
            let owner = fetched.then(|| Bytes::from(vector.secret.clone()));
            let taken = vector.taken();
            let packed = taken.headers.contains_key("content-encoding") && !text.contains("content_encoding");
            let coding = if packed { "content_encoding = { gzip = 'signed-encoded' }\n" } else { "" };
            let text = format!("{coding}{text}");
            let wire = Wire::of(&taken.method, &taken.target, &taken.headers, &taken.body, taken.now_ms);
            let mut sender = Sender::new(&name, &text, secrets, owner, Vec::new());
            // vectors leave out what is not signed; a preset takes what its sender sends
            let known =
                ["application/json", "application/x-www-form-urlencoded"].map(|kind| wire.with_content_type(kind));
            let mut written = std::iter::once(wire.clone()).chain(known);
            let fits = written.find(|wire| matches!(sender.judged(wire, true), Outcome::Taken(_)));
            match fits {
                Some(wire) => sender.take_in(wire),
                None if name.contains(" under ") => continue,
                None => panic!("{name} is not taken:\n{}", wire.as_http()),
            }
            all.push(sender);
        }
    }
    all
}
