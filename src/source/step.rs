//! Steps of a pointer into a text: `/~json/` reads what a text holds as JSON, `/~base64/` decodes it first.
//!
//! Promises: a text that holds nothing of the kind has none of the places below it, which is no fault of the
//! request: senders put plain words where JSON may stand. One nested text for each pointer, at most [`DEEP_MAX`].

use base64::Engine as _;
use base64::alphabet::{STANDARD as STANDARD_LETTERS, URL_SAFE as URL_SAFE_LETTERS};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::json::{JsonFault, Values, Wanted, scalar};

/// The most texts of one source that pointers step into.
const DEEP_MAX: usize = 8;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&STANDARD_LETTERS, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE_LETTERS, LENIENT);

/// Values picked out of a text inside another; `None` where the text has no such place.
pub(super) type Picks<'a> = Vec<Option<&'a str>>;

/// A pointer, split where it steps into a text.
pub(super) struct Split<'t> {
    /// Up to the text.
    pub(super) outer: &'t str,
    /// The text is base64.
    pub(super) base64: bool,
    /// From the text on.
    pub(super) inner: &'t str,
}

/// Splits a pointer; `None` where it steps into nothing. A `~` that is no escape begins a step.
pub(super) fn split(pointer: &str) -> Result<Option<Split<'_>>, String> {
    let is_step = |token: &str| token.starts_with('~') && !token.starts_with("~0") && !token.starts_with("~1");
    let Some(first) = pointer.split('/').skip(1).find(|token| is_step(token)) else { return Ok(None) };
    let wrong = || format!("has the pointer {pointer:?}: a step into a text is `/~json` or `/~base64/~json`, once");
    let from = first.as_ptr().addr() - pointer.as_ptr().addr();
    let (outer, rest) = (&pointer[..from - 1], &pointer[from..]);
    let (base64, rest) = match rest.strip_prefix("~base64/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let inner = rest.strip_prefix("~json").ok_or_else(wrong)?;
    let more = inner.split('/').any(is_step);
    if more || !(inner.is_empty() || inner.starts_with('/')) {
        return Err(wrong());
    }
    Ok(Some(Split { outer, base64, inner }))
}

/// The texts that pointers step into: each the value of a slot, and what is wanted of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Deep(Vec<Text>);

#[derive(Clone, Debug)]
struct Text {
    slot: usize,
    base64: bool,
    wanted: Wanted,
}

impl Deep {
    /// Wants a pointer of the text at a slot; gives its place.
    pub(super) fn add(&mut self, slot: usize, split: &Split<'_>) -> Result<(usize, usize), String> {
        let known = self.0.iter().position(|text| text.slot == slot && text.base64 == split.base64);
        let text = match known {
            Some(text) => text,
            None if self.0.len() == DEEP_MAX => {
                return Err(format!("steps into more than {DEEP_MAX} texts: leave some out"));
            }
            None => {
                self.0.push(Text { slot, base64: split.base64, wanted: Wanted::default() });
                self.0.len() - 1
            }
        };
        Ok((text, self.0[text].wanted.add(split.inner)?))
    }

    /// The texts themselves; `None` where there is none.
    pub(super) fn texts(&self, values: &[Option<&str>]) -> Vec<Option<String>> {
        self.0.iter().map(|text| text.of(values.get(text.slot).copied().flatten()?)).collect()
    }

    /// What is wanted of the texts.
    pub(super) fn read<'a>(&self, texts: &'a [Option<String>]) -> Result<Vec<Picks<'a>>, JsonFault> {
        let each = self.0.iter().zip(texts);
        each.map(|(text, held)| match held.as_deref().map(|held| text.wanted.read(held)) {
            Some(Err(JsonFault::NotJson(_))) | None => Ok(text.wanted.absent().into_vec()),
            Some(read) => read.map(Values::into_vec),
        })
        .collect()
    }
}

impl Text {
    fn of(&self, raw: &str) -> Option<String> {
        if !raw.starts_with('"') {
            return None;
        }
        let text = scalar(raw).ok()??;
        if self.base64 { from_base64(&text) } else { Some(text.into_owned()) }
    }
}

/// Text out of base64 in either alphabet, with or without padding, in lines or not.
pub(super) fn from_base64(text: &str) -> Option<String> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(&letters).or_else(|_| URL_SAFE.decode(&letters)).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_split_where_it_steps_into_a_text() {
        let parts = |pointer| split(pointer).expect("a pointer").map(|split| (split.outer, split.base64, split.inner));
        assert_eq!(parts("/a/~0b/~1"), None);
        assert_eq!(parts("/Message/~json/a/b"), Some(("/Message", false, "/a/b")));
        assert_eq!(parts("/a/b/~base64/~json"), Some(("/a/b", true, "")));
        assert_eq!(parts("/~json/a"), Some(("", false, "/a")));
        for wrong in ["/a/~xml/b", "/a/~jsonb", "/a/~base64", "/a/~json/b/~json/c", "/a/~base64/b"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn base64_is_read_as_senders_write_it() {
        for text in ["eyJhIjoiPz4ifQ==", "eyJhIjoiPz4ifQ", "eyJhIjoi\nPz4ifQ==\n"] {
            assert_eq!(from_base64(text).as_deref(), Some(r#"{"a":"?>"}"#), "{text:?}");
        }
        assert_eq!(from_base64("*"), None);
        assert_eq!(from_base64("/w=="), None, "not text");
    }
}
