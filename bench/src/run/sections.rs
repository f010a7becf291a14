//! The parts of the benchmark, each a few blocks of cells over interleaved rounds.
//!
//! closed: every connection always has one event under way. policies: what each policy of order costs. lone: one connection, the cost of an idle system. open:
//! constant arrivals. keys: the same with many keys taken before. slow: a millisecond more for every fsync.

use std::path::Path;

use super::Settings;
use super::cell::{Beside, Cell, Load, measure};
use super::contender::{Contender, NEWEST, Programs};
use super::database::Database;
use super::memory;
use super::policies::{self, Policy};
use super::summary::{summary, table, thousands};

/// Offered rate of the first open loop.
pub(super) const OPEN_RATE: f64 = 10_000.0;

/// Keys are filled in pieces, so that a piece fits the write-ahead log.
const FILL_STEP: u64 = 1_000_000;

pub(super) struct Bench<'a> {
    settings: &'a Settings,
    contenders: Vec<Contender>,
    programs: Programs,
    database: Database,
    cells: Vec<Cell>,
    notes: Vec<memory::Note>,
}

/// Where a cell runs.
#[derive(Clone, Copy)]
struct Place<'a> {
    database: &'a Database,
    name: &'a str,
    /// Fresh tables; else what an earlier cell left.
    fresh: bool,
    preload: Option<&'a Path>,
    order: &'a str,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        contenders: Vec<Contender>,
        programs: Programs,
        database: Database,
    ) -> Self {
        Self { settings, contenders, programs, database, cells: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub(super) fn notes(&self) -> &[memory::Note] {
        &self.notes
    }

    pub(super) fn section(&mut self, name: &str) -> Result<String, String> {
        match name {
            "closed" => self.closed(),
            "policies" => self.policies(),
            "lone" => self.lone(),
            "open" => self.open(),
            "keys" => self.keys(),
            "slow" => self.slow(),
            _ => self.memory(),
        }
    }

    fn closed(&mut self) -> Result<String, String> {
        let database = self.database.clone();
        let place = Place { database: &database, name: "bench", fresh: true, preload: None, order: NEWEST };
        for round in 1..=self.settings.rounds {
            for &connections in &self.settings.connections {
                for contender in self.contenders.clone() {
                    let load = self.load(connections, None);
                    self.cell(&format!("closed {connections}"), contender, round, place, &load)?;
                }
            }
        }
        Ok(self.settings.connections.iter().fold("### Closed loop\n\n".into(), |text, connections| {
            text + &table(&self.cells, &format!("closed {connections}"), &format!("{connections} connections"))
        }))
    }

    fn policies(&mut self) -> Result<String, String> {
        let database = self.database.clone();
        for round in 1..=self.settings.rounds {
            for &connections in &self.settings.connections {
                for policy in Policy::ALL {
                    let order = policy.order();
                    let place = Place { database: &database, name: "bench", fresh: true, preload: None, order: &order };
                    let load = Load { more: policy.load(), ..self.load(connections, None) };
                    self.cell(&policy.block(connections), Contender::Postgres, round, place, &load)?;
                }
            }
        }
        Ok(policies::tables(&self.cells, &self.settings.connections))
    }

    fn lone(&mut self) -> Result<String, String> {
        let database = self.database.clone();
        let place = Place { database: &database, name: "bench", fresh: true, preload: None, order: NEWEST };
        for round in 1..=self.settings.rounds {
            for contender in self.contenders.clone() {
                let mut load = self.load(1, None);
                load.more = vec!["--duplicates".into(), "0".into()];
                self.cell("lone", contender, round, place, &load)?;
            }
        }
        Ok("### One event at a time\n\n".to_owned()
            + &table(&self.cells, "lone", "One connection, no repeats: what an event costs an idle server"))
    }

    fn open(&mut self) -> Result<String, String> {
        let database = self.database.clone();
        let place = Place { database: &database, name: "bench", fresh: true, preload: None, order: NEWEST };
        let connections = self.most_connections();
        for round in 1..=self.settings.rounds {
            for contender in self.contenders.clone() {
                let best = self.best_rate(contender);
                if best.is_none_or(|best| best > 1.05 * OPEN_RATE) {
                    let load = self.load(connections, Some(OPEN_RATE));
                    self.cell("open 10000", contender, round, place, &load)?;
                }
                if let Some(best) = best {
                    let load = self.load(connections, Some((best / 2.0).round()));
                    self.cell("open half", contender, round, place, &load)?;
                }
            }
        }
        let title = format!(
            "{}/s offered over {connections} connections (those that cannot take it are left out)",
            thousands(OPEN_RATE)
        );
        Ok("### Open loop\n\nLatency counts from when an event was due, not from when it was sent.\n\n".to_owned()
            + &table(&self.cells, "open 10000", &title)
            + &table(&self.cells, "open half", "Half of one's own best closed-loop rate"))
    }

    fn keys(&mut self) -> Result<String, String> {
        let database = self.database.clone();
        let contenders: Vec<Contender> = self.contenders.iter().copied().filter(|c| c.uses_postgres()).collect();
        let connections = self.most_connections();
        let fill_name = |contender: Contender| format!("filled_{}", contender.letter());
        for &contender in &contenders {
            self.fill(contender, &fill_name(contender))?;
        }
        for round in 1..=self.settings.rounds {
            for &contender in &contenders {
                let load = self.load(connections, None);
                let empty = Place { database: &database, name: "bench", fresh: true, preload: None, order: NEWEST };
                self.cell("keys empty", contender, round, empty, &load)?;
                let name = fill_name(contender);
                let filled = Place { name: &name, fresh: false, ..empty };
                self.cell("keys filled", contender, round, filled, &load)?;
            }
        }
        for &contender in &contenders {
            database.drop(&fill_name(contender))?;
        }
        let keys = thousands(self.settings.keys as f64);
        let title = format!("{keys} keys taken before, {connections} connections");
        let shares: Vec<String> = contenders
            .iter()
            .filter_map(|&contender| {
                let empty = summary(&self.cells, "keys empty", contender)?.rate.median;
                let filled = summary(&self.cells, "keys filled", contender)?.rate.median;
                Some(format!("({}) {:.0} %", contender.letter(), 100.0 * filled / empty))
            })
            .collect();
        Ok("### Many keys\n\n".to_owned()
            + &table(&self.cells, "keys empty", "Empty tables, the same sitting")
            + &table(&self.cells, "keys filled", &title)
            + &format!("Rate with {keys} keys against empty tables: {}.\n\n", shares.join(", ")))
    }

    /// Lets the contender make its tables, then fills its key table with random keys, as if long in use.
    fn fill(&self, contender: Contender, name: &str) -> Result<(), String> {
        progress(&format!("filling ({}) with {} keys", contender.letter(), self.settings.keys));
        self.database.fresh(name)?;
        self.programs.start(contender, NEWEST, &self.database, name, None)?.stop()?;
        let mut left = self.settings.keys;
        let mut piece = 0;
        while left > 0 {
            let count = left.min(FILL_STEP);
            let sql = match contender {
                // A ring of three key tables: all three hold a third, as just before the oldest is emptied.
                Contender::Postgres => format!(
                    "INSERT INTO tidegate.keys_{} (hash, event_id, digest)
                     SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid() FROM generate_series(1, {count})",
                    piece % 3
                ),
                _ => format!(
                    "INSERT INTO taken_keys (key)
                     SELECT 'evt_' || substr(md5(random()::text), 1, 26) FROM generate_series(1, {count})
                     ON CONFLICT DO NOTHING"
                ),
            };
            self.database.run(name, &sql)?;
            left -= count;
            piece += 1;
        }
        self.database.run(name, "VACUUM (ANALYZE)").map(drop)
    }

    fn slow(&mut self) -> Result<String, String> {
        const HEAD: &str = "### Slow disk\n\n";
        let (Some(url), Some(pid)) = (&self.settings.slow_postgres, self.settings.slow_postgres_pid) else {
            return Ok(format!(
                "{HEAD}Not measured: this machine has no C compiler or takes no preloaded library.\n\n"
            ));
        };
        let database = Database::new(&self.settings.psql, url, pid);
        let preload = self.settings.slow_preload.clone();
        let place =
            Place { database: &database, name: "bench", fresh: true, preload: preload.as_deref(), order: NEWEST };
        for round in 1..=self.settings.rounds {
            for &connections in &self.settings.connections {
                for contender in self.contenders.clone() {
                    if contender != Contender::Verify {
                        let load = self.load(connections, None);
                        self.cell(&format!("slow {connections}"), contender, round, place, &load)?;
                    }
                }
            }
        }
        Ok(self.settings.connections.iter().fold(
            format!("{HEAD}Every fsync and fdatasync of Postgres and of SQLite takes 1 ms longer.\n\n"),
            |text, connections| {
                text + &table(&self.cells, &format!("slow {connections}"), &format!("{connections} connections"))
            },
        ))
    }

    fn memory(&mut self) -> Result<String, String> {
        let mut text = "### Memory\n\n".to_owned();
        for contender in [Contender::Postgres, Contender::Sqlite] {
            if self.contenders.contains(&contender) {
                progress(&format!("memory of ({})", contender.letter()));
                self.database.fresh("bench")?;
                let running = self.programs.start(contender, NEWEST, &self.database, "bench", None)?;
                let note = memory::watch(contender, &running, self.most_connections())?;
                running.stop()?;
                text += &note.text();
                self.notes.push(note);
            }
        }
        Ok(text + "\n")
    }

    /// One cell: fresh tables, a checkpoint, a new server process, the load.
    fn cell(
        &mut self,
        block: &str,
        contender: Contender,
        round: usize,
        place: Place<'_>,
        load: &Load,
    ) -> Result<(), String> {
        if place.fresh && contender.uses_postgres() {
            place.database.fresh(place.name)?;
        }
        let running = self.programs.start(contender, place.order, place.database, place.name, place.preload)?;
        place.database.checkpoint()?;
        let beside = Beside {
            database: contender.uses_postgres().then_some(place.database.pid),
            cache: (contender == Contender::Postgres).then_some(self.settings.redis_pid),
        };
        let cell = measure(block, contender, round, &running, beside, load)
            .map_err(|error| format!("({}) {block}: {error}", contender.letter()))?;
        progress(&format!(
            "round {round}, {block}, ({}): {}/s, p50 {:.2} ms, p99 {:.2} ms, duplicates {}/{}, failed {}",
            contender.letter(),
            thousands(cell.report.events_per_second),
            cell.report.p50_ms,
            cell.report.p99_ms,
            cell.report.duplicate,
            cell.report.repeated,
            cell.report.failures()
        ));
        self.cells.push(cell);
        running.stop()
    }

    fn load(&self, connections: usize, rate: Option<f64>) -> Load {
        Load { connections, seconds: self.settings.seconds, warmup: self.settings.warmup, rate, more: Vec::new() }
    }

    fn most_connections(&self) -> usize {
        self.settings.connections.iter().copied().max().unwrap_or(64)
    }

    fn best_rate(&self, contender: Contender) -> Option<f64> {
        let rates = self.settings.connections.iter().filter_map(|connections| {
            Some(summary(&self.cells, &format!("closed {connections}"), contender)?.rate.median)
        });
        rates.max_by(f64::total_cmp)
    }
}

/// Long work says where it is.
fn progress(text: &str) {
    eprintln!("{text}");
}
