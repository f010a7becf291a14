//! What to send and in which order: pure, and the same for the same seed.

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use bytes::Bytes;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use uuid::Uuid;

use super::event::event;
use crate::source::{SourceSpec, presets};

/// 2026-01-01: when the generated histories begin. Fixed, so that a seed makes the same bytes again.
const EPOCH_S: i64 = 1_767_225_600;
/// How many deliveries later a duplicate comes at most, when nothing is shuffled.
const DUPLICATE_LATER_MAX: usize = 50;

/// How much of what.
pub(super) struct Shape<'s> {
    pub(super) count: u32,
    pub(super) resources: u32,
    pub(super) shuffle: bool,
    pub(super) duplicate: f64,
    /// The tenant, where it stands in the request and not in its path.
    pub(super) tenant: Option<&'s str>,
}

/// One event, ready to be signed.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Its id, for schemes that sign one.
    pub(super) id: String,
    pub(super) headers: HeaderMap,
    pub(super) query: String,
    pub(super) body: Bytes,
}

/// One event of a generated history, before it takes a sender's shape.
pub(super) struct Item {
    /// Random, the same for the same seed and place.
    pub(super) id: Uuid,
    /// Which of the run's events, from 0.
    pub(super) number: u32,
    /// Names the run, so that runs do not meet each other's resources.
    pub(super) run: u32,
    /// Which resource, from 0, and what its id is made from.
    pub(super) resource: u32,
    pub(super) resource_id: u128,
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

    /// A version of one resource.
    #[cfg(test)]
    pub(super) fn plain(version: u32) -> Self {
        let at_s = EPOCH_S + i64::from(version);
        Self {
            id: Uuid::from_u128(version.into()),
            number: version,
            run: 7,
            resource: 0,
            resource_id: 1,
            version,
            at_s,
        }
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
    pub(super) fn generate(spec: &SourceSpec, shape: &Shape<'_>, seed: u64) -> Result<Self, String> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let run: u32 = random.random();
        let resources = shape.resources.clamp(1, shape.count);
        let whole = spec.with_preset().map_err(|problem| problem.to_string())?;
        let sample = spec.preset.as_deref().and_then(presets::about).and_then(|about| about.sample.as_ref());
        let mut events = Vec::with_capacity(shape.count as usize);
        for number in 0..shape.count {
            let version = number / resources + 1;
            let resource = number % resources;
            let of_resource = u64::from(run) << 32 | u64::from(resource);
            let item = Item {
                id: Uuid::from_u128(random.random()),
                number,
                run,
                resource,
                resource_id: Xoshiro256PlusPlus::seed_from_u64(of_resource).random(),
                version,
                at_s: EPOCH_S + i64::from(version),
            };
            events.push(event(&whole, sample, shape.tenant, &item)?);
        }
        let order = order(shape, &mut random);
        Ok(Self { events, order })
    }

    /// The same bytes under fresh ids.
    pub(super) fn of_file(body: &Bytes, count: u32, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let event = |_| Prepared {
            id: Uuid::from_u128(random.random()).to_string(),
            headers: HeaderMap::from_iter([json.clone()]),
            query: String::new(),
            body: body.clone(),
        };
        Self { events: (0..count).map(event).collect(), order: (0..count as usize).collect() }
    }
}

fn order(shape: &Shape<'_>, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
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
        Plan::generate(&spec, &Shape { count: 100, resources: 10, shuffle, duplicate, tenant: None }, seed)
            .expect("a plan")
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
