//! What follows when an effect fails.

/// Pauses before a held event whose effect failed is tried again: the first, and the longest.
const PAUSE_FIRST_MS: i64 = 1_000;
const PAUSE_MAX_MS: i64 = 300_000;
/// How often it is tried.
const TRIES_MAX: i64 = 20;

/// What becomes of a held event whose effect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pardon {
    /// It waits so many milliseconds more.
    Waits(i64),
    /// It is given up on.
    Never,
}

/// Of a held event whose effect has failed so often. (One that just came is not taken at all: its sender tries again.)
#[must_use]
pub fn pardon(failures: i64) -> Pardon {
    if failures >= TRIES_MAX {
        return Pardon::Never;
    }
    let doublings = failures.saturating_sub(1).clamp(0, 20);
    Pardon::Waits((PAUSE_FIRST_MS << doublings).min(PAUSE_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        assert_eq!([1, 2, 3].map(pardon), [1_000, 2_000, 4_000].map(Pardon::Waits));
        assert_eq!([19, 20].map(pardon), [Pardon::Waits(300_000), Pardon::Never]);
    }
}
