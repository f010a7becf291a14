//! The cases, by what they ask about.

pub(crate) mod agreement;
pub(crate) mod claims;
pub(crate) mod effects;
pub(crate) mod epochs;
pub(crate) mod fields;
pub(crate) mod order;
pub(crate) mod races;
pub(crate) mod reading;
pub(crate) mod refetch;
pub(crate) mod rivals;
pub(crate) mod sequence;
pub(crate) mod transition;
pub(crate) mod upkeep;
pub(crate) mod waiting;
pub(crate) mod window;
