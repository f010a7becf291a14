//! A captured request out of a file: HTTP/1.1 as text, the body byte for byte.
//!
//! Promises: a file that is something else is refused by line and reason, without showing what stands there; what is
//! taken otherwise than it stands is told. Line ends of the head are CRLF or LF.

use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use bytes::Bytes;

/// The most bytes of the head, and the most headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 256;

/// A request out of a file.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What was taken otherwise than it stands, or is not as it should be.
    pub(super) notes: Vec<String>,
    /// The body has fewer bytes than its length says.
    pub(super) is_cut: bool,
}

/// Reads a request; the error says which line is wrong and what to do.
pub(super) fn read(file: &[u8]) -> Result<Capture, String> {
    let (head, body) = split(file)?;
    let head = std::str::from_utf8(head).map_err(|_| "the lines before the body are not text".to_owned())?;
    let mut lines = head.lines().enumerate();
    let (_, first) = lines.next().unwrap_or_default();
    let mut notes = Vec::new();
    let (method, target) = request_line(first, &mut notes)?;
    let mut headers = HeaderMap::new();
    for (number, line) in lines {
        if headers.len() == HEADERS_MAX {
            return Err(format!("there are more than {HEADERS_MAX} headers"));
        }
        let (name, value) = header(line).map_err(|why| format!("line {} {why}", number + 1))?;
        headers.append(name, value);
    }
    let mut capture = Capture { method, target, headers, body: Bytes::copy_from_slice(body), notes, is_cut: false };
    capture.frame();
    Ok(capture)
}

fn split(file: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    if file.trim_ascii().is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut from = 0;
    while let Some(at) = file[from..].iter().position(|&byte| byte == b'\n') {
        let end = from + at + 1;
        let rest = &file[end..];
        let blank = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        if blank > 0 {
            return Ok((&file[..end], &rest[blank..]));
        }
        if end > HEAD_BYTES_MAX {
            return Err(format!("there is no empty line within {HEAD_BYTES_MAX} bytes: it parts headers from body"));
        }
        from = end;
    }
    match file.first() {
        Some(b'{' | b'[' | b'<') => Err("it holds a body alone: put the request line, the headers and an empty line \
                                         before it, as they came"
            .to_owned()),
        // a request without a body may end with its head
        _ => Ok((file, b"")),
    }
}

fn request_line(line: &str, notes: &mut Vec<String>) -> Result<(Method, String), String> {
    if line.starts_with("HTTP/") {
        return Err("line 1 begins with HTTP/, so this is a response: the request is what is needed".to_owned());
    }
    if line.starts_with("curl ") || line.starts_with("$ ") {
        return Err("line 1 is a command: write the request itself, POST /in/NAME HTTP/1.1 and so on".to_owned());
    }
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err("line 1 is no request line: write it as POST /in/NAME HTTP/1.1".to_owned());
    };
    let is_method = method.bytes().all(|byte| byte.is_ascii_uppercase());
    let method = method.parse::<Method>().ok().filter(|_| is_method);
    let method = method.ok_or("line 1 begins with no method: write it as POST /in/NAME HTTP/1.1")?;
    match words.next() {
        Some(version) if !version.starts_with("HTTP/") => {
            return Err("line 1 has a blank in its address: write that as %20".to_owned());
        }
        Some("HTTP/2" | "HTTP/2.0" | "HTTP/3") => {
            notes.push("it came by HTTP/2 or 3, which changes nothing here".into());
        }
        _ => {}
    }
    let target = match target.split_once("://") {
        Some((_, rest)) => {
            notes.push("line 1 holds a whole address, of which path and query count".to_owned());
            rest.find('/').map_or("/", |at| &rest[at..]).to_owned()
        }
        None => target.to_owned(),
    };
    if !target.starts_with('/') {
        return Err("line 1 has an address that does not begin with `/`".to_owned());
    }
    Ok((method, target))
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), String> {
    if line.starts_with([' ', '\t']) {
        return Err("begins with a blank: write each header on one line".to_owned());
    }
    if line.starts_with(':') {
        return Err("begins with a colon, as HTTP/2 writes method and path: write them as the request line".to_owned());
    }
    let (name, value) = line
        .split_once(':')
        .ok_or("is no header: write `Name: value`, and an empty line before the body (the line is not shown)")?;
    let name = name.parse().map_err(|_| "has a header's name with characters that none may have".to_owned())?;
    let value = HeaderValue::from_str(value.trim_matches([' ', '\t']))
        .or_else(|_| HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes()))
        .map_err(|_| format!("has a value of `{name}` with characters that none may have"))?;
    Ok((name, value))
}

