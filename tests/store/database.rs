//! A Postgres database for one case, made from a template that is migrated once.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tidegate::store::{StoreSettings, open};

/// A database of one test, made from a template that is migrated once.
pub(crate) struct Database {
    name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let mut connection = maintenance().await;
        let template = template(&mut connection).await;
        let name = format!("tidegate_test_{}", crate::events::fresh_id().0.simple());
        make(&mut connection, &name, &template).await;
        connection.close().await.expect("the maintenance connection closes");
        Self { url: url_of(&name), name }
    }

    /// A database without any table.
    pub(crate) async fn empty() -> Self {
        let mut connection = maintenance().await;
        let name = format!("tidegate_test_{}", crate::events::fresh_id().0.simple());
        make(&mut connection, &name, "template0").await;
        connection.close().await.expect("the maintenance connection closes");
        Self { url: url_of(&name), name }
    }

    pub(crate) async fn drop(self) {
        let mut connection = maintenance().await;
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(sql)).await.expect("the test's database is dropped");
    }
}

async fn make(connection: &mut PgConnection, name: &str, template: &str) {
    // Two copies of one template at a time are refused, so they queue.
    connection.execute("SELECT pg_advisory_lock(7404)").await.expect("a lock");
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'");
    let made = connection.execute(AssertSqlSafe(sql)).await;
    connection.execute("SELECT pg_advisory_unlock(7404)").await.expect("an unlock");
    made.expect("a database for the test");
}

/// The migrated template, named after its migrations, made by whichever test comes first.
async fn template(connection: &mut PgConnection) -> String {
    let schema = include_str!("../../src/store/postgres/migrations/0001_start.sql");
    let digest = tidegate_actors::rules::key::BodyDigest::of(schema.as_bytes());
    let name = format!("tidegate_template_{digest}");
    connection.execute("SELECT pg_advisory_lock(7403)").await.expect("a lock");
    let ready: Option<bool> = sqlx::query_scalar("SELECT datistemplate FROM pg_database WHERE datname = $1")
        .bind(&name)
        .fetch_optional(&mut *connection)
        .await
        .expect("the list of databases");
    if ready != Some(true) {
        let run = |sql: String| AssertSqlSafe(sql);
        connection.execute(run(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await.expect("a clean start");
        connection.execute(run(format!("CREATE DATABASE {name} TEMPLATE template0"))).await.expect("a template");
        drop(open(&StoreSettings::of(url_of(&name))).await.expect("the template is migrated"));
        let done = format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false");
        connection.execute(run(done)).await.expect("the template is closed");
    }
    connection.execute("SELECT pg_advisory_unlock(7403)").await.expect("an unlock");
    name
}

async fn maintenance() -> PgConnection {
    PgConnection::connect(&maintenance_url()).await.expect("the server in TIDEGATE_TEST_POSTGRES answers")
}

fn maintenance_url() -> String {
    std::env::var("TIDEGATE_TEST_POSTGRES")
        .expect("TIDEGATE_TEST_POSTGRES is not set: run the tests by `scripts/test`, which starts a Postgres for them")
}

/// The maintenance URL with another database, which keeps every other part of it.
fn url_of(database: &str) -> String {
    let url = maintenance_url();
    let options: PgConnectOptions = url.parse().expect("TIDEGATE_TEST_POSTGRES is a URL");
    let old = options.get_database().unwrap_or("postgres").to_owned();
    let (base, query) = url.split_once('?').map_or((url.as_str(), None), |(base, query)| (base, Some(query)));
    let base = base.strip_suffix(&old).unwrap_or(base).trim_end_matches('/');
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{base}/{database}{query}")
}
