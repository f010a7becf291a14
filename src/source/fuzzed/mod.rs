//! What holds of every parser for any bytes: one function each, which panics where it does not hold. A fuzzer calls
//! them with inputs of its own (`fuzz/`), and a test here with what is in the tests' data and with every input that
//! once broke one.
//!
//! Compiled for tests and under `cfg(fuzzing)` only. Knows how requests of fuzzers are written down, and nothing of
//! the fuzzer.

mod requests;
mod texts;

/// A parser's property.
pub type Property = fn(&[u8]);

/// Every property by its name.
pub const PROPERTIES: [(&str, Property); 13] = [
    ("batches", texts::batches),
    ("canonical", texts::canonical),
    ("forms", texts::forms),
    ("handshakes", requests::handshakes),
    ("json", texts::json),
    ("keys", super::verify::fuzzed::keys),
    ("packed", texts::packed),
    ("requests", requests::requests),
    ("settings", requests::settings),
    ("signatures", super::verify::fuzzed::signatures),
    ("times", texts::times),
    ("tokens", super::verify::fuzzed::tokens),
    ("xml", texts::xml),
];

/// The first byte as a choice, and the rest.
pub(super) fn choice<'a, 'b, T>(all: &'a [T], bytes: &'b [u8]) -> Option<(&'a T, &'b [u8])> {
    let (first, rest) = bytes.split_first()?;
    all.get(usize::from(*first) % all.len()).map(|one| (one, rest))
}

/// The bytes as text, where they are some.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The files below a folder; none where there is no such folder.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    fn inputs(folder: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        files(&folder).iter().map(|path| fs::read(path).expect("a file")).collect()
    }

    #[test]
    fn every_property_holds_for_the_payloads_and_settings_of_the_tests_whole_and_cut() {
        let all = [inputs("tests/data/payloads"), inputs("src/source/presets"), inputs("tests/data/presets")].concat();
        assert!(all.len() > 100, "{} inputs", all.len());
        for input in &all {
            for (_, holds) in PROPERTIES {
                holds(input);
                holds(&input[..input.len() / 2]);
            }
        }
    }

    #[test]
    fn every_property_holds_for_what_fuzzers_begin_with_and_for_what_once_broke_one() {
        for (name, holds) in PROPERTIES {
            for input in inputs(&format!("tests/data/fuzz/{name}")) {
                holds(&input);
            }
        }
    }
}
