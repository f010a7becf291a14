//! The digest that tells honest retries from conflicts: over the body without its volatile members.

use smallvec::SmallVec;
use tidegate_actors::rules::key::BodyDigest;

/// The digest of `text` without the members whose values are `volatile`, each a slice of `text`. A member
/// goes with its key, its blanks and one comma, so a text that never had it has the same digest.
pub(super) fn without<'a>(text: &'a str, volatile: impl Iterator<Item = &'a str>) -> BodyDigest {
    let start = text.as_ptr().addr();
    let mut cuts: SmallVec<[(usize, usize); 8]> = volatile
        .filter_map(|value| {
            let from = value.as_ptr().addr().checked_sub(start)?;
            let to = from.checked_add(value.len())?;
            (to <= text.len()).then(|| member(text.as_bytes(), from, to))
        })
        .collect();
    cuts.sort_unstable();
    // the end is a cut as well, so that every piece stands before one
    cuts.push((text.len(), text.len()));
    let mut at = 0;
    BodyDigest::of_pieces(cuts.into_iter().map(|(from, to)| {
        let piece = text.as_bytes().get(at..from).unwrap_or_default();
        at = at.max(to);
        piece
    }))
}

/// Widens a value's range to its member: key, colon, blanks, and the comma before it, or else behind it.
fn member(text: &[u8], from: usize, to: usize) -> (usize, usize) {
    let Some(key) = key_start(text, from) else { return (from, to) };
    let before = blanks_back(text, key);
    if before > 0 && text[before - 1] == b',' {
        return (before - 1, to);
    }
    let is_blank = |byte: &&u8| byte.is_ascii_whitespace();
    let after = to + text[to..].iter().take_while(is_blank).count();
    if text.get(after) == Some(&b',') {
        let next = after + 1;
        return (key, next + text[next..].iter().take_while(is_blank).count());
    }
    (key, to)
}

/// Where the key of the value at `from` begins; `None` for an item of an array.
fn key_start(text: &[u8], from: usize) -> Option<usize> {
    let colon = blanks_back(text, from).checked_sub(1).filter(|&at| text[at] == b':')?;
    let close = blanks_back(text, colon).checked_sub(1).filter(|&at| text[at] == b'"')?;
    let mut open = close;
    loop {
        open = text[..open].iter().rposition(|&byte| byte == b'"')?;
        let escapes = text[..open].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(open);
        }
    }
}

fn blanks_back(text: &[u8], at: usize) -> usize {
    at - text[..at].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::super::json::Wanted;
    use super::*;

    fn digest(text: &str) -> BodyDigest {
        let mut wanted = Wanted::default();
        wanted.add("/n").expect("a pointer");
        wanted.add("/d/n").expect("a pointer");
        let values = wanted.read(text).expect("JSON");
        without(text, values.iter().flatten().copied())
    }

    #[test]
    fn volatile_members_do_not_count_wherever_they_stand() {
        let plain = digest(r#"{"a":1, "b":2}"#);
        for text in [
            r#"{"a":1, "b":2,"n":7}"#,
            r#"{"a":1, "n" : {"x":[1]}, "b":2}"#,
            r#"{"n":"5", "a":1, "b":2}"#,
            r#"{ "n":0,"a":1, "b":2}"#.replacen("{ ", "{", 1).as_str(),
        ] {
            assert_eq!(digest(text), plain, "{text}");
        }
        assert_ne!(digest(r#"{"a":1, "b":3,"n":7}"#), plain);
        assert_eq!(digest(r#"{"d":{"n":1},"n":2}"#), digest(r#"{"d":{"n":8}}"#));
        assert_eq!(digest(r#"{"n":1}"#), digest("{}"));
    }

    #[test]
    fn a_text_without_volatile_members_has_the_digest_of_its_bytes() {
        assert_eq!(digest(r#"{"a":1}"#), BodyDigest::of(br#"{"a":1}"#));
    }
}
