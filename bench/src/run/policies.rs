//! What a policy costs: contender (d) under each of them, against `arrival`, in one sitting.
//!
//! Everybody gets the same load but for the versions: a sequence needs contiguous ones. The swapped stream has one event
//! in ten out of its order, far enough that the two meet in different batches, so they are held and released.

use std::fmt::Write as _;

use super::cell::Cell;
use super::contender::Contender;
use super::summary::{Summary, summary, thousands};
use crate::load::FIRST_CONTIGUOUS;

/// A policy under load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Arrival,
    Newest,
    Transition,
    Sequence,
    Swapped,
}

/// What everything is compared with.
pub(super) const BASE: Policy = Policy::Arrival;

impl Policy {
    pub(super) const ALL: [Self; 5] = [Self::Arrival, Self::Newest, Self::Transition, Self::Sequence, Self::Swapped];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Arrival => "`arrival`",
            Self::Newest => "`newest`",
            Self::Transition => "`transition`, by ranks",
            Self::Sequence => "`sequence`, in order",
            Self::Swapped => "`sequence`, 10 % out of order",
        }
    }

    /// The source's `order`.
    pub(super) fn order(self) -> String {
        match self {
            Self::Arrival => r#"{ policy = "arrival" }"#.into(),
            Self::Newest => r#"{ policy = "newest" }"#.into(),
            // All events are of one rank, so their versions decide about them.
            Self::Transition => r#"{ policy = "transition", ranks = ["customer.subscription.*"] }"#.into(),
            Self::Sequence | Self::Swapped => format!(r#"{{ policy = "sequence", start = {FIRST_CONTIGUOUS} }}"#),
        }
    }

    /// What the load generator is asked for beside the usual.
    pub(super) fn load(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Arrival | Self::Newest | Self::Transition => &[],
            Self::Sequence => &["--contiguous"],
            Self::Swapped => &["--contiguous", "--swapped", "0.1"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    pub(super) fn block(self, connections: usize) -> String {
        format!("policies {connections} {}", self.title())
    }

    /// Must the rate be near the base's?
    pub(super) fn has_target(self) -> bool {
        !matches!(self, Self::Arrival | Self::Swapped)
    }
}

/// The rounds of one policy.
pub(super) fn of(cells: &[Cell], policy: Policy, connections: usize) -> Option<Summary> {
    summary(cells, &policy.block(connections), Contender::Postgres)
}

/// One table for each number of connections.
pub(super) fn tables(cells: &[Cell], connections: &[usize]) -> String {
    let mut text = "### Policies of order\n\n".to_owned();
    for &connections in connections {
        let Some(base) = of(cells, BASE, connections) else { continue };
        let _ = write!(
            text,
            "**(d) under each policy, {connections} connections**\n\n\
             | | events/s, median (min–max) | to `arrival` | p50 ms | p99 ms | answered `held` | \
             cores: loader / server / database / Redis |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        );
        for policy in Policy::ALL {
            let Some(row) = of(cells, policy, connections) else { continue };
            let cores = row.cores().map(|cores| format!("{cores:.2}")).join(" / ");
            let _ = writeln!(
                text,
                "| {} | {} ({}–{}) | {:.2} × | {:.2} | {:.2} | {} | {cores} |",
                policy.title(),
                thousands(row.rate.median),
                thousands(row.rate.least),
                thousands(row.rate.most),
                row.rate.median / base.rate.median,
                row.p50_ms,
                row.p99_ms,
                held(cells, &policy.block(connections)),
            );
        }
        text.push('\n');
    }
    text
}

/// The share of answers that said `held`.
fn held(cells: &[Cell], block: &str) -> String {
    let of = |count: &dyn Fn(&Cell) -> u64| cells.iter().filter(|cell| cell.block == block).map(count).sum::<u64>();
    let share = of(&|cell| cell.report.other) as f64 / of(&|cell| cell.report.answered).max(1) as f64;
    format!("{:.1} %", 100.0 * share)
}
