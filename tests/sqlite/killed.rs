//! What was answered is there after a kill, and a killed process leaves no lock behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tidegate::store::sqlite::SqliteStore;
use tidegate_actors::ports::{Counts, Outcome, Reader as _, Store as _};
use tidegate_actors::rules::event::{Event, EventId, Verdict};
use tidegate_actors::rules::order::OnGap;

use crate::world::{Ahead, Folder, HOLD_MS, commit, event, sequence, settings};

const DATABASE: &str = "TIDEGATE_TEST_COMMIT_TO";

/// The child's part; without its variable there is nothing to do.
#[tokio::test]
async fn a_child_commits_until_it_is_killed() {
    let Some(database) = std::env::var_os(DATABASE) else { return };
    let store = SqliteStore::open(&settings(Path::new(&database))).await.expect("the database opens");
    let mut session = store.open().await.expect("a session");
    for round in 0..100_000u64 {
        let batch: Vec<_> = (0..1 + round % 20)
            .map(|n| event(&format!("{round}-{n}"), &format!("r{n}"), round + 1, 1_000, b"{\"n\":1}"))
            .collect();
        session.commit(&batch).await.expect("a commit");
        for event in &batch {
            use std::io::Write as _;
            writeln!(std::io::stdout(), "acked {} {}", event.key.text, event.id).expect("the parent listens");
        }
    }
}

/// The same with events that wait: gaps are closed, given up and run out while the child lives.
#[tokio::test]
async fn a_child_holds_until_it_is_killed() {
    let Some(database) = std::env::var_os(DATABASE) else { return };
    let clock = Arc::new(Ahead::default());
    let store = SqliteStore::open(&settings(Path::new(&database))).await.expect("the database opens");
    let store = store.with_clock(Arc::<Ahead>::clone(&clock));
    let mut session = store.open().await.expect("a session");
    let rules = [OnGap::Expire, OnGap::Release].map(sequence);
    for round in 0..100_000_u64 {
        let number = |resource: u64, n: u64| Event {
            order: Arc::clone(&rules[resource as usize % 2]),
            ..event(&format!("{resource}-{n}"), &format!("r{resource}"), n, 1_000, b"{\"n\":1}")
        };
        let mut batch: Vec<Event> = (0..4).flat_map(|n| [number(round * 4 + n, 2), number(round * 4 + n, 4)]).collect();
        // the first number of earlier resources: some in time, some after their holds ran out
        batch.extend((0..2).filter_map(|n| (round * 4).checked_sub(9 + 14 * n)).map(|resource| number(resource, 1)));
        session.commit(&batch).await.expect("a commit");
        for event in &batch {
            use std::io::Write as _;
            writeln!(std::io::stdout(), "acked {} {}", event.key.text, event.id).expect("the parent listens");
        }
        clock.pass(HOLD_MS / 5);
        store.settle_due(3).await.expect("holds are settled");
    }
}

fn child(database: &Path, part: &str) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", part, "--nocapture"])
        .env(DATABASE, database)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

#[tokio::test]
async fn every_event_answered_before_a_kill_is_there_after_it() {
    for acks_wanted in [1, 7, 150, 800] {
        let folder = Folder::new();
        let acked = killed_behind(&folder, "killed::a_child_commits_until_it_is_killed", acks_wanted).await;
        let store = folder.store().await;
        nothing_is_lost(&store, &acked).await;
    }
}

/// Keys and ids that a child acknowledged until it was killed, so many of them or a few more.
async fn killed_behind(folder: &Folder, part: &str, acks_wanted: usize) -> Vec<(String, String)> {
    let mut child = child(&folder.database(), part);
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut acked = Vec::new();
    while acked.len() < acks_wanted {
        let line = lines.next().expect("the child goes on").expect("a line");
        acked.extend(line.strip_prefix("acked ").map(str::to_owned));
    }
    let refused = folder.open().await.err().expect("the child has it").to_string();
    assert!(refused.contains(&format!("process {}", child.id())), "{refused}");
    child.kill().expect("killed");
    child.wait().expect("gone");
    // what it had said but nobody had read yet counts as well; a torn last line does not
    acked.extend(lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("acked ").map(str::to_owned)));
    let whole = acked.iter().filter_map(|line| line.split_once(' ')).filter(|(_, id)| id.len() == 36);
    whole.map(|(key, id)| (key.to_owned(), id.to_owned())).collect()
}

async fn nothing_is_lost(store: &SqliteStore, acked: &[(String, String)]) {
    for (key, id) in acked {
        let outcomes = commit(store, &[event(key, "other", 1, 1_000, b"{\"n\":1}")]).await;
        let Outcome::Duplicate { first, conflict: false } = outcomes[0] else { panic!("{key} was lost") };
        assert_eq!(&first.to_string(), id);
    }
}

#[tokio::test]
async fn what_waited_at_a_kill_waits_after_it_and_is_settled_by_time() {
    for acks_wanted in [5, 60, 300, 900] {
        let folder = Folder::new();
        let acked = killed_behind(&folder, "killed::a_child_holds_until_it_is_killed", acks_wanted).await;
        let clock = Arc::new(Ahead::default());
        let store = folder.store().await.with_clock(Arc::<Ahead>::clone(&clock));
        let reader = folder.reader().await;
        whole(&folder).await;
        let before = reader.counts().await.expect("counts");
        assert!(before.held > 0, "the child was killed while events waited");
        nothing_is_lost(&store, &acked).await;

        // a clock that is ahead of any the child had
        clock.pass(HOLD_MS * 1_000_000);
        while store.settle_due(100).await.expect("holds are settled").due_in_ms.is_some() {}
        whole(&folder).await;
        let after = reader.counts().await.expect("counts");
        let all = |counts: &Counts| counts.events.iter().map(|&(_, count)| count).sum::<i64>();
        assert_eq!((after.held, all(&after)), (0, all(&before)), "every event ended in one verdict");
        for (key, id) in &acked {
            let id = EventId(id.parse().expect("an id"));
            let row = reader.event(id).await.expect("a read").unwrap_or_else(|| panic!("{key} has no row"));
            assert!([Verdict::Applied, Verdict::Stale, Verdict::Expired].contains(&row.verdict), "{row:?}");
        }
    }
}

/// Events, holds and resources tell the same: all of a transaction was kept, or nothing of it.
async fn whole(folder: &Folder) {
    let odd = [
        "SELECT count(*) FROM events WHERE (verdict = 'held') <> (id IN (SELECT event_id FROM holds))",
        "SELECT count(*) FROM holds WHERE event_id NOT IN (SELECT id FROM events)",
        "SELECT count(*) FROM resources AS r WHERE held <> (SELECT count(*) FROM holds WHERE resource_hash = r.hash)",
        "SELECT count(*) FROM resources AS r WHERE applied <> \
         (SELECT count(*) FROM events WHERE resource_hash = r.hash AND verdict = 'applied')",
    ];
    for sql in odd {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut folder.shell().await).await.expect("a count");
        assert_eq!(count, 0, "{sql}");
    }
}
