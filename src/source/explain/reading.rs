//! What is read out of an authentic request, in words.

use tidegate_actors::rules::event::{Event, Ignored, Intent, Unusable};
use tidegate_actors::rules::order::Policy;

use super::super::spec::DecodeSpec;
use super::super::watch::{Held, Sight};
use super::super::{Item, Reading};
use super::{Case, End, Mark, Step};

/// The most items of a batch that are told one by one.
const ITEMS_MAX: usize = 20;

/// Says what was read, and where that leads.
pub(super) fn steps(case: &Case<'_>, read: Reading, sights: &[Sight], steps: &mut Vec<Step>) -> End {
    let rules = &case.source.rules;
    if rules.text.decode != DecodeSpec::Json || rules.text.form_json.is_some() {
        let field = rules.text.form_json.and_then(|field| rules.wants.fields.get(field));
        let from = field.map_or_else(|| "the body".to_owned(), |field| format!("the form field {field:?}"));
        let says = format!("`body:` is {from}, read as {}", decoded(rules.text.decode));
        steps.push(Step::new("decode", Mark::Note, says));
    }
    match read {
        Reading::Event(event) => {
            self::event("event", &event, sights, None, steps);
            End::Event
        }
        Reading::Batch(items) => batch(&items, sights, steps),
        Reading::Unusable(unusable) => {
            self::unusable("event", &unusable, sights, None, steps);
            End::Unusable(unusable.code)
        }
        Reading::Empty | Reading::Greeting(_) => {
            steps.push(Step::new("body", Mark::Bad, "it is empty, so there is nothing to keep"));
            End::Empty
        }
    }
}

const fn decoded(decode: DecodeSpec) -> &'static str {
    match decode {
        DecodeSpec::Json => "JSON",
        DecodeSpec::Xml => "XML",
        DecodeSpec::Base64Json => "base64 of JSON",
        DecodeSpec::Base64Xml => "base64 of XML",
    }
}

fn batch(items: &[Item], sights: &[Sight], steps: &mut Vec<Step>) -> End {
    let count = items.len();
    let says = if count == 0 {
        "no item: a control message, answered and not kept".to_owned()
    } else {
        format!("{count} items")
    };
    steps.push(Step::new("batch", Mark::Good, says));
    let mut unusable = 0;
    for (number, item) in items.iter().enumerate() {
        let what = format!("item {number}");
        match item {
            Item::Event(event) if number < ITEMS_MAX => self::event(&what, event, sights, Some(number), steps),
            Item::Event(_) => {}
            Item::Unusable(flaw) => {
                unusable += 1;
                if unusable <= ITEMS_MAX {
                    self::unusable(&what, flaw, sights, Some(number), steps);
                }
            }
        }
    }
    if count > ITEMS_MAX {
        steps.push(Step::new("batch", Mark::Note, format!("{} items more", count - ITEMS_MAX)));
    }
    End::Batch { items: count, unusable }
}

fn event(what: &str, event: &Event, sights: &[Sight], item: Option<usize>, steps: &mut Vec<Step>) {
    let ignored = match event.intent {
        Intent::Apply => "",
        Intent::Ignore(Ignored::Ping) => ": a ping, recorded and ignored",
        Intent::Ignore(Ignored::UnknownTenant) => ": of a tenant that is not taken, recorded and ignored",
        Intent::Ignore(Ignored::UnwantedType) => ": of a type that is not taken (`types`), recorded and ignored",
    };
    let kind = if event.kind.is_empty() { "without a type" } else { &event.kind };
    steps.push(Step::new(what, Mark::Good, format!("{kind}{ignored}")).with(details(sights, item, "type")));
    steps.push(Step::new("key", Mark::Good, event.key.text.to_string()).with(details(sights, item, "key")));
    if !event.tenant.is_empty() {
        steps.push(Step::new("tenant", Mark::Good, event.tenant.to_string()));
    }
    if event.guards.is_empty() && event.intent == Intent::Apply {
        let says = "none: it passes without being compared with anything";
        steps.push(Step::new("resource", Mark::Note, says).with(details(sights, item, "resource")));
    }
    for (number, guard) in event.guards.iter().enumerate() {
        let more = |what: &str| if number == 0 { details(sights, item, what) } else { Vec::new() };
        let says = format!("{} {}", guard.resource.kind, guard.resource.id);
        steps.push(Step::new("resource", Mark::Good, says).with(more("resource")));
        let version = guard.version.as_ref().map(|version| version.text());
        let (mark, says) = version.map_or((Mark::Note, "none: it applies as it comes"), |text| (Mark::Good, text));
        steps.push(Step::new("version", mark, says).with(more("version")));
    }
    if let Some(key) = &event.effect_key {
        steps.push(Step::new("effect key", Mark::Good, key.text.to_string()).with(details(sights, item, "effect_key")));
    }
    if let Some(step) = &event.step {
        steps.push(Step::new("step", Mark::Good, step.clone()).with(details(sights, item, "step")));
    }
    if event.intent == Intent::Apply {
        let deletes = if event.deletes { "; it deletes the resource" } else { "" };
        steps.push(Step::new("order", Mark::Note, format!("{}{deletes}", policy(&event.order.policy))));
    }
}

const fn policy(policy: &Policy) -> &'static str {
    match policy {
        Policy::Newest { .. } => "newest: applies if it is newer than what is stored",
        Policy::Arrival => "arrival: applies as it comes",
        Policy::Sequence { .. } => "sequence: waits for the numbers before it",
        Policy::Transition { .. } => "transition: waits until its step can follow",
        Policy::Window { .. } => "window: waits a while for earlier ones",
        Policy::Refetch => "refetch: the sender is asked for the state",
    }
}

fn unusable(what: &str, unusable: &Unusable, sights: &[Sight], item: Option<usize>, steps: &mut Vec<Step>) {
    let all = sights.iter().filter(|sight| sight.item == item);
    let details = all.flat_map(|sight| lines(sight, true)).collect();
    let says = format!("{}: {}", unusable.code, unusable.reason);
    steps.push(Step::new(what, Mark::Bad, says).with(details));
}

/// Where one thing was looked for, and what stood there.
fn details(sights: &[Sight], item: Option<usize>, what: &str) -> Vec<String> {
    let of = sights.iter().filter(|sight| sight.item == item && sight.what == what);
    of.flat_map(|sight| lines(sight, false)).collect()
}

fn lines(sight: &Sight, named: bool) -> impl Iterator<Item = String> {
    let what = if named { format!("{} ", sight.what) } else { String::new() };
    sight.tried.iter().map(move |tried| {
        let held = match &tried.held {
            Held::Text(text) => format!("= {text}"),
            Held::Hidden => "is stated (not shown)".to_owned(),
            Held::Nothing => "is not there".to_owned(),
            Held::Blank => "is blank".to_owned(),
            Held::Unfit(what) => format!("is {what}"),
        };
        format!("{what}{} {held}", tried.reference)
    })
}
