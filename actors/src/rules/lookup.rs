//! Whether the key cache is worth asking. Measured: a lookup for each event costs 10 to 17 % of the rate,
//! and the store checks every key anyway, so it pays only while repeats that this process does not know
//! are common: in a retry storm, or when another node took the first.

/// When to ask the key cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LookupMode {
    /// While it pays, and a sample otherwise.
    #[default]
    Auto,
    /// For each event whose key is not known to this process.
    Always,
    /// Never; then nothing is written to it either.
    Never,
}

/// What to do about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Wait for the cache's answer.
    Wait,
    /// Ask beside the way, only to learn whether the cache would have known.
    Sample,
    /// Do not ask.
    No,
}

/// Shares are kept in 1/65536 and forget with a window of about this many events.
const WINDOW: i64 = 128;
const ONE: i64 = 1 << 16;
/// Asking pays from this share of repeats among keys unknown to this process on.
const REPEATS_MIN: i64 = ONE / 5;
/// ... and while the cache knows at least this share of them.
const KNOWN_MIN: i64 = ONE / 2;
/// One event in so many is a sample.
const SAMPLE_EVERY: u32 = 64;

/// Learns from what became of events, and says whether to ask about the next one.
#[derive(Clone, Debug)]
pub struct Lookup {
    mode: LookupMode,
    repeats: i64,
    known: i64,
    since_sample: u32,
}

impl Lookup {
    /// Nothing learnt yet: `auto` starts with samples, and trusts the cache until it disappoints.
    #[must_use]
    pub fn new(mode: LookupMode) -> Self {
        Self { mode, repeats: 0, known: ONE, since_sample: 0 }
    }

    /// What to do about an event whose key is not known to this process.
    pub fn ask(&mut self) -> Ask {
        match self.mode {
            LookupMode::Always => Ask::Wait,
            LookupMode::Never => Ask::No,
            LookupMode::Auto if self.pays() => Ask::Wait,
            LookupMode::Auto => {
                self.since_sample += 1;
                if self.since_sample < SAMPLE_EVERY {
                    return Ask::No;
                }
                self.since_sample = 0;
                Ask::Sample
            }
        }
    }

    /// Asking saves more than it costs.
    #[must_use]
    pub fn pays(&self) -> bool {
        self.repeats >= REPEATS_MIN && self.known >= KNOWN_MIN
    }

    /// The cache knew the key: the store is not asked.
    pub fn cache_knew(&mut self) {
        step(&mut self.repeats, true);
        step(&mut self.known, true);
    }

    /// A sample was answered with a known key; the store counts the repeat itself.
    pub fn sample_knew(&mut self) {
        // samples are few: each weighs as much as the events it stands for, up to a quarter of the share
        for _ in 0..WINDOW / 4 {
            step(&mut self.known, true);
        }
    }

    /// The store found the key claimed; `asked` says whether the cache had been asked and did not know.
    pub fn store_knew(&mut self, asked: bool) {
        step(&mut self.repeats, true);
        if asked {
            step(&mut self.known, false);
        }
    }

    /// The key was new to the store.
    pub fn was_new(&mut self) {
        step(&mut self.repeats, false);
    }
}

fn step(share: &mut i64, yes: bool) {
    let target = if yes { ONE } else { 0 };
    let change = (target - *share) / WINDOW;
    // integer division would stop short of the ends
    *share += if change == 0 { (target - *share).signum() } else { change };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(lookup: &mut Lookup, events: u32) -> (u32, u32) {
        let mut counts = (0, 0);
        for _ in 0..events {
            match lookup.ask() {
                Ask::Wait => counts.0 += 1,
                Ask::Sample => counts.1 += 1,
                Ask::No => {}
            }
        }
        counts
    }

    #[test]
    fn auto_only_samples_while_keys_are_new() {
        let mut lookup = Lookup::new(LookupMode::Auto);
        for _ in 0..10_000 {
            lookup.was_new();
        }
        assert_eq!(asks(&mut lookup, 640), (0, 10));
    }

    #[test]
    fn auto_asks_in_a_retry_storm_and_stops_after_it() {
        let mut lookup = Lookup::new(LookupMode::Auto);
        for _ in 0..64 {
            lookup.store_knew(false);
        }
        assert_eq!(asks(&mut lookup, 100), (100, 0));
        for _ in 0..64 {
            lookup.cache_knew();
        }
        assert!(lookup.pays());
        for _ in 0..512 {
            lookup.was_new();
        }
        assert_eq!(asks(&mut lookup, 100).0, 0);
    }

    #[test]
    fn auto_stops_asking_a_cache_that_does_not_know_and_returns_when_samples_say_so() {
        let mut lookup = Lookup::new(LookupMode::Auto);
        for _ in 0..256 {
            lookup.store_knew(true);
        }
        assert!(!lookup.pays());
        for _ in 0..3 {
            lookup.sample_knew();
        }
        assert!(lookup.pays());
    }

    #[test]
    fn always_and_never_do_not_learn() {
        let mut always = Lookup::new(LookupMode::Always);
        let mut never = Lookup::new(LookupMode::Never);
        for _ in 0..1_000 {
            always.was_new();
            never.store_knew(false);
        }
        assert_eq!(asks(&mut always, 10), (10, 0));
        assert_eq!(asks(&mut never, 1_000), (0, 0));
    }
}
