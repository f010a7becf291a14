//! Pictures of a run: what is to be seen, before anybody draws it.
//!
//! Owns the choice of resources, where each arrival stands and what its mark is; [`svg`] and [`html`] draw the
//! same picture. Promises a bounded picture: where a run has more than fits, it says how much is left out.

mod html;
mod marks;
mod svg;

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_actors::sim::{Arrival, Plan, Run, Timeline};

use super::report::{seconds, waited};

pub(super) use html::page;
pub(super) use marks::Mark;
pub(super) use svg::draw;

/// The most resources of a drawing, and of a page.
pub(super) const DRAWN_MAX: usize = 6;
pub(super) const PAGE_MAX: usize = 60;
/// The most arrivals of one resource that are drawn.
const POINTS_MAX: usize = 2_000;
/// Versions longer than this are shown without what all of them begin with.
const LABEL_BYTES_MAX: usize = 13;
/// Whole numbers stand at their own height while they are not much sparser than this.
const SPARSE_MAX: i128 = 4;

/// A run, ready to be drawn.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) passed: bool,
    pub(super) facts: Vec<(String, String)>,
    /// Where the last thing happened, in milliseconds.
    pub(super) until_ms: u64,
    pub(super) bands: Vec<Band>,
    pub(super) panels: Vec<Panel>,
    pub(super) left_out: usize,
}

/// A time in which something was broken.
#[derive(Debug, Serialize)]
pub(super) struct Band {
    pub(super) what: &'static str,
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) node: Option<u32>,
}

/// One resource.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    pub(super) name: String,
    pub(super) policy: String,
    /// What the version line ends at.
    pub(super) ends: String,
    /// Heights with their versions, lowest first.
    pub(super) versions: Vec<(u32, String)>,
    pub(super) height: u32,
    pub(super) points: Vec<Point>,
    pub(super) holds: Vec<Hold>,
    /// Events whose commit came visibly later than they did.
    pub(super) lags: Vec<Hold>,
    /// The version of the state as it changed: when, and how high.
    pub(super) state: Vec<(u64, u32)>,
}

/// One arrival, or the end of a wait.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) at_ms: u64,
    pub(super) height: u32,
    pub(super) mark: Mark,
    pub(super) text: String,
}

/// A time from an arrival to its verdict.
#[derive(Debug, Serialize)]
pub(super) struct Hold {
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    pub(super) height: u32,
}

/// Prepares the picture of a run: of the named resources, or of those where most happened.
pub(super) fn picture(plan: &Plan, run: &Run, about: &str, named: &[String], most: usize) -> Picture {
    let with_something: Vec<&Timeline> = run.resources.iter().filter(|line| !line.arrivals.is_empty()).collect();
    let chosen = choose(&with_something, named, most);
    let panels: Vec<Panel> = chosen.iter().map(|line| panel(plan, line)).collect();
    let last = panels.iter().flat_map(|panel| {
        panel.points.iter().map(|point| point.at_ms).chain(panel.holds.iter().map(|hold| hold.until_ms))
    });
    let until_ms = last.max().unwrap_or(run.counts.ended_at_ms).max(1);
    let bands = plan.faults.iter().filter(|fault| fault.at_ms < until_ms).map(|fault| Band {
        what: fault.what.word(),
        from_ms: fault.at_ms,
        until_ms: (fault.at_ms + fault.for_ms).min(until_ms),
        node: fault.node,
    });
    let passed = run.violations.is_empty();
    Picture {
        title: format!("{}, seed {}", run.scenario, run.seed),
        about: about.to_owned(),
        passed,
        facts: facts(run),
        until_ms,
        bands: bands.collect(),
        left_out: with_something.len() - panels.len(),
        panels,
    }
}

fn facts(run: &Run) -> Vec<(String, String)> {
    let counts = &run.counts;
    let mut facts: Vec<(String, String)> =
        counts.rows.iter().map(|(verdict, count)| (verdict.clone(), count.to_string())).collect();
    facts.push(("requests".to_owned(), counts.deliveries.to_string()));
    facts.push(("faults".to_owned(), counts.faults.to_string()));
    facts.push(("worst delay to apply".to_owned(), seconds(counts.worst_delay_ms)));
    if counts.held > 0 {
        facts.push(("longest hold".to_owned(), seconds(counts.worst_hold_ms)));
    }
    facts
}

