//! Running the fixed texts: arguments bound in order, lists cut and filled up to the sizes there are.

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Either, Encode, Executor as _, Row as _, Type};
use std::sync::Arc;
use uuid::Uuid;

use super::statements::Sizes;

/// Runs a text of one or more statements; rows come with the place of their statement. Answers how many rows
/// were changed.
pub(super) async fn execute(
    connection: &mut SqliteConnection,
    sql: &Arc<str>,
    arguments: SqliteArguments,
    mut take: impl FnMut(usize, SqliteRow) -> Result<(), sqlx::Error>,
) -> Result<u64, sqlx::Error> {
    let query = sqlx::query_with::<Sqlite, _>(AssertSqlSafe(Arc::clone(sql)), arguments);
    let mut results = connection.fetch_many(query);
    let mut place = 0;
    let mut changed = 0;
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Left(done) => {
                place += 1;
                changed += done.rows_affected();
            }
            Either::Right(row) => take(place, row)?,
        }
    }
    Ok(changed)
}

/// Looks a list of hashes up, a stretch at a time.
pub(super) async fn look_up(
    connection: &mut SqliteConnection,
    sizes: &Sizes,
    hashes: &[[u8; 16]],
    mut take: impl FnMut(SqliteRow) -> Result<(), sqlx::Error>,
) -> Result<(), sqlx::Error> {
    let mut done = 0;
    while done < hashes.len() {
        let text = sizes.fitting(hashes.len() - done);
        let mut arguments = SqliteArguments::default();
        add_list(&mut arguments, hashes, done, text.rows)?;
        execute(connection, &text.sql, arguments, |_, row| take(row)).await?;
        done += text.rows;
    }
    Ok(())
}

/// Writes rows, each of so many parameters, in as few executions as the sizes allow. Answers how many rows
/// were changed.
pub(super) async fn write_rows<T>(
    connection: &mut SqliteConnection,
    sizes: &Sizes,
    parameters: usize,
    rows: &[T],
    add_row: impl Fn(&mut SqliteArguments, &T) -> Result<(), sqlx::Error>,
) -> Result<u64, sqlx::Error> {
    let mut rest = rows;
    let mut changed = 0;
    while !rest.is_empty() {
        let text = sizes.fitting(rest.len());
        let (now, later) = rest.split_at(rest.len().min(text.rows));
        let mut arguments = filled(text.rows * parameters);
        for row in now {
            add_row(&mut arguments, row)?;
        }
        add_nulls(&mut arguments, (text.rows - now.len()) * parameters)?;
        changed += execute(connection, &text.sql, arguments, |_, _| Ok(())).await?;
        rest = later;
    }
    Ok(changed)
}

/// Room for so many.
pub(super) fn filled(count: usize) -> SqliteArguments {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(count, 0);
    arguments
}

pub(super) fn add<'t, T>(arguments: &mut SqliteArguments, value: T) -> Result<(), sqlx::Error>
where
    T: Encode<'t, Sqlite> + Type<Sqlite>,
{
    arguments.add(value).map_err(sqlx::Error::Encode)
}

pub(super) fn add_nulls(arguments: &mut SqliteArguments, count: usize) -> Result<(), sqlx::Error> {
    (0..count).try_for_each(|_| add(arguments, None::<i64>))
}

/// One stretch of a list, filled up to a size.
pub(super) fn add_list(
    arguments: &mut SqliteArguments,
    list: &[[u8; 16]],
    skip: usize,
    size: usize,
) -> Result<(), sqlx::Error> {
    let stretch = list.iter().skip(skip).take(size);
    let missing = size - stretch.len();
    for hash in stretch {
        add(arguments, hash.as_slice())?;
    }
    add_nulls(arguments, missing)
}

pub(super) fn bytes16(row: &SqliteRow, column: usize) -> Result<[u8; 16], sqlx::Error> {
    row.try_get::<Uuid, _>(column).map(Uuid::into_bytes)
}
