//! Where the database is, and that it is ours alone.
//!
//! Owns the path, the folder, and the lock file beside the database. Promises: one process writes to a
//! database, and one that opens it second is told who has it; the lock dies with its holder. A file that was
//! moved or replaced under a running process is noticed before the next commit.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The path a `sqlite:` URL names.
pub(super) fn path_of(url: &str) -> Result<PathBuf, String> {
    let bad = |why: &str| format!("{url:?} {why}");
    let rest = url.strip_prefix("sqlite:").ok_or_else(|| bad("does not start with `sqlite:`"))?;
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(bad("names no file: write `sqlite:folder/name.db`"));
    }
    if path.contains(":memory:") {
        return Err(bad("would lose every event at exit: name a file"));
    }
    if path.contains('?') {
        return Err(bad("has parameters, and none are known: name just the file"));
    }
    if path.ends_with('/') {
        return Err(bad("names a folder: add a file name, such as `tidegate.db`"));
    }
    Ok(PathBuf::from(path))
}

/// Makes the database's folder where it is missing.
pub(super) fn prepare_folder(path: &Path) -> Result<(), String> {
    let folder = folder_of(path);
    make_folder(&folder).map_err(|error| {
        format!(
            "cannot make the folder {} for the database: {error}; make it, or set `store.url` to a place this user may write to",
            folder.display()
        )
    })
}

/// Makes the file where it is missing, for this user's eyes only: bodies may be secret. Only under the lock:
/// closing any handle of a database file drops the locks that this process's own connections hold on it.
pub(super) fn prepare_file(path: &Path) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "cannot open the database {} for writing: {error}; let this user write to the file and its folder, or set `store.url` to another place",
            path.display()
        )),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes a folder and its parents, and sees to it that a power cut does not take the new names away.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder_of(folder);
    make_folder(&parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    #[cfg(unix)]
    File::open(&parent)?.sync_all()?;
    Ok(())
}

/// The lock on a database, held for as long as this lives. Its file also says what its last holder left
/// behind, so that a database older than that is recognised as restored.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    left: Option<Mark>,
}

/// How far a database had come when this was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) incarnation: Uuid,
    /// How often the database was opened.
    pub(super) opened: i64,
    /// The newest row of the log of events.
    pub(super) seq: i64,
}

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().nth(1)?.split(' ');
        let mut next = || fields.next();
        let (incarnation, opened, seq) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        Some(Self { incarnation, opened, seq })
    }
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(super) fn take(database: &Path) -> Result<Self, String> {
        let mut path = database.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let broken = |error: io::Error| {
            format!(
                "cannot use the lock file {}: {error}; let this user write to it and its folder, or set `store.url` to another place",
                path.display()
            )
        };
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path).map_err(broken)?;
        let held = match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(broken(error)),
        };
        let mut text = String::new();
        // what the file says is a hint: the lock itself decides
        let _ = (&mut file).take(256).read_to_string(&mut text);
        if held {
            let holder = text.lines().next().unwrap_or("process not known");
            return Err(format!(
                "the database {} is in use by another {holder}: stop that one, or give this one a `store.url` of its own",
                database.display()
            ));
        }
        Ok(Self { file, left: Mark::parse(&text) })
    }

    /// What the last holder left behind; `None` when nothing vouches for the file.
    pub(super) fn left(&self) -> Option<Mark> {
        self.left
    }

    /// Writes down how far the database has come. Not synced: losing it makes the next start more careful.
    pub(super) fn leave(&self, mark: Mark) -> io::Result<()> {
        let Mark { incarnation, opened, seq } = mark;
        let text = format!("process {}\n{incarnation} {opened} {seq}\n", std::process::id());
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

/// What tells this file from another one under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let about = fs::metadata(path)?;
        Ok(Self(about.dev(), about.ino()))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        // an open file cannot be moved or removed there
        fs::metadata(path).map(|_| Self(0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_and_nothing_else() {
        let path = |url| path_of(url).map(|path| path.display().to_string()).ok();
        assert_eq!(path("sqlite:tidegate-data/tidegate.db").as_deref(), Some("tidegate-data/tidegate.db"));
        assert_eq!(path("sqlite://data/t.db").as_deref(), Some("data/t.db"));
        assert_eq!(path("sqlite:///var/lib/t.db").as_deref(), Some("/var/lib/t.db"));
        for url in ["sqlite:", "sqlite:///", "sqlite::memory:", "sqlite:t.db?mode=ro", "postgres://h/d", "t.db"] {
            assert!(path_of(url).is_err(), "{url}");
        }
    }
}
