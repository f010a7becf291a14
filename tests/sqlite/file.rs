//! The file, its lock and its settings.

use std::fs;

use tidegate_actors::ports::{Outcome, Reader as _, Store as _, StoreError};
use uuid::Uuid;

use crate::world::{Folder, commit, event, settings};

const APPLIED: Outcome = Outcome::Applied { tie: false };

#[tokio::test]
async fn folders_and_file_are_made_where_they_are_missing_and_only_this_user_may_read_them() {
    let folder = Folder::new();
    let _store = folder.store().await;
    let about = fs::metadata(folder.database()).expect("the file is there");
    assert!(about.len() > 0);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600);
}

#[tokio::test]
async fn a_second_opener_is_refused_and_told_who_has_the_database() {
    let folder = Folder::new();
    let first = folder.store().await;
    let refused = folder.open().await.err().expect("an error").to_string();
    let holder = format!("in use by another process {}", std::process::id());
    assert!(refused.contains(&holder) && refused.contains("tidegate.db"), "{refused}");

    assert_eq!(commit(&first, &[event("a", "r", 1, 1_000, b"{}")]).await, [APPLIED]);
    drop(first);
    assert_eq!(commit(&folder.store().await, &[event("b", "r", 2, 1_000, b"{}")]).await, [APPLIED]);
}

#[tokio::test]
async fn a_reader_beside_the_writer_sees_what_was_committed() {
    let folder = Folder::new();
    let store = folder.store().await;
    let reader = folder.reader().await;
    let event = event("a", "r", 1, 1_000, b"{\"n\":1}");
    commit(&store, std::slice::from_ref(&event)).await;
    let row = reader.event(event.id).await.expect("a read").expect("the event");
    assert_eq!(row.body.as_deref(), Some(b"{\"n\":1}".as_slice()));
}

#[tokio::test]
async fn a_reader_without_a_database_says_so() {
    let folder = Folder::new();
    let refused = tidegate::store::sqlite::open_reader(&settings(&folder.database())).await;
    let refused = refused.err().expect("an error").to_string();
    assert!(refused.contains("there is no database at") && refused.contains("tidegate serve"), "{refused}");
}

#[tokio::test]
async fn a_place_that_cannot_hold_a_database_is_named_with_what_to_do() {
    let folder = Folder::new();
    fs::write(folder.path().join("data"), "a file where the folder should be").expect("a file");
    let refused = folder.open().await.err().expect("an error").to_string();
    assert!(refused.contains("cannot make the folder") || refused.contains("cannot use the lock file"), "{refused}");
    assert!(refused.contains("store.url"), "{refused}");
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let folder = Folder::new();
    let other = folder.path().join("other.db");
    fs::write(&other, other_database().await).expect("a file");
    let before = fs::read(&other).expect("the file");
    let refused = tidegate::store::sqlite::SqliteStore::open(&settings(&other)).await;
    let refused = refused.err().expect("an error").to_string();
    assert!(refused.contains("another program"), "{refused}");
    assert_eq!(tables(&before), tables(&fs::read(&other).expect("the file")));
}

/// A database with one table that is not ours.
async fn other_database() -> Vec<u8> {
    use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
    let folder = Folder::new();
    let path = folder.path().join("made.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = options.connect().await.expect("a connection");
    connection.execute("CREATE TABLE theirs (a)").await.expect("a table");
    connection.close().await.expect("closed");
    fs::read(path).expect("the file")
}

fn tables(file: &[u8]) -> bool {
    file.windows(6).any(|bytes| bytes == b"theirs") && !file.windows(9).any(|bytes| bytes == b"resources")
}

#[tokio::test]
async fn tables_of_a_newer_binary_are_refused_by_version() {
    let folder = Folder::new();
    drop(folder.store().await);
    set_user_version(&folder, 99).await;
    let refused = folder.open().await.err().expect("an error").to_string();
    assert!(refused.contains("version 99"), "{refused}");
}

async fn set_user_version(folder: &Folder, version: i64) {
    use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.database());
    let mut connection = options.connect().await.expect("a connection");
    let sql = format!("PRAGMA user_version = {version}");
    connection.execute(sqlx::AssertSqlSafe(sql)).await.expect("the version");
    connection.close().await.expect("closed");
}