impl Capture {
    /// What of the rest of the file is the body.
    fn frame(&mut self) {
        let says = |name| self.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if says(TRANSFER_ENCODING).is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            match unchunked(&self.body) {
                Some(body) => {
                    self.body = body.into();
                    self.notes.push("the body came in chunks, which are put together".to_owned());
                }
                None => self.notes.push(
                    "`transfer-encoding` says chunked, and the body is in no chunks: taken as it stands".to_owned(),
                ),
            }
            return;
        }
        let Some(length) = says(CONTENT_LENGTH).and_then(|text| text.trim().parse::<usize>().ok()) else { return };
        let found = self.body.len();
        if found > length {
            let rest = self.body.split_off(length);
            let what = if rest.trim_ascii().is_empty() { "a line end, as editors add" } else { "not of the request" };
            self.notes.push(format!("{} bytes behind `content-length` are left out: {what}", rest.len()));
        } else if found < length {
            self.is_cut = true;
            self.notes.push(format!(
                "the body has {found} bytes, and `content-length` says {length}: it was cut, or its line ends were changed"
            ));
        }
    }
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?.trim();
        let length = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[end + 1..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..length)?);
        rest = rest.get(length..)?;
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_read_with_either_line_end_and_its_body_untouched() {
        for end in ["\n", "\r\n"] {
            let file = ["POST /in/a?x=1 HTTP/1.1", "X-A:  b ", "x-a: c", "", "{\r\n} \n"].join(end);
            let capture = read(file.as_bytes()).expect("a request");
            assert_eq!((capture.method, capture.target.as_str()), (Method::POST, "/in/a?x=1"));
            assert_eq!(capture.headers.get_all("x-a").count(), 2);
            assert_eq!(&capture.body[..], b"{\r\n} \n");
            assert_eq!(capture.notes, Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_no_request_is_refused_by_line_and_reason() {
        for (file, expected) in [
            ("", "it is empty"),
            ("{\"id\":1}", "a body alone"),
            ("HTTP/1.1 200 OK\n\n", "a response"),
            ("curl -d x http://a\n\n", "a command"),
            ("post /in/a HTTP/1.1\n\n", "no method"),
            ("POST in/a HTTP/1.1\n\n", "does not begin with `/`"),
            ("POST /in/a b HTTP/1.1\n\n", "blank in its address"),
            ("POST /in/a HTTP/1.1\nA: b\n c\n\n", "line 3 begins with a blank"),
            ("POST /in/a HTTP/1.1\n:path: /in/a\n\n", "line 2 begins with a colon"),
            ("POST /in/a HTTP/1.1\nnonsense\n\n", "line 2 is no header"),
            ("POST /in/a HTTP/1.1\na b: c\n\n", "line 2 has a header's name"),
        ] {
            let error = read(file.as_bytes()).expect_err(file);
            assert!(error.contains(expected), "{file:?}: {error}");
        }
    }

    #[test]
    fn the_body_is_as_long_as_it_says_or_that_is_told() {
        let capture = |text: &str| read(text.as_bytes()).expect("a request");
        let long = capture("POST /in/a HTTP/1.1\nContent-Length: 2\n\n{}\n");
        assert_eq!((&long.body[..], long.notes.len(), long.is_cut), (&b"{}"[..], 1, false));
        let short = capture("POST /in/a HTTP/1.1\nContent-Length: 3\n\n{}");
        assert_eq!((&short.body[..], short.notes.len(), short.is_cut), (&b"{}"[..], 1, true));
        let chunked = capture("POST /in/a HTTP/1.1\nTransfer-Encoding: chunked\n\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n");
        assert_eq!(&chunked.body[..], b"{}");
        let unchunked = capture("POST /in/a HTTP/1.1\nTransfer-Encoding: chunked\n\n{}");
        assert_eq!((&unchunked.body[..], unchunked.notes.len()), (&b"{}"[..], 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = read(&bytes);
            let _ = read(&[b"POST /in/a HTTP/1.1\ntransfer-encoding: chunked\n\n", &bytes[..]].concat());
        }
    }
}
