//! One event of a generated history, as the source's sender would send it: its sample, with a key, a resource's id
//! and a version of its own at the places where the source reads them.
//!
//! One way for every source: what the rules name is written, whatever the sender. Promises that events differ in
//! their keys, wherever the rules leave room for that, and that later versions of a resource are newer.

use serde_json::{Value, json};

use super::like::{Seed, like};
use super::made::Made;
use super::place::{Choice, Place, choices};
use super::plan::{Item, Prepared};
use super::steps::step;
use super::times;
use crate::source::presets::Sample;
use crate::source::spec::{
    NarrowSpec, OrderSpec, PolicySpec, ResourceSpec, StartSpec, Texts, VersionForm, VersionSpec,
};
use crate::source::{Patterns, SourceSpec};

/// The rules for one event type.
struct Rules<'s> {
    resource: Option<&'s ResourceSpec>,
    version: &'s [VersionSpec],
    order: Option<&'s OrderSpec>,
}

impl<'s> Rules<'s> {
    fn of(spec: &'s SourceSpec, kind: &str) -> Self {
        let fits = |narrow: &&NarrowSpec| Patterns::new(&narrow.types).matches(kind);
        let own = spec.narrow.iter().flatten().find(fits);
        let version = own.and_then(|own| own.version.as_ref()).or(spec.version.as_ref());
        Self {
            resource: own.and_then(|own| own.resource.as_ref()).or(spec.resource.as_ref()),
            version: version.map(Vec::as_slice).unwrap_or_default(),
            order: own.and_then(|own| own.order.as_ref()).or(spec.order.as_ref()),
        }
    }
}

/// An event that this source can read.
pub(super) fn event(
    spec: &SourceSpec,
    sample: Option<&Sample>,
    tenant: Option<&str>,
    item: &Item,
) -> Result<Prepared, String> {
    let made = Made::of(spec, sample)?;
    let mut event = Event { made, sampled: sample.is_some(), item, taken: Vec::new(), times: Vec::new(), id: None };
    let types = sample.map(|sample| sample.types.as_slice()).unwrap_or_default();
    event.set_kind(spec, types)?;
    let rules = Rules::of(spec, &event.kind(all(spec.kind.as_ref())));
    if let (Some(tenant), Some(reference)) = (tenant, spec.tenant.as_deref())
        && let Some(Choice::At(place)) = event.chosen(reference)
    {
        event.made.put(&place, &json!(tenant))?;
        event.taken.push(place);
    }
    let key = all(spec.key.as_ref());
    event.set_version(&rules, key)?;
    let mut resource = None;
    if let Some(of) = rules.resource {
        resource = event.set_resource(of, key)?;
    }
    event.tell_apart(key, resource.as_ref())?;
    event.tell_apart(all(spec.effect_key.as_ref()), resource.as_ref())?;
    let id = event.id.take().unwrap_or_else(|| item.id.to_string());
    let (headers, query, body) = event.made.finish();
    Ok(Prepared { id, headers, query, body })
}

fn all(texts: Option<&Texts>) -> &[String] {
    texts.map(Texts::all).unwrap_or_default()
}

struct Event<'e> {
    made: Made<'e>,
    /// Whether there was something to begin with.
    sampled: bool,
    item: &'e Item,
    /// Places that say something about the resource.
    taken: Vec<Place>,
    /// Places that differ from version to version.
    times: Vec<Place>,
    /// The event's id, where it stands in a header.
    id: Option<String>,
}

