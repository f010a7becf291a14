//! What comes next: of which resource, in which version.
//!
//! By default versions grow over all resources, so every event is newer than the state. Contiguous ones count each
//! resource from one, as a sequence needs; a share of them may be swapped with their successor, and come so many events
//! later that another batch has been written between.

use std::collections::VecDeque;

use super::Settings;
use super::requests::Chance;

/// The first contiguous version: a number with all digits of the template's place.
pub(crate) const FIRST_CONTIGUOUS: u64 = 1_000_000_000_000_001;

/// How many events later a swapped one comes.
const LATE_BY: u64 = 400;

pub(super) struct Stream {
    resources: u64,
    first_resource: u64,
    walk: bool,
    walked: u64,
    versions: Versions,
}

enum Versions {
    /// The last one.
    Growing(u64),
    Contiguous {
        /// How many versions each resource has had.
        counts: Vec<u64>,
        swapped: f64,
        issued: u64,
        /// When, of which resource, which version.
        late: VecDeque<(u64, u64, u64)>,
    },
}

impl Stream {
    /// `now_micros` grows from run to run, so that a later run on the same tables is newer.
    pub(super) fn new(settings: &Settings, now_micros: u64) -> Self {
        let counts = || vec![0; usize::try_from(settings.resources).unwrap_or(usize::MAX)];
        let versions = if settings.contiguous {
            Versions::Contiguous { counts: counts(), swapped: settings.swapped, issued: 0, late: VecDeque::new() }
        } else {
            Versions::Growing(now_micros)
        };
        let Settings { resources, first_resource, walk, .. } = *settings;
        Self { resources, first_resource, walk, walked: 0, versions }
    }

    /// Resource and version of the next new event.
    pub(super) fn next(&mut self, chance: &mut Chance) -> (u64, u64) {
        if let Versions::Contiguous { issued, late, .. } = &mut self.versions {
            *issued += 1;
            if late.front().is_some_and(|&(due, ..)| due <= *issued)
                && let Some((_, resource, version)) = late.pop_front()
            {
                return (resource, version);
            }
        }
        let place = if self.walk {
            self.walked += 1;
            (self.walked - 1) % self.resources
        } else {
            chance.below(self.resources)
        };
        let resource = self.first_resource + place;
        match &mut self.versions {
            Versions::Growing(version) => {
                *version += 1;
                (resource, *version)
            }
            Versions::Contiguous { counts, swapped, issued, late } => {
                let count = &mut counts[place as usize];
                let mut version = FIRST_CONTIGUOUS + *count;
                *count += 1;
                // A swap makes two events come out of their order.
                if chance.happens(*swapped / 2.0) {
                    late.push_back((*issued + LATE_BY, resource, version));
                    version += 1;
                    *count += 1;
                }
                (resource, version)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn settings(more: &[&str]) -> Settings {
        let line = ["load", "--target", "127.0.0.1:1", "--secret", "s", "--resources", "3"];
        Line::parse_from(line.iter().chain(more)).settings
    }

    #[test]
    fn contiguous_versions_have_no_gap_once_the_late_ones_have_come() {
        let mut stream = Stream::new(&settings(&["--contiguous", "--swapped", "0.2"]), 7);
        let mut chance = Chance::new(1);
        let mut seen: Vec<(u64, u64)> = (0..5_000).map(|_| stream.next(&mut chance)).collect();
        let unordered = seen.clone();
        seen.sort_unstable();
        let first_of_all: Vec<u64> = (0..3).map(|id| seen.iter().find(|one| one.0 == id).expect("events").1).collect();
        assert_eq!(first_of_all, [FIRST_CONTIGUOUS; 3]);
        let gaps = seen.windows(2).filter(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 != pair[1].1).count();
        assert!(gaps <= 60, "only those that are still late are missing: {gaps}");
        assert_ne!(unordered, seen);
    }

    #[test]
    fn versions_grow_by_default() {
        let mut stream = Stream::new(&settings(&[]), 7);
        let mut chance = Chance::new(1);
        assert_eq!([0; 3].map(|_| stream.next(&mut chance).1), [8, 9, 10]);
    }
}
