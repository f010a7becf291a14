//! Changes of the body.

use std::io::Write as _;

use serde_json::Value;

use super::mutate::{Kind, Loot};
use super::wire::{Chance, Wire};

pub(crate) fn change(kind: Kind, wire: &mut Wire, loot: &Loot<'_>, chance: &mut Chance) {
    let at = chance.below(wire.body.len());
    let body = &mut wire.body;
    match kind {
        Kind::BodyBit => {
            if let Some(byte) = body.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        Kind::BodyInsert => {
            let byte = chance.one(b"0a \"{}[],:\\=&%+\x00\xff\x7f").copied().unwrap_or(b' ');
            body.insert(at, byte);
        }
        Kind::BodyDelete if !body.is_empty() => drop(body.remove(at)),
        Kind::BodySwap if body.len() > 1 => body.swap(at.max(1), at.max(1) - 1),
        Kind::BodyCut => body.truncate(at),
        Kind::BodyExtended => {
            let more: [&[u8]; 9] = [b" ", b"\n", b"\r\n", b"\0", b"}", b"&a=b", b"{}", b"null", b"="];
            body.extend_from_slice(chance.one(&more).copied().unwrap_or(b" "));
        }
        Kind::BodyPrefixed => {
            let more: [&[u8]; 6] = [b" ", b"\n", b"\xef\xbb\xbf", b"\0", b"a=b&", b"0"];
            let more = chance.one(&more).copied().unwrap_or(b" ");
            *body = [more, body].concat();
        }
        Kind::BodyOfAnother => *body = if chance.happens(50) { loot.same } else { loot.other }.body.clone(),
        Kind::BodiesJoined => {
            let other = if chance.happens(50) { &loot.same.body } else { &loot.other.body };
            let at = at.min(other.len());
            *body = [&body[..at.min(body.len())], &other[at..]].concat();
        }
        Kind::BodyEmpty => body.clear(),
        Kind::NulByte => body.insert(at, 0),
        Kind::LineEnds => *body = replaced(body, b"\n", b"\r\n").unwrap_or_else(|| [body, &b"\r\n"[..]].concat()),
        Kind::Packed | Kind::PackedUnsaid => {
            *body = gzip(body);
            if kind == Kind::Packed {
                wire.headers.push(("content-encoding".to_owned(), b"gzip".to_vec()));
            }
        }
        _ => text(kind, wire, chance),
    }
}

/// Changes that need the body to be a text.
fn text(kind: Kind, wire: &mut Wire, chance: &mut Chance) {
    let Ok(text) = String::from_utf8(wire.body.clone()) else { return };
    let places = |is: &dyn Fn(u8) -> bool| -> Vec<usize> {
        text.bytes().enumerate().filter(|(_, byte)| is(*byte)).map(|(at, _)| at).collect()
    };
    let letters = || places(&|byte| byte.is_ascii_alphanumeric());
    let changed = match kind {
        Kind::NumberHuge | Kind::NumberChanged => {
            let Some(&at) = chance.one(&places(&|byte| byte.is_ascii_digit())) else { return };
            let end = text[at..].find(|letter: char| !letter.is_ascii_digit()).map_or(text.len(), |length| at + length);
            let huge = ["1e400", "99999999999999999999999", "-0", "0.1e-9", "00", "1E1", "NaN", "9007199254740993"];
            let near = ["0", "1", "7", "42"];
            let new = if kind == Kind::NumberHuge { chance.one(&huge[..]) } else { chance.one(&near[..]) };
            format!("{}{}{}", &text[..at], new.unwrap_or(&"0"), &text[end..])
        }
        Kind::NestedDeep => {
            let Some(&at) = chance.one(&places(&|byte| byte == b':' || byte == b'=')) else { return };
            let depth = 40 + chance.below(400);
            format!("{}{}{}{}", &text[..=at], "[".repeat(depth), "]".repeat(depth), &text[at + 1..])
        }
        Kind::MemberTwice | Kind::MemberFirst => member(&text, kind == Kind::MemberFirst, chance),
        Kind::LetterEscaped => {
            let Some(&at) = chance.one(&letters()) else { return };
            format!("{}\\u{:04x}{}", &text[..at], text.as_bytes()[at], &text[at + 1..])
        }
        Kind::LetterForeign => {
            let Some(&at) = chance.one(&letters()) else { return };
            let foreign = ["\u{430}", "\u{ff41}", "\u{200b}", "\u{301}", "\u{212a}", "\u{1d7d8}"];
            format!("{}{}{}", &text[..at], chance.one(&foreign).unwrap_or(&""), &text[at + 1..])
        }
        Kind::PercentEscaped => percent(&text, chance),
        Kind::BlankAdded => {
            let Some(&at) = chance.one(&places(&|byte| b",:{}[]&=".contains(&byte))) else { return };
            format!("{}{}{}", &text[..=at], chance.one(&[" ", "\t", "\n", "+"]).unwrap_or(&" "), &text[at + 1..])
        }
        _ => return json(kind, wire, chance),
    };
    wire.body = changed.into_bytes();
}

/// One more member of a name that is there, before or after it.
fn member(text: &str, first: bool, chance: &mut Chance) -> String {
    let names: Vec<(usize, &str)> = text
        .match_indices("\":")
        .filter_map(|(end, _)| Some((text[..end].rfind('"')?, &text[text[..end].rfind('"')? + 1..end])))
        .collect();
    if let Some((at, name)) = chance.one(&names) {
        let escaped = chance.happens(30).then(|| name.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<String>());
        let more = format!("\"{}\":\"evil\"", escaped.as_deref().unwrap_or(name));
        if first {
            return format!("{}{more},{}", &text[..*at], &text[*at..]);
        }
        let end = text.rfind('}').unwrap_or(text.len());
        return format!("{},{more}{}", &text[..end], &text[end..]);
    }
    let fields: Vec<&str> = text.split('&').collect();
    let name = chance.one(&fields).and_then(|field| field.split('=').next()).unwrap_or("a");
    if first { format!("{name}=evil&{text}") } else { format!("{text}&{name}=evil") }
}

fn percent(text: &str, chance: &mut Chance) -> String {
    let escapes: Vec<usize> =
        text.match_indices('%').map(|(at, _)| at).filter(|at| text.is_char_boundary(at + 3)).collect();
    if let Some(&at) = chance.one(&escapes).filter(|_| text.contains('=')) {
        let (escape, rest) = (&text[at..at + 3], &text[at + 3..]);
        let other = [escape.to_lowercase(), escape.to_uppercase(), escape.replace('%', "%25"), "+".to_owned()];
        return format!("{}{}{rest}", &text[..at], other[chance.below(4)]);
    }
    let at = chance.below(text.len());
    match text.get(at..=at).map(str::as_bytes) {
        Some([byte]) => format!("{}%{byte:02x}{}", &text[..at], &text[at + 1..]),
        _ => text.to_owned(),
    }
}

/// Changes that need the body to be JSON.
fn json(kind: Kind, wire: &mut Wire, chance: &mut Chance) {
    let Ok(mut json) = serde_json::from_slice::<Value>(&wire.body) else { return };
    let written = match kind {
        Kind::WrittenAnew if chance.happens(50) => serde_json::to_vec_pretty(&json),
        Kind::WrittenAnew => serde_json::to_vec(&json),
        _ => {
            let Some(items) = array(&mut json) else { return };
            match (kind, items.len()) {
                (Kind::ItemsSwapped, 2..) => items.reverse(),
                (_, 1..) => items.push(items[0].clone()),
                _ => return,
            }
            serde_json::to_vec(&json)
        }
    };
    wire.body = written.unwrap_or_default();
}

/// The first array in a value.
fn array(json: &mut Value) -> Option<&mut Vec<Value>> {
    match json {
        Value::Array(items) => Some(items),
        Value::Object(members) => members.values_mut().find_map(array),
        _ => None,
    }
}

fn replaced(body: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let text =
        std::str::from_utf8(body).ok().filter(|text| text.as_bytes().windows(from.len()).any(|part| part == from))?;
    Some(text.replace(std::str::from_utf8(from).ok()?, std::str::from_utf8(to).ok()?).into_bytes())
}

pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(body).and_then(|()| packer.finish()).unwrap_or_default()
}
