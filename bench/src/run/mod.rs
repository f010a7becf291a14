//! Runs every contender in interleaved rounds and prints one set of tables.
//!
//! Owns the order of the measurements: in each round every contender once, so that a drift of the machine meets
//! them all. Each cell starts with a new server process on fresh tables after a checkpoint. Does not start database
//! servers (`scripts/bench` does). A cell that fails ends the run: a table with holes would be believed.

mod cell;
mod contender;
mod database;
mod memory;
mod policies;
mod processes;
mod sections;
mod summary;
mod targets;

use std::fs;
use std::path::PathBuf;

use clap::Args;

use contender::{Contender, Programs};
use database::Database;
use sections::Bench;

#[derive(Args)]
pub(crate) struct Settings {
    /// The by-hand server (`cargo build --release --example by_hand`).
    #[arg(long)]
    by_hand: PathBuf,
    /// The program under test.
    #[arg(long)]
    tidegate: PathBuf,
    /// The psql program.
    #[arg(long, default_value = "psql")]
    psql: String,
    /// A private Postgres.
    #[arg(long)]
    postgres: String,
    /// Its first process.
    #[arg(long)]
    postgres_pid: u32,
    /// A private Redis.
    #[arg(long)]
    redis: String,
    /// Its process.
    #[arg(long)]
    redis_pid: u32,
    /// A private Postgres whose fsync is slowed down; without it that section says that it was not possible.
    #[arg(long, requires_all = ["slow_postgres_pid", "slow_preload"])]
    slow_postgres: Option<String>,
    #[arg(long)]
    slow_postgres_pid: Option<u32>,
    /// The library that slows fsync, for SQLite.
    #[arg(long)]
    slow_preload: Option<PathBuf>,
    /// A folder for databases, configurations and logs, on the disk to be measured.
    #[arg(long)]
    scratch: PathBuf,
    /// Rounds; medians need three.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measured seconds of each cell.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds of load before measuring.
    #[arg(long, default_value_t = 1.5)]
    warmup: f64,
    /// Contenders by letter.
    #[arg(long, default_value = "a,b,c,d,e", value_delimiter = ',')]
    contenders: Vec<char>,
    /// Connections of the closed loops; the open loops use the most.
    #[arg(long, default_value = "64,256", value_delimiter = ',')]
    connections: Vec<usize>,
    /// Sections: closed, policies, lone, open, keys, slow, memory.
    #[arg(long, default_value = "closed,policies,lone,open,keys,slow,memory", value_delimiter = ',')]
    only: Vec<String>,
    /// Keys taken before the second run.
    #[arg(long, default_value_t = 10_000_000)]
    keys: u64,
    /// Every cell's figures as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A Markdown file that has the tables between two marks, to be replaced.
    #[arg(long)]
    write: Option<PathBuf>,
    /// The command line that repeats this run, for the head of the tables.
    #[arg(long, default_value = "scripts/bench")]
    command: String,
}

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// Measures, prints, and writes where it was asked to.
pub(crate) fn run(settings: &Settings) -> Result<(), String> {
    let contenders: Vec<Contender> =
        Contender::ALL.into_iter().filter(|contender| settings.contenders.contains(&contender.letter())).collect();
    if contenders.is_empty() || settings.rounds == 0 || settings.connections.is_empty() {
        return Err("--contenders, --connections and --rounds must not be empty".into());
    }
    let mut bench = Bench::new(
        settings,
        contenders,
        Programs {
            by_hand: settings.by_hand.clone(),
            tidegate: settings.tidegate.clone(),
            redis: settings.redis.clone(),
            scratch: settings.scratch.clone(),
        },
        Database::new(&settings.psql, &settings.postgres, settings.postgres_pid),
    );
    let mut text = head(settings, bench.database())?;
    for section in ["closed", "policies", "lone", "open", "keys", "slow", "memory"] {
        if settings.only.iter().any(|only| only == section) {
            text += &bench.section(section)?;
        }
    }
    text += &targets::table(bench.cells(), bench.notes(), &settings.connections);
    println!("{text}");
    if let Some(path) = &settings.json {
        let json = serde_json::to_string_pretty(bench.cells()).map_err(|error| error.to_string())?;
        fs::write(path, json).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(path) = &settings.write {
        let page = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        fs::write(path, between(&page, &text)?).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn head(settings: &Settings, database: &Database) -> Result<String, String> {
    Ok(format!(
        "Command: `{}`. {} rounds of {} s a cell after {} s of warm-up.\n\nMachine: {}; load generator, servers and \
         databases share it.\n{}. Redis without persistence. SQLite: WAL, `synchronous = FULL`. By hand: pool of 16, \
         no ping on acquire.\n\n",
        settings.command,
        settings.rounds,
        settings.seconds,
        settings.warmup,
        processes::machine(),
        database.describe()?
    ))
}

fn between(page: &str, text: &str) -> Result<String, String> {
    let (before, rest) = page.split_once(BEGIN).ok_or(format!("the page has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("the page has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_what_was_between_the_marks() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let page = between(&page, "new\n").expect("marks");
        assert_eq!(page, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert!(between("no marks", "new").is_err());
    }
}
