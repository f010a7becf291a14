//! Plays a stream in many orders of arrival at once, and reads back where each of them ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_actors::ports::{HeldFilter, Outcome, Reader, ResourceFilter, Session};
use tidegate_actors::rules::event::{Event, EventId};
use tidegate_actors::rules::order::Order;

use super::stream::Stream;
use crate::events::again;

/// The most events of one commit.
const COMMIT_MAX: usize = 500;

/// One order of arrival: batches of deliveries, each a happening and whether under another id.
pub(crate) type Arrival = Vec<Vec<(usize, bool)>>;

/// Where a resource ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The happening whose body is the state.
    pub(crate) happening: Option<usize>,
    pub(crate) version: Option<String>,
    pub(crate) step: Option<String>,
    pub(crate) deleted: bool,
    pub(crate) fields: Option<String>,
    pub(crate) epoch: i64,
    /// Happenings that wait.
    pub(crate) held: Vec<usize>,
    /// How many were applied, where every order applies the same.
    pub(crate) applied: Option<i64>,
}

pub(crate) type Ends = BTreeMap<String, End>;

/// A small generator of its own: the same seed, the same orders.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Every order of the deliveries where there are few, else so many at random; each cut into batches somehow.
pub(crate) fn arrivals(stream: &Stream, all_up_to: usize, random: usize) -> Vec<Arrival> {
    let firsts = (0..stream.happenings.len()).map(|place| (place, false));
    let mut deliveries: Vec<(usize, bool)> = firsts.chain(stream.repeats.iter().copied()).collect();
    let mut dice = Dice(stream.seed);
    let mut orders = Vec::new();
    if deliveries.len() <= all_up_to {
        permutations(&mut deliveries, 0, &mut orders);
    } else {
        for _ in 0..random {
            let mut order = deliveries.clone();
            for place in (1..order.len()).rev() {
                order.swap(place, dice.below(place + 1));
            }
            orders.push(order);
        }
    }
    orders.iter().map(|order| cut(order, &mut dice)).collect()
}

fn permutations(order: &mut Vec<(usize, bool)>, from: usize, into: &mut Vec<Vec<(usize, bool)>>) {
    if from == order.len() {
        return into.push(order.clone());
    }
    for place in from..order.len() {
        order.swap(from, place);
        permutations(order, from + 1, into);
        order.swap(from, place);
    }
}

fn cut(order: &[(usize, bool)], dice: &mut Dice) -> Arrival {
    let often = dice.below(3);
    let mut batches: Arrival = vec![Vec::new()];
    for &delivery in order {
        let cuts = match often {
            0 => false,
            1 => true,
            _ => dice.below(2) == 0,
        };
        if cuts {
            batches.push(Vec::new());
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(delivery);
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}

/// Plays each arrival as a tenant of its own of this source; batches of the same place share a commit. Answers
/// where each ended, or what went wrong.
pub(crate) async fn play(
    stream: &Stream,
    arrivals: &[Arrival],
    source: &str,
    session: &mut dyn Session,
    reader: &dyn Reader,
) -> Result<Vec<Ends>, String> {
    let order = stream.order();
    let mut names: HashMap<EventId, usize> = HashMap::new();
    let mut firsts: HashMap<(usize, usize), Event> = HashMap::new();
    let mut effective = 0;
    let longest = arrivals.iter().map(Vec::len).max().unwrap_or(0);
    for place in 0..longest {
        let mut batch: Vec<Event> = Vec::new();
        for (tenant, arrival) in arrivals.iter().enumerate() {
            for &(happening, other_id) in arrival.get(place).into_iter().flatten() {
                let event = deliver(stream, &order, source, (tenant, happening), other_id, &mut firsts);
                names.insert(event.id, happening);
                batch.push(event);
            }
            if batch.len() >= COMMIT_MAX || tenant + 1 == arrivals.len() {
                let committed = session.commit(&batch).await.map_err(|error| error.to_string())?;
                effective += committed.outcomes.iter().filter(|outcome| !is_repeat(**outcome)).count();
                batch.clear();
            }
        }
    }
    let once = stream.happenings.len() * arrivals.len();
    if effective != once {
        return Err(format!("{effective} events took effect, of {once} that happened"));
    }
    read(stream, arrivals.len(), source, reader, &names).await
}

const fn is_repeat(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Duplicate { .. } | Outcome::Repeat { .. })
}

/// A delivery: the same event each time, under a fresh name; under another key where its sender gave it another id.
fn deliver(
    stream: &Stream,
    order: &Arc<Order>,
    source: &str,
    (tenant, happening): (usize, usize),
    other_id: bool,
    firsts: &mut HashMap<(usize, usize), Event>,
) -> Event {
    let name = format!("t{tenant}");
    let first = firsts.entry((tenant, happening)).or_insert_with(|| stream.event(source, &name, happening, order));
    let mut event = again(first);
    if other_id {
        let key = format!("{}-other", first.key.text);
        event.key = tidegate_actors::rules::key::Key::new(source, &name, [key.as_str()]).expect("a key");
    }
    event
}

async fn read(
    stream: &Stream,
    tenants: usize,
    source: &str,
    reader: &dyn Reader,
    names: &HashMap<EventId, usize>,
) -> Result<Vec<Ends>, String> {
    let mut ends: Vec<Ends> = vec![Ends::new(); tenants];
    let tenant_of = |tenant: &str| tenant[1..].parse::<usize>().map_err(|error| error.to_string());
    let filter = ResourceFilter { source: Some(source.to_owned()), ..ResourceFilter::default() };
    let mut after = None;
    loop {
        let page = reader.resources(&filter, after, 1_000).await.map_err(|error| error.to_string())?;
        for row in page.rows {
            let end = End {
                happening: row.event.map(|event| names[&event]),
                version: row.version,
                step: row.step,
                deleted: row.deleted,
                fields: row.fields,
                epoch: row.epoch,
                held: Vec::with_capacity(row.held as usize),
                applied: (stream.rule.applies_all() && !row.id.starts_with("embedded")).then_some(row.applied),
            };
            ends[tenant_of(&row.tenant)?].insert(row.id, end);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let filter = HeldFilter { source: Some(source.to_owned()), ..HeldFilter::default() };
    loop {
        let page = reader.held(&filter, after, 1_000).await.map_err(|error| error.to_string())?;
        for row in page.rows {
            let end = ends[tenant_of(&row.tenant)?].get_mut(&row.resource.1);
            end.ok_or("a held event without a resource")?.held.push(names[&row.event]);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for end in ends.iter_mut().flat_map(BTreeMap::values_mut) {
        end.held.sort_unstable();
    }
    Ok(ends)
}
