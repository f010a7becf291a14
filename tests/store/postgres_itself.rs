//! What only Postgres has: migrations on many nodes, settings, plans, pools.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use tidegate::store::postgres::small_pool;
use tidegate::store::{OpenError, StoreSettings, open};

use crate::database::Database;
use crate::events::{APPLIED, Words as _, event};
use crate::world::{Kind, block_on, run};

/// Runs a case on a database without tables, and drops it afterwards.
fn on_empty(case: impl AsyncFnOnce(&str)) {
    let database = block_on(Database::empty());
    let url = database.url.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(case(&url))));
    block_on(database.drop());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

async fn refusal(url: &str) -> OpenError {
    match open(&StoreSettings::of(url)).await {
        Ok(_) => panic!("the database should be refused"),
        Err(error) => error,
    }
}

#[test]
fn many_nodes_may_start_at_once_on_an_empty_database() {
    on_empty(async |url| {
        let starts = (0..6).map(|_| async { open(&StoreSettings::of(url)).await.map(|opened| opened.store) });
        for started in futures_util::future::join_all(starts).await {
            let store = started.unwrap_or_else(|error| panic!("a node starts: {error}"));
            let mut session = store.open().await.expect("a session");
            let key = crate::events::fresh_id().to_string();
            assert_eq!(session.commit(&[event(&key)]).await.expect("a commit").outcomes, [APPLIED]);
        }
    });
}

#[test]
fn tables_of_a_newer_binary_are_refused() {
    run(Kind::Postgres, async |world| {
        connect(&world.url).await.execute("UPDATE tidegate.meta SET schema_version = 999").await.unwrap();
        let error = refusal(&world.url).await.to_string();
        assert!(error.contains("version 999") && error.contains("newer tidegate"), "{error}");
    });
}

#[test]
fn a_database_that_loses_commits_or_takes_no_writes_is_refused_by_name() {
    for (setting, value) in [("synchronous_commit", "off"), ("default_transaction_read_only", "on")] {
        on_empty(async |url| {
            let mut connection = connect(url).await;
            let name: String =
                sqlx::query_scalar("SELECT current_database()").fetch_one(&mut connection).await.unwrap();
            let sql = format!("ALTER DATABASE {name} SET {setting} = {value}");
            connection.execute(AssertSqlSafe(sql)).await.unwrap();
            let error = refusal(url).await.to_string();
            assert!(error.contains(&format!("`{setting}` is {value}")), "{error}");
        });
    }
}

#[test]
fn no_error_shows_the_password() {
    for url in [
        "postgres://someone:hunter2@127.0.0.1:1/nowhere",
        "postgres://someone:hunter2@[::1/nowhere",
        "postgres://someone:hunter2@127.0.0.1:notaport/nowhere",
    ] {
        let error = block_on(refusal(url)).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn no_column_is_a_32_bit_number() {
    run(Kind::Postgres, async |world| {
        let narrow: Vec<String> = sqlx::query_scalar(
            "SELECT table_name || '.' || column_name FROM information_schema.columns
             WHERE (table_schema = 'tidegate' OR table_name LIKE 'tidegate%')
               AND (data_type IN ('integer', 'serial', 'real') OR column_default LIKE 'nextval%')",
        )
        .fetch_all(&mut connect(&world.url).await)
        .await
        .unwrap();
        assert_eq!(narrow, Vec::<String>::new());
    });
}

#[test]
fn the_readable_views_show_times_and_words() {
    run(Kind::Postgres, async |world| {
        let mut session = world.node.session().await;
        session.commit(&[event("k").on("o", 7)]).await.unwrap();
        let mut connection = connect(&world.url).await;
        let row: (String, String, bool) = sqlx::query_as(
            "SELECT verdict, version, abs(extract(epoch FROM now() - received_at)) < 600 FROM tidegate_events",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(row, ("applied".to_owned(), "7".to_owned(), true));
        let row: (String, String) =
            sqlx::query_as("SELECT id, version FROM tidegate_resources").fetch_one(&mut connection).await.unwrap();
        assert_eq!(row, ("o".to_owned(), "7".to_owned()));
    });
}

/// sqlx 0.8.4 to 0.9.0: a dropped `begin` leaves its session inside a transaction, and the next plain write on it
/// answers Ok and is never committed. The pool's rollback at release closes that.
#[test]
fn a_dropped_begin_does_not_swallow_later_writes_of_the_pool() {
    run(Kind::Postgres, async |world| {
        let options: PgConnectOptions = world.url.parse().unwrap();
        let pool = small_pool(options, 1, Duration::from_secs(10));
        pool.execute("CREATE TABLE written (n bigint)").await.unwrap();
        for n in 0..50_i64 {
            // Polled a few times, so that the drop meets it at every point.
            let mut begin = Box::pin(pool.begin());
            for _ in 0..n % 5 {
                if futures_util::poll!(&mut begin).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(begin);
            sqlx::query("INSERT INTO written VALUES ($1)").bind(n).execute(&pool).await.unwrap();
        }
        let mut another = connect(&world.url).await;
        let written: i64 = sqlx::query_scalar("SELECT count(*) FROM written").fetch_one(&mut another).await.unwrap();
        assert_eq!(written, 50);
    });
}

#[test]
fn a_session_whose_server_side_died_says_so_and_is_not_used_again() {
    run(Kind::Postgres, async |world| {
        let mut session = world.node.session().await;
        session.commit(&[event("k1")]).await.unwrap();
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'tidegate writer' AND datname = current_database()";
        connect(&world.url).await.execute(sql).await.unwrap();
        session.commit(&[event("k2")]).await.expect_err("the connection is gone");
        let error = session.commit(&[event("k2")]).await.expect_err("a broken session").to_string();
        assert!(error.contains("open a new one"), "{error}");
        let mut fresh = world.node.session().await;
        fresh.commit(&[event("k2")]).await.expect("a new session works");
    });
}
