//! A batch as one parameter: an array of the composite type `tidegate.given`, written in the binary format.
//!
//! One array of rows costs the server a fifth of what one array for each column costs: every array in an
//! `unnest` is unrolled into a store of its own before the rows are put together again.

use std::borrow::Cow;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgConnection, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};
use tidegate_actors::rules::event::{Event, Guard, Intent};
use tidegate_actors::rules::order::{Policy, Tie};
use tidegate_actors::rules::version::Version;

/// Columns of `tidegate.given`, in its order.
const COLUMNS: i32 = 19;

/// Object ids of Postgres' own types; fixed for ever.
mod oid {
    pub(super) const BOOL: u32 = 16;
    pub(super) const BYTEA: u32 = 17;
    pub(super) const INT8: u32 = 20;
    pub(super) const TEXT: u32 = 25;
    pub(super) const UUID: u32 = 2950;
}

/// Object ids of the composite type and of its array, which each database gives anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenType {
    row: Oid,
    array: Oid,
}

impl GivenType {
    /// Asks the database for them.
    pub(crate) async fn of(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let sql = "SELECT 'tidegate.given'::regtype::oid, 'tidegate.given[]'::regtype::oid";
        let (row, array) = sqlx::query_as(sql).fetch_one(connection).await?;
        Ok(Self { row, array })
    }
}

/// Events of a batch, in the order of `indexes`.
pub(crate) struct Given<'a> {
    pub(crate) of: GivenType,
    pub(crate) batch: &'a [Event],
    pub(crate) indexes: &'a [usize],
}

impl Type<Postgres> for Given<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("tidegate.given")
    }
}

impl Encode<'_, Postgres> for Given<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.reserve(self.size_hint());
        let (dimensions, has_null, lower_bound) = (1_i32, 0_i32, 1_i32);
        put(buffer, dimensions);
        put(buffer, has_null);
        buffer.extend_from_slice(&self.of.row.0.to_be_bytes());
        put(buffer, i32::try_from(self.indexes.len())?);
        put(buffer, lower_bound);
        for &index in self.indexes {
            let length_at = buffer.len();
            put(buffer, 0);
            row(buffer, index, &self.batch[index])?;
            let length = i32::try_from(buffer.len() - length_at - 4)?;
            buffer[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(self.of.array))
    }

    fn size_hint(&self) -> usize {
        self.indexes.iter().map(|&index| self.batch[index].weight() + 256).sum()
    }
}

fn row(buffer: &mut PgArgumentBuffer, index: usize, event: &Event) -> Result<(), BoxDynError> {
    let guard = event.guards.first();
    let resource = guard.map(|guard| &guard.resource);
    let version = guard.and_then(|guard| guard.version.as_ref());
    put(buffer, COLUMNS);
    field(buffer, oid::INT8, Some(&i64::try_from(index)?.to_be_bytes()))?;
    field(buffer, oid::UUID, Some(&event.key.hash.0))?;
    field(buffer, oid::UUID, Some(event.id.0.as_bytes()))?;
    field(buffer, oid::UUID, Some(&event.digest.0))?;
    field(buffer, oid::INT8, Some(&event.received_at_ms.to_be_bytes()))?;
    for known in [&*event.source, &*event.tenant, event.key.text.as_str(), event.kind.as_str()] {
        field(buffer, oid::TEXT, Some(text(known).as_bytes()))?;
    }
    field(buffer, oid::UUID, resource.map(|resource| resource.hash.0.as_slice()))?;
    for known in [resource.map(|resource| text(&resource.kind)), resource.map(|resource| text(&resource.id))] {
        field(buffer, oid::TEXT, known.as_ref().map(|text: &Cow<'_, str>| text.as_bytes()))?;
    }
    field(buffer, oid::BYTEA, version.map(Version::bytes))?;
    field(buffer, oid::TEXT, version.map(|version| version.text().as_bytes()))?;
    let ties = guard.is_some_and(|guard| ties_apply(event, guard));
    for known in [ties, event.deletes, event.intent != Intent::Apply] {
        field(buffer, oid::BOOL, Some(&[u8::from(known)]))?;
    }
    field(buffer, oid::BYTEA, Some(&event.headers))?;
    field(buffer, oid::BYTEA, Some(&event.body))
}

fn field(buffer: &mut PgArgumentBuffer, of: u32, value: Option<&[u8]>) -> Result<(), BoxDynError> {
    buffer.extend_from_slice(&of.to_be_bytes());
    match value {
        None => put(buffer, -1),
        Some(bytes) => {
            put(buffer, i32::try_from(bytes.len())?);
            buffer.extend_from_slice(bytes);
        }
    }
    Ok(())
}

fn put(buffer: &mut PgArgumentBuffer, number: i32) {
    buffer.extend_from_slice(&number.to_be_bytes());
}

/// Whether an equal version applies; what has no version always does.
pub(crate) fn ties_apply(event: &Event, guard: &Guard) -> bool {
    guard.version.is_none() || matches!(event.order.policy, Policy::Newest { tie: Tie::Apply } | Policy::Arrival)
}

/// A text for people. Postgres takes no NUL in a text, and an authentic event is never refused for what it holds; the
/// hash beside it, and the raw bytes, stay exact.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
