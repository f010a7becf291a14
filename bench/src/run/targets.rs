//! What the project promises itself, beside what was measured.
//!
//! A target is shown only when all of its figures are there.

use super::cell::Cell;
use super::contender::Contender;
use super::memory::Note;
use super::policies::{self, Policy};
use super::summary::{Summary, summary};

fn rate(summary: &Summary) -> f64 {
    summary.rate.median
}

struct Row {
    what: String,
    must: String,
    aim: String,
    measured: String,
    holds: bool,
}

pub(super) fn table(cells: &[Cell], notes: &[Note], connections: &[usize]) -> String {
    let mut rows = Vec::new();
    for (connections, by_a, by_b, bound, lite) in [
        (64, (5.0, 6.5), (3.2, 4.0), (0.27, 0.34), (2.0, 3.0)),
        (256, (7.0, 9.0), (3.5, 5.0), (0.27, 0.34), (2.5, 3.0)),
    ] {
        let of = |contender| summary(cells, &format!("closed {connections}"), contender);
        let pairs = [
            (Contender::Postgres, Contender::Transaction, by_a),
            (Contender::Postgres, Contender::Function, by_b),
            (Contender::Postgres, Contender::Verify, bound),
            (Contender::Sqlite, Contender::Transaction, lite),
        ];
        for (ours, base, (must, aim)) in pairs {
            if let (Some(mine), Some(base_rate)) = (of(ours), of(base)) {
                let what = format!("({}) against ({}), {connections} connections", ours.letter(), base.letter());
                rows.push(at_least(what, rate(&mine) / rate(&base_rate), must, aim));
            }
        }
        if let (Some(mine), Some(base)) = (of(Contender::Postgres), of(Contender::Transaction)) {
            let what = format!("p99 of (d), closed loop, against (a), {connections} connections");
            rows.push(at_most(what, mine.p99_ms / base.p99_ms, 1.0 / 3.0, 0.2));
        }
    }
    let lone = |contender| summary(cells, "lone", contender);
    if let (Some(open), Some(commit)) = (summary(cells, "open 10000", Contender::Postgres), lone(Contender::Function)) {
        let what = "p99 of (d) at 10,000/s, against the p99 of one lone commit over HTTP".to_owned();
        rows.push(at_most(what, open.p99_ms / commit.p99_ms, 4.0, 2.5));
    }
    if let (Some(mine), Some(commit)) = (lone(Contender::Postgres), lone(Contender::Function)) {
        let what = "one event on an idle engine (p50), against one lone commit over HTTP".to_owned();
        rows.push(at_most(what, mine.p50_ms / commit.p50_ms, 2.0, 1.2));
    }
    let keys = |block| summary(cells, block, Contender::Postgres).map(|summary| summary.rate.median);
    if let (Some(empty), Some(filled)) = (keys("keys empty"), keys("keys filled")) {
        rows.push(at_least("(d) with the key tables filled, against empty".into(), filled / empty, 0.85, 0.95));
    }
    for &connections in connections {
        let Some(base) = policies::of(cells, policies::BASE, connections) else { continue };
        for policy in Policy::ALL.into_iter().filter(|policy| policy.has_target()) {
            if let Some(mine) = policies::of(cells, policy, connections) {
                let what = format!("{} against `arrival`, {connections} connections", policy.title());
                rows.push(at_least(what, rate(&mine) / rate(&base), 0.95, 1.0));
            }
        }
    }
    for note in notes {
        let megabytes = note.live_mb - note.idle_mb;
        rows.push(Row {
            what: format!("({}) 100,000 live resources above idle", note.contender.letter()),
            must: "200 MB".into(),
            aim: "–".into(),
            measured: format!("{megabytes:.0} MB"),
            holds: megabytes < 200.0,
        });
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.iter().fold(
        "### Targets\n\n| | must | aim | measured | |\n| --- | ---: | ---: | ---: | --- |\n".to_owned(),
        |text, row| {
            let verdict = if row.holds { "holds" } else { "**missed**" };
            text + &format!("| {} | {} | {} | {} | {verdict} |\n", row.what, row.must, row.aim, row.measured)
        },
    ) + "\n"
}

fn at_least(what: String, measured: f64, must: f64, aim: f64) -> Row {
    Row { what, must: ratio(must), aim: ratio(aim), measured: ratio(measured), holds: measured >= must }
}

fn at_most(what: String, measured: f64, must: f64, aim: f64) -> Row {
    Row { what, must: ratio(must), aim: ratio(aim), measured: ratio(measured), holds: measured <= must }
}

fn ratio(value: f64) -> String {
    format!("{value:.2} ×")
}