impl Event<'_> {
    fn is_there(&self, choice: &Choice) -> bool {
        match choice {
            Choice::At(place) => self.made.text(place).is_some(),
            Choice::Has(place, _) => self.made.value(place).is_some_and(|value| !value.is_null()),
            _ => true,
        }
    }

    fn has_room(&self, choice: &Choice) -> bool {
        matches!(choice, Choice::At(place) if self.made.has_room(place))
    }

    /// The choice that the source reads, or the one to be written for it to read.
    fn chosen(&self, reference: &str) -> Option<Choice> {
        let mut choices = choices(reference);
        let there = choices.iter().position(|choice| self.is_there(choice));
        let room = choices.iter().position(|choice| self.has_room(choice));
        let at = match (there, room) {
            (Some(there), Some(room)) if !self.sampled && room < there => room,
            (there, room) => there.or(room)?,
        };
        Some(choices.swap_remove(at))
    }

    fn chosen_place(&self, reference: &str) -> Option<Place> {
        match self.chosen(reference) {
            Some(Choice::At(place)) => Some(place),
            _ => None,
        }
    }

    /// An earlier choice of a reference that could be written in place of the one that is read.
    fn earlier(&self, reference: &str) -> Option<Place> {
        let before = choices(reference).into_iter().take_while(|choice| !self.is_there(choice));
        before.filter(|choice| self.has_room(choice)).find_map(|choice| match choice {
            Choice::At(place) => Some(place),
            _ => None,
        })
    }

    /// The event's type as the source reads it.
    fn kind(&self, references: &[String]) -> String {
        let text = |reference: &String| match self.chosen(reference)? {
            Choice::At(place) => self.made.text(&place),
            Choice::Has(_, name) => Some(name),
            Choice::Literal(text) => Some(text),
            _ => None,
        };
        references.iter().filter_map(text).collect::<Vec<_>>().join(".")
    }

    fn set_kind(&mut self, spec: &SourceSpec, types: &[String]) -> Result<(), String> {
        let version = self.item.version;
        let step = step(spec.order.as_ref(), version);
        let step_at = spec.order.as_ref().and_then(|order| order.step.as_deref()).filter(|step| *step != "type");
        let behind = usize::try_from(version - 1).unwrap_or(usize::MAX);
        let kind = match (&step, step_at) {
            (Some(step), None) => Some(step.as_str()),
            _ if self.sampled => types.get(behind).or(types.last()).map(String::as_str),
            _ if version == 1 => Some("item.created"),
            _ => Some("item.updated"),
        };
        let references = all(spec.kind.as_ref());
        let mut rest = kind;
        for (number, reference) in references.iter().enumerate() {
            let last = number + 1 == references.len();
            let split = rest.and_then(|rest| if last { None } else { rest.split_once('.') });
            let (part, more) = split.map_or((rest, None), |(part, more)| (Some(part), Some(more)));
            rest = more;
            let Some(place) = self.chosen_place(reference) else { continue };
            if let Some(part) = part {
                self.made.put(&place, &json!(part))?;
            }
            if self.made.text(&place).is_some() {
                self.taken.push(place);
            }
        }
        if let (Some(step), Some(place)) = (step, step_at.and_then(|at| self.chosen_place(at))) {
            self.made.put(&place, &json!(step))?;
            self.taken.push(place);
        }
        Ok(())
    }

    fn set_version(&mut self, rules: &Rules<'_>, key: &[String]) -> Result<(), String> {
        let first = match rules.order.and_then(|order| order.start.as_ref()) {
            Some(StartSpec::Number(first)) => *first,
            _ => 1,
        };
        let item = self.item;
        let counts = rules.order.and_then(|order| order.policy) == Some(PolicySpec::Sequence);
        let in_key: Vec<Place> = key.iter().filter_map(|reference| self.chosen_place(reference)).collect();
        for part in rules.version.iter().filter(|part| part.form != VersionForm::Rank) {
            let Some(place) = self.chosen_place(&part.from).filter(|place| !self.taken.contains(place)) else {
                continue;
            };
            let value = if part.form == VersionForm::Integer && in_key.contains(&place) && !counts {
                // an id that counts: it grows, and no other event has it
                json!(i64::from(item.run) << 24 | i64::from(item.number))
            } else {
                times::version(part, first, item, self.made.value(&place).as_ref())
            };
            self.made.put(&place, &value)?;
            self.times.push(place);
        }
        Ok(())
    }

    /// Puts the resource's id into one place, and says which.
    fn set_resource(&mut self, resource: &ResourceSpec, key: &[String]) -> Result<Option<Place>, String> {
        for reference in resource.kind.all() {
            let Some(place) = self.chosen_place(reference) else { continue };
            if self.made.text(&place).is_none() {
                self.made.put(&place, &json!("item"))?;
            }
            self.taken.push(place);
        }
        let parts = resource.id.all().iter().filter_map(|part| Some((part, self.chosen_place(part)?)));
        let parts: Vec<_> = parts.filter(|(_, place)| !self.taken.contains(place)).collect();
        let names_it =
            |place: &Place| self.made.text(place).is_none_or(|text| text.bytes().any(|b| b.is_ascii_digit()));
        let best = parts.iter().rev().find(|(_, place)| names_it(place)).or(parts.last());
        let Some((part, mut place)) = best.cloned() else { return Ok(None) };
        let read = place.clone();
        // what the key needs for itself is left to it
        if !self.can_tell_apart(key, &place)
            && let Some(earlier) = self.earlier(part)
        {
            place = earlier;
        }
        let item = self.item;
        let seed = Seed { id: item.resource_id, run: item.run, number: item.resource };
        let plain = format!("{:08x}-{}", item.run, item.resource);
        let beside: Vec<Place> = parts.iter().map(|(_, place)| place.clone()).filter(|part| *part != read).collect();
        let missing = parts.into_iter().map(|(_, place)| place).filter(|place| self.made.text(place).is_none());
        for place in missing.collect::<Vec<_>>() {
            self.made.put(&place, &json!(plain))?;
            self.taken.push(place);
        }
        self.taken.extend(beside);
        let shape = self.made.text(&place).filter(|text| *text != plain);
        self.made.put(&place, &json!(shape.map_or(plain, |shape| like(&shape, seed))))?;
        self.taken.push(place.clone());
        Ok(Some(place))
    }

    /// Whether the key tells events apart when this place is the resource's.
    fn can_tell_apart(&self, key: &[String], resource: &Place) -> bool {
        key.iter().filter_map(|reference| self.chosen(reference)).any(|choice| match choice {
            Choice::Digest | Choice::Unique => true,
            Choice::At(place) if self.times.contains(&place) => true,
            Choice::At(place) if place == *resource || self.taken.contains(&place) => false,
            Choice::At(place) => self.made.text(&place).is_none_or(|text| text.bytes().any(|b| b.is_ascii_digit())),
            _ => false,
        })
    }

    /// Sees to it that no other event has this key.
    fn tell_apart(&mut self, key: &[String], resource: Option<&Place>) -> Result<(), String> {
        let chosen: Vec<(&String, Choice)> =
            key.iter().filter_map(|reference| Some((reference, self.chosen(reference)?))).collect();
        if chosen.iter().any(|(_, choice)| *choice == Choice::Unique) {
            return Ok(());
        }
        if chosen.iter().any(|(_, choice)| *choice == Choice::Digest) {
            // any change makes another digest
            if self.times.is_empty() {
                self.made.stamp(&format!("{:08x}-{}", self.item.run, self.item.number));
            }
            return Ok(());
        }
        let places = chosen.iter().filter_map(|(_, choice)| match choice {
            Choice::At(place) => Some(place.clone()),
            _ => None,
        });
        let places: Vec<Place> = places.collect();
        let free = |place: &&Place| !self.taken.contains(place) && !self.times.contains(place);
        let free: Vec<Place> = places.iter().filter(free).cloned().collect();
        let is_time = |place: &&Place| self.made.text(place).is_some_and(|text| times::is_time(&text));
        let is_id = |place: &&Place| match self.made.text(place) {
            None => true,
            Some(text) => text.bytes().any(|b| b.is_ascii_digit()) && !times::is_time(&text),
        };
        if let Some(place) = free.iter().rev().find(is_id) {
            return self.set_id(place);
        }
        let of_resource = resource.is_some_and(|resource| places.contains(resource));
        if (of_resource || places.len() == 1) && places.iter().any(|place| self.times.contains(place)) {
            return Ok(());
        }
        if let Some(place) = free.iter().find(is_time).filter(|_| of_resource) {
            let value = times::now(self.item, self.made.value(place).as_ref());
            return self.made.put(place, &value);
        }
        let absent = chosen.iter().filter(|(_, choice)| !matches!(choice, Choice::At(_)));
        if let Some(place) = absent.filter_map(|(reference, _)| self.earlier(reference)).next() {
            return self.made.put(&place, &json!(if of_resource { self.item.at() } else { self.item.id.to_string() }));
        }
        free.last().map_or(Ok(()), |place| self.set_id(place))
    }

    fn set_id(&mut self, place: &Place) -> Result<(), String> {
        let item = self.item;
        let seed = Seed { id: item.id.as_u128(), run: item.run, number: item.number };
        let id = self.made.text(place).map_or_else(|| item.id.to_string(), |shape| like(&shape, seed));
        if matches!(place, Place::Header(_)) {
            self.id = Some(id.clone());
        }
        self.taken.push(place.clone());
        self.made.put(place, &Value::from(id))
    }
}
