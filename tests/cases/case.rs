//! A case as data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// A sequence of requests with the right result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Public reports of the fault.
    #[serde(rename = "seen_in")]
    _seen_in: Vec<String>,
    /// The wall clock at `at_ms` = 0.
    clock: String,
    /// Sources as in a settings file.
    pub(crate) sources: Vec<Value>,
    pub(crate) arrivals: Vec<Arrival>,
    /// Settings that must not load.
    #[serde(default)]
    pub(crate) refused_settings: Vec<RefusedSettings>,
    #[serde(default)]
    pub(crate) faults: Vec<Fault>,
    /// What the provider's API answers, by resource id; of others it knows nothing.
    #[serde(default)]
    pub(crate) provider: BTreeMap<String, String>,
    /// The result is looked at once nothing waits any more.
    #[serde(default)]
    pub(crate) settles: bool,
    pub(crate) expect: Expect,
    /// The same arrivals under other rules of order.
    #[serde(default)]
    also_under: Vec<Under>,
}

/// Other rules of order, and what is different with them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Under {
    /// What they are, for people.
    name: String,
    /// Fields of the source that are replaced; null takes one out.
    source: serde_json::Map<String, Value>,
    #[serde(default)]
    provider: BTreeMap<String, String>,
    #[serde(default)]
    settles: bool,
    verdicts: Option<Vec<Option<String>>>,
    /// Left out with a provider: its answers apply, and which signals they settle is free.
    applied: Option<Vec<String>>,
    #[serde(rename = "final")]
    final_state: Option<BTreeMap<String, FinalState>>,
}

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arrival {
    pub(crate) at_ms: i64,
    #[serde(default = "post")]
    pub(crate) method: String,
    pub(crate) source: Option<String>,
    /// What follows the path and a question mark.
    #[serde(default)]
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Header values that are no text.
    #[serde(default)]
    pub(crate) headers_base64: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: String,
}

fn post() -> String {
    "POST".to_owned()
}

/// Secrets of a source that must be refused at load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusedSettings {
    pub(crate) source: String,
    pub(crate) secrets: Vec<String>,
}

/// What breaks, and for how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) at_ms: i64,
    pub(crate) until_ms: Option<i64>,
    pub(crate) what: What,
    #[serde(rename = "delay_ms")]
    _delay_ms: Option<i64>,
}

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Recording the event fails inside the transaction.
    HandlerError,
    /// The transaction hangs.
    HandlerDelay,
    /// The process is told to end.
    Sigterm,
    /// A new process takes over.
    StartProcess,
    /// The cache forgets everything.
    RedisFlush,
    /// The store is away.
    PostgresDown,
}

/// The right result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// One for each arrival: `2xx`, `401`, or a list of which one must hold.
    pub(crate) statuses: Vec<Value>,
    /// One for each arrival; null: no verdict is expected.
    #[serde(default)]
    pub(crate) verdicts: Vec<Option<String>>,
    /// Of batches: the verdicts of each one's items.
    #[serde(default)]
    pub(crate) items: Vec<Vec<String>>,
    /// Events parked because a counter fell.
    pub(crate) regressions: Option<i64>,
    /// How often each request in quarantine came, the newest first.
    pub(crate) quarantined_times: Option<Vec<i64>>,
    /// Where the order among copies is free.
    #[serde(default)]
    pub(crate) verdict_counts: BTreeMap<String, usize>,
    /// Keys in the order applied.
    pub(crate) applied: Option<Vec<String>>,
    pub(crate) applied_count: Option<usize>,
    #[serde(default)]
    pub(crate) applied_includes: Vec<String>,
    /// Of the bodies kept, in order of arrival; null: none is kept.
    #[serde(default)]
    pub(crate) raw_sha256: Vec<Option<String>>,
    /// `type/id` to version, tombstone and parts of the state.
    #[serde(default, rename = "final")]
    pub(crate) final_state: BTreeMap<String, FinalState>,
    #[serde(default, rename = "applied_by_ms")]
    _applied_by_ms: Option<i64>,
}

