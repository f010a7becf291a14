//! Texts that may hold a secret, made fit to be shown.

/// A URL without user, password and query values, also when it is malformed.
#[must_use]
pub fn url(text: &str) -> String {
    let (address, query) = text.split_once('?').map_or((text, ""), |(address, _)| (address, "?…"));
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let user = if host.len() < rest.len() { "…@" } else { "" };
    printable(&format!("{scheme}{separator}{user}{host}{query}"), 200)
}

/// A text of at most `most` characters with control and direction-changing characters made visible.
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most.saturating_mul(4)));
    for (count, character) in text.chars().enumerate() {
        if count == most {
            shown.push('…');
            break;
        }
        if hides(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character is invisible or changes how its neighbours are read.
pub(crate) const fn hides(character: char) -> bool {
    matches!(character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'          // control
        | '\u{ad}' | '\u{61c}' | '\u{180e}'        // soft hyphen, Arabic letter mark, vowel separator
        | '\u{200b}'..='\u{200f}'                  // zero width, direction marks
        | '\u{2028}'..='\u{202e}'                  // line separators, embeddings, overrides
        | '\u{2060}'..='\u{206f}'                  // joiners, isolates, deprecated format characters
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'     // byte order mark, annotations
        | '\u{e0000}'..='\u{e007f}') // tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_opens_doors() {
        assert_eq!(url("postgres://bob:pa@ss@db:5432/x?sslpassword=no"), "postgres://…@db:5432/x?…");
        assert_eq!(url("bob:pass@db"), "…@db");
        assert_eq!(url("sqlite:tidegate.db"), "sqlite:tidegate.db");
    }

    #[test]
    fn what_hides_is_made_visible_and_long_texts_are_cut() {
        assert_eq!(printable("a\u{202e}b\n", 9), "a\\u{202e}b\\u{a}");
        assert_eq!(printable("abcdef", 3), "abc…");
    }
}
