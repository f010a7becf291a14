//! The signature header: its layout, and the signatures in it. Unknown entries are skipped, one bad entry
//! never hides a good one, and the count is bounded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use smallvec::SmallVec;

use super::super::Reason;
use super::super::spec::{Encoding, Format};
use super::key::Tag;

/// The most bytes a signature header may have.
pub(super) const HEADER_BYTES_MAX: usize = 1024;
/// The most signatures a header may hold.
pub(super) const SIGNATURES_MAX: usize = 8;

/// The version of the Standard Webhooks that is an ed25519 signature.
pub(super) const ED25519_VERSION: &str = "v1a";

const ED25519_BYTES: usize = 64;

/// What the header holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found<'a> {
    /// MACs of the right length.
    pub(super) macs: SmallVec<[Tag; 2]>,
    /// ed25519 signatures of the right length.
    pub(super) signatures: SmallVec<[Tag; 1]>,
    /// The text of the pair that holds the time.
    pub(super) time: Option<&'a str>,
}

/// How to read a header.
pub(super) struct Layout<'s> {
    pub(super) format: &'s Format,
    pub(super) encoding: Encoding,
    /// Bytes of a MAC; `None` when no key of this source makes one.
    pub(super) mac_bytes: Option<usize>,
    /// Whether a key of this source checks ed25519 signatures.
    pub(super) ed25519: bool,
    /// The pair that holds the time.
    pub(super) time_pair: Option<&'s str>,
}

impl Layout<'_> {
    pub(super) fn read<'a>(&self, value: &'a [u8]) -> Result<Found<'a>, Reason> {
        if value.is_empty() {
            return Err(Reason::MissingSignature);
        }
        if value.len() > HEADER_BYTES_MAX {
            return Err(Reason::MalformedSignature);
        }
        let text = std::str::from_utf8(value).map_err(|_| Reason::MalformedSignature)?;
        let mut reader = Reader { layout: self, found: Found::default(), seen: 0 };
        match self.format {
            Format::Bare => reader.take(text)?,
            Format::Prefix(prefix) => reader.take(text.strip_prefix(prefix).ok_or(Reason::UnsupportedVersion)?)?,
            Format::Versions(versions) => reader.versions(text, versions)?,
            Format::Pairs(pairs) => reader.pairs(text, pairs.separator, &pairs.names)?,
        }
        let Reader { found, seen, .. } = reader;
        match (seen, found.macs.len() + found.signatures.len()) {
            (0, _) => Err(Reason::UnsupportedVersion),
            (_, 0) => Err(Reason::MalformedSignature),
            _ => Ok(found),
        }
    }
}

struct Reader<'l, 's, 'a> {
    layout: &'l Layout<'s>,
    found: Found<'a>,
    /// Entries of a version this source accepts, well-formed or not.
    seen: usize,
}

impl<'a> Reader<'_, '_, 'a> {
    fn count(&mut self) -> Result<(), Reason> {
        self.seen += 1;
        if self.seen > SIGNATURES_MAX { Err(Reason::MalformedSignature) } else { Ok(()) }
    }

    fn take(&mut self, text: &str) -> Result<(), Reason> {
        let Some(mac_bytes) = self.layout.mac_bytes else { return Ok(()) };
        self.count()?;
        self.found.macs.extend(decode(text, self.layout.encoding, mac_bytes));
        Ok(())
    }

    fn versions(&mut self, text: &'a str, versions: &[String]) -> Result<(), Reason> {
        for entry in text.split(' ').filter(|entry| !entry.is_empty()) {
            let Some((version, signature)) = entry.split_once(',') else { continue };
            if !versions.iter().any(|known| known == version) {
                continue;
            }
            if version != ED25519_VERSION {
                self.take(signature)?;
            } else if self.layout.ed25519 {
                self.count()?;
                self.found.signatures.extend(decode(signature, Encoding::Base64, ED25519_BYTES));
            }
        }
        Ok(())
    }

