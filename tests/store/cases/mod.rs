//! The cases, by what they ask about.

pub mod agreement;
pub mod claims;
pub mod order;
pub mod races;
pub mod reading;
pub mod upkeep;
