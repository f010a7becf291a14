//! The text of a signature: its layout, and the signatures in it. Unknown entries are skipped, one bad entry
//! never hides a good one, and the count is bounded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;

use super::super::Reason;
use super::super::spec::{Encoding, Format};
use super::key::Tag;
use super::place::{NUMBERED_MAX, Texts};

/// The most bytes a signature header may have.
pub(super) const HEADER_BYTES_MAX: usize = 1024;
/// The most signatures a request may hold.
pub(super) const SIGNATURES_MAX: usize = 8;
/// The most bytes of one signature.
pub(super) const SIGNATURE_BYTES_MAX: usize = 768;

/// The version of the Standard Webhooks that is an ed25519 signature.
pub(super) const ED25519_VERSION: &str = "v1a";

const ED25519_BYTES: usize = 64;

/// What a text holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found<'a> {
    /// MACs or signatures of the right length.
    pub(super) tags: SmallVec<[Tag; 2]>,
    /// ed25519 signatures beside the MACs of the Standard Webhooks.
    pub(super) ed25519: SmallVec<[Tag; 1]>,
    /// The text of the pair, or the place, that holds the time.
    pub(super) time: Option<&'a str>,
    /// The text itself.
    pub(super) text: &'a str,
    /// The method that its prefix names.
    pub(super) method: usize,
}

/// The groups of a request; nearly always one.
pub(super) type Groups<'a> = SmallVec<[Found<'a>; 1]>;

/// How a signature's bytes are told from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Exactly so many bytes.
    Exact(Encoding, usize),
    /// At most so many.
    UpTo(Encoding, usize),
    /// The text itself, compared by its digest.
    Text,
    /// `user:password` of HTTP basic authentication, compared by its digest.
    Basic,
}

/// How to read the text.
pub(super) struct Layout<'s> {
    pub(super) format: &'s Format,
    /// How the signatures are written; `None` when no key of this source makes one.
    pub(super) coding: Option<Coding>,
    /// Whether a key of this source checks ed25519 signatures beside MACs.
    pub(super) ed25519: bool,
    /// The pair that holds the time.
    pub(super) time_pair: Option<&'s str>,
    /// Prefixes that name a method, with how its signatures are written.
    pub(super) methods: &'s [(String, Coding)],
}

impl Layout<'_> {
    pub(super) fn read<'a>(&self, texts: &'a Texts<'_>) -> Result<Groups<'a>, Reason> {
        let mut groups = Groups::new();
        let mut counted = Counted::default();
        for text in texts {
            let read = self.text(text, &mut groups, &mut counted);
            // one bad header never hides a good one
            if let Err(reason) = read {
                counted.first = counted.first.or(Some(reason));
            }
        }
        let found: usize = groups.iter().map(|found| found.tags.len() + found.ed25519.len()).sum();
        match (counted.first, counted.seen, found) {
            (_, seen, _) if seen > NUMBERED_MAX => Err(Reason::MalformedSignature),
            (Some(Reason::MalformedTimestamp), _, _) => Err(Reason::MalformedTimestamp),
            (Some(reason), _, 0) => Err(reason),
            (None, 0, _) => Err(Reason::UnsupportedVersion),
            (None, _, 0) => Err(Reason::MalformedSignature),
            _ => Ok(groups),
        }
    }

    fn text<'a>(&self, value: &'a [u8], groups: &mut Groups<'a>, counted: &mut Counted) -> Result<(), Reason> {
        if value.is_empty() {
            return Err(Reason::MissingSignature);
        }
        if value.len() > HEADER_BYTES_MAX {
            return Err(Reason::MalformedSignature);
        }
        let text = std::str::from_utf8(value).map_err(|_| Reason::MalformedSignature)?;
        if let Format::Pairs(pairs) = self.format
            && let Some(apart) = pairs.groups
        {
            // however many groups there are, all of their signatures together are few
            let (mut all, mut seen) = (0, 0);
            for group in text.split(apart).filter(|group| !group.is_empty()) {
                all += 1;
                let mut reader = Reader { seen, ..Reader::new(self, group) };
                reader.pairs(group, pairs.separator, &pairs.names)?;
                if all > SIGNATURES_MAX {
                    return Err(Reason::MalformedSignature);
                }
                seen = reader.seen;
                groups.push(reader.found);
            }
            counted.seen += seen;
            return Ok(());
        }
        let mut reader = Reader::new(self, text);
        reader.whole(text)?;
        counted.seen += reader.seen;
        groups.push(reader.found);
        Ok(())
    }
}

#[derive(Default)]
struct Counted {
    /// Entries of a version this source accepts, well-formed or not.
    seen: usize,
    /// What was wrong with the first bad text.
    first: Option<Reason>,
}

struct Reader<'l, 's, 'a> {
    layout: &'l Layout<'s>,
    found: Found<'a>,
    seen: usize,
}