    fn pairs(&mut self, text: &'a str, separator: char, names: &[String]) -> Result<(), Reason> {
        let mut pairs = 0;
        for pair in text.split(separator) {
            let Some((name, value)) = pair.trim_matches([' ', '\t']).split_once('=') else { continue };
            pairs += 1;
            if Some(name) == self.layout.time_pair {
                if self.found.time.replace(value).is_some() {
                    return Err(Reason::MalformedTimestamp);
                }
            } else if names.iter().any(|known| known == name) {
                self.take(value)?;
            }
        }
        if pairs == 0 { Err(Reason::MalformedSignature) } else { Ok(()) }
    }
}

/// Decodes a signature of exactly `bytes` bytes.
pub(super) fn decode(text: &str, encoding: Encoding, bytes: usize) -> Option<Tag> {
    let mut tag = Tag::from_elem(0, bytes);
    match encoding {
        Encoding::Hex => hex::decode_to_slice(text, &mut tag).ok()?,
        Encoding::Base64 | Encoding::Base64url => {
            // room for one byte more, so that a longer text is told from a fitting one
            let mut room = [0; 96];
            let length = match encoding {
                Encoding::Base64 => STANDARD.decode_slice(text, &mut room),
                _ => URL_SAFE_NO_PAD.decode_slice(text, &mut room),
            };
            if length.ok()? != bytes {
                return None;
            }
            tag.copy_from_slice(&room[..bytes]);
        }
    }
    Some(tag)
}

/// Writes a signature as a sender would.
pub(super) fn encode(tag: &[u8], encoding: Encoding) -> String {
    match encoding {
        Encoding::Hex => hex::encode(tag),
        Encoding::Base64 => STANDARD.encode(tag),
        Encoding::Base64url => URL_SAFE_NO_PAD.encode(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::spec::Pairs;
    use super::*;

    fn pairs(text: &str) -> Result<Found<'_>, Reason> {
        let format = Format::Pairs(Pairs { separator: ',', names: vec!["v1".to_owned()] });
        let layout = Layout {
            format: &format,
            encoding: Encoding::Hex,
            mac_bytes: Some(2),
            ed25519: false,
            time_pair: Some("t"),
        };
        layout.read(text.as_bytes())
    }

    #[test]
    fn pairs_may_repeat_and_unknown_ones_are_skipped() {
        let found = pairs("t=5, v0=dead, v1=BEEF,v1=zz,v1=dead").expect("signatures");
        assert_eq!(found.time, Some("5"));
        assert_eq!(found.macs.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_header_is_told_apart() {
        assert_eq!(pairs(""), Err(Reason::MissingSignature));
        assert_eq!(pairs(",,"), Err(Reason::MalformedSignature));
        assert_eq!(pairs("t=5,v0=dead"), Err(Reason::UnsupportedVersion));
        assert_eq!(pairs("t=5,v1=dea"), Err(Reason::MalformedSignature));
        assert_eq!(pairs("t=5,t=6,v1=dead"), Err(Reason::MalformedTimestamp));
    }

    #[test]
    fn too_many_signatures_or_bytes_are_refused() {
        assert!(pairs(&format!("t=5{}", ",v1=dead".repeat(SIGNATURES_MAX))).is_ok());
        assert_eq!(pairs(&format!("t=5{}", ",v1=dead".repeat(SIGNATURES_MAX + 1))), Err(Reason::MalformedSignature));
        assert_eq!(pairs(&format!("t=5,v1=dead,x={}", "y".repeat(1024))), Err(Reason::MalformedSignature));
    }

    #[test]
    fn a_signature_has_one_spelling_but_for_the_case_of_hex() {
        assert_eq!(decode("abCD", Encoding::Hex, 2), decode("ABcd", Encoding::Hex, 2));
        assert!(decode("qqq=", Encoding::Base64, 2).is_none(), "bits behind the last byte");
        assert!(decode("qqo", Encoding::Base64, 2).is_none(), "no padding");
        assert!(decode("qqo=", Encoding::Base64, 2).is_some());
        assert!(decode("qqo", Encoding::Base64url, 2).is_some());
        assert!(decode(&"A".repeat(2000), Encoding::Base64, 32).is_none());
    }
}
