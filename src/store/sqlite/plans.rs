//! Every statement runs on the tables there are, and none looks through a table that grows.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::statements::Statements;
use super::{effects, waiting};

async fn tables() -> SqliteConnection {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    let tables = include_str!("migrations/0001_start.sql");
    sqlx::raw_sql(tables).execute(&mut connection).await.expect("the tables");
    connection
}

/// The steps of a statement's plan that read a growing table from end to end.
async fn scans(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let explained = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let rows = sqlx::query(explained).fetch_all(connection).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let step = |row: &SqliteRow| row.get::<String, _>("detail");
    let grows = ["keys_", "events", "resources", "holds", "fetches", "f", "r"];
    let scan = |step: &String| {
        let table = step.strip_prefix("SCAN ").unwrap_or("?");
        grows.iter().any(|grown| table == *grown || table.starts_with(&format!("{grown} ")))
            // the first of an index is no scan
            && !step.contains("USING COVERING INDEX holds_until")
    };
    rows.iter().map(step).filter(scan).collect()
}

#[tokio::test]
async fn no_statement_looks_through_a_table_that_grows() {
    let mut connection = tables().await;
    let statements = Statements::new();
    let sizes = [
        &statements.load,
        &statements.load_states,
        &statements.load_holds,
        &statements.load_fetches,
        &statements.put_states,
        &statements.change_states,
        &statements.hold,
        &statements.rearm,
        &statements.settle,
        &statements.ask,
        &statements.answer,
    ];
    let mut texts: Vec<String> = waiting::TEXTS.iter().chain(&effects::TEXTS).map(|&text| text.to_owned()).collect();
    for rows in [1, 8, 64] {
        texts.extend(sizes.iter().map(|sizes| sizes.fitting(rows).sql.to_string()));
        texts.extend(statements.record.iter().map(|sizes| sizes.fitting(rows).sql.to_string()));
    }
    texts.push(statements.conflict.to_string());
    for sql in texts.iter().flat_map(|text| text.split("; ")) {
        assert_eq!(scans(&mut connection, sql).await, Vec::<String>::new(), "{sql}");
    }
}

#[tokio::test]
async fn the_tables_refuse_what_the_rules_never_say() {
    let mut connection = tables().await;
    let hash = "randomblob(16)";
    let event = |verdict: &str, why: &str, settled: &str, first: &str| {
        format!(
            "INSERT INTO events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id, \
             verdict, tie, why, settled_at_ms, conflicts_with, digest, headers, body) \
             VALUES ({hash}, 1, 's', '', 'k', 't', {hash}, 'o', '1', '{verdict}', 0, {why}, {settled}, {first}, {hash}, x'', x'')"
        )
    };
    let resource = |version: &str, epoch: i64, event: &str, applied: i64, held: i64| {
        format!(
            "INSERT INTO resources (hash, source, tenant, kind, id, version, version_text, epoch, deleted, event_id, \
             applied_at_ms, applied, held) \
             VALUES ({hash}, 's', '', 'o', '1', {version}, {version}, {epoch}, 0, {event}, 1, {applied}, {held})"
        )
    };
    let hold = |until: &str, parked: &str| {
        format!(
            "INSERT INTO holds (event_id, resource_hash, subject, until_ms, parked_in, why) \
             VALUES ({hash}, {hash}, '{{}}', {until}, {parked}, 'waits for 2')"
        )
    };
    let fetch = |epoch: i64, attempts: i64, due: &str, leased: &str| {
        format!("INSERT INTO fetches VALUES ({hash}, {epoch}, {attempts}, {due}, {leased}, NULL)")
    };
    let taken = [
        event("held", "'waits for 2'", "NULL", "NULL"),
        event("expired", "'its time ran out'", "5", "NULL"),
        event("applied", "NULL", "5", "NULL"),
        event("duplicate", "'its effect key was claimed'", "NULL", hash),
        resource("NULL", 1, "NULL", 0, 1),
        resource("NULL", 2, hash, 1, 0),
        hold("5", "NULL"),
        hold("NULL", "1"),
        fetch(0, 0, "1", "NULL"),
        fetch(2, 1, "1", "2"),
    ];
    for sql in taken {
        sqlx::raw_sql(AssertSqlSafe(sql.clone()))
            .execute(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let refused = [
        event("held", "NULL", "NULL", "NULL"),
        event("held", "'waits for 2'", "5", "NULL"),
        event("expired", "'its time ran out'", "NULL", "NULL"),
        event("ignored", "NULL", "5", "NULL"),
        event("held", "'waits for 2'", "NULL", hash),
        event("duplicate", "NULL", "NULL", "NULL"),
        event("lost", "NULL", "NULL", "NULL"),
        resource("NULL", 0, hash, 1, 0),
        resource("NULL", 1, "NULL", 1, 0),
        resource("NULL", 1, hash, 0, 0),
        resource("NULL", 1, hash, 1, -1),
        hold("5", "1"),
        fetch(1, 2, "1", "NULL"),
        fetch(1, 1, "NULL", "2"),
    ];
    for sql in refused {
        let error = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await.err();
        assert!(error.is_some_and(|error| error.to_string().contains("CHECK")), "{sql}");
    }
}
