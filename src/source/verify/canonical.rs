//! Texts that senders make out of a request before they sign it: sorted forms, rewritten addresses, checksums.

use actix_web::http::header::{HeaderMap, HeaderName};

use super::super::form;
use super::super::{Reason, Request};
use super::place::{is_form, one, trimmed};

/// The most fields of a form that is signed field by field.
const PAIRS_MAX: usize = 1_000;

fn pairs(body: &[u8]) -> Result<Vec<(String, String)>, Reason> {
    let mut pairs = Vec::new();
    for pair in body.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == PAIRS_MAX {
            return Err(Reason::MalformedBody);
        }
        let split = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = split.map_or((pair, b"".as_slice()), |at| (&pair[..at], &pair[at + 1..]));
        let text = |bytes| form::decode(bytes).ok_or(Reason::MalformedBody);
        pairs.push((text(name)?, text(value)?));
    }
    Ok(pairs)
}

/// Whether the fields are what counts of this body: not where another content type is stated.
pub(super) fn has_fields(headers: &HeaderMap) -> bool {
    is_form(headers) || !headers.contains_key(actix_web::http::header::CONTENT_TYPE)
}

/// Each name and value, names sorted, the values of one name sorted and each once. Nothing for a body that is no form.
pub(super) fn form_sorted(request: &Request<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
    if !has_fields(request.headers) {
        return Ok(());
    }
    let mut pairs = pairs(request.body)?;
    pairs.sort_unstable();
    pairs.dedup();
    for (name, value) in &pairs {
        sink(name.as_bytes());
        sink(value.as_bytes());
    }
    Ok(())
}

/// All fields but one in PHP's `serialize` form, sorted by name.
pub(super) fn form_php(body: &[u8], without: Option<&str>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
    let mut pairs = pairs(body)?;
    pairs.retain(|(name, _)| Some(name.as_str()) != without);
    pairs.sort_unstable();
    // PHP keeps the last of two, another reader may keep the first
    if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(Reason::MalformedBody);
    }
    sink(format!("a:{}:{{", pairs.len()).as_bytes());
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        sink(format!("s:{}:\"", text.len()).as_bytes());
        sink(text.as_bytes());
        sink(b"\";");
    }
    sink(b"}");
    Ok(())
}

/// An address with those escapes undone that HubSpot undoes before it signs.
pub(super) fn hubspot(url: &str, sink: &mut dyn FnMut(&[u8])) {
    const UNDONE: [(&[u8; 2], &[u8; 1]); 12] = [
        (b"3A", b":"),
        (b"2F", b"/"),
        (b"3F", b"?"),
        (b"40", b"@"),
        (b"21", b"!"),
        (b"24", b"$"),
        (b"27", b"'"),
        (b"28", b"("),
        (b"29", b")"),
        (b"2A", b"*"),
        (b"2C", b","),
        (b"3B", b";"),
    ];
    let mut rest = url.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        sink(&rest[..at]);
        let escape = rest.get(at + 1..at + 3).unwrap_or_default();
        match UNDONE.iter().find(|(code, _)| escape.eq_ignore_ascii_case(*code)) {
            Some((_, byte)) => {
                sink(*byte);
                rest = &rest[at + 3..];
            }
            None => {
                sink(b"%");
                rest = &rest[at + 1..];
            }
        }
    }
    sink(rest);
}

/// The CRC-32 of PNG and zip.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    let mut first = 0_u32;
    while at < 256 {
        let mut sum = first;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
        first += 1;
    }
    table
}

/// The most headers in a list of signed headers.
const LISTED_MAX: usize = 64;

/// Contentful: method, path, listed headers and body. The list has to name itself and the time.
pub(super) fn contentful(request: &Request<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
    let list = HeaderName::from_static("x-contentful-signed-headers");
    let list = one(request.headers, &list)?.ok_or(Reason::MissingHeader)?;
    let list = list.to_str().map_err(|_| Reason::MalformedSignature)?;
    let mut names: Vec<&str> = list.split(',').map(str::trim).collect();
    names.sort_unstable();
    let listed = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    if names.len() > LISTED_MAX || !listed("x-contentful-signed-headers") || !listed("x-contentful-timestamp") {
        return Err(Reason::MalformedSignature);
    }
    sink(request.method.as_str().as_bytes());
    sink(b"\n");
    contentful_path(request.target, sink);
    sink(b"\n");
    for (place, name) in names.iter().enumerate() {
        let header: HeaderName = name.parse().map_err(|_| Reason::MalformedSignature)?;
        let value = one(request.headers, &header)?.ok_or(Reason::MissingHeader)?;
        if place > 0 {
            sink(b";");
        }
        sink(header.as_str().as_bytes());
        sink(b":");
        sink(trimmed(value));
    }
    sink(b"\n");
    sink(request.body);
    Ok(())
}

/// The path escaped like a URI, the query escaped before as a component, so twice in all.
fn contentful_path(target: &str, sink: &mut dyn FnMut(&[u8])) {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let in_uri = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'();/?:@&=+$,#".contains(&byte);
    let in_component = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    for byte in path.bytes() {
        if in_uri(byte) { sink(&[byte]) } else { sink(format!("%{byte:02X}").as_bytes()) }
    }
    let Some(query) = query.filter(|query| !query.is_empty()) else { return };
    sink(b"?");
    for byte in query.bytes() {
        if in_component(byte) { sink(&[byte]) } else { sink(format!("%25{byte:02X}").as_bytes()) }
    }
}

/// The addresses a sender may have signed: as stated, without the port, with the scheme's own port.
pub(super) fn any_port(origin: &str) -> Vec<String> {
    let mut all = vec![origin.to_owned()];
    let Some((scheme, rest)) = origin.split_once("://") else { return all };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let own = if scheme == "https" { 443 } else { 80 };
    for other in [format!("{scheme}://{host}{path}"), format!("{scheme}://{host}:{own}{path}")] {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
        let mut out = Vec::new();
        write(&mut |bytes| out.extend_from_slice(bytes));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn ports_are_left_out_and_added() {
        assert_eq!(any_port("https://a.example"), ["https://a.example", "https://a.example:443"]);
        assert_eq!(any_port("http://a:1/x"), ["http://a:1/x", "http://a/x", "http://a:80/x"]);
        assert_eq!(any_port("nothing"), ["nothing"]);
    }

    #[test]
    fn only_the_named_escapes_are_undone() {
        assert_eq!(written(|sink| hubspot("a%40b%2fc%26%4", sink)), "a@b/c%26%4");
    }

    #[test]
    fn a_form_is_written_as_php_writes_it() {
        let text = written(|sink| form_php(b"b=2&a=%C3%A9&sig=x", Some("sig"), sink).expect("a form"));
        assert_eq!(text, "a:2:{s:1:\"a\";s:2:\"é\";s:1:\"b\";s:1:\"2\";}");
        assert_eq!(form_php(b"a=1&a=2", None, &mut |_| {}), Err(Reason::MalformedBody));
    }

    #[test]
    fn too_many_fields_are_refused() {
        assert_eq!(form_php(&b"a=1&".repeat(PAIRS_MAX + 1), None, &mut |_| {}), Err(Reason::MalformedBody));
    }
}
