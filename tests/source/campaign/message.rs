//! What a signed message (RFC 9421) claims: the components that its input lists, as they stand in the request.

use super::claim::{Claim, query_of};
use super::wire::Wire;

/// A message signature covers the components that its input lists, and what the input says of itself.
pub(crate) fn claims(wire: &Wire) -> Vec<Claim> {
    let header = |name| wire.value(name).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
    let (input, signatures) = (header("signature-input"), header("signature"));
    let claim = |member: &str| {
        let (label, input) = member.split_once('=')?;
        let named = |member: &&str| member.split_once('=').is_some_and(|(known, _)| known == label);
        let signature = members(&signatures).into_iter().find(named)?[label.len() + 1..].trim().as_bytes().to_vec();
        let number = |at: usize| input[at..].bytes().take_while(u8::is_ascii_digit).collect::<Vec<u8>>();
        let time = input.find("created=").map(|at| number(at + 8));
        Some(Claim { signed: components(input, wire), signatures: vec![signature], time })
    };
    members(&input).into_iter().filter_map(claim).collect()
}

fn components(input: &str, wire: &Wire) -> Vec<u8> {
    let mut out = input.as_bytes().to_vec();
    for name in input.split('"').skip(1).step_by(2).filter(|name| !name.is_empty()) {
        match name {
            "@method" => out.extend_from_slice(wire.method.as_bytes()),
            "@path" => out.extend_from_slice(wire.target.split('?').next().unwrap_or_default().as_bytes()),
            "@query" | "@query-param" => out.extend_from_slice(query_of(wire).as_bytes()),
            // these are the source's own settings
            "@authority" | "@scheme" => {}
            "content-digest" => out.extend_from_slice(&wire.body),
            _ if name.starts_with('@') => out.extend_from_slice(wire.target.as_bytes()),
            _ => {}
        }
        wire.values(name).iter().for_each(|value| out.extend_from_slice(&[b"\n", *value].concat()));
    }
    out
}

/// What stands between commas that are neither quoted nor in brackets.
fn members(text: &str) -> Vec<&str> {
    let (mut members, mut from, mut quoted, mut depth) = (Vec::new(), 0, false, 0_u32);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                members.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    members.push(text[from..].trim());
    members
}
