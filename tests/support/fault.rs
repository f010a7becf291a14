//! Faults made inside a store, by a connection of the test's own.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};
use tokio::runtime::Runtime;

use super::gate::Gate;
use super::place::Place;

enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// A connection of the test's own, with the runtime that drives it.
pub(crate) struct Outsider {
    runtime: Runtime,
    link: Option<Link>,
}

impl Outsider {
    pub(crate) fn connect(place: &Place) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let url = place.url();
        let link = runtime.block_on(async {
            match place.is_sqlite() {
                true => Link::Sqlite(SqliteConnection::connect(&url).await.expect("the test's file opens")),
                false => {
                    let mut link = PgConnection::connect(&url).await.expect("the test's server answers");
                    link.execute("SET search_path = tidegate, public").await.expect("a search path");
                    Link::Postgres(link)
                }
            }
        });
        Self { runtime, link: Some(link) }
    }

    /// Runs statements.
    pub(crate) fn run(&mut self, statements: &str) {
        let statements = statements.to_owned();
        let link = self.link.as_mut().expect("an open connection");
        let done = self.runtime.block_on(async {
            match link {
                Link::Sqlite(link) => link.execute(AssertSqlSafe(statements)).await.map(drop),
                Link::Postgres(link) => link.execute(AssertSqlSafe(statements)).await.map(drop),
            }
        });
        done.expect("the test's statements run");
    }

    /// One number.
    pub(crate) fn number(&mut self, query: &str) -> i64 {
        let query = query.to_owned();
        let link = self.link.as_mut().expect("an open connection");
        let number = self.runtime.block_on(async {
            match link {
                Link::Sqlite(link) => sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(link).await,
                Link::Postgres(link) => sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(link).await,
            }
        });
        number.expect("the test's query answers")
    }
}

impl Outsider {
    /// The first column of every row.
    pub(crate) fn texts(&mut self, query: &str) -> Vec<String> {
        let query = query.to_owned();
        let link = self.link.as_mut().expect("an open connection");
        let texts = self.runtime.block_on(async {
            match link {
                Link::Sqlite(link) => sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(link).await,
                Link::Postgres(link) => sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(link).await,
            }
        });
        texts.expect("the test's query answers")
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        self.runtime.block_on(async {
            match link {
                Link::Sqlite(link) => link.close().await.ok(),
                Link::Postgres(link) => link.close().await.ok(),
            }
        });
    }
}

/// Makes every recording of an event fail inside its transaction, or lets it pass again.
pub(crate) fn refuse_events(gate: &Gate, refuse: bool) {
    let place = gate.place();
    let mut outsider = Outsider::connect(place);
    outsider.run(match (place.is_sqlite(), refuse) {
        (true, true) => {
            "CREATE TRIGGER refuse BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"
        }
        (true, false) => "DROP TRIGGER IF EXISTS refuse",
        (false, true) => {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
        }
        (false, false) => "DROP FUNCTION IF EXISTS refuse CASCADE",
    });
}

/// Makes every transaction of the engine hang until the value is dropped.
pub(crate) fn hold_writes(place: &Place) -> Outsider {
    let mut outsider = Outsider::connect(place);
    outsider.run(match place.is_sqlite() {
        true => "BEGIN IMMEDIATE",
        false => "BEGIN; LOCK TABLE resources IN ACCESS EXCLUSIVE MODE",
    });
    outsider
}

/// Rows of every table there is, but for the one about the store itself.
pub(crate) fn rows_of_every_table(place: &Place) -> Vec<(String, i64)> {
    let mut outsider = Outsider::connect(place);
    let tables = outsider.texts(match place.is_sqlite() {
        true => "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta' ORDER BY name",
        false => {
            "SELECT tablename::text FROM pg_tables WHERE schemaname = 'tidegate' AND tablename <> 'meta' ORDER BY 1"
        }
    });
    assert!(tables.len() >= 6, "keys, events, resources and quarantine are among {tables:?}");
    let count = |table: String| {
        let rows = outsider.number(&format!("SELECT count(*) FROM {table}"));
        (table, rows)
    };
    tables.into_iter().map(count).collect()
}
