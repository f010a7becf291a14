//! Reads texts out of requests by itself: JSON pointers, form fields and times, written without a look at the
//! readers they judge, and more lenient than those wherever leniency lets nothing pass.

/// The raw text at a JSON pointer; of two members of one name the last.
pub(crate) fn json_at<'a>(text: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut at = blanks(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let whole = value(at)?;
    at = &at[..whole];
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        at = match at.first()? {
            b'{' => member(at, &token)?,
            b'[' => items(at)?.get(token.parse::<usize>().ok()?).copied()?,
            _ => return None,
        };
    }
    Some(at)
}

/// The items of an array.
pub(crate) fn items(array: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = blanks(array.strip_prefix(b"[")?);
    let mut items = Vec::new();
    while *rest.first()? != b']' {
        let length = value(rest)?;
        items.push(&rest[..length]);
        rest = blanks(&rest[length..]);
        rest = rest.strip_prefix(b",").map_or(rest, blanks);
    }
    Some(items)
}

/// A text, a number or a truth value as text; nothing for `null`.
pub(crate) fn scalar(raw: &[u8]) -> Option<Vec<u8>> {
    match raw.first()? {
        b'"' => serde_json::from_slice::<String>(raw).ok().map(String::into_bytes),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.to_vec()),
    }
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = blanks(object.strip_prefix(b"{")?);
    let mut found = None;
    while *rest.first()? == b'"' {
        let length = value(rest)?;
        let key = serde_json::from_slice::<String>(&rest[..length]).unwrap_or_default();
        rest = blanks(blanks(&rest[length..]).strip_prefix(b":")?);
        let length = value(rest)?;
        if key == name {
            found = Some(&rest[..length]);
        }
        rest = blanks(&rest[length..]);
        rest = rest.strip_prefix(b",").map_or(rest, blanks);
    }
    found
}

/// How long the value is that a text begins with.
fn value(text: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match *text.get(at)? {
            b'"' => {
                at += 1;
                while *text.get(at)? != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' if depth > 0 => at += 1,
            _ => {
                let end = |byte: &u8| b",:]}[{\" \n\r\t".contains(byte);
                let length = text[at..].iter().position(end).unwrap_or(text.len() - at);
                at += length;
                if length == 0 {
                    return None;
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn blanks(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| b" \n\r\t".contains(byte);
    &text[text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len())..]
}

/// Names and values of a form or a query, decoded.
pub(crate) fn fields(form: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let parts = form.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let split = parts.map(|part| {
        let mut halves = part.splitn(2, |byte| *byte == b'=');
        (unescaped(halves.next().unwrap_or_default()), unescaped(halves.next().unwrap_or_default()))
    });
    split.collect()
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let code = text.get(at + 1..at + 3).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match (text[at], code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (b'+', _) => {
                out.push(b' ');
                at += 1;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Milliseconds since 1970 out of a stated time.
pub(crate) fn time_ms(text: &[u8], unit: &str) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    if unit == "iso" {
        return iso_ms(text);
    }
    let number: i128 = text.parse().ok()?;
    Some(match unit {
        "ms" => number,
        "us" => number / 1000,
        _ => number * 1000,
    })
}

fn iso_ms(text: &str) -> Option<i128> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or("", |rest| &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()]);
    let zone = &rest[if digits.is_empty() { 0 } else { digits.len() + 1 }..];
    let zone_minutes = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign, hours @ ..] => {
            let hours: String = hours.iter().map(|byte| char::from(*byte)).filter(|letter| *letter != ':').collect();
            let minutes = hours.get(..2)?.parse::<i64>().ok()? * 60 + hours.get(2..4)?.parse::<i64>().ok()?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        [] => return None,
    };
    // days since 1970 of a civil date, counted from March
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
            - 719_469;
    let seconds = ((days * 24 + hour) * 60 + minute - zone_minutes) * 60 + second;
    let ms = format!("{digits:0<3}").get(..3)?.parse::<i64>().ok()?;
    Some(i128::from(seconds * 1000 + ms))
}

#[test]
fn its_own_readers_read_what_they_say() {
    let text = br#" {"a":[1,{"b\u002f":"x\"y"}],"a2":null,"c":{"d":true}} "#;
    assert_eq!(json_at(text, "/a/1/b~1").and_then(scalar).as_deref(), Some(&b"x\"y"[..]));
    assert_eq!(json_at(text, "/c/d").and_then(scalar).as_deref(), Some(&b"true"[..]));
    assert_eq!(json_at(text, "/a2").and_then(scalar), None);
    assert_eq!(json_at(text, "/a/2"), None);
    assert_eq!(items(b"[ 1 ,[2], \"a]\" ]").map(|items| items.len()), Some(3));
    let deep = [&b"{\"a\":"[..], &b"[".repeat(100_000), &b"]".repeat(100_000), b",\"b\":7}"].concat();
    assert_eq!(json_at(&deep, "/b"), Some(&b"7"[..]));
    assert_eq!(fields(b"a%2Bb=c+d&e"), [(b"a+b".to_vec(), b"c d".to_vec()), (b"e".to_vec(), Vec::new())]);
    let expected = Some(1_714_979_289_123);
    for text in ["2024-05-06T07:08:09.123Z", "2024-05-06T09:08:09.123456+02:00", "2024-05-06 02:08:09.1239-0500"] {
        assert_eq!(time_ms(text.as_bytes(), "iso"), expected, "{text}");
    }
    assert_eq!(time_ms(b"1714979289", "s"), Some(1_714_979_289_000));
    assert_eq!(time_ms(b"x", "s"), None);
}
