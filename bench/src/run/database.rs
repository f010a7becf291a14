//! A private Postgres as the benchmark uses it: fresh databases, checkpoints, and key tables filled beforehand.
//!
//! Talks through `psql`, so the runner needs no driver and shares none with the contenders.

use std::process::Command;

#[derive(Clone)]
pub(super) struct Database {
    psql: String,
    /// URL of the maintenance database; its last path part is replaced for others.
    url: String,
    /// The server's first process, for its CPU time.
    pub(super) pid: u32,
}

impl Database {
    pub(super) fn new(psql: &str, url: &str, pid: u32) -> Self {
        Self { psql: psql.into(), url: url.into(), pid }
    }

    pub(super) fn url(&self, name: &str) -> String {
        let base = self.url.rsplit_once('/').map_or(self.url.as_str(), |(base, _)| base);
        format!("{base}/{name}")
    }

    /// Drops and makes the database, so that no run pays for an earlier one.
    pub(super) fn fresh(&self, name: &str) -> Result<(), String> {
        self.drop(name)?;
        self.run("postgres", &format!("CREATE DATABASE {name}")).map(drop)
    }

    pub(super) fn drop(&self, name: &str) -> Result<(), String> {
        self.run("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).map(drop)
    }

    pub(super) fn checkpoint(&self) -> Result<(), String> {
        self.run("postgres", "CHECKPOINT").map(drop)
    }

    /// Server version and the settings that a durability claim rests on.
    pub(super) fn describe(&self) -> Result<String, String> {
        let settings = self.run(
            "postgres",
            "SELECT string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings
             WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size',
                            'wal_sync_method')",
        )?;
        let version = self.run("postgres", "SHOW server_version")?;
        let version = version.split(' ').next().unwrap_or(&version);
        Ok(format!("PostgreSQL {version} ({settings})"))
    }

    pub(super) fn run(&self, name: &str, sql: &str) -> Result<String, String> {
        let output = Command::new(&self.psql)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"])
            .args(["--dbname", &self.url(name), "--command", sql])
            .output()
            .map_err(|error| format!("{}: {error}", self.psql))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(format!("psql: {} in: {sql}", String::from_utf8_lossy(&output.stderr).trim()))
        }
    }
}
