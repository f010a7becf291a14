//! Changes of headers: of any of them, and of the texts that signatures and times are written in.

use super::mutate::{Kind, Loot};
use super::wire::{Chance, Wire};

const CONTENT_TYPES: [&str; 8] = [
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-7",
    "text/plain",
    "APPLICATION/JSON",
    "application/xml",
    "multipart/form-data; boundary=a",
    "application/x-www-form-urlencoded; charset=utf-8",
    "",
];

pub(crate) fn change(kind: Kind, wire: &mut Wire, loot: &Loot<'_>, chance: &mut Chance) {
    match kind {
        Kind::HeaderUnread => {
            let more = ["x-request-id", "user-agent", "x-forwarded-for", "x-forwarded-host", "cookie", "via", "te"];
            let name = chance.one(&more).copied().unwrap_or("via");
            return wire.headers.push((name.to_owned(), b"evil.example".to_vec()));
        }
        Kind::ContentType => {
            wire.headers.retain(|(name, _)| name != "content-type");
            let other = chance.one(&CONTENT_TYPES).copied().unwrap_or_default();
            if !other.is_empty() {
                wire.headers.push(("content-type".to_owned(), other.as_bytes().to_vec()));
            }
            return;
        }
        Kind::ContentEncoding => {
            let other = ["gzip", "deflate", "br", "identity", "gzip, gzip", "IDENTITY", "zstd"];
            let other = chance.one(&other).copied().unwrap_or("gzip");
            return wire.headers.push(("content-encoding".to_owned(), other.as_bytes().to_vec()));
        }
        Kind::HeaderOfAnother => {
            let from = if chance.happens(70) { loot.same } else { loot.other };
            if let Some((name, value)) = chance.one(&from.headers) {
                wire.headers.retain(|(known, _)| known != name);
                wire.headers.push((name.clone(), value.clone()));
            }
            return;
        }
        Kind::SignaturesOfAnother => {
            let from = if chance.happens(70) { loot.same } else { loot.other };
            wire.headers.clone_from(&from.headers);
            return;
        }
        _ => {}
    }
    if wire.headers.is_empty() {
        return;
    }
    let which = signed_place(wire, chance);
    whole(kind, wire, which, chance);
    if let Some((_, value)) = wire.headers.get_mut(which) {
        inside(kind, value, chance);
    }
}

/// More often a header that may hold a signature than any other.
fn signed_place(wire: &Wire, chance: &mut Chance) -> usize {
    let telling =
        ["signature", "hmac", "token", "authorization", "timestamp", "-id", "hash", "digest", "mac", "trello"];
    let is = |name: &str| telling.iter().any(|part| name.contains(part));
    let places: Vec<usize> = (0..wire.headers.len()).filter(|at| is(&wire.headers[*at].0)).collect();
    match chance.one(&places) {
        Some(&place) if chance.happens(75) => place,
        _ => chance.below(wire.headers.len()),
    }
}

fn whole(kind: Kind, wire: &mut Wire, which: usize, chance: &mut Chance) {
    let (name, value) = wire.headers[which].clone();
    match kind {
        Kind::HeaderDropped if wire.headers.len() > 1 => drop(wire.headers.remove(which)),
        Kind::HeaderTwice => wire.headers.push((name, value)),
        Kind::HeaderTwiceOther => {
            let at = if chance.happens(50) { 0 } else { wire.headers.len() };
            wire.headers.insert(at, (name, b"other".to_vec()));
        }
        Kind::HeaderRenamed => {
            let named =
                [format!("x-{name}"), format!("{name}-1"), name[..name.len() - 1].to_owned(), format!("{name} ")];
            wire.headers[which].0.clone_from(&named[chance.below(4)]);
        }
        Kind::HeaderUnderscored => wire.headers[which].0 = name.replace('-', "_"),
        Kind::HeaderCase => wire.headers[which].0 = name.to_uppercase(),
        Kind::HeadersSwapped => {
            let other = chance.below(wire.headers.len());
            let (left, right) = (wire.headers[which].1.clone(), wire.headers[other].1.clone());
            (wire.headers[which].1, wire.headers[other].1) = (right, left);
        }
        _ => {}
    }
}

