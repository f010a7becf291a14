//! A body that is not the one that was signed, but says the same.

use std::io::Read as _;

use actix_web::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use flate2::bufread::GzDecoder;

use super::super::super::spec::{CodingSpec, SignedAs, SourceSpec};
use super::forms::{self, Style};
use super::{Change, Finder, Mistake};

/// Larger bodies are not written anew.
const BYTES_MAX: usize = 1 << 20;

const KEEP: &str = "hand on the bytes as they come: no middleware that parses and writes the body again, and capture \
                    them with a tool that changes nothing (curl: --data-binary)";

/// Line ends, a byte order mark, a packing: what editors, shells and proxies change.
pub(super) fn ends(finder: &mut Finder<'_>) {
    packings(finder);
    let body = &finder.sent().body;
    if body.len() > BYTES_MAX {
        return;
    }
    for (code, what, other) in others(body) {
        if other == *body {
            continue;
        }
        let change = finder.request(|sent| sent.body = other);
        finder.attempt(&change, || Mistake::certain(code, format!("the sender signed the body {what}"), KEEP));
    }
}

fn others(body: &[u8]) -> Vec<(&'static str, &'static str, Bytes)> {
    let mut all: Vec<(&'static str, &'static str, Bytes)> = Vec::new();
    let mut add = |code, what, bytes: Vec<u8>| all.push((code, what, bytes.into()));
    let trimmed = body.trim_ascii_end();
    add("body-end", "without the line end or blanks at its end", trimmed.to_vec());
    add("body-end", "without the last byte, a line end", body.strip_suffix(b"\n").unwrap_or(body).to_vec());
    add("body-end", "with a line end behind it", [body, b"\n"].concat());
    add("body-end", "with a line end (CRLF) behind it", [body, b"\r\n"].concat());
    let text = body.replace(b"\r\n", b"\n");
    let crlf = text.replace(b"\n", b"\r\n");
    add("line-ends", "with the line ends LF, and CRLF came", text.clone());
    add("line-ends", "with the line ends CRLF, and LF came", crlf.clone());
    add("line-ends", "with other line ends and one at its end", [&text[..], b"\n"].concat());
    add("line-ends", "with other line ends and one at its end", [&crlf[..], b"\r\n"].concat());
    const MARK: &[u8] = "\u{feff}".as_bytes();
    match body.strip_prefix(MARK) {
        Some(rest) => add("byte-order-mark", "without the byte order mark before it", rest.to_vec()),
        None => add("byte-order-mark", "with a byte order mark before it", [MARK, body].concat()),
    }
    if let Some(latin) = latin(body) {
        add("charset", "in Latin-1, and UTF-8 came", latin);
    }
    if body.iter().any(|byte| !byte.is_ascii()) {
        let utf8: String = body.iter().map(|&byte| char::from(byte)).collect();
        add("charset", "read as Latin-1 and written as UTF-8", utf8.into_bytes());
    }
    add("form-escapes", "with blanks written `%20`, and `+` came", body.replace(b"+", b"%20"));
    add("form-escapes", "with blanks written `+`, and `%20` came", body.replace(b"%20", b"+"));
    all
}

/// A UTF-8 text as Latin-1, where it has such letters and no others.
fn latin(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_ascii())?;
    text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect()
}

trait Replace {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replace for [u8] {
    fn replace(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        let mut rest = self;
        while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(to);
            rest = &rest[at + from.len()..];
        }
        out.extend_from_slice(rest);
        out
    }
}

fn packings(finder: &mut Finder<'_>) {
    let headers = &finder.sent().headers;
    if headers.contains_key(CONTENT_ENCODING) {
        let change = finder.request(|sent| drop(sent.headers.remove(CONTENT_ENCODING)));
        finder.attempt(&change, || {
            Mistake::certain(
                "body-unpacked",
                "the body is unpacked already, and `content-encoding` still says that it is packed",
                "capture the bytes as they came: something between unpacked the body and left the header",
            )
        });
        for (signed, what) in [(SignedAs::SignedEncoded, "packed"), (SignedAs::SignedDecoded, "unpacked")] {
            let coding = CodingSpec { gzip: Some(signed), deflate: Some(signed) };
            let spec = SourceSpec { content_encoding: Some(coding), ..finder.whole.clone() };
            let change = Change { spec: Some(spec), ..Change::default() };
            let name = super::word(signed);
            finder.attempt(&change, || {
                Mistake::certain(
                    "packing",
                    format!("the sender signed the {what} bytes"),
                    format!("state `content_encoding = {{ gzip = \"{name}\" }}` in the source"),
                )
            });
        }
    }
    let Some(unpacked) = unpacked(&finder.sent().body) else { return };
    let change = finder.request(|sent| {
        sent.body = unpacked;
        sent.headers.remove(CONTENT_ENCODING);
    });
    finder.attempt(&change, || {
        Mistake::certain(
            "packing",
            "the body is packed, and the sender signed the unpacked bytes",
            "state `content_encoding = { gzip = \"signed-decoded\" }` in the source, and let the header \
             `content-encoding` through",
        )
    });
}

fn unpacked(body: &[u8]) -> Option<Bytes> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut out = Vec::new();
    let read = GzDecoder::new(body).take(BYTES_MAX as u64 + 1).read_to_end(&mut out).ok()?;
    (read <= BYTES_MAX).then(|| out.into())
}

/// The body is JSON that something between read and wrote again.
pub(super) fn written_anew(finder: &mut Finder<'_>) {
    let body = finder.sent().body.clone();
    let Some(text) = std::str::from_utf8(&body).ok().filter(|text| text.len() <= BYTES_MAX) else { return };
    for style in Style::all() {
        let Some(written) = forms::write(text, style) else { return };
        if written.as_bytes() == &*body {
            continue;
        }
        let change = finder.request(|sent| sent.body = written.into());
        let found = finder.attempt(&change, || {
            Mistake::certain(
                "body-written-anew",
                format!("the sender signed the body {style}: something between has read it and written it anew"),
                KEEP,
            )
        });
        if found {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_letters_are_changed_both_ways() {
        let has = |body: &[u8], other: &[u8]| others(body).iter().any(|(_, _, found)| *found == *other);
        assert!(has(b"a\nb", b"a\r\nb") && has(b"a\r\nb", b"a\nb"));
        assert!(has(b"{}\n", b"{}") && has(b"{}", b"{}\n"));
        assert!(has("é".as_bytes(), b"\xe9") && has(b"a+b", b"a%20b"));
    }

    #[test]
    fn only_gzip_is_unpacked() {
        assert_eq!(unpacked(b"{}"), None);
        assert_eq!(unpacked(b"\x1f\x8bnonsense"), None);
    }
}
