//! How a fact is written, and what vouches for it.
//!
//! A value is one byte of format, the first event's id, the body's digest, and a MAC over those and the key's
//! hash. The MAC's key is derived from the incarnation and the configured secret, and neither can be read in
//! Redis: who can read it cannot write a fact. Names and values of another incarnation are others, so a
//! restored database never believes the facts of its lost future.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tidegate_actors::ports::Fact;
use tidegate_actors::rules::event::{EventId, Incarnation};
use tidegate_actors::rules::key::{BodyDigest, KeyHash};
use uuid::Uuid;

const FORMAT: u8 = 1;
const MAC_BYTES: usize = 16;
const CLAIM_BYTES: usize = 1 + 16 + 16;
/// The length of every value.
pub(super) const VALUE_BYTES: usize = CLAIM_BYTES + MAC_BYTES;

/// Names, writes and checks values under one incarnation.
pub(super) struct Seal {
    mac: Hmac<Sha256>,
    prefix: String,
}

impl Seal {
    pub(super) fn new(secret: &[u8], incarnation: Incarnation) -> Self {
        let derive = |purpose: &[u8]| {
            let mut derived = keyed(secret);
            derived.update(incarnation.0.as_bytes());
            derived.update(purpose);
            derived.finalize().into_bytes()
        };
        let tag = hex::encode(&derive(b"tidegate key cache 1: tag")[..6]);
        Self { mac: keyed(&derive(b"tidegate key cache 1: mac")), prefix: format!("tidegate:{tag}:k:") }
    }

    /// The name in Redis under which a key's fact stands.
    pub(super) fn name(&self, key: KeyHash) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) fn close(&self, fact: &Fact) -> [u8; VALUE_BYTES] {
        let mut value = [0; VALUE_BYTES];
        value[0] = FORMAT;
        value[1..17].copy_from_slice(fact.first.0.as_bytes());
        value[17..CLAIM_BYTES].copy_from_slice(&fact.digest.0);
        let mac = self.mac(fact.key, &value[..CLAIM_BYTES]);
        value[CLAIM_BYTES..].copy_from_slice(&mac);
        value
    }

    /// The fact that a value states about a key; `None` when it is not one of ours.
    pub(super) fn open(&self, key: KeyHash, value: &[u8]) -> Option<Fact> {
        let (claim, mac) = value.split_first_chunk::<CLAIM_BYTES>()?;
        if claim[0] != FORMAT || !bool::from(self.mac(key, claim).ct_eq(mac)) {
            return None;
        }
        let first = Uuid::from_slice(claim.get(1..17)?).ok()?;
        let digest = claim.get(17..)?.try_into().ok()?;
        Some(Fact { key, first: EventId(first), digest: BodyDigest(digest) })
    }

    fn mac(&self, key: KeyHash, claim: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = self.mac.clone();
        mac.update(&key.0);
        mac.update(claim);
        let full = mac.finalize().into_bytes();
        let mut short = [0; MAC_BYTES];
        short.copy_from_slice(&full[..MAC_BYTES]);
        short
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    match Hmac::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => unreachable!("HMAC takes keys of any length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact() -> Fact {
        Fact { key: KeyHash([7; 16]), first: EventId(Uuid::from_u128(42)), digest: BodyDigest([9; 16]) }
    }

    fn seal(secret: &str, incarnation: u128) -> Seal {
        Seal::new(secret.as_bytes(), Incarnation(Uuid::from_u128(incarnation)))
    }

    #[test]
    fn a_fact_comes_back_as_it_was() {
        let seal = seal("secret", 1);
        assert_eq!(seal.open(fact().key, &seal.close(&fact())), Some(fact()));
    }

    #[test]
    fn a_value_is_worth_nothing_under_another_secret_incarnation_or_key() {
        let value = seal("secret", 1).close(&fact());
        for other in [seal("other", 1), seal("secret", 2)] {
            assert_eq!(other.open(fact().key, &value), None);
        }
        assert_eq!(seal("secret", 1).open(KeyHash([8; 16]), &value), None);
    }

    #[test]
    fn a_value_changed_in_any_bit_or_of_any_other_length_is_a_miss() {
        let seal = seal("", 1);
        let value = seal.close(&fact());
        for bit in 0..VALUE_BYTES * 8 {
            let mut changed = value;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(seal.open(fact().key, &changed), None, "bit {bit}");
        }
        for length in (0..VALUE_BYTES).chain([VALUE_BYTES + 1, 4096]) {
            let mut changed = value.to_vec();
            changed.resize(length, 0);
            assert_eq!(seal.open(fact().key, &changed), None, "length {length}");
        }
    }

    #[test]
    fn neither_incarnation_nor_secret_is_written_down() {
        let incarnation = Uuid::from_u128(0x1234_5678_9abc_def0_1122_3344_5566_7788);
        let seal = Seal::new(b"a secret of ours", Incarnation(incarnation));
        let value = seal.close(&fact());
        assert!(!seal.name(fact().key).contains("12345678"));
        assert!(
            !value.windows(8).any(|part| incarnation.as_bytes().starts_with(part) || b"a secret".starts_with(part))
        );
    }
}
