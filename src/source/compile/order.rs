//! The rules of order of a source and of its narrowed types, with every contradiction between them.
//!
//! Owns which settings belong to which policy and what each policy needs. What a policy means is in the
//! engine's rules. Faults are collected, never the first one only.

use std::sync::Arc;
use std::time::Duration;

use tidegate_actors::rules::graph::{Graph, GraphError};
use tidegate_actors::rules::order::{EpochOn, Merge, OnGap, Order, Policy, Tie, Wait};

use super::Compiler;
use crate::source::pattern::Patterns;
use crate::source::reference::Reference;
use crate::source::rules::{StateRule, StepRule, VersionPart};
use crate::source::spec::{
    EpochSpec, MergeSpec, NarrowSpec, OnGapSpec, OnMissingVersion, OrderSpec, PolicySpec, SourceSpec, Span, StartSpec,
    Texts, TieSpec, VersionForm,
};

const MS: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);
/// How long an event waits for a gap to close where the source says nothing else.
const HOLD_FOR_DEFAULT: Duration = Duration::from_secs(30);

/// What one rule is made of, each with the key it stands at.
struct Stated<'s> {
    order: (String, OrderSpec),
    version: (String, Vec<VersionPart>),
    merge: (String, MergeSpec),
    state: (String, Option<&'s String>),
    epoch_on: (String, Option<EpochSpec>),
    has_resource: bool,
    narrowed: bool,
}

/// A value, from the narrowed rule or else from the source, and the key it stands at.
fn stated<'s, T>(
    prefix: &str,
    name: &str,
    narrowed: Option<&'s Option<T>>,
    general: &'s Option<T>,
) -> (String, Option<&'s T>) {
    match narrowed.and_then(Option::as_ref) {
        Some(own) => (format!("{prefix}{name}"), Some(own)),
        None => (name.to_owned(), general.as_ref()),
    }
}

impl Compiler {
    /// What state the events change and how they are ordered: the source's, or that of narrowed types.
    pub(super) fn state(&mut self, prefix: &str, spec: &SourceSpec, narrow: Option<&NarrowSpec>) -> StateRule {
        let (key, resource) = stated(prefix, "resource", narrow.map(|narrow| &narrow.resource), &spec.resource);
        let resource = resource.map(|resource| self.resource(&key, resource));
        let (version_key, parts) = stated(prefix, "version", narrow.map(|narrow| &narrow.version), &spec.version);
        let version = parts.map_or_else(Vec::new, |parts| self.version(&version_key, parts));
        let (order_key, order) = stated(prefix, "order", narrow.map(|narrow| &narrow.order), &spec.order);
        let (merge_key, merge) = stated(prefix, "merge", narrow.map(|narrow| &narrow.merge), &spec.merge);
        let (epoch_key, epoch_on) = stated(prefix, "epoch_on", narrow.map(|narrow| &narrow.epoch_on), &spec.epoch_on);
        let rule = Stated {
            order: (order_key, order.cloned().unwrap_or_default()),
            version: (version_key, version),
            merge: (merge_key, merge.copied().unwrap_or_default()),
            state: stated(prefix, "state", narrow.map(|narrow| &narrow.state), &spec.state),
            epoch_on: (epoch_key, epoch_on.copied()),
            has_resource: resource.is_some(),
            narrowed: narrow.is_some(),
        };
        let (policy, step) = self.policy(&rule, spec);
        let state = self.fields(&rule, &policy, spec);
        let epoch_on = self.epoch_on(&rule, &policy);
        let (key, effect_key) = stated(prefix, "effect_key", narrow.map(|narrow| &narrow.effect_key), &spec.effect_key);
        let effect_key = effect_key.map_or_else(Vec::new, |texts| self.effect_key(&key, texts, spec));
        let (key, delete) = stated(prefix, "delete", narrow.map(|narrow| &narrow.delete), &spec.delete);
        let delete = delete.and_then(|delete| self.delete(&key, delete));
        let merge = if state.is_some() { Merge::Fields } else { Merge::Replace };
        let strict = matches!(policy, Policy::Sequence { .. } | Policy::Window { .. });
        let version_needed = match spec.on_missing_version {
            Some(stated) => stated == OnMissingVersion::Quarantine,
            None => strict,
        };
        let order = Arc::new(Order { policy, merge, epoch_on, judged: false });
        StateRule { resource, version: rule.version.1, version_needed, order, step, state, effect_key, delete }
    }