fn choose<'a>(lines: &[&'a Timeline], named: &[String], most: usize) -> Vec<&'a Timeline> {
    if !named.is_empty() {
        let is_named = |line: &Timeline| {
            let id = line.name.split_once('/').map_or("", |(_, id)| id);
            named.iter().any(|name| *name == line.name || name == id)
        };
        return lines.iter().copied().filter(|line| is_named(line)).take(most).collect();
    }
    // One resource of each policy before a second one of any, and those first where most went otherwise.
    let mut of_policy: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ranked: Vec<&Timeline> = lines.to_vec();
    ranked.sort_by_key(|line| (std::cmp::Reverse(eventful(line)), line.resource));
    let mut turns: Vec<(usize, usize, &Timeline)> = Vec::new();
    for (rank, line) in ranked.into_iter().enumerate() {
        let turn = of_policy.entry(&line.policy).or_default();
        turns.push((*turn, rank, line));
        *turn += 1;
    }
    turns.sort_by_key(|(turn, rank, _)| (*turn, *rank));
    let mut chosen: Vec<&Timeline> = turns.into_iter().take(most).map(|(_, _, line)| line).collect();
    chosen.sort_by_key(|line| (line.policy.clone(), line.resource));
    chosen
}

/// How much there is to be seen of a resource.
fn eventful(line: &Timeline) -> usize {
    line.arrivals
        .iter()
        .map(|arrival| match Mark::of(arrival) {
            Mark::Applied => 1,
            Mark::Duplicate | Mark::Refused | Mark::Unheard => 1,
            _ => 4,
        } + if waited(arrival) { 4 } else { 0 })
        .sum()
}

fn panel(plan: &Plan, line: &Timeline) -> Panel {
    let heights = Heights::of(line);
    let mut points = Vec::new();
    let (mut holds, mut lags) = (Vec::new(), Vec::new());
    let mut changes: Vec<(u64, u32)> = Vec::new();
    for arrival in line.arrivals.iter().take(POINTS_MAX) {
        let height = heights.of_arrival(arrival);
        let mark = Mark::of(arrival);
        let text = text(plan, arrival, mark);
        let settled = arrival.settled_at_ms.unwrap_or(arrival.at_ms);
        if waited(arrival) {
            holds.push(Hold { from_ms: arrival.at_ms, until_ms: settled, height });
            points.push(Point { at_ms: arrival.at_ms, height, mark: Mark::Held, text: text.clone() });
            points.push(Point { at_ms: settled, height, mark, text });
        } else {
            points.push(Point { at_ms: arrival.at_ms, height, mark, text });
            if settled > arrival.at_ms {
                lags.push(Hold { from_ms: arrival.at_ms, until_ms: settled, height });
            }
        }
        if mark == Mark::Applied {
            changes.push((settled, height));
        }
    }
    if line.policy == "refetch" {
        // A signal changes nothing by itself: the answer does.
        let heights = line
            .fetched
            .iter()
            .filter_map(|fetched| Some((fetched.at_ms, heights.of_version(fetched.version.as_deref()?)?)));
        changes = heights.collect();
    }
    points.sort_by_key(|point| point.at_ms);
    changes.sort_unstable();
    let ends = match (&line.version, line.deleted) {
        (Some(version), _) if line.policy == "arrival" => format!("stored version {version}"),
        (Some(version), true) => format!("ends deleted at {version}"),
        (Some(version), false) => format!("ends at {version}"),
        (None, _) => "nothing stored".to_owned(),
    };
    let state = if line.policy == "arrival" { changes } else { rising(changes) };
    let (height, versions) = (heights.height, heights.labels(plan, line));
    Panel { name: line.name.clone(), policy: line.policy.clone(), ends, versions, height, points, holds, lags, state }
}

/// The stored version never goes back.
fn rising(changes: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
    let mut top = 0;
    changes
        .into_iter()
        .filter(|(_, height)| {
            let rises = *height > top;
            top = top.max(*height);
            rises
        })
        .collect()
}

