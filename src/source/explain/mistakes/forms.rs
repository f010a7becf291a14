//! The ways in which libraries write one JSON value.
//!
//! Promises: values, their order (unless sorted) and the digits of numbers stay as they are; what is no JSON, or too
//! deep, has no form.

use std::fmt;

use serde_json::value::RawValue;

use super::super::super::parts;

/// The deepest nesting, and the most members of one object or array.
const DEPTH_MAX: usize = 64;
const PARTS_MAX: usize = 100_000;

/// How blanks are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blanks {
    None,
    /// `", "` and `": "`.
    Spaced,
    /// A line each, indented by this.
    Lines(&'static str),
}

/// How letters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    AsTheyCome,
    Plain,
    Ascii,
    /// `\/`, and the rest in ASCII.
    Slashes,
    /// `<`, `>` and `&` as escapes.
    Html,
}

/// One way to write a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    blanks: Blanks,
    sorted: bool,
    letters: Letters,
    short_numbers: bool,
    line_end: bool,
}

impl Style {
    /// Every way, the usual ones first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        const BLANKS: [Blanks; 5] =
            [Blanks::None, Blanks::Spaced, Blanks::Lines("  "), Blanks::Lines("    "), Blanks::Lines("\t")];
        const LETTERS: [Letters; 5] =
            [Letters::AsTheyCome, Letters::Plain, Letters::Ascii, Letters::Slashes, Letters::Html];
        let flags = [(false, false), (true, false), (false, true), (true, true)];
        flags.into_iter().flat_map(move |(sorted, short_numbers)| {
            LETTERS.into_iter().flat_map(move |letters| {
                BLANKS.into_iter().flat_map(move |blanks| {
                    [false, true].map(|line_end| Self { blanks, sorted, letters, short_numbers, line_end })
                })
            })
        })
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.blanks {
            Blanks::None => "as JSON without blanks",
            Blanks::Spaced => "as JSON with a blank behind each `,` and `:`",
            Blanks::Lines("\t") => "as JSON in lines, indented by tabs",
            Blanks::Lines("  ") => "as JSON in lines, indented by two blanks",
            Blanks::Lines(_) => "as JSON in lines, indented by four blanks",
        })?;
        f.write_str(match self.letters {
            Letters::AsTheyCome => "",
            Letters::Plain => ", without escaped letters",
            Letters::Ascii => ", with letters beyond ASCII as \\u escapes",
            Letters::Slashes => ", with `/` escaped",
            Letters::Html => ", with `<`, `>` and `&` escaped",
        })?;
        let rest = [
            (self.sorted, ", its members sorted"),
            (self.short_numbers, ", its numbers shortened"),
            (self.line_end, ", with a line end"),
        ];
        rest.iter().filter(|(is, _)| *is).try_for_each(|(_, text)| f.write_str(text))
    }
}

/// The value written in this style; `None` where the text is no JSON.
pub(super) fn write(text: &str, style: Style) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?;
    let mut out = String::with_capacity(text.len() + 64);
    value(raw.get(), style, 0, &mut out)?;
    if style.line_end {
        out.push('\n');
    }
    Some(out)
}

fn value(raw: &str, style: Style, depth: usize, out: &mut String) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match raw.as_bytes().first()? {
        b'{' => {
            let mut members = parts::members(raw, PARTS_MAX).ok()?;
            if style.sorted {
                members.sort_by(|(left, _), (right, _)| left.cmp(right));
            }
            list(('{', '}'), members.len(), style, depth, out, |at, out| {
                let (name, raw) = &members[at];
                quoted(name, style.letters, out);
                out.push_str(if style.blanks == Blanks::None { ":" } else { ": " });
                value(raw, style, depth + 1, out)
            })
        }
        b'[' => {
            let items = parts::items(raw, PARTS_MAX).ok()?;
            list(('[', ']'), items.len(), style, depth, out, |at, out| value(items[at], style, depth + 1, out))
        }
        b'"' if style.letters == Letters::AsTheyCome => {
            out.push_str(raw);
            Some(())
        }
        b'"' => {
            quoted(&serde_json::from_str::<String>(raw).ok()?, style.letters, out);
            Some(())
        }
        b'-' | b'0'..=b'9' if style.short_numbers => {
            out.push_str(&number(raw));
            Some(())
        }
        _ => {
            out.push_str(raw);
            Some(())
        }
    }
}

fn list(
    (open, close): (char, char),
    count: usize,
    style: Style,
    depth: usize,
    out: &mut String,
    mut part: impl FnMut(usize, &mut String) -> Option<()>,
) -> Option<()> {
    let line = |out: &mut String, depth: usize| {
        if let Blanks::Lines(indent) = style.blanks {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    out.push(open);
    for at in 0..count {
        if at > 0 {
            out.push_str(if style.blanks == Blanks::Spaced { ", " } else { "," });
        }
        line(out, depth + 1);
        part(at, out)?;
    }
    if count > 0 {
        line(out, depth);
    }
    out.push(close);
    Some(())
}

fn quoted(text: &str, letters: Letters, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if letters == Letters::Slashes => out.push_str("\\/"),
            '<' | '>' | '&' if letters == Letters::Html => escaped(letter, out),
            '\u{2028}' | '\u{2029}' if letters == Letters::Html => escaped(letter, out),
            letter if u32::from(letter) < 0x20 => escaped(letter, out),
            letter if !letter.is_ascii() && matches!(letters, Letters::Ascii | Letters::Slashes) => {
                escaped(letter, out);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn escaped(letter: char, out: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// A number as JavaScript writes it: `2` for `2.00`.
fn number(raw: &str) -> String {
    let plain = raw.contains('.') && !raw.contains(['e', 'E']);
    if !plain {
        return raw.to_owned();
    }
    raw.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "{\"b\": [1, 2.50, {}], \"a\":\"\\u00e9/<\"}";

    fn all() -> Vec<String> {
        Style::all().filter_map(|style| write(TEXT, style)).collect()
    }

    #[test]
    fn one_value_is_written_as_libraries_do() {
        for expected in [
            "{\"b\":[1,2.50,{}],\"a\":\"\\u00e9/<\"}",
            "{\"b\": [1, 2.50, {}], \"a\": \"\\u00e9/<\"}",
            "{\"b\":[1,2.5,{}],\"a\":\"é/<\"}",
            "{\"a\":\"\\u00e9\\/<\",\"b\":[1,2.50,{}]}",
            "{\"a\":\"é/\\u003c\",\"b\":[1,2.50,{}]}\n",
            "{\n  \"b\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"a\": \"é/<\"\n}",
        ] {
            assert!(all().iter().any(|text| text == expected), "{expected}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_form() {
        let style = Style::all().next().expect("a style");
        assert_eq!(write("{", style), None);
        assert_eq!(write(&"[".repeat(5000), style), None);
    }

    proptest! {
        #[test]
        fn any_text_is_written_or_not_and_never_a_panic(text in "[\\PC{}\\[\\],:\"\\\\0-9.]{0,60}") {
            for style in Style::all().take(20) {
                let _ = write(&text, style);
            }
        }
    }
}
