//! How long to wait before another try: growing pauses, jitter that only adds, and an end.

/// The pauses between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all, the first one counted.
    pub attempts: u32,
    /// The pause after the first try, in milliseconds; it doubles with each.
    pub first_ms: i64,
    /// The longest pause.
    pub max_ms: i64,
}

impl Retry {
    /// The pause after so many tries, from 1; `None` when there is no further one. `chance` is any number:
    /// it decides how much of the pause comes on top, 0 to 100 %. Never earlier than what the other side
    /// asked for.
    #[must_use]
    pub fn pause_ms(&self, tries: u32, asked_ms: Option<i64>, chance: u64) -> Option<i64> {
        if tries >= self.attempts {
            return None;
        }
        let doublings = tries.saturating_sub(1).min(32);
        let pause = self.first_ms.saturating_mul(1 << doublings).clamp(0, self.max_ms.max(0));
        let range = u64::try_from(pause).unwrap_or(0) + 1;
        let jitter = i64::try_from(chance % range).unwrap_or(0);
        Some(pause.saturating_add(jitter).max(asked_ms.unwrap_or(0).min(ASKED_MAX_MS)))
    }
}

/// The longest pause that another side may ask for: a day.
const ASKED_MAX_MS: i64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry { attempts: 5, first_ms: 1_000, max_ms: 3_000 };

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let pauses: Vec<_> = (1..=5).map(|tries| RETRY.pause_ms(tries, None, 0)).collect();
        assert_eq!(pauses, [Some(1_000), Some(2_000), Some(3_000), Some(3_000), None]);
    }

    #[test]
    fn jitter_only_adds_and_at_most_as_much_again() {
        for chance in [0, 1, 1_000, 1_001, u64::MAX] {
            let pause = RETRY.pause_ms(1, None, chance).expect("a pause");
            assert!((1_000..=2_000).contains(&pause), "{pause}");
        }
    }

    #[test]
    fn what_was_asked_for_is_kept_within_a_day() {
        assert_eq!(RETRY.pause_ms(1, Some(60_000), 0), Some(60_000));
        assert_eq!(RETRY.pause_ms(1, Some(i64::MAX), 0), Some(ASKED_MAX_MS));
    }
}