fn text(plan: &Plan, arrival: &Arrival, mark: Mark) -> String {
    let event = plan.events.get(arrival.event as usize);
    let mut parts: Vec<String> = event.into_iter().flat_map(|event| [event.key.clone(), event.kind.clone()]).collect();
    parts.extend(arrival.version.as_deref().map(|version| format!("version {version}")));
    parts.retain(|part| !part.is_empty());
    let mut text = format!("{}: {}", parts.join(", "), mark.word());
    if let Some(answer) = arrival.answer.as_deref().filter(|answer| *answer != mark.word()) {
        text.push_str(&format!(", answered {answer}"));
    }
    if waited(arrival) {
        let waited_ms = arrival.settled_at_ms.unwrap_or(arrival.at_ms).saturating_sub(arrival.at_ms);
        text.push_str(&format!(", after {}", seconds(waited_ms)));
    }
    if let Some(why) = &arrival.why {
        text.push_str(&format!(" ({why})"));
    }
    text
}

/// Which height an arrival stands at: its version's place among those of the resource, lowest first.
struct Heights {
    by_version: BTreeMap<String, u32>,
    height: u32,
}

impl Heights {
    fn of(line: &Timeline) -> Self {
        let mut versions: Vec<&str> = line.arrivals.iter().filter_map(|arrival| arrival.version.as_deref()).collect();
        versions.sort_unstable_by(|one, other| compare(one, other));
        versions.dedup();
        let numbers: Option<Vec<i128>> = versions.iter().map(|version| version.parse().ok()).collect();
        let heights: Vec<u32> = match numbers.as_deref() {
            // Numbers that are missing are seen as such.
            Some([first, .., last]) if last - first < SPARSE_MAX * versions.len() as i128 => {
                let first = *first;
                numbers.iter().flatten().map(|number| u32::try_from(number - first).unwrap_or(0) + 1).collect()
            }
            _ => (1..).take(versions.len()).collect(),
        };
        let truths = line.arrivals.iter().map(|arrival| u32::try_from(arrival.truth).unwrap_or(u32::MAX));
        let height = if versions.is_empty() { truths.max() } else { heights.iter().copied().max() };
        let by_version = versions.into_iter().map(str::to_owned).zip(heights).collect();
        Self { by_version, height: height.unwrap_or(1).max(1) }
    }

    fn of_version(&self, version: &str) -> Option<u32> {
        self.by_version.get(version).copied()
    }

    fn of_arrival(&self, arrival: &Arrival) -> u32 {
        match &arrival.version {
            Some(version) => self.by_version.get(version).copied().unwrap_or(1),
            None => u32::try_from(arrival.truth).unwrap_or(1).clamp(1, self.height),
        }
    }

    /// A text for each height: the step of a state machine, else the version.
    fn labels(&self, plan: &Plan, line: &Timeline) -> Vec<(u32, String)> {
        let step = |arrival: &Arrival| {
            let step = plan.events.get(arrival.event as usize)?.step.clone()?;
            Some((self.of_arrival(arrival), step))
        };
        let steps: BTreeMap<u32, String> = line.arrivals.iter().filter_map(step).collect();
        if !steps.is_empty() {
            return steps.into_iter().collect();
        }
        let versions: Vec<&str> = self.by_version.keys().map(String::as_str).collect();
        let same = same_start(&versions);
        let mut labels: Vec<(u32, String)> =
            self.by_version.iter().map(|(version, height)| (*height, version[same..].to_owned())).collect();
        labels.sort();
        labels
    }
}

/// How many bytes of long versions are the same in all of them, up to the last mark that ends a part.
fn same_start(versions: &[&str]) -> usize {
    if versions.iter().all(|version| version.len() <= LABEL_BYTES_MAX) {
        return 0;
    }
    let first = versions.first().copied().unwrap_or_default();
    let same = versions.iter().fold(first.len(), |same, version| {
        first.bytes().zip(version.bytes()).take(same).take_while(|(one, other)| one == other).count()
    });
    first[..first.floor_char_boundary(same)].rfind(['T', ' ', '/']).map_or(0, |at| at + 1)
}

/// Whole numbers by their value, all else as text.
fn compare(one: &str, other: &str) -> std::cmp::Ordering {
    match (one.parse::<i128>(), other.parse::<i128>()) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}