impl<'l, 's, 'a> Reader<'l, 's, 'a> {
    fn new(layout: &'l Layout<'s>, text: &'a str) -> Self {
        Self { layout, found: Found { text, ..Found::default() }, seen: 0 }
    }

    fn whole(&mut self, text: &'a str) -> Result<(), Reason> {
        if !self.layout.methods.is_empty() {
            return self.method(text);
        }
        match self.layout.format {
            Format::Bare => self.take(text),
            Format::Prefix(prefix) => self.take(text.strip_prefix(prefix.as_str()).ok_or(Reason::UnsupportedVersion)?),
            Format::Versions(versions) => self.versions(text, versions),
            Format::Pairs(pairs) => self.pairs(text, pairs.separator, &pairs.names),
            Format::List(list) => self.list(text, list.separator),
            Format::Entries(entries) => {
                for entry in text.split(entries.separator) {
                    if let Some(signature) = part(entry, entries.parts, &entries.layout) {
                        self.take(signature)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn count(&mut self) -> Result<(), Reason> {
        self.seen += 1;
        if self.seen > SIGNATURES_MAX { Err(Reason::MalformedSignature) } else { Ok(()) }
    }

    fn take(&mut self, text: &str) -> Result<(), Reason> {
        let Some(coding) = self.layout.coding else { return Ok(()) };
        if coding == Coding::Basic && basic(text).is_none() {
            return Err(Reason::UnsupportedVersion);
        }
        self.count()?;
        self.found.tags.extend(coding.decode(text));
        Ok(())
    }

    fn method(&mut self, text: &str) -> Result<(), Reason> {
        let methods = self.layout.methods.iter().enumerate();
        let found =
            methods.filter_map(|(place, (prefix, coding))| Some((place, coding, text.strip_prefix(prefix.as_str())?)));
        let (place, coding, text) =
            found.max_by_key(|(_, _, text)| std::cmp::Reverse(text.len())).ok_or(Reason::UnsupportedVersion)?;
        self.count()?;
        self.found.method = place;
        self.found.tags.extend(coding.decode(text));
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
                self.found.ed25519.extend(decode(signature, Encoding::Base64, ED25519_BYTES));
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

    fn list(&mut self, text: &'a str, separator: char) -> Result<(), Reason> {
        let mut parts = text.split(separator).map(|part| part.trim_matches([' ', '\t']));
        self.found.time = parts.next();
        let mut any = false;
        for part in parts {
            any = true;
            self.take(part)?;
        }
        if any { Ok(()) } else { Err(Reason::MalformedSignature) }
    }
}

/// The signature of an entry whose fixed parts match.
fn part<'a>(entry: &'a str, apart: char, layout: &[String]) -> Option<&'a str> {
    let mut signature = None;
    let mut parts = entry.trim_matches([' ', '\t']).split(apart);
    for wanted in layout {
        let part = parts.next()?;
        match wanted.as_str() {
            "{signature}" => signature = Some(part),
            "*" => {}
            fixed if fixed == part => {}
            _ => return None,
        }
    }
    if parts.next().is_some() { None } else { signature }
}

/// The first pair of this name.
pub(super) fn pair<'a>(text: &'a str, separator: char, name: &str) -> Option<&'a str> {
    let mut pairs = text.split(separator).filter_map(|pair| pair.trim_matches([' ', '\t']).split_once('='));
    pairs.find_map(|(found, value)| (found == name).then_some(value))
}

/// The credentials behind the word `Basic`, in any case.
fn basic(text: &str) -> Option<&str> {
    let (word, rest) = text.split_once(' ')?;
    word.eq_ignore_ascii_case("basic").then_some(rest.trim_start_matches(' '))
}

impl Coding {
    fn decode(self, text: &str) -> Option<Tag> {
        match self {
            Self::Exact(encoding, bytes) => decode(text, encoding, bytes),
            Self::UpTo(encoding, bytes) => decode_up_to(text, encoding, bytes),
            Self::Text => Some(digest(text.as_bytes())),
            Self::Basic => STANDARD.decode(basic(text)?).ok().map(|bytes| digest(&bytes)),
        }
    }
}

/// Texts of any length are compared as digests, so that time tells nothing of their length either.
pub(super) fn digest(bytes: &[u8]) -> Tag {
    Tag::from_slice(&Sha256::digest(bytes))
}

/// Decodes a signature of exactly `bytes` bytes.
pub(super) fn decode(text: &str, encoding: Encoding, bytes: usize) -> Option<Tag> {
    let mut tag = Tag::from_elem(0, bytes);
    match encoding {
        Encoding::HexLower if text.bytes().any(|byte| byte.is_ascii_uppercase()) => return None,
        Encoding::Hex | Encoding::HexLower => hex::decode_to_slice(text, &mut tag).ok()?,
        Encoding::Base64 | Encoding::Base64url | Encoding::Base64Hex => {
            let found = decode_up_to(text, encoding, bytes)?;
            return (found.len() == bytes).then_some(found);
        }
    }
    Some(tag)
}

fn decode_up_to(text: &str, encoding: Encoding, bytes: usize) -> Option<Tag> {
    // room for more than the longest, so that a longer text is told from a fitting one
    let mut room = [0; SIGNATURE_BYTES_MAX + 3];
    let length = match encoding {
        Encoding::Base64 => STANDARD.decode_slice(text, &mut room).ok()?,
        Encoding::Base64url => URL_SAFE_NO_PAD.decode_slice(text, &mut room).ok()?,
        Encoding::Base64Hex => {
            let length = STANDARD.decode_slice(text, &mut room).ok()?;
            return decode(std::str::from_utf8(room.get(..length)?).ok()?, Encoding::Hex, length / 2)
                .filter(|tag| tag.len() <= bytes);
        }
        Encoding::Hex | Encoding::HexLower => {
            return (text.len() <= bytes * 2).then(|| decode(text, encoding, text.len() / 2)).flatten();
        }
    };
    (length > 0 && length <= bytes).then(|| Tag::from_slice(&room[..length]))
}

/// Writes a signature as a sender would.
pub(super) fn encode(tag: &[u8], encoding: Encoding) -> String {
    match encoding {
        Encoding::Hex | Encoding::HexLower => hex::encode(tag),
        Encoding::Base64 => STANDARD.encode(tag),
        Encoding::Base64url => URL_SAFE_NO_PAD.encode(tag),
        Encoding::Base64Hex => STANDARD.encode(hex::encode(tag)),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::super::spec::{Entries, List, Pairs};
    use super::*;

    fn read(format: &Format, text: &str) -> Result<(Option<String>, usize), Reason> {
        let layout = Layout {
            format,
            coding: Some(Coding::Exact(Encoding::Hex, 2)),
            ed25519: false,
            time_pair: Some("t"),
            methods: &[],
        };
        let texts = Texts::from_elem(Cow::Borrowed(text.as_bytes()), 1);
        let groups = layout.read(&texts)?;
        Ok((groups[0].time.map(str::to_owned), groups.iter().map(|found| found.tags.len()).sum()))
    }

    fn pairs(text: &str) -> Result<(Option<String>, usize), Reason> {
        read(&Format::Pairs(Pairs { separator: ',', names: vec!["v1".to_owned()], groups: None }), text)
    }

    #[test]
    fn pairs_may_repeat_and_unknown_ones_are_skipped() {
        assert_eq!(pairs("t=5, v0=dead, v1=BEEF,v1=zz,v1=dead"), Ok((Some("5".to_owned()), 2)));
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
        let groups = Format::Pairs(Pairs { separator: ',', names: vec!["v1".to_owned()], groups: Some(' ') });
        let group = |times: usize| format!("t=5{}", ",v1=dead".repeat(times));
        let found = |text: String| read(&groups, &text).map(|(_, found)| found);
        assert_eq!(found(format!("{} {}", group(5), group(3))), Ok(8));
        assert_eq!(
            found(format!("{} {}", group(5), group(4))),
            Ok(5),
            "the group that is one too many counts for nothing"
        );
        assert_eq!(found(group(9)), Err(Reason::MalformedSignature));
    }

    #[test]
    fn lists_and_entries_keep_what_fits() {
        let list = Format::List(List { separator: ',' });
        assert_eq!(read(&list, "5,dead,zz,beef"), Ok((Some("5".to_owned()), 2)));
        assert_eq!(read(&list, "5"), Err(Reason::MalformedSignature));
        let layout = ["*", "A", "{signature}"].map(str::to_owned).to_vec();
        let entries = Format::Entries(Entries { separator: ',', parts: '/', layout });
        assert_eq!(read(&entries, "1/A/dead,2/B/dead,3/A/dead/x,4/A"), Ok((None, 1)));
        assert_eq!(read(&entries, "2/B/dead"), Err(Reason::UnsupportedVersion));
    }

    #[test]
    fn a_signature_has_one_spelling_but_for_the_case_of_hex() {
        assert_eq!(decode("abCD", Encoding::Hex, 2), decode("ABcd", Encoding::Hex, 2));
        assert!(decode("abCD", Encoding::HexLower, 2).is_none());
        assert!(decode("qqq=", Encoding::Base64, 2).is_none(), "bits behind the last byte");
        assert!(decode("qqo", Encoding::Base64, 2).is_none(), "no padding");
        assert!(decode("qqo=", Encoding::Base64, 2).is_some());
        assert!(decode("qqo", Encoding::Base64url, 2).is_some());
        assert!(decode(&"A".repeat(2000), Encoding::Base64, 32).is_none());
        assert_eq!(decode("YWJjZA==", Encoding::Base64Hex, 2), decode("abcd", Encoding::Hex, 2));
    }
}
