//! The few places of a public key's and a certificate's DER that verification needs. Reads slices, never past
//! their end, and judges nothing: whether a certificate holds is `certificate`'s business.

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// What a public key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rsa,
    P256,
    Ed25519,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next value, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.any()?;
        (found == tag).then_some(content)
    }

    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x83 => {
                let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = after;
                digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit))
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some((tag, content))
    }

    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }
}

/// Algorithm and key of a SubjectPublicKeyInfo.
pub(super) fn public_key(spki: &[u8]) -> Option<(Algorithm, &[u8])> {
    let mut outer = Reader(spki);
    let content = outer.take(SEQUENCE)?;
    if outer.0.is_empty() { public_key_content(content) } else { None }
}

fn public_key_content(content: &[u8]) -> Option<(Algorithm, &[u8])> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    let mut info = Reader(content);
    let mut kind = Reader(info.take(SEQUENCE)?);
    let algorithm = match kind.take(OID)? {
        RSA => Algorithm::Rsa,
        ED25519 => Algorithm::Ed25519,
        EC if kind.take(OID)? == P256 => Algorithm::P256,
        _ => return None,
    };
    // the first byte counts unused bits, of which a key has none
    match info.take(BIT_STRING)? {
        [0, key @ ..] => Some((algorithm, key)),
        _ => None,
    }
}

/// Bits of an RSA key's modulus.
pub(super) fn rsa_bits(key: &[u8]) -> Option<usize> {
    let mut numbers = Reader(Reader(key).take(SEQUENCE)?);
    let modulus = numbers.take(INTEGER)?;
    let start = modulus.iter().position(|&byte| byte != 0)?;
    let leading = usize::try_from(modulus[start].leading_zeros()).ok()?;
    Some((modulus.len() - start) * 8 - leading)
}

/// What is read of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key: &'a [u8],
    pub(super) not_before_ms: i64,
    pub(super) not_after_ms: i64,
}

pub(super) fn certificate(der: &[u8]) -> Option<Certificate<'_>> {
    let mut whole = Reader(Reader(der).take(SEQUENCE)?);
    let mut signed = Reader(whole.take(SEQUENCE)?);
    if signed.peek() == Some(VERSION) {
        signed.take(VERSION)?;
    }
    signed.take(INTEGER)?;
    signed.take(SEQUENCE)?;
    signed.take(SEQUENCE)?;
    let mut validity = Reader(signed.take(SEQUENCE)?);
    let (not_before_ms, not_after_ms) = (time(validity.any()?)?, time(validity.any()?)?);
    signed.take(SEQUENCE)?;
    let (algorithm, key) = public_key_content(signed.take(SEQUENCE)?)?;
    Some(Certificate { algorithm, key, not_before_ms, not_after_ms })
}

fn time((tag, text): (u8, &[u8])) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = number(year)?;
            // RFC 5280, 4.1.2.5.1: the years 1950 to 2049
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let digits = rest.strip_suffix('Z').filter(|digits| digits.len() == 10)?;
    let two = |at: usize| digits.get(at..at + 2).and_then(number::<i8>);
    let date = jiff::civil::Date::new(year, two(0)?, two(2)?).ok()?;
    let time = jiff::civil::Time::new(two(4)?, two(6)?, two(8)?, 0).ok()?;
    let moment = jiff::tz::Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
    Some(moment.as_millisecond())
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(time((UTC_TIME, b"700101000000Z")), Some(0));
        assert_eq!(time((GENERALIZED_TIME, b"19700101000001Z")), Some(1000));
        for text in ["", "7", "700101000000", "701301000000Z", "7001010000\u{e9}0Z", "+00101000000Z"] {
            assert_eq!(time((UTC_TIME, text.as_bytes())), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (public_key(&bytes), rsa_bits(&bytes), certificate(&bytes));
            let mut nested = vec![SEQUENCE, u8::try_from(bytes.len().min(127)).expect("short")];
            nested.extend(&bytes);
            let _ = (public_key(&nested), certificate(&nested));
        }
    }
}
