//! Texts in the shape of others: an id that looks like the sender's, and is no other event's.

use uuid::Uuid;

/// What a text is made from: the same for the same seed and place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    /// Random.
    pub(super) id: u128,
    /// Names the run.
    pub(super) run: u32,
    /// Which of the run's things.
    pub(super) number: u32,
}

/// How much chance a text has to hold before it is taken for unique: in halves of a bit.
const CHANCE_MIN: u32 = 128;
/// The fewest letters that are changed.
const LETTERS_MIN: usize = 8;

/// A text like this one.
pub(super) fn like(shape: &str, seed: Seed) -> String {
    if shape.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(seed).to_string();
    }
    if Uuid::try_parse(shape).is_ok() && shape.contains('-') {
        return uuid::Builder::from_random_bytes(seed.id.to_be_bytes()).into_uuid().to_string();
    }
    // what stands before the last mark says what kind of id it is
    let from = shape.rfind(['_', '/', ':', '.']).map_or(0, |at| at + 1);
    let (head, tail) = shape.split_at(from);
    let hex = tail.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let letters = tail.bytes().filter(u8::is_ascii_alphanumeric).count();
    let chance: u32 = tail.bytes().map(|byte| chance(byte, hex)).sum();
    if letters < LETTERS_MIN || chance < CHANCE_MIN || !tail.bytes().any(|byte| byte.is_ascii_digit()) {
        return format!("{shape}-{:08x}-{}", seed.run, seed.number);
    }
    let mut rest = seed.id;
    let tail: String = tail.chars().map(|letter| another(letter, hex, &mut rest)).collect();
    format!("{head}{tail}")
}

/// Above 2^52, as real ids may be: a reader that goes through a short float mixes up neighbours. Still a whole
/// number to readers of JSON.
fn number(seed: Seed) -> u64 {
    1 << 52 | u64::from(seed.run & 0xfff_ffff) << 24 | u64::from(seed.number & 0xff_ffff)
}

const fn chance(byte: u8, hex: bool) -> u32 {
    match byte {
        _ if hex => 8,
        b'0'..=b'9' => 6,
        b'a'..=b'z' | b'A'..=b'Z' => 9,
        _ => 0,
    }
}

fn another(letter: char, hex: bool, rest: &mut u128) -> char {
    let letters: &[u8] = match letter {
        _ if hex => b"0123456789abcdef",
        '0'..='9' => b"0123456789",
        'a'..='z' => b"abcdefghijklmnopqrstuvwxyz",
        'A'..='Z' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        _ => return letter,
    };
    let radix = letters.len() as u128;
    let at = usize::try_from(*rest % radix).unwrap_or(0);
    // a long text needs more than there is: what was used comes back mixed
    *rest = (*rest / radix) ^ rest.rotate_left(64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    char::from(letters[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(number: u32) -> Seed {
        let id = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Seed { id, run: 7, number }
    }

    #[test]
    fn a_text_keeps_its_shape_and_its_beginning() {
        let made = like("evt_1MhUT6E0b6fckueSqWR0Bec4", seed(0));
        assert_eq!((made.len(), &made[..4]), (28, "evt_"));
        assert!(made[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let hex = like("0f3b8c1f0a8e9f1f6e5f0c6f3f2b1a0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b", seed(0));
        assert!(hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(Uuid::try_parse(&like("13b867cf-db3d-4b1c-90b6-2f32a9d78124", seed(0))).is_ok());
        assert!(like("820982911946154508", seed(3)).parse::<u64>().is_ok_and(|number| number < 1 << 53));
        assert_eq!(like("SUCCESS", seed(3)), "SUCCESS-00000007-3");
    }

    #[test]
    fn no_two_texts_of_a_run_are_the_same() {
        for shape in ["evt_1MhUT6E0b6fckueSqWR0Bec4", "4444AAAiAAAAAiAiAiiAii==", "1453002795", "true", "ab-12"] {
            let made: std::collections::HashSet<String> = (0..5000).map(|number| like(shape, seed(number))).collect();
            assert_eq!(made.len(), 5000, "{shape}");
        }
    }
}