fn inside(kind: Kind, value: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(value.len());
    match kind {
        Kind::HeaderFolded => drop(value.splice(at..at, *b"\r\n ")),
        Kind::HeaderLonger => {
            let more =
                [",", ", x", ",v1=00", " v1,AAAA", ";", "=", "0", " ", ",sha256=00", "&", ",t=1", "\t;h1=0", "|"];
            value.extend_from_slice(chance.one(&more).copied().unwrap_or(",").as_bytes());
        }
        Kind::HeaderPrefixed => {
            let more = ["v1,", "v1a,", "sha256=", "t=1,", " ", "x,", "sha1=", "00", "v0=", "Basic ", "Bearer ", "\""];
            drop(value.splice(..0, chance.one(&more).copied().unwrap_or(",").bytes()));
        }
        Kind::HeaderBit if !value.is_empty() => value[at] ^= 1 << chance.below(8),
        Kind::HeaderInsert => value.insert(at, chance.one(b"0aA,=;. \t/+-_%\xc3").copied().unwrap_or(b'0')),
        Kind::HeaderDelete if !value.is_empty() => drop(value.remove(at)),
        Kind::HeaderCut => value.truncate(at),
        Kind::HeaderEmpty => value.clear(),
        Kind::HeaderBlanks => *value = [b" \t", value.as_slice(), b"  "].concat(),
        Kind::HeaderNul => value.insert(at, 0),
        Kind::HeaderForeign => drop(value.splice(at..at, "\u{ff10}".bytes())),
        Kind::HeaderPercent if !value.is_empty() => {
            let escaped = format!("%{:02X}", value[at]);
            drop(value.splice(at..=at, escaped.into_bytes()));
        }
        Kind::HeaderHuge => value.extend(std::iter::repeat_n(b'a', 600 + chance.below(3000))),
        Kind::HexCase => value.iter_mut().for_each(|byte| {
            *byte = if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        }),
        Kind::Base64Alphabet => value.iter_mut().for_each(|byte| {
            *byte = match *byte {
                b'+' => b'-',
                b'/' => b'_',
                b'-' => b'+',
                b'_' => b'/',
                other => other,
            };
        }),
        Kind::Base64Padding if value.ends_with(b"=") => drop(value.pop()),
        Kind::Base64Padding => value.push(b'='),
        Kind::Base64Bits => {
            let last = value.iter().rposition(u8::is_ascii_alphanumeric);
            if let Some(byte) = last.and_then(|at| value.get_mut(at)) {
                *byte = if byte.is_ascii_digit() { (*byte - b'0' + 1) % 10 + b'0' } else { *byte ^ 1 };
            }
        }
        Kind::SignatureZero => value.iter_mut().filter(|byte| byte.is_ascii_hexdigit()).for_each(|byte| *byte = b'0'),
        Kind::SignatureNone => {
            let none = ["none", "null", "v1,", "sha256=", "t=0,v1=", "undefined", "Basic Og==", "==", "sha256=00", "."];
            *value = chance.one(&none).copied().unwrap_or("none").as_bytes().to_vec();
        }
        Kind::VersionLowered => replace(value, &[("v1", "v0"), ("v0", "v1"), ("v1,", "v1a,"), ("h1", "h0")], chance),
        Kind::PrefixChanged => {
            replace(
                value,
                &[("sha256", "sha1"), ("sha1", "sha256"), ("sha256", "SHA256"), ("=", ":"), (",", ", ")],
                chance,
            );
        }
        _ => {}
    }
}

fn replace(value: &mut Vec<u8>, pairs: &[(&str, &str)], chance: &mut Chance) {
    let Ok(text) = std::str::from_utf8(value) else { return };
    let fits: Vec<_> = pairs.iter().filter(|(from, _)| text.contains(from)).collect();
    if let Some((from, to)) = chance.one(&fits) {
        *value = text.replacen(from, to, 1).into_bytes();
    }
}

/// Another time in a place that looks like one.
pub(crate) fn stated_time(wire: &mut Wire, chance: &mut Chance) {
    let is_time = |part: &[u8]| part.len() >= 10 && part.iter().all(u8::is_ascii_digit);
    let texts = wire.headers.iter_mut().map(|(_, value)| value).chain([&mut wire.body]);
    let mut places = Vec::new();
    for text in texts {
        let mut at = 0;
        for part in text.clone().split(|byte| !byte.is_ascii_digit()) {
            if is_time(part) {
                places.push((at, part.len(), std::ptr::from_mut(text).addr()));
            }
            at += part.len() + 1;
        }
    }
    let Some(&(at, length, whose)) = chance.one(&places) else { return };
    let shift = *chance.one(&[-3600, -1, 1, 301, 100_000]).unwrap_or(&1);
    let texts = wire.headers.iter_mut().map(|(_, value)| value).chain([&mut wire.body]);
    for text in texts.filter(|text| std::ptr::from_ref::<Vec<u8>>(text).addr() == whose) {
        let digits = String::from_utf8_lossy(&text[at..at + length]).into_owned();
        let moved = digits.parse::<i128>().unwrap_or_default() + shift;
        drop(text.splice(at..at + length, moved.to_string().into_bytes()));
    }
}

/// Moves a byte over the edge between the body and a header that is signed beside it.
pub(crate) fn over_the_edge(wire: &mut Wire, to_header: bool, chance: &mut Chance) {
    let named = |name: &str| ["timestamp", "-id", "time"].iter().any(|part| name.contains(part));
    let places: Vec<usize> = (0..wire.headers.len()).filter(|at| named(&wire.headers[*at].0)).collect();
    let Some(&place) = chance.one(&places) else { return };
    let value = &mut wire.headers[place].1;
    let behind = chance.happens(50);
    match (to_header, behind) {
        (true, true) if !wire.body.is_empty() => value.push(wire.body.remove(0)),
        (true, false) => value.splice(..0, wire.body.pop()).for_each(drop),
        (false, true) => wire.body.splice(..0, value.pop()).for_each(drop),
        (false, false) if !value.is_empty() => wire.body.push(value.remove(0)),
        _ => {}
    }
}
