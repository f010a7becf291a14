//! Chance, by seed. Each purpose has a stream of its own, so that turning one dial leaves the rest as it was.
//!
//! Promises the same numbers for the same seed on every machine and in every version: the generator is one
//! whose values are fixed for ever, because seeds outlive releases.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::scenario::Span;

/// A stream of chance.
#[derive(Clone, Debug)]
pub(super) struct Chance(Pcg64Mcg);

impl Chance {
    /// The stream of a purpose under a seed.
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        let purpose = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(Pcg64Mcg::seed_from_u64(seed ^ purpose))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number within a span.
    pub(super) fn within(&mut self, span: Span) -> u64 {
        span.min + self.below(span.max.saturating_sub(span.min).saturating_add(1))
    }

    /// A number from `-most` to `most`.
    pub(super) fn either_way(&mut self, most: u64) -> i64 {
        self.within(Span::new(0, most * 2)).cast_signed() - most.cast_signed()
    }

    /// True in this share of cases.
    pub(super) fn hits(&mut self, share: f64) -> bool {
        // 53 bits fill the fraction of the number exactly
        let unit = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < share
    }

    /// One of several.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
