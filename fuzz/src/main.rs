//! One property after the other under libFuzzer: `FUZZ_TARGET` names it. Run by scripts/fuzz, which builds with the
//! counters that libFuzzer steers by.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tidegate::source::fuzzed::{PROPERTIES, Property};

static CHOSEN: LazyLock<Property> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let known = PROPERTIES.iter().find(|(known, _)| *known == name);
    known.map_or_else(
        || panic!("FUZZ_TARGET is {name:?}, none of the properties: run scripts/fuzz"),
        |(_, holds)| *holds,
    )
});

fuzz_target!(|bytes: &[u8]| CHOSEN(bytes));