    fn policy(&mut self, rule: &Stated<'_>, spec: &SourceSpec) -> (Policy, Option<StepRule>) {
        let (key, order) = (rule.order.0.as_str(), &rule.order.1);
        let version = rule.version.1.as_slice();
        let named = order.policy.unwrap_or(if version.is_empty() { PolicySpec::Arrival } else { PolicySpec::Newest });
        self.foreign(key, order, named);
        if !rule.has_resource && !matches!(named, PolicySpec::Newest | PolicySpec::Arrival) {
            let message = format!(
                "is `{}`, and there is no `resource`: only events of one resource can wait for each other",
                named.name()
            );
            self.problem(key, message);
        }
        let tie = tie(order, version);
        match named {
            PolicySpec::Arrival => (Policy::Arrival, None),
            // a narrowed rule may drop the version of a `newest` source: those events apply as they come
            PolicySpec::Newest if version.is_empty() && rule.narrowed => (Policy::Arrival, None),
            PolicySpec::Newest => {
                self.needs_version(rule, named, "use `arrival`");
                (Policy::Newest { tie }, None)
            }
            PolicySpec::Sequence => (self.sequence(rule, spec), None),
            PolicySpec::Transition => self.transition(rule, spec, tie),
            PolicySpec::Window => {
                self.needs_version(rule, named, "use `arrival`");
                let at = format!("{key}.window");
                let window_ms = match order.window {
                    Some(window) => self.span(&at, window, 10 * MS, DAY, "10ms to 1d"),
                    None => {
                        self.problem(&at, "is missing: say how long each event is held, 10ms to 1d".to_owned());
                        1
                    }
                };
                (Policy::Window { window_ms, tie }, None)
            }
            PolicySpec::Refetch => {
                self.needs_refetch(key, spec);
                (Policy::Refetch, None)
            }
        }
    }

