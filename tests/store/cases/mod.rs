//! The cases, by what they ask about.

pub(crate) mod agreement;
pub(crate) mod claims;
pub(crate) mod order;
pub(crate) mod races;
pub(crate) mod reading;
pub(crate) mod upkeep;
