//! Printing: tables, fields, bodies and JSON, safe for a terminal whatever the text is.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

use crate::config::Problem;
use crate::config::redact::{hides, printable};

/// The most characters of a cell.
const CELL_CHARS_MAX: usize = 64;
/// The most bytes of a body that are shown; `--raw` writes all.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// What a cell without a value shows.
pub(super) const NONE: &str = "-";

/// Says on standard error what went wrong.
pub(super) fn error(message: &str) {
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(io::stderr().lock(), "error: {}", visible(message));
}

/// Says on standard error everything that is wrong with the settings.
pub(super) fn problems(problems: &[Problem]) {
    problems_of("the settings have", problems);
}

/// Says on standard error everything that is wrong with something.
pub(super) fn problems_of(what_has: &str, problems: &[Problem]) {
    let mut stderr = io::stderr().lock();
    let count = problems.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    // As above.
    let _ = writeln!(stderr, "error: {what_has} {count} {noun}");
    for problem in problems {
        let _ = writeln!(stderr, "  {}", visible(&problem.to_string()));
    }
}

/// Says on standard error what is allowed, but should be known.
pub(super) fn warnings<T: Display>(warnings: &[T]) {
    for warning in warnings {
        let _ = writeln!(io::stderr().lock(), "warning: {}", visible(&warning.to_string()));
    }
}

/// Milliseconds since 1970 as RFC 3339 in UTC.
pub(super) fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |time| format!("{time:.3}"))
}

/// A text for a table's cell.
pub(super) fn cell(text: &str) -> String {
    if text.is_empty() { NONE.to_owned() } else { printable(text, CELL_CHARS_MAX) }
}

/// Rows under a header, each column as wide as its widest cell.
pub(super) fn table<const N: usize>(out: &mut impl Write, header: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let mut widths = header.map(|name| name.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    line(out, &header.map(str::to_owned), &widths)?;
    rows.iter().try_for_each(|row| line(out, row, &widths))
}

fn line<const N: usize>(out: &mut impl Write, cells: &[String; N], widths: &[usize; N]) -> io::Result<()> {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let number = cell.bytes().next().is_some_and(|first| first.is_ascii_digit())
            && cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'%');
        if number {
            text.push_str(&format!("{cell:>width$}  "));
        } else {
            text.push_str(&format!("{cell:<width$}  "));
        }
    }
    writeln!(out, "{}", text.trim_end())
}

/// Names and values, one a line.
pub(super) fn fields(out: &mut impl Write, fields: &[(&str, String)]) -> io::Result<()> {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    fields.iter().try_for_each(|(name, value)| writeln!(out, "{name:<width$}  {}", printable(value, 1024)))
}

/// A body: indented text where it is text, else bytes in hexadecimal.
pub(super) fn body(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let shown = &bytes[..bytes.len().min(BODY_BYTES_MAX)];
    match std::str::from_utf8(bytes) {
        // Cut on a byte, so that a cut character shows as such.
        Ok(_) => String::from_utf8_lossy(shown).lines().try_for_each(|line| writeln!(out, "  {}", visible(line)))?,
        Err(_) => hex_dump(out, shown)?,
    }
    if shown.len() < bytes.len() {
        writeln!(out, "… {} bytes more: --raw writes them all", bytes.len() - shown.len())?;
    }
    Ok(())
}

fn hex_dump(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    for (number, chunk) in bytes.chunks(16).enumerate() {
        let hexed: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            chunk.iter().map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }).collect();
        writeln!(out, "  {:08x}  {:<47}  {text}", number * 16, hexed.join(" "))?;
    }
    Ok(())
}

/// A value as indented JSON in which nothing hides.
pub(super) fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    safe_json(out, &serde_json::to_string_pretty(value).map_err(io::Error::other)?)
}

/// The same on one line.
pub(super) fn json_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    safe_json(out, &serde_json::to_string(value).map_err(io::Error::other)?)
}

fn safe_json(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        // Outside of strings JSON has no such characters but line ends.
        if hides(character) && character != '\n' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
    }
    writeln!(out, "{safe}")
}

fn visible(text: &str) -> String {
    printable(text, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        body(&mut out, bytes).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_body_cannot_steer_the_terminal() {
        assert_eq!(shown(b"{\n\"a\": \"\x1b[2J\"\n}"), "  {\n  \"a\": \"\\u{1b}[2J\"\n  }\n");
        assert_eq!(shown("a\u{202e}b".as_bytes()), "  a\\u{202e}b\n");
    }

    #[test]
    fn a_body_that_is_no_text_is_shown_in_hexadecimal() {
        assert_eq!(shown(b"\xff\x00A"), "  00000000  ff 00 41                                         ..A\n");
    }

    #[test]
    fn a_long_body_is_cut_and_says_so() {
        assert!(shown(&vec![b'a'; BODY_BYTES_MAX + 5]).ends_with("… 5 bytes more: --raw writes them all\n"));
    }

    #[test]
    fn json_hides_nothing_and_stays_json() {
        let mut out = Vec::new();
        json(&mut out, &["a\u{202e}\u{e0001}\u{7f}"]).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("a\\u202e\\udb40\\udc01\\u007f"), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).expect("JSON"), ["a\u{202e}\u{e0001}\u{7f}"]);
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let mut out = Vec::new();
        let rows = [["a".to_owned(), "7".to_owned()], ["long".to_owned(), "1234".to_owned()]];
        table(&mut out, ["NAME", "N"], &rows).expect("written");
        assert_eq!(String::from_utf8(out).expect("text"), "NAME  N\na        7\nlong  1234\n");
    }

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(time(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
    }
}