impl Expect {
    /// Whether requests of one instant are sent at once; else they come one after the other.
    pub(crate) fn order_is_free(&self) -> bool {
        !self.verdict_counts.is_empty() || !self.applied_includes.is_empty()
    }
}

/// What a resource must hold in the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FinalState {
    pub(crate) version: Option<Value>,
    #[serde(default)]
    pub(crate) deleted: bool,
    pub(crate) epoch: Option<i64>,
    pub(crate) step: Option<String>,
    /// Fields of `/data` in the body that is the state, or of the state that was put together.
    #[serde(default)]
    pub(crate) data: BTreeMap<String, Value>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/data")
}

impl Case {
    /// Reads one case.
    pub(crate) fn load(id: &str) -> Self {
        let path = folder().join(format!("{id}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let case: Self = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(case.id, id);
        assert_eq!(case.expect.statuses.len(), case.arrivals.len(), "{id}: a status for each arrival");
        case
    }

    /// The same case under each of the other rules that fit it.
    pub(crate) fn under_other_rules(&self) -> Vec<Self> {
        let under = |rules: &Under| {
            let mut case = self.clone();
            case.title = format!("{} (under {})", self.title, rules.name);
            let source = case.sources[0].as_object_mut().expect("a source");
            for (field, value) in &rules.source {
                match value {
                    Value::Null => drop(source.remove(field)),
                    value => drop(source.insert(field.clone(), value.clone())),
                }
            }
            (case.provider, case.settles) = (rules.provider.clone(), rules.settles);
            let expect = &mut case.expect;
            expect.verdicts = rules.verdicts.clone().unwrap_or_else(|| expect.verdicts.clone());
            expect.applied = match &rules.applied {
                None if rules.source.contains_key("refetch") => None,
                None => expect.applied.clone(),
                stated => stated.clone(),
            };
            expect.final_state = rules.final_state.clone().unwrap_or_else(|| expect.final_state.clone());
            case
        };
        self.also_under.iter().map(under).collect()
    }

    /// All there are.
    pub(crate) fn ids() -> Vec<String> {
        let files = std::fs::read_dir(folder()).expect("the folder of cases");
        let mut ids: Vec<_> = files
            .map(|file| file.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        ids.sort();
        ids
    }

    /// The wall clock at `at_ms` = 0, in milliseconds since 1970.
    pub(crate) fn starts_at_ms(&self) -> i64 {
        self.clock.parse::<jiff::Timestamp>().expect("a time").as_millisecond()
    }

    /// Its settings file, with these sources.
    pub(crate) fn settings(&self) -> String {
        settings(&self.sources)
    }

    /// The settings that must be refused, each as a whole file.
    pub(crate) fn refused(&self) -> Vec<String> {
        let with_secrets = |refused: &RefusedSettings| {
            let mut sources = self.sources.clone();
            for source in sources.iter_mut().filter(|source| source["name"] == refused.source.as_str()) {
                source["secrets"] = refused.secrets.iter().map(|secret| format!("demo:{secret}")).collect();
            }
            settings(&sources)
        };
        self.refused_settings.iter().map(with_secrets).collect()
    }
}

/// Cases have dates of their own, and the store's upkeep goes by today's: nothing is to grow too old.
const KEEP: &str = "[keys]\nwindow = \"400d\"\n[events]\nretention = \"3650d\"\n";

/// A settings file; secrets in it are marked as what they are, not secret.
fn settings(sources: &[Value]) -> String {
    let mut sources = sources.to_vec();
    for secret in sources.iter_mut().filter_map(|source| source["secrets"].as_array_mut()).flatten() {
        let text = secret.as_str().expect("a text");
        *secret = format!("demo:{}", text.strip_prefix("demo:").unwrap_or(text)).into();
    }
    format!("{KEEP}{}", toml::to_string(&BTreeMap::from([("source", sources)])).expect("a settings file"))
}

impl Arrival {
    /// Its headers as bytes.
    pub(crate) fn header_bytes(&self) -> Vec<(String, Vec<u8>)> {
        let texts = self.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let bytes =
            self.headers_base64.iter().map(|(name, value)| (name.clone(), STANDARD.decode(value).expect("base64")));
        texts.chain(bytes).collect()
    }
}
