//! Where a gate under test keeps its rows: an SQLite file or a Postgres database of its own, gone afterwards.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::setting;

/// A store of one test's own; clones are the same store, which is gone with the last of them.
#[derive(Clone)]
pub(crate) struct Place(Arc<Kept>);

enum Kept {
    Sqlite(tempfile::TempDir),
    Postgres {
        server: String,
        database: String,
    },
    /// The database of a server that is the test's own as a whole.
    Server(String),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self(Arc::new(Kept::Sqlite(tempfile::tempdir().expect("a temporary folder"))))
    }

    /// A fresh database on the server that `scripts/test` started.
    pub(crate) fn postgres() -> Self {
        let server = setting("TIDEGATE_TEST_POSTGRES");
        let database = format!("gate_{}", uuid::Uuid::from_u128(rand::random()).simple());
        on_server(&server, &format!("CREATE DATABASE {database}"));
        Self(Arc::new(Kept::Postgres { server, database }))
    }

    /// The database that this URL names.
    pub(crate) fn on_server(url: &str) -> Self {
        Self(Arc::new(Kept::Server(url.to_owned())))
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(*self.0, Kept::Sqlite(_))
    }

    /// What `store.url` is for it.
    pub(crate) fn url(&self) -> String {
        match &*self.0 {
            Kept::Sqlite(folder) => format!("sqlite:{}", folder.path().join("tidegate.db").display()),
            Kept::Postgres { server, database } => with_database(server, database),
            Kept::Server(url) => url.clone(),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Self::Postgres { server, database } = self
            && !std::thread::panicking()
        {
            on_server(server, &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"));
        }
    }
}

/// The same server and user, another database.
fn with_database(server: &str, database: &str) -> String {
    let (base, query) = server.split_once('?').map_or((server, None), |(base, query)| (base, Some(query)));
    let authority_at = base.find("://").map_or(0, |at| at + 3);
    let end = base[authority_at..].find('/').map_or(base.len(), |at| authority_at + at);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{}/{database}{query}", &base[..end])
}

fn on_server(server: &str, statement: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let work = async {
        let mut connection = PgConnection::connect(server).await.expect("the test server answers");
        connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.expect("the test server obeys");
        connection.close().await.ok();
    };
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time") });
}
