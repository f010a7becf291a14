//! Migrations as embedded SQL files, applied in order, one transaction each.

/// One step from a version of the tables to the next.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The version of the tables after it, from 1 without gaps.
    pub version: i64,
    /// Its file's name.
    pub name: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

/// What is to be done to tables of version `found`, or why nothing can be.
pub fn pending(all: &'static [Migration], found: i64) -> Result<&'static [Migration], String> {
    let known = all.last().map_or(0, |last| last.version);
    if found > known {
        return Err(format!(
            "the tables have version {found}, this binary knows {known}; start a newer tidegate, or restore the backup made before the upgrade"
        ));
    }
    let done = all.iter().take_while(|migration| migration.version <= found).count();
    Ok(&all[done..])
}

/// For whoever only reads: whether tables of version `found` are what this binary knows.
pub fn current(all: &'static [Migration], found: i64) -> Result<(), String> {
    match pending(all, found)? {
        [] => Ok(()),
        _ => Err(format!("they have version {found}, older than this program: start `tidegate serve` of it once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Migration] =
        &[Migration { version: 1, name: "a", sql: "" }, Migration { version: 2, name: "b", sql: "" }];

    #[test]
    fn only_what_is_missing_is_pending() {
        let names = |found| pending(ALL, found).map(|list| list.iter().map(|one| one.name).collect::<Vec<_>>());
        assert_eq!(names(0), Ok(vec!["a", "b"]));
        assert_eq!(names(1), Ok(vec!["b"]));
        assert_eq!(names(2), Ok(vec![]));
        assert!(current(ALL, 1).is_err() && current(ALL, 2).is_ok() && current(ALL, 3).is_err());
    }

    #[test]
    fn tables_of_a_newer_binary_are_refused_by_version() {
        let error = pending(ALL, 3).expect_err("newer tables");
        assert!(error.contains("version 3") && error.contains("knows 2"), "{error}");
    }
}