    /// Settings that belong to another policy.
    fn foreign(&mut self, key: &str, order: &OrderSpec, policy: PolicySpec) {
        use PolicySpec::{Newest, Sequence, Transition, Window};
        let table: [(&str, bool, &[PolicySpec]); 8] = [
            ("tie", order.tie.is_some(), &[Newest, Transition, Window]),
            ("start", order.start.is_some(), &[Sequence, Transition]),
            ("hold_for", order.hold_for.is_some(), &[Sequence, Transition]),
            ("on_gap", order.on_gap.is_some(), &[Sequence, Transition]),
            ("step", order.step.is_some(), &[Transition]),
            ("graph", order.graph.is_some(), &[Transition]),
            ("ranks", order.ranks.is_some(), &[Transition]),
            ("window", order.window.is_some(), &[Window]),
        ];
        for (name, stated, of) in table {
            if stated && !of.contains(&policy) {
                let of = of.iter().map(|policy| format!("`{}`", policy.name())).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "belongs to the policy {of}, and this one is `{}`: take it out, or state the policy",
                    policy.name()
                );
                self.problem(&format!("{key}.{name}"), message);
            }
        }
    }

    fn needs_version(&mut self, rule: &Stated<'_>, policy: PolicySpec, or_else: &str) {
        let (order, version) = (&rule.order.0, &rule.version.0);
        if rule.version.1.is_empty() && version.len() > "version".len() && order == "order" {
            let message =
                format!("is empty, and the policy is `{}`: state a version, or the order here too", policy.name());
            self.problem(version, message);
        } else if rule.version.1.is_empty() {
            self.problem(order, format!("is `{}` without a version: state `version`, or {or_else}", policy.name()));
        }
    }

    fn needs_refetch(&mut self, key: &str, spec: &SourceSpec) {
        if spec.refetch.is_none() {
            let message = "asks the provider, and nothing says where: state refetch = { url = \"https://…/{id}\" }";
            self.problem(key, message.to_owned());
        }
    }

    fn sequence(&mut self, rule: &Stated<'_>, spec: &SourceSpec) -> Policy {
        let (key, order) = (rule.order.0.as_str(), &rule.order.1);
        self.needs_version(rule, PolicySpec::Sequence, "use `arrival`");
        if !rule.version.1.is_empty() && !is_one_integer(&rule.version.1) {
            let message = "must be one part `as = \"integer\"` under the policy `sequence`, which counts by one: \
                           leave the other parts out, or use `newest`";
            self.problem(&rule.version.0, message.to_owned());
        }
        let start = match &order.start {
            None => 1,
            Some(StartSpec::Number(start)) => *start,
            Some(StartSpec::Steps(_)) => {
                let message = "must be a whole number under the policy `sequence`: the number of the first event";
                self.problem(&format!("{key}.start"), message.to_owned());
                1
            }
        };
        Policy::Sequence { start, wait: self.wait(key, order, spec) }
    }

    fn transition(&mut self, rule: &Stated<'_>, spec: &SourceSpec, tie: Tie) -> (Policy, Option<StepRule>) {
        let (key, order) = (rule.order.0.as_str(), &rule.order.1);
        let wait = self.wait(key, order, spec);
        let from = match &order.step {
            Some(step) => self.reference(&format!("{key}.step"), step),
            None if spec.kind.is_none() => {
                let message = "is missing, and so is `type`: name where the step of an event stands";
                self.problem(&format!("{key}.step"), message.to_owned());
                None
            }
            None => self.reference(&format!("{key}.step"), "type"),
        };
        let graph = self.graph(rule);
        match (graph, from) {
            (Some(graph), Some(from)) => {
                let step = StepRule { from, patterns: Patterns::new(graph.names()), names: graph.names().to_vec() };
                (Policy::Transition { graph: Arc::new(graph), tie, wait }, Some(step))
            }
            // said already
            _ => (Policy::Arrival, None),
        }
    }

    fn graph(&mut self, rule: &Stated<'_>) -> Option<Graph> {
        let (key, order) = (rule.order.0.as_str(), &rule.order.1);
        let (name, graph) = match (&order.graph, &order.ranks) {
            (Some(following), None) => {
                let starts = match &order.start {
                    None => &[],
                    Some(StartSpec::Steps(steps)) => steps.all(),
                    Some(StartSpec::Number(_)) => {
                        let message = "must name steps of `graph` under the policy `transition`";
                        self.problem(&format!("{key}.start"), message.to_owned());
                        &[]
                    }
                };
                let known = |step: &String| following.iter().any(|(from, to)| from == step || to.contains(step));
                for unknown in starts.iter().filter(|start| !known(start)) {
                    let message = format!("names {unknown:?}, which is no step of `graph`: correct it");
                    self.problem(&format!("{key}.start"), message);
                }
                ("graph", Graph::edges(following, starts))
            }
            (None, Some(ranks)) => {
                if order.start.is_some() {
                    let message = "belongs to `graph`; with `ranks` the first one is the start: take it out";
                    self.problem(&format!("{key}.start"), message.to_owned());
                }
                ("ranks", Graph::ranks(ranks.iter().cloned()))
            }
            (stated, _) => {
                let message = if stated.is_some() {
                    "is `transition` with a `graph` and with `ranks`: leave one of them out"
                } else {
                    "is `transition` without steps: state `graph = { created = [\"paid\"] }` or `ranks`"
                };
                self.problem(key, message.to_owned());
                return None;
            }
        };
        let key = format!("{key}.{name}");
        let graph = graph.map_err(|error: GraphError| self.problem(&key, format!("cannot be used: {error}"))).ok()?;
        if graph.has_cycle() && rule.version.1.is_empty() {
            let message = "has a cycle, so that a step can come again, and without a version nobody can say which round \
                           an event is of: state `version`, or take the cycle out";
            self.problem(&key, message.to_owned());
        }
        Some(graph)
    }

    fn wait(&mut self, key: &str, order: &OrderSpec, spec: &SourceSpec) -> Wait {
        let hold_for = order.hold_for.unwrap_or(Span(HOLD_FOR_DEFAULT));
        let hold_for_ms = self.span(&format!("{key}.hold_for"), hold_for, 100 * MS, 30 * DAY, "100ms to 30d");
        let on_gap = match order.on_gap {
            None | Some(OnGapSpec::Release) => OnGap::Release,
            Some(OnGapSpec::Expire) => OnGap::Expire,
            Some(OnGapSpec::Refetch) => {
                self.needs_refetch(&format!("{key}.on_gap"), spec);
                OnGap::Refetch
            }
        };
        Wait { hold_for_ms, on_gap }
    }

    /// Where the state object stands, if states are put together from members.
    fn fields(&mut self, rule: &Stated<'_>, policy: &Policy, spec: &SourceSpec) -> Option<Reference> {
        let ((merge_key, merge), (state_key, state)) = (&rule.merge, &rule.state);
        if *merge == MergeSpec::Replace {
            if state.is_some() {
                let message = "belongs to `merge = \"fields\"`: state that too, or take it out";
                self.problem(state_key, message.to_owned());
            }
            return None;
        }
        if !rule.has_resource {
            let message = "is `fields`, and there is no `resource` whose fields they would be: state `resource`";
            self.problem(merge_key, message.to_owned());
        }
        if rule.version.1.is_empty() {
            let message = "is `fields`, which keeps a version for each member, and there is none: state `version`";
            self.problem(merge_key, message.to_owned());
        } else if matches!(policy, Policy::Arrival | Policy::Refetch) {
            let message =
                "is `fields`, which needs a policy that looks at versions: use `newest`, or `merge = \"replace\"`";
            self.problem(merge_key, message.to_owned());
        }
        let whole = if spec.batch.is_some() { "item:" } else { "body:" };
        let state = self.reference(state_key, state.map_or(whole, String::as_str))?;
        if !state.is_json() {
            let message = format!("is {:?}, which is no JSON object: use body:/pointer or item:/pointer", state.text);
            self.problem(state_key, message);
        }
        Some(state)
    }

    fn epoch_on(&mut self, rule: &Stated<'_>, policy: &Policy) -> Option<EpochOn> {
        let (key, Some(spec)) = (rule.epoch_on.0.as_str(), rule.epoch_on.1) else { return None };
        if !is_one_integer(&rule.version.1) {
            let message = "is about a counter: the version must be one part `as = \"integer\"`";
            self.problem(key, message.to_owned());
        }
        if !matches!(policy, Policy::Newest { .. } | Policy::Sequence { .. } | Policy::Window { .. }) {
            let message = "goes with the policies `newest`, `sequence` and `window`: take it out, or state one of them";
            self.problem(key, message.to_owned());
        }
        if spec.falls_by == 0 {
            let message = "must be at least 1, got 0: by how much a late event may be behind without being a new start";
            self.problem(&format!("{key}.falls_by"), message.to_owned());
        }
        let after_idle = |idle| self.span(&format!("{key}.after_idle"), idle, 1000 * MS, 400 * DAY, "1s to 400d");
        Some(EpochOn { falls_by: spec.falls_by, after_idle_ms: spec.after_idle.map(after_idle) })
    }

    fn effect_key(&mut self, key: &str, texts: &Texts, spec: &SourceSpec) -> Vec<Reference> {
        // an empty list is how narrowed types have none
        if texts.all().is_empty() {
            return Vec::new();
        }
        let references = self.references(key, texts);
        if !references.is_empty() && references.iter().all(Reference::is_constant) {
            self.problem(key, "is the same for every event, so only the first would have an effect".to_owned());
        }
        if spec.key.as_ref().is_some_and(|own| own.all() == texts.all()) {
            self.problem(key, "is the same as `key`, which is unique already: take it out".to_owned());
        }
        if spec.batch.is_some() && !references.is_empty() && !references.iter().any(Reference::tells_items_apart) {
            let message = "reads nothing of the item, so only the first of a batch would have an effect: \
                           add a part that reads `item:`";
            self.problem(key, message.to_owned());
        }
        references
    }

    pub(super) fn span(&mut self, key: &str, span: Span, least: Duration, most: Duration, bounds: &str) -> i64 {
        if !(least..=most).contains(&span.0) {
            self.problem(key, format!("must be a duration, {bounds}, got {span}"));
        }
        i64::try_from(span.0.as_millis()).unwrap_or(i64::MAX)
    }
}

fn is_one_integer(version: &[VersionPart]) -> bool {
    matches!(version, [part] if part.form == VersionForm::Integer)
}

fn tie(order: &OrderSpec, version: &[VersionPart]) -> Tie {
    let timed = version.iter().any(|part| !matches!(part.form, VersionForm::Integer | VersionForm::Rank));
    match order.tie {
        Some(TieSpec::Apply) => Tie::Apply,
        Some(TieSpec::Keep) => Tie::Keep,
        None if timed && order.policy != Some(PolicySpec::Transition) => Tie::Apply,
        None => Tie::Keep,
    }
}
