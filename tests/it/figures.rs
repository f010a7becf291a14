//! The engine's own bookkeeping: what senders were told, what the figures count and what the rows hold are
//! one sum (I16).

use std::collections::BTreeMap;

use tidegate_actors::rules::event::Verdict;

use crate::support::gate::{Gate, SOURCES};
use crate::support::http::Request;
use crate::support::place::Place;
use crate::support::signing::{signed, thing};

on_each_store! {
    verdicts_told_verdicts_counted_and_rows_kept_are_one_sum;
}

/// What senders were told.
#[derive(Default)]
struct Told {
    verdicts: BTreeMap<String, i64>,
    ties: i64,
    conflicts: i64,
    unauthorized: i64,
}

impl Told {
    fn send(&mut self, gate: &Gate, request: &Request) {
        let answer = gate.call(request);
        let verdict = match answer.status {
            401 => {
                self.unauthorized += 1;
                return;
            }
            422 => "quarantined".to_owned(),
            _ => answer.verdict(),
        };
        *self.verdicts.entry(verdict).or_default() += 1;
        self.ties += i64::from(answer.json()["tie"] == true);
        self.conflicts += i64::from(answer.json()["conflict"] == true);
    }

    fn count(&self, verdict: Verdict) -> i64 {
        self.verdicts.get(verdict.word()).copied().unwrap_or(0)
    }
}

/// A mixed run: eight senders at once, each with events of every kind.
fn mixed_run(gate: &Gate) -> Told {
    let all = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8)
            .map(|sender| {
                scope.spawn(move || {
                    let mut told = Told::default();
                    for number in 0..40 {
                        told.send(gate, &request(sender, number));
                    }
                    told
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect::<Vec<_>>()
    });
    let mut sum = Told::default();
    for told in all {
        for (verdict, count) in told.verdicts {
            *sum.verdicts.entry(verdict).or_default() += count;
        }
        sum.ties += told.ties;
        sum.conflicts += told.conflicts;
        sum.unauthorized += told.unauthorized;
    }
    sum
}

fn request(sender: usize, number: usize) -> Request {
    let id = format!("evt_{sender}_{number}");
    let resource = format!("t{}", number % 3);
    let good = |version: usize| signed("/in/things", &id, thing(&resource, version));
    match number % 9 {
        0 => good(sender * 100 + number),
        1 => good(number),
        2 => good(5), // most of them tie or are late
        3 => signed("/in/things", &format!("evt_{sender}_0"), thing("t0", sender * 100)), // sent before
        4 => signed("/in/things", &format!("evt_{sender}_0"), thing("t0", 7_000 + number)), // other bytes
        5 => signed("/in/things", &id, thing(&resource, number).replace("thing.updated", "other.updated")),
        6 => signed("/in/things", &id, format!("not json {sender} {number}")),
        7 => signed("/in/things", &id, thing(&format!("c{sender}"), number).replace("thing.updated", "thing.counted")),
        _ => good(number).without("webhook-signature"),
    }
}

/// A counter's value; 0 where it was never counted.
fn figure(figures: &str, name: &str) -> i64 {
    let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap_or_else(|error| panic!("{error} in {value}")))
}

fn verdicts_told_verdicts_counted_and_rows_kept_are_one_sum(place: Place) {
    // no counter begins with 1 here, so all of its events wait
    let counted =
        "[[source.narrow]]\ntypes = [\"thing.counted\"]\norder = { policy = \"sequence\", hold_for = \"1h\" }";
    let sources = SOURCES.replace("[[source]]", "[[source]]\ntypes = [\"thing.*\"]");
    let gate = Gate::start_at(place, &format!("{sources}{counted}"));
    let told = mixed_run(&gate);
    // that an event expired is told to nobody: it happens later
    for verdict in Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Expired) {
        assert!(told.count(verdict) > 0, "the run is mixed: {verdict} in {:?}", told.verdicts);
    }
    assert_eq!(told.verdicts.values().sum::<i64>() + told.unauthorized, 8 * 40, "every request was answered");

    let figures = gate.admin_get("/metrics").text();
    for verdict in Verdict::ALL {
        for name in ["tidegate_events_total", "tidegate_http_verdicts_total"] {
            let name = format!("{name}{{source=\"things\",verdict=\"{verdict}\"}}");
            assert_eq!(figure(&figures, &name), told.count(verdict), "{name} against what was told");
        }
    }
    for (name, value) in [("ties", told.ties), ("conflicts", told.conflicts)] {
        for prefix in ["tidegate", "tidegate_http"] {
            assert_eq!(
                figure(&figures, &format!("{prefix}_{name}_total{{source=\"things\"}}")),
                value,
                "{prefix} {name}"
            );
        }
    }
    let refused = "tidegate_http_refusals_total{source=\"things\",reason=\"missing-signature\"}";
    assert_eq!(figure(&figures, refused), told.unauthorized);

    let counts = gate.counts();
    let rows = |verdict| counts.events.iter().find(|(of, _)| *of == verdict).map_or(0, |(_, count)| *count);
    for verdict in [Verdict::Applied, Verdict::Stale, Verdict::Held, Verdict::Ignored, Verdict::Quarantined] {
        assert_eq!(rows(verdict), told.count(verdict), "rows that are {verdict} against what was told");
    }
    assert_eq!(rows(Verdict::Duplicate), told.conflicts, "of duplicates, those with other bytes are kept, each once");
    let claimed = [Verdict::Applied, Verdict::Stale, Verdict::Held, Verdict::Ignored].map(rows).iter().sum::<i64>();
    assert_eq!(counts.keys, claimed, "a key for each event that was taken in, and for nothing else");
    assert_eq!(counts.held, rows(Verdict::Held), "a hold for each event that is held");
    let applied: i64 = gate.resources().iter().map(|resource| resource.applied).sum();
    assert_eq!(applied, rows(Verdict::Applied), "an effect for each event applied");
}
