//! Lines that fit a terminal of 100 columns, whatever their text is.

use std::io::{self, Write};

use crate::config::redact::printable;

const COLUMNS: usize = 100;
/// The most characters of one text.
const CHARS_MAX: usize = 4_000;

/// Writes a label and a text beside it, in as many lines as it takes.
pub(super) fn labelled(out: &mut impl Write, label: &str, width: usize, text: &str) -> io::Result<()> {
    let lines = lines(text, COLUMNS.saturating_sub(width));
    for (number, line) in lines.iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        writeln!(out, "{}", format!("{label:<width$}{line}").trim_end())?;
    }
    Ok(())
}

/// A text in lines of at most so many characters: at blanks where there are some, else anywhere.
pub(super) fn lines(text: &str, width: usize) -> Vec<String> {
    let text = printable(text, CHARS_MAX);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let mut word = word;
        let mut count = word.chars().count();
        if length > 0 && length + 1 + count > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 || line.ends_with(' ') {
            line.push(' ');
            length += 1;
        }
        while count > width {
            let end = word.char_indices().nth(width).map_or(word.len(), |(end, _)| end);
            lines.push(word[..end].to_owned());
            word = &word[end..];
            count -= width;
        }
        line.push_str(word);
        length += count;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_long_words_anywhere() {
        assert_eq!(lines("a bc def", 4), ["a bc", "def"]);
        assert_eq!(lines("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(lines("", 3), [""]);
    }

    #[test]
    fn a_label_stands_beside_the_first_line() {
        let mut out = Vec::new();
        labelled(&mut out, "key", 96, "body:/id x").expect("written");
        assert_eq!(String::from_utf8(out).expect("text").lines().next(), Some(format!("{:<96}body", "key").as_str()));
    }
}
