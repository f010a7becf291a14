//! What to send and in which order: pure, and the same for the same seed.

use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use uuid::Uuid;

use super::{generic, json_headers, templates};
use crate::source::SourceSpec;
use crate::source::spec::PolicySpec::Transition;

/// 2026-01-01: when the generated histories begin. Fixed, so that a seed makes the same bytes again.
const EPOCH_S: i64 = 1_767_225_600;
/// How many deliveries later a duplicate comes at most, when nothing is shuffled.
const DUPLICATE_LATER_MAX: usize = 50;

/// How much of what.
pub(super) struct Shape {
    pub(super) count: u32,
    pub(super) resources: u32,
    pub(super) shuffle: bool,
    pub(super) duplicate: f64,
}

/// One event, ready to be signed.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// One event of a generated history, before it takes a sender's shape.
pub(super) struct Item {
    /// Random, the same for the same seed and place.
    pub(super) id: Uuid,
    /// Names the run, so that runs do not meet each other's resources.
    pub(super) run: u32,
    /// Which resource, from 0.
    pub(super) resource: u32,
    /// Which of its versions, from 1.
    pub(super) version: u32,
    /// When it happened, seconds since 1970; later for later versions.
    pub(super) at_s: i64,
}

impl Item {
    /// The time as RFC 3339.
    pub(super) fn at(&self) -> String {
        jiff::Timestamp::from_second(self.at_s).map_or_else(|_| String::new(), |time| time.to_string())
    }
}

/// Events, and the order to send them in; an event that stands twice there is a duplicate.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) events: Vec<Prepared>,
    pub(super) order: Vec<usize>,
}

impl Plan {
    /// Histories of several resources, each in the shape of the source's sender.
    pub(super) fn generate(spec: &SourceSpec, shape: &Shape, seed: u64) -> Result<Self, String> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let run = random.random();
        let resources = shape.resources.clamp(1, shape.count);
        let whole = spec.with_preset().map_err(|problem| problem.to_string())?;
        // what a source reads in places of its own is not in its preset's shape
        let own = spec.batch.is_some() || spec.order.as_ref().is_some_and(|order| order.policy == Some(Transition));
        let preset = spec.preset.as_deref().filter(|_| !own);
        let mut events = Vec::with_capacity(shape.count as usize);
        for number in 0..shape.count {
            let version = number / resources + 1;
            let item = Item {
                id: Uuid::from_u128(random.random()),
                run,
                resource: number % resources,
                version,
                at_s: EPOCH_S + i64::from(version),
            };
            let known = preset.and_then(|preset| templates::event(preset, &item));
            events.push(known.map_or_else(|| generic::event(&whole, &item), Ok)?);
        }
        let order = order(shape, &mut random);
        Ok(Self { events, order })
    }

    /// The same bytes under fresh ids.
    pub(super) fn of_file(body: &Bytes, count: u32, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let event = |_| Prepared {
            id: Uuid::from_u128(random.random()).to_string(),
            kind: String::new(),
            headers: json_headers(),
            body: body.clone(),
        };
        Self { events: (0..count).map(event).collect(), order: (0..count as usize).collect() }
    }
}

fn order(shape: &Shape, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let count = shape.count as usize;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32, not negative")]
    let repeats = (f64::from(shape.count) * shape.duplicate).round() as usize;
    let mut chosen: Vec<usize> = (0..count).collect();
    chosen.shuffle(random);
    chosen.truncate(repeats);
    let mut places: Vec<(usize, usize)> = (0..count).map(|event| (event, event)).collect();
    places.extend(chosen.into_iter().map(|event| (event + random.random_range(0..DUPLICATE_LATER_MAX), event)));
    if shape.shuffle {
        places.shuffle(random);
    } else {
        // stable: of one place, the first of all comes before any repeat
        places.sort_by_key(|(place, _)| *place);
    }
    places.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shuffle: bool, duplicate: f64, seed: u64) -> Plan {
        let spec = SourceSpec { preset: Some("stripe".to_owned()), ..SourceSpec::default() };
        Plan::generate(&spec, &Shape { count: 100, resources: 10, shuffle, duplicate }, seed).expect("a plan")
    }

    #[test]
    fn the_same_seed_makes_the_same_plan_and_another_seed_another() {
        let sent = |seed| {
            let Plan { events, order } = plan(true, 0.3, seed);
            (events.into_iter().map(|event| (event.id, event.body)).collect::<Vec<_>>(), order)
        };
        assert!(sent(7) == sent(7));
        assert!(sent(7) != sent(8));
    }

    #[test]
    fn every_event_is_sent_and_the_stated_share_twice() {
        let plan = plan(true, 0.3, 7);
        let mut times = [0; 100];
        plan.order.iter().for_each(|&event| times[event] += 1);
        assert!(times.iter().all(|&times| times == 1 || times == 2));
        assert_eq!(times.iter().sum::<i32>(), 130);
    }

    #[test]
    fn without_shuffling_firsts_come_in_order_and_before_their_repeats() {
        let plan = plan(false, 0.5, 7);
        let mut firsts = 0;
        for &event in &plan.order {
            assert!(event <= firsts, "event {event} before {firsts}");
            firsts = firsts.max(event + 1);
        }
    }
}
