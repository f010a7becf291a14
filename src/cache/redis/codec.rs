//! How a fact is written, and what vouches for it.
//!
//! A value is one byte of format, the first event's id, the body's digest, and a MAC over those with the key's
//! name and hash. The MAC's key is derived from the incarnation and the configured secret, and neither is part
//! of the value: who can read Redis cannot write a fact. A value of another incarnation does not verify, so a
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

/// Writes and checks values under one incarnation.
pub(super) struct Seal(Hmac<Sha256>);

impl Seal {
    pub(super) fn new(secret: &[u8], prefix: &str, incarnation: Incarnation) -> Self {
        // Two steps, so that a secret of any length and the incarnation cannot run into one another.
        let mut derive = keyed(secret);
        derive.update(b"tidegate key cache 1\0");
        derive.update(incarnation.0.as_bytes());
        let mut seal = keyed(&derive.finalize().into_bytes());
        seal.update(&(prefix.len() as u64).to_be_bytes());
        seal.update(prefix.as_bytes());
        Self(seal)
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
        let mut mac = self.0.clone();
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

    const PREFIX: &str = "tidegate:test:k:";

    fn fact() -> Fact {
        Fact { key: KeyHash([7; 16]), first: EventId(Uuid::from_u128(42)), digest: BodyDigest([9; 16]) }
    }

    fn seal(secret: &str, prefix: &str, incarnation: u128) -> Seal {
        Seal::new(secret.as_bytes(), prefix, Incarnation(Uuid::from_u128(incarnation)))
    }

    #[test]
    fn a_fact_comes_back_as_it_was() {
        let seal = seal("secret", PREFIX, 1);
        assert_eq!(seal.open(fact().key, &seal.close(&fact())), Some(fact()));
    }

    #[test]
    fn a_value_is_worth_nothing_under_another_secret_namespace_incarnation_or_key() {
        let value = seal("secret", PREFIX, 1).close(&fact());
        for other in [seal("other", PREFIX, 1), seal("secret", "tidegate:x:k:", 1), seal("secret", PREFIX, 2)] {
            assert_eq!(other.open(fact().key, &value), None);
        }
        assert_eq!(seal("secret", PREFIX, 1).open(KeyHash([8; 16]), &value), None);
    }

    #[test]
    fn a_value_changed_in_any_bit_or_of_any_other_length_is_a_miss() {
        let seal = seal("", PREFIX, 1);
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
        let value = Seal::new(b"a secret of ours", PREFIX, Incarnation(incarnation)).close(&fact());
        assert!(
            !value.windows(8).any(|part| incarnation.as_bytes().starts_with(part) || b"a secret".starts_with(part))
        );
    }
}
