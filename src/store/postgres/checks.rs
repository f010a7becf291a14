//! What is asked of a server before anything is answered 2xx from it.
//!
//! Refuses what loses a commit, warns of what may hurt, each with the setting's name, its value and what to do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::errors::describe;
use crate::store::OpenError;

/// The oldest server that the statements are written for.
const SERVER_VERSION_MIN: i64 = 140_000;
/// Connections that should be left for this node and others.
const CONNECTIONS_FREE_MIN: i64 = 20;

/// What a server said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    version_num: i64,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    data_sync_retry: String,
    default_read_only: String,
    in_recovery: bool,
    encoding: String,
    max_connections: i64,
    connections_used: i64,
    clock_difference_ms: i64,
}

/// What the checks found.
pub(crate) struct Found {
    /// The server's version, for people.
    pub(crate) server_version: String,
    /// What is worth a word.
    pub(crate) warnings: Vec<String>,
}

const ASK: &str = "
    SELECT current_setting('server_version') AS version,
           current_setting('server_version_num')::bigint AS version_num,
           current_setting('fsync') AS fsync,
           current_setting('full_page_writes') AS full_page_writes,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('data_sync_retry') AS data_sync_retry,
           current_setting('default_transaction_read_only') AS default_read_only,
           current_setting('server_encoding') AS encoding,
           pg_is_in_recovery() AS in_recovery,
           current_setting('max_connections')::bigint AS max_connections,
           (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database) AS connections_used,
           (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
           pg_backend_pid()::bigint AS pid";

/// Asks the server, and refuses or warns.
pub(crate) async fn run(connection: &mut PgConnection, clock_tolerance: Duration) -> Result<Found, OpenError> {
    let asked = |error: sqlx::Error| OpenError::Unavailable(format!("asking for settings: {}", describe(&error)));
    let row = sqlx::query(ASK).fetch_one(&mut *connection).await.map_err(asked)?;
    let here_ms = wall_ms();
    let read = || {
        let server = Server {
            version_num: row.try_get("version_num")?,
            fsync: row.try_get("fsync")?,
            full_page_writes: row.try_get("full_page_writes")?,
            synchronous_commit: row.try_get("synchronous_commit")?,
            data_sync_retry: row.try_get("data_sync_retry")?,
            default_read_only: row.try_get("default_read_only")?,
            in_recovery: row.try_get("in_recovery")?,
            encoding: row.try_get("encoding")?,
            max_connections: row.try_get("max_connections")?,
            connections_used: row.try_get("connections_used")?,
            clock_difference_ms: row.try_get::<i64, _>("now_ms")? - here_ms,
        };
        Ok((server, row.try_get::<String, _>("version")?, row.try_get::<i64, _>("pid")?))
    };
    let (server, server_version, first_pid) = read().map_err(asked)?;
    let refusals = server.refusals();
    if !refusals.is_empty() {
        return Err(OpenError::Unsafe(refusals));
    }
    let mut warnings = server.warnings(clock_tolerance);
    if !keeps_its_session(connection, first_pid).await.map_err(asked)? {
        warnings.push(
            "a pooler hands each statement to another server session: connect to Postgres directly, or set the pooler to session mode".to_owned(),
        );
    }
    // behind the number, packagers name their package
    let server_version = server_version.split(' ').next().unwrap_or_default().to_owned();
    Ok(Found { server_version, warnings })
}

impl Server {
    fn refusals(&self) -> Vec<String> {
        let mut refusals = Vec::new();
        let mut refuse = |bad: bool, text: String| {
            if bad {
                refusals.push(text);
            }
        };
        refuse(
            self.version_num < SERVER_VERSION_MIN,
            format!("`server_version_num` is {}: upgrade to Postgres 14 or later", self.version_num),
        );
        refuse(
            self.fsync != "on",
            format!("`fsync` is {}: a power cut loses what was answered; set it to on", self.fsync),
        );
        refuse(
            self.full_page_writes != "on",
            format!("`full_page_writes` is {}: a power cut may tear pages; set it to on", self.full_page_writes),
        );
        refuse(
            self.synchronous_commit == "off",
            "`synchronous_commit` is off: a crash loses what was answered; set it to on for this user or database"
                .to_owned(),
        );
        refuse(
            self.in_recovery,
            "`pg_is_in_recovery()` is true: this server is a standby; connect to the primary".to_owned(),
        );
        refuse(
            self.default_read_only != "off",
            format!(
                "`default_transaction_read_only` is {}: nothing can be written; set it to off for this user or database",
                self.default_read_only
            ),
        );
        refuse(
            self.encoding != "UTF8",
            format!(
                "`server_encoding` is {}: texts of senders are UTF-8; make a database with encoding UTF8",
                self.encoding
            ),
        );
        refusals
    }

    fn warnings(&self, clock_tolerance: Duration) -> Vec<String> {
        let mut warnings = Vec::new();
        if matches!(self.synchronous_commit.as_str(), "local" | "remote_write") {
            warnings.push(format!(
                "`synchronous_commit` is {}: a failover to a standby may lose what was answered; set it to on where there is one",
                self.synchronous_commit
            ));
        }
        if self.data_sync_retry != "off" {
            warnings.push(format!(
                "`data_sync_retry` is {}: a failed write to disk may go unnoticed; set it to off",
                self.data_sync_retry
            ));
        }
        let free = self.max_connections - self.connections_used;
        if free < CONNECTIONS_FREE_MIN {
            warnings.push(format!(
                "`max_connections` is {}, {} are in use: raise it so that {CONNECTIONS_FREE_MIN} stay free",
                self.max_connections, self.connections_used
            ));
        }
        if u128::from(self.clock_difference_ms.unsigned_abs()) > clock_tolerance.as_millis() {
            warnings.push(format!(
                "the server's clock differs from this machine's by {} ms: set both by NTP, else good signatures fall out of their time window",
                self.clock_difference_ms
            ));
        }
        warnings
    }
}

/// Whether several statements meet the same server session: not so behind a pooler in transaction mode.
async fn keeps_its_session(connection: &mut PgConnection, first_pid: i64) -> Result<bool, sqlx::Error> {
    for _ in 0..3 {
        let pid: i64 = sqlx::query_scalar("SELECT pg_backend_pid()::bigint").fetch_one(&mut *connection).await?;
        if pid != first_pid {
            return Ok(false);
        }
    }
    Ok(true)
}

/// This machine's wall clock, asked once at start to compare it with the server's.
#[expect(clippy::disallowed_methods, reason = "before there is a clock to ask, and only to compare the two")]
fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Duration = Duration::from_secs(2);

    fn good() -> Server {
        Server {
            version_num: 150_006,
            fsync: "on".into(),
            full_page_writes: "on".into(),
            synchronous_commit: "on".into(),
            data_sync_retry: "off".into(),
            default_read_only: "off".into(),
            in_recovery: false,
            encoding: "UTF8".into(),
            max_connections: 100,
            connections_used: 5,
            clock_difference_ms: 3,
        }
    }

    #[test]
    fn a_good_server_gets_no_word() {
        assert_eq!(good().refusals(), Vec::<String>::new());
        assert_eq!(good().warnings(TOLERANCE), Vec::<String>::new());
    }

    #[test]
    fn each_setting_that_loses_commits_is_refused_by_name_and_value() {
        let off = || "off".to_owned();
        let cases: [(Server, &str); 7] = [
            (Server { version_num: 130_010, ..good() }, "`server_version_num` is 130010"),
            (Server { fsync: off(), ..good() }, "`fsync` is off"),
            (Server { full_page_writes: off(), ..good() }, "`full_page_writes` is off"),
            (Server { synchronous_commit: off(), ..good() }, "`synchronous_commit` is off"),
            (Server { default_read_only: "on".into(), ..good() }, "`default_transaction_read_only` is on"),
            (Server { in_recovery: true, ..good() }, "`pg_is_in_recovery()` is true"),
            (Server { encoding: "SQL_ASCII".into(), ..good() }, "`server_encoding` is SQL_ASCII"),
        ];
        for (server, text) in cases {
            let refusals = server.refusals();
            assert!(refusals.len() == 1 && refusals[0].starts_with(text), "{refusals:?}");
        }
    }

    #[test]
    fn what_may_hurt_is_a_warning() {
        let cases: [(Server, &str); 5] = [
            (Server { synchronous_commit: "local".into(), ..good() }, "`synchronous_commit` is local"),
            (Server { synchronous_commit: "remote_write".into(), ..good() }, "`synchronous_commit` is remote_write"),
            (Server { data_sync_retry: "on".into(), ..good() }, "`data_sync_retry` is on"),
            (Server { connections_used: 90, ..good() }, "`max_connections` is 100"),
            (Server { clock_difference_ms: -9_000, ..good() }, "the server's clock differs"),
        ];
        for (server, text) in cases {
            let warnings = server.warnings(TOLERANCE);
            assert!(warnings.len() == 1 && warnings[0].starts_with(text), "{warnings:?}");
        }
    }
}
