//! Rows as one parameter: an array of a composite type, written in the binary format.
//!
//! One array of rows costs the server a fifth of what one array for each column costs: every array in an
//! `unnest` is unrolled into a store of its own before the rows are put together again.

use std::borrow::Cow;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgConnection, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};
use uuid::Uuid;

/// Object ids of Postgres' own types; fixed for ever.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const INT8: u32 = 20;
    pub(super) const TEXT: u32 = 25;
    pub(super) const UUID: u32 = 2950;
}

/// Something that is handed in as a row of a composite type.
pub(crate) trait Row {
    /// How many columns the type has.
    const COLUMNS: i32;

    /// Picks the type from those of the database.
    fn of(types: &RowTypes) -> RowType;

    /// Writes every column, in the type's order.
    fn put(&self, fields: &mut Fields<'_>) -> Result<(), BoxDynError>;

    /// About how many bytes it takes.
    fn weight(&self) -> usize;
}

/// Object ids of a composite type and of its array, which each database gives anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowType {
    row: Oid,
    array: Oid,
}

/// The composite types that the statements take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTypes {
    pub(crate) given: RowType,
    pub(crate) claim: RowType,
    pub(crate) state: RowType,
    pub(crate) hold: RowType,
    pub(crate) ended: RowType,
    pub(crate) fetching: RowType,
}

impl RowTypes {
    /// Asks the database for them.
    pub(crate) async fn of(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let mut of = async |name: &str| {
            let sql = "SELECT $1::regtype::oid, ($1 || '[]')::regtype::oid";
            let (row, array) = sqlx::query_as(sql).bind(format!("tidegate.{name}")).fetch_one(&mut *connection).await?;
            Ok::<_, sqlx::Error>(RowType { row, array })
        };
        Ok(Self {
            given: of("given").await?,
            claim: of("claim").await?,
            state: of("state").await?,
            hold: of("hold").await?,
            ended: of("ended").await?,
            fetching: of("fetching").await?,
        })
    }
}

/// Rows to be bound.
pub(crate) struct Rows<'a, R> {
    of: RowType,
    rows: &'a [R],
}

impl<'a, R: Row> Rows<'a, R> {
    pub(crate) fn new(types: &RowTypes, rows: &'a [R]) -> Self {
        Self { of: R::of(types), rows }
    }
}

impl<R> Type<Postgres> for Rows<'_, R> {
    fn type_info() -> PgTypeInfo {
        // Never asked for: `produces` names the type by its id.
        PgTypeInfo::array_of("tidegate.given")
    }
}

impl<R: Row> Encode<'_, Postgres> for Rows<'_, R> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.reserve(self.size_hint());
        let (dimensions, has_null, lower_bound) = (i32::from(!self.rows.is_empty()), 0_i32, 1_i32);
        put(buffer, dimensions);
        put(buffer, has_null);
        buffer.extend_from_slice(&self.of.row.0.to_be_bytes());
        if self.rows.is_empty() {
            return Ok(IsNull::No);
        }
        put(buffer, i32::try_from(self.rows.len())?);
        put(buffer, lower_bound);
        for row in self.rows {
            let length_at = buffer.len();
            put(buffer, 0);
            put(buffer, R::COLUMNS);
            let mut fields = Fields { buffer, left: R::COLUMNS };
            row.put(&mut fields)?;
            debug_assert_eq!(fields.left, 0, "a row has all columns of its type");
            let length = i32::try_from(buffer.len() - length_at - 4)?;
            buffer[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(self.of.array))
    }

    fn size_hint(&self) -> usize {
        32 + self.rows.iter().map(|row| row.weight() + 8).sum::<usize>()
    }
}

/// Writes the columns of one row.
pub(crate) struct Fields<'b> {
    buffer: &'b mut PgArgumentBuffer,
    left: i32,
}

impl Fields<'_> {
    pub(crate) fn uuid(&mut self, value: Option<Uuid>) -> Result<(), BoxDynError> {
        self.put(oid::UUID, value.as_ref().map(|uuid| uuid.as_bytes().as_slice()))
    }

    pub(crate) fn hash(&mut self, value: [u8; 16]) -> Result<(), BoxDynError> {
        self.put(oid::UUID, Some(&value))
    }

    pub(crate) fn int(&mut self, value: Option<i64>) -> Result<(), BoxDynError> {
        self.put(oid::INT8, value.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice))
    }

    pub(crate) fn flag(&mut self, value: bool) -> Result<(), BoxDynError> {
        self.put(oid::BOOL, Some(&[u8::from(value)]))
    }

    pub(crate) fn bytes(&mut self, value: Option<&[u8]>) -> Result<(), BoxDynError> {
        self.put(oid::BYTEA, value)
    }

    pub(crate) fn text(&mut self, value: Option<&str>) -> Result<(), BoxDynError> {
        match value {
            None => self.put(oid::TEXT, None),
            Some(value) => self.put(oid::TEXT, Some(text(value).as_bytes())),
        }
    }

    fn put(&mut self, of: u32, value: Option<&[u8]>) -> Result<(), BoxDynError> {
        self.left -= 1;
        self.buffer.extend_from_slice(&of.to_be_bytes());
        match value {
            None => put(self.buffer, -1),
            Some(bytes) => {
                put(self.buffer, i32::try_from(bytes.len())?);
                self.buffer.extend_from_slice(bytes);
            }
        }
        Ok(())
    }
}

fn put(buffer: &mut PgArgumentBuffer, number: i32) {
    buffer.extend_from_slice(&number.to_be_bytes());
}

/// A text for people. Postgres takes no NUL in a text, and an authentic event is never refused for what it holds; the
/// hash beside it, and the raw bytes, stay exact.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