#[tokio::test]
async fn the_incarnation_outlives_restarts_and_changes_with_a_restore() {
    let folder = Folder::new();
    let copy = folder.path().join("backup.db");
    let first = folder.store().await;
    let incarnation = first.pulse().await.expect("a pulse").incarnation;
    drop(first);
    let again = folder.store().await;
    assert_eq!(again.pulse().await.expect("a pulse").incarnation, incarnation);
    drop(again);
    folder.closed().await;

    fs::copy(folder.database(), &copy).expect("a backup");
    let later = folder.store().await;
    commit(&later, &[event("lost", "r", 1, 1_000, b"{}")]).await;
    drop(later);
    folder.closed().await;
    fs::copy(&copy, folder.database()).expect("a restore");

    let restored = folder.store().await;
    let pulse = restored.pulse().await.expect("a pulse");
    assert_ne!(pulse.incarnation, incarnation);
    assert_eq!(commit(&restored, &[event("lost", "r", 1, 1_000, b"{}")]).await, [APPLIED]);
}

#[tokio::test]
async fn a_file_taken_away_under_the_process_takes_no_commit() {
    let folder = Folder::new();
    let store = folder.store().await;
    let mut session = store.open().await.expect("a session");
    fs::rename(folder.database(), folder.path().join("elsewhere.db")).expect("moved");
    let refused = session.commit(&[event("a", "r", 1, 1_000, b"{}")]).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(text)) if text.contains("is gone")), "{refused:?}");
    fs::rename(folder.path().join("elsewhere.db"), folder.database()).expect("moved back");
    let committed = session.commit(&[event("a", "r", 1, 1_000, b"{}")]).await.expect("a commit");
    assert_eq!(committed.outcomes, [APPLIED]);
}

#[tokio::test]
async fn two_sessions_take_turns_and_a_commit_dropped_half_way_leaves_nothing_open() {
    let folder = Folder::new();
    let store = folder.store().await;
    let (mut left, mut right) = (store.open().await.expect("a session"), store.open().await.expect("a session"));
    for round in 0..20 {
        let batch = |side: &str| vec![event(&format!("{side}{round}"), "r", round + 1, 1_000, b"{}")];
        let (mine, yours) = (batch("left"), batch("right"));
        let (a, b) = tokio::join!(left.commit(&mine), right.commit(&yours));
        assert_eq!(a.expect("a commit").outcomes.len() + b.expect("a commit").outcomes.len(), 2);
    }
    let dropped = vec![event("dropped", "r", 100, 1_000, b"{}")];
    // polled once or twice, so that it has begun, and then let go
    let begun = tokio::time::timeout(std::time::Duration::ZERO, left.commit(&dropped)).await;
    drop(begun);
    let after = vec![event("after", "r", 101, 1_000, b"{}")];
    assert_eq!(right.commit(&after).await.expect("a commit").outcomes, [APPLIED]);
}

#[tokio::test]
async fn the_log_stays_bounded_while_the_writer_never_rests() {
    let folder = Folder::new();
    let store = folder.store().await;
    let mut session = store.open().await.expect("a session");
    let mut longest = 0;
    for round in 0..60 {
        let body = vec![b'x'; 8_192];
        let batch: Vec<_> =
            (0..128).map(|n| event(&format!("{round}-{n}"), &format!("r{n}"), round + 1, 1_000, &body)).collect();
        session.commit(&batch).await.expect("a commit");
        longest = longest.max(fs::metadata(folder.path().join("data/tidegate.db-wal")).map_or(0, |about| about.len()));
    }
    assert!(longest < 32 << 20, "the log grew to {longest} bytes");
    let reader = folder.reader().await;
    let page = reader.events(&Default::default(), None::<Uuid>, 5_000).await.expect("a page");
    assert_eq!(page.rows.len(), 1_000, "a page is capped");
}
