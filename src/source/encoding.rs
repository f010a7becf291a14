//! Bodies that come compressed: unpacked where a source says which bytes its sender signs, and bounded.
//!
//! Promises: at most [`RATIO_MAX`] times the bytes that came (small ones up to a floor) and never more than the
//! source takes; unpacked piece by piece, so no more than that is ever held; what follows the end of the packed
//! data is a fault. Without a setting nothing is unpacked.

use std::io::Read;

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap};
use bytes::Bytes;
use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::Source;
use super::spec::{CodingSpec, SignedAs};

/// How many times larger than it came a body may become, and up to where that does not count.
const RATIO_MAX: usize = 20;
const FLOOR_BYTES: usize = 16 * 1024;
/// How much is unpacked at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Deflate,
}

/// Why a body is not unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpackFault {
    /// The source takes no bodies of this encoding.
    #[error("the content encoding is not one that this source takes")]
    NotTaken,
    /// It becomes larger than is taken.
    #[error("the body becomes larger than this source takes, or more than {RATIO_MAX} times as large as it came")]
    TooLarge,
    /// It is not what its encoding says.
    #[error("the body is not what its content encoding says")]
    Malformed,
}

impl Source {
    /// Whether a body under these headers is taken: plain, or in an encoding that the source states.
    #[must_use]
    pub fn takes_encoding(&self, headers: &HeaderMap) -> bool {
        self.packing(headers).is_ok()
    }

    /// The most bytes that a body of so many may become, beyond its own; 0 where nothing is unpacked.
    #[must_use]
    pub fn unpacked_bytes_max(&self, headers: &HeaderMap, length: usize) -> usize {
        match self.packing(headers) {
            Ok(Some(_)) => bound(length, self.max_body),
            _ => 0,
        }
    }

    /// The bytes that were signed: those that came, or where the sender signs first and packs then, the unpacked.
    pub fn signed_bytes(&self, headers: &HeaderMap, body: Bytes) -> Result<Bytes, UnpackFault> {
        match self.packing(headers)? {
            Some((packing, SignedAs::SignedDecoded)) => unpack(&body, packing, self.max_body),
            _ => Ok(body),
        }
    }

    /// What a body says whose signature holds: unpacked, where the sender packs first and signs then.
    pub(super) fn content(&self, headers: &HeaderMap, body: &Bytes) -> Result<Bytes, UnpackFault> {
        match self.packing(headers) {
            Ok(Some((packing, SignedAs::SignedEncoded))) => unpack(body, packing, self.max_body),
            // the header of a body that was unpacked before its signature still stands
            _ => Ok(body.clone()),
        }
    }

    fn packing(&self, headers: &HeaderMap) -> Result<Option<(Packing, SignedAs)>, UnpackFault> {
        let mut all = headers.get_all(CONTENT_ENCODING).map(|value| value.as_bytes().trim_ascii());
        let Some(first) = all.next() else { return Ok(None) };
        let identity = |value: &[u8]| value.eq_ignore_ascii_case(b"identity");
        if identity(first) {
            return if all.all(identity) { Ok(None) } else { Err(UnpackFault::NotTaken) };
        }
        let CodingSpec { gzip, deflate } = self.coding;
        let found = match first {
            name if name.eq_ignore_ascii_case(b"gzip") => gzip.map(|signed| (Packing::Gzip, signed)),
            name if name.eq_ignore_ascii_case(b"deflate") => deflate.map(|signed| (Packing::Deflate, signed)),
            _ => None,
        };
        if all.next().is_some() {
            return Err(UnpackFault::NotTaken);
        }
        found.map(Some).ok_or(UnpackFault::NotTaken)
    }
}

fn bound(length: usize, max: usize) -> usize {
    length.saturating_mul(RATIO_MAX).max(FLOOR_BYTES).min(max)
}

pub(super) fn unpack(body: &[u8], packing: Packing, max: usize) -> Result<Bytes, UnpackFault> {
    let max = bound(body.len(), max);
    match packing {
        Packing::Gzip => {
            let mut reader = GzDecoder::new(body);
            let unpacked = read(&mut reader, max)?;
            if reader.into_inner().is_empty() { Ok(unpacked) } else { Err(UnpackFault::Malformed) }
        }
        Packing::Deflate => {
            let mut reader = ZlibDecoder::new(body);
            let unpacked = read(&mut reader, max)?;
            if reader.into_inner().is_empty() { Ok(unpacked) } else { Err(UnpackFault::Malformed) }
        }
    }
}

fn read(reader: &mut impl Read, max: usize) -> Result<Bytes, UnpackFault> {
    let mut unpacked = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = reader.read(&mut piece).map_err(|_| UnpackFault::Malformed)?;
        if length == 0 {
            return Ok(Bytes::from(unpacked));
        }
        if unpacked.len() + length > max {
            return Err(UnpackFault::TooLarge);
        }
        unpacked.extend_from_slice(&piece[..length]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).expect("packed");
        packer.finish().expect("packed")
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).expect("packed");
        packer.finish().expect("packed")
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        assert_eq!(unpack(&gzip(b"{}"), Packing::Gzip, 100).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(unpack(&zlib(b"{}"), Packing::Deflate, 100).as_deref(), Ok(&b"{}"[..]));
        assert_eq!(unpack(&gzip(b""), Packing::Gzip, 100).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn a_bomb_goes_off_at_the_bound_and_no_later() {
        let mib = 1024 * 1024;
        let bomb = gzip(&vec![b' '; 64 * mib]);
        assert!(bomb.len() < 100 * 1024, "{}", bomb.len());
        assert_eq!(unpack(&bomb, Packing::Gzip, 64 * mib), Err(UnpackFault::TooLarge), "by its ratio");
        let packed =
            zlib(&(0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect::<Vec<_>>());
        assert_eq!(unpack(&packed, Packing::Deflate, 1000), Err(UnpackFault::TooLarge), "by its size");
        assert!(unpack(&gzip(&[b' '; FLOOR_BYTES]), Packing::Gzip, mib).is_ok(), "small ones may shrink a lot");
        let inner = gzip(&gzip(&vec![b' '; 16 * mib]));
        assert!(
            unpack(&inner, Packing::Gzip, mib).is_ok_and(|once| once.len() < 64 * 1024),
            "unpacked once, not again"
        );
    }

    #[test]
    fn what_is_cut_short_followed_by_more_or_nothing_of_the_kind_is_a_fault() {
        let whole = gzip(b"{\"id\":\"evt_1\",\"data\":[1,2,3]}");
        for cut in 0..whole.len() {
            assert_eq!(unpack(&whole[..cut], Packing::Gzip, 1000), Err(UnpackFault::Malformed), "{cut}");
        }
        let twice = [whole.clone(), whole.clone()].concat();
        assert_eq!(unpack(&twice, Packing::Gzip, 1000), Err(UnpackFault::Malformed));
        let mut wrong = whole.clone();
        let sum = wrong.len() - 6;
        wrong[sum] ^= 1;
        assert_eq!(unpack(&wrong, Packing::Gzip, 1000), Err(UnpackFault::Malformed), "the check sum counts");
        assert_eq!(unpack(&whole, Packing::Deflate, 1000), Err(UnpackFault::Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes, Packing::Gzip, 1000);
            let _ = unpack(&bytes, Packing::Deflate, 1000);
            let unpacked = unpack(&gzip(&bytes), Packing::Gzip, 1000);
            prop_assert_eq!(unpacked.as_deref(), Ok(bytes.as_slice()));
        }
    }
}
