//! Medians of the rounds, and the tables made from them.
//!
//! Ratios are taken between medians of one sitting. A cell with failures says so in its row: a fast server that
//! refuses is not fast.

use std::fmt::Write as _;

use super::cell::Cell;
use super::contender::Contender;

/// The rounds of one contender in one block.
pub(super) struct Summary {
    pub(super) rate: Spread,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    p999_ms: f64,
    cores: [f64; 4],
    failures: u64,
    unsent: u64,
    offered: Option<f64>,
}

impl Summary {
    /// Of the loader, the server, the database and Redis.
    pub(super) fn cores(&self) -> [f64; 4] {
        self.cores
    }
}

#[derive(Clone, Copy)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, least, most })
    }
}

/// `None` when the contender did not run in this block.
pub(super) fn summary(cells: &[Cell], block: &str, contender: Contender) -> Option<Summary> {
    let rows: Vec<&Cell> =
        cells.iter().filter(|cell| cell.block == block && cell.contender == contender.letter()).collect();
    let median = |value: &dyn Fn(&Cell) -> f64| Spread::of(rows.iter().map(|cell| value(cell))).map(|s| s.median);
    Some(Summary {
        rate: Spread::of(rows.iter().map(|cell| cell.report.events_per_second))?,
        p50_ms: median(&|cell| cell.report.p50_ms)?,
        p99_ms: median(&|cell| cell.report.p99_ms)?,
        p999_ms: median(&|cell| cell.report.p999_ms)?,
        cores: [
            median(&|cell| cell.report.loader_cores)?,
            median(&|cell| cell.server_cores)?,
            median(&|cell| cell.database_cores)?,
            median(&|cell| cell.cache_cores)?,
        ],
        failures: rows.iter().map(|cell| cell.report.failures()).sum(),
        unsent: rows.iter().map(|cell| cell.report.unsent).sum(),
        offered: rows.first().and_then(|cell| cell.report.rate),
    })
}

/// One block as a Markdown table.
pub(super) fn table(cells: &[Cell], block: &str, title: &str) -> String {
    let rows: Vec<(Contender, Summary)> =
        Contender::ALL.into_iter().filter_map(|c| Some((c, summary(cells, block, c)?))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rate_of = |contender| rows.iter().find(|row| row.0 == contender).map(|row| row.1.rate.median);
    let [by_a, by_b, by_c] = [Contender::Transaction, Contender::Function, Contender::Verify].map(rate_of);
    let is_open = rows.iter().any(|row| row.1.offered.is_some());
    let mut text = format!("**{title}**\n\n");
    text += if is_open {
        "| | offered/s | answered/s | p50 ms | p99 ms | p99.9 ms | cores: loader / server / database / Redis | |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |\n"
    } else {
        "| | events/s, median (min–max) | to (a) | to (b) | of (c) | p50 ms | p99 ms | \
         cores: loader / server / database / Redis | |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |\n"
    };
    for (contender, row) in &rows {
        let name = format!("({}) {}", contender.letter(), contender.title());
        let cores = row.cores.map(|cores| format!("{cores:.2}")).join(" / ");
        let mut note = Vec::new();
        if row.failures > 0 {
            note.push(format!("{} failed", row.failures));
        }
        if row.unsent > 0 {
            note.push(format!("{} found no connection in time", row.unsent));
        }
        let _ = match row.offered {
            Some(offered) => write!(
                text,
                "| {name} | {} | {} | {:.2} | {:.2} | {:.1} |",
                thousands(offered),
                thousands(row.rate.median),
                row.p50_ms,
                row.p99_ms,
                row.p999_ms
            ),
            None => write!(
                text,
                "| {name} | {} ({}–{}) | {} | {} | {} | {:.2} | {:.2} |",
                thousands(row.rate.median),
                thousands(row.rate.least),
                thousands(row.rate.most),
                times(row.rate.median, by_a),
                times(row.rate.median, by_b),
                by_c.map_or("–".into(), |bound| format!("{:.0} %", 100.0 * row.rate.median / bound)),
                row.p50_ms,
                row.p99_ms
            ),
        };
        let _ = writeln!(text, " {cores} | {} |", note.join(", "));
    }
    text + "\n"
}

fn times(value: f64, base: Option<f64>) -> String {
    base.filter(|base| *base > 0.0).map_or("–".into(), |base| format!("{:.2} ×", value / base))
}

/// `12,345`.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_an_even_count_is_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].into_iter()).expect("values");
        assert_eq!((spread.median, spread.least, spread.most), (2.5, 1.0, 4.0));
    }

    #[test]
    fn thousands_are_parted() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(999.0), "999");
    }
}
