//! Form-encoded bodies: the wanted fields, decoded.

use smallvec::SmallVec;

/// The wanted fields' texts, in the order they were asked for.
pub(super) type Fields = SmallVec<[Option<String>; 4]>;

/// Why a form gives no fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormFault {
    /// A wanted field comes twice.
    Duplicate(String),
    /// A wanted field is not UTF-8.
    NotText(String),
}

/// Reads the fields `wanted` out of `application/x-www-form-urlencoded` bytes.
pub(super) fn read(body: &[u8], wanted: &[String]) -> Result<Fields, FormFault> {
    let mut fields = Fields::from_elem(None, wanted.len());
    if wanted.is_empty() {
        return Ok(fields);
    }
    for pair in body.split(|&byte| byte == b'&') {
        let split = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = split.map_or((pair, b"".as_slice()), |at| (&pair[..at], &pair[at + 1..]));
        let Some(name) = decode(name) else { continue };
        let Some(place) = wanted.iter().position(|field| *field == name) else { continue };
        let Some(value) = decode(value) else { return Err(FormFault::NotText(name)) };
        if fields[place].replace(value).is_some() {
            return Err(FormFault::Duplicate(name));
        }
    }
    Ok(fields)
}

/// Undoes percent encoding; a `%` that begins no escape stands for itself.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(b'%'),
            },
            (byte, _) => out.push(*byte),
        }
    }
    String::from_utf8(out).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(body: &str) -> Result<Option<String>, FormFault> {
        read(body.as_bytes(), &["payload".to_owned()]).map(|mut fields| fields[0].take())
    }

    #[test]
    fn a_field_is_decoded() {
        assert_eq!(one("x=1&payload=%7B%22a%22%3A%22a+b%2Bc%22%7D"), Ok(Some(r#"{"a":"a b+c"}"#.to_owned())));
        assert_eq!(one("pay%6Coad=100%"), Ok(Some("100%".to_owned())));
        assert_eq!(one("payload"), Ok(Some(String::new())));
        assert_eq!(one(""), Ok(None));
    }

    #[test]
    fn a_wanted_field_twice_or_out_of_text_is_a_fault() {
        assert_eq!(one("payload=1&payload=2"), Err(FormFault::Duplicate("payload".to_owned())));
        assert_eq!(one("payload=%ff"), Err(FormFault::NotText("payload".to_owned())));
        assert_eq!(one("x=1&x=2&y=%ff"), Ok(None));
    }
}
