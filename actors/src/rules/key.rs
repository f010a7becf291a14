//! Identities: the idempotency key of an event, the hash of a resource, the digest of a body.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The most bytes one part of a key may have.
pub const KEY_PART_BYTES_MAX: usize = 255;
/// The most parts a key may have.
pub const KEY_PARTS_MAX: usize = 8;

/// Why a text cannot be (part of) a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No part at all.
    #[error("the key has no parts")]
    Empty,
    /// A part is empty or only blanks: a blank key would make every later event a duplicate.
    #[error("a part of the key is blank")]
    Blank,
    /// A part is longer than [`KEY_PART_BYTES_MAX`].
    #[error("a part of the key is longer than {KEY_PART_BYTES_MAX} bytes")]
    TooLong,
    /// A part holds a control character.
    #[error("a part of the key holds a control character")]
    Control,
    /// More than [`KEY_PARTS_MAX`] parts.
    #[error("the key has more than {KEY_PARTS_MAX} parts")]
    TooManyParts,
}

macro_rules! sixteen_bytes {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), hex::encode(self.0))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }
    };
}

sixteen_bytes! {
    /// 16 bytes of SHA-256 over (source, tenant, key parts), each with its length.
    KeyHash
}
sixteen_bytes! {
    /// 16 bytes of SHA-256 over (source, tenant, type, id), each with its length.
    ResourceHash
}
sixteen_bytes! {
    /// 16 bytes of SHA-256 over a body.
    BodyDigest
}

/// An event's stable identity within (source, tenant): never blank, never random.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The parts joined by `/`, for people.
    pub text: String,
    /// What the key table holds.
    pub hash: KeyHash,
}

impl Key {
    /// A key of one or several parts; the hash covers each part with its length, so that `a/b` and `c`
    /// never meet `a` and `b/c`.
    pub fn new<'a>(source: &str, tenant: &str, parts: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        Self::over(Sha256::new(), source, tenant, parts)
    }

    /// An effect key: the same in a space of its own, so that it never meets an idempotency key.
    pub fn effect<'a>(source: &str, tenant: &str, parts: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        Self::over(Sha256::new().chain_update(b"effect\0"), source, tenant, parts)
    }

    fn over<'a>(
        hasher: Sha256,
        source: &str,
        tenant: &str,
        parts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, KeyError> {
        let mut hasher = sized(hasher, source);
        hasher = sized(hasher, tenant);
        let mut text = String::new();
        let mut count = 0;
        for part in parts {
            check_part(part)?;
            if count == KEY_PARTS_MAX {
                return Err(KeyError::TooManyParts);
            }
            hasher = sized(hasher, part);
            if count > 0 {
                text.push('/');
            }
            text.push_str(part);
            count += 1;
        }
        if count == 0 {
            return Err(KeyError::Empty);
        }
        Ok(Self { text, hash: KeyHash(first_half(hasher)) })
    }
}

impl ResourceHash {
    /// The hash of a resource.
    #[must_use]
    pub fn of(source: &str, tenant: &str, kind: &str, id: &str) -> Self {
        let hasher = [source, tenant, kind, id].into_iter().fold(Sha256::new(), sized);
        Self(first_half(hasher))
    }

    /// Which of `shards` shards orders this resource.
    #[must_use]
    pub fn shard(self, shards: usize) -> usize {
        shard_of(self.0, shards)
    }
}

impl KeyHash {
    /// Which of `shards` shards takes an event without a resource.
    #[must_use]
    pub fn shard(self, shards: usize) -> usize {
        shard_of(self.0, shards)
    }
}

impl BodyDigest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self::of_pieces([body])
    }

    /// The digest of these pieces, one behind the other.
    #[must_use]
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(first_half(pieces.into_iter().fold(Sha256::new(), |hasher, piece| hasher.chain_update(piece))))
    }
}

fn check_part(part: &str) -> Result<(), KeyError> {
    if part.trim().is_empty() {
        return Err(KeyError::Blank);
    }
    if part.len() > KEY_PART_BYTES_MAX {
        return Err(KeyError::TooLong);
    }
    if part.chars().any(char::is_control) {
        return Err(KeyError::Control);
    }
    Ok(())
}

fn sized(hasher: Sha256, text: &str) -> Sha256 {
    hasher.chain_update((text.len() as u64).to_be_bytes()).chain_update(text)
}

fn first_half(hasher: Sha256) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hasher.finalize()[..16]);
    half
}

fn shard_of(hash: [u8; 16], shards: usize) -> usize {
    let [a, b, c, d, ..] = hash;
    u32::from_be_bytes([a, b, c, d]) as usize % shards.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_separators_inside_never_meet() {
        let left = Key::new("s", "", ["a/b", "c"]).expect("a key");
        let right = Key::new("s", "", ["a", "b/c"]).expect("a key");
        assert_eq!(left.text, right.text);
        assert_ne!(left.hash, right.hash);
    }

    #[test]
    fn source_and_tenant_are_part_of_the_key() {
        let of = |source, tenant| Key::new(source, tenant, ["k"]).expect("a key").hash;
        assert_ne!(of("a", ""), of("b", ""));
        assert_ne!(of("a", "t"), of("a", "u"));
        assert_ne!(of("ab", ""), of("a", "b"));
    }

    #[test]
    fn a_blank_long_or_control_part_is_never_a_key() {
        let key = |part: &str| Key::new("s", "", [part]);
        assert_eq!(key(""), Err(KeyError::Blank));
        assert_eq!(key(" \u{a0}\t"), Err(KeyError::Blank));
        assert_eq!(key("a\u{7}"), Err(KeyError::Control));
        assert_eq!(key(&"x".repeat(256)), Err(KeyError::TooLong));
        assert_eq!(Key::new("s", "", []), Err(KeyError::Empty));
        assert_eq!(Key::new("s", "", ["x"; 9]), Err(KeyError::TooManyParts));
    }
}
