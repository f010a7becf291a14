//! What was answered is there after a kill, and a killed process leaves no lock behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tidegate::store::sqlite::SqliteStore;
use tidegate_actors::ports::{Outcome, Store as _};

use crate::world::{Folder, commit, event, settings};

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

fn child(database: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "killed::a_child_commits_until_it_is_killed", "--nocapture"])
        .env(DATABASE, database)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

#[tokio::test]
async fn every_event_answered_before_a_kill_is_there_after_it() {
    for acks_wanted in [1, 7, 150, 800] {
        let folder = Folder::new();
        let mut child = child(&folder.database());
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

        let store = folder.store().await;
        for line in acked.iter().filter(|line| line.len() > 36) {
            let (key, id) = line.split_once(' ').expect("key and id");
            if id.len() < 36 {
                continue;
            }
            let outcomes = commit(&store, &[event(key, "other", 1, 1_000, b"{\"n\":1}")]).await;
            let Outcome::Duplicate { first, conflict: false } = outcomes[0] else { panic!("{key} was lost") };
            assert_eq!(first.to_string(), id);
        }
    }
}
