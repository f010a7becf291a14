//! What a sender signs: fixed text and parts of the request, as bytes.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::{Problem, Reason, Request};

/// The most pieces a template may have.
const PIECES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Body,
    Timestamp,
    Id,
    Header(HeaderName),
    Method,
    Url,
    Target,
}

/// The signed bytes as a list of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

/// What the pieces stand for in one request.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) body: &'a [u8],
    pub(super) timestamp: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) headers: &'a HeaderMap,
    pub(super) method: &'a str,
    pub(super) origin: &'a str,
    pub(super) target: &'a str,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let problem = |message: String| Problem::new("verify.signed", message);
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            if !before.is_empty() {
                pieces.push(Piece::Text(before.as_bytes().to_vec()));
            }
            let Some((token, tail)) = after[1..].split_once('}') else {
                return Err(problem(format!("has a `{{` without `}}` in {text:?}: close it")));
            };
            pieces.push(token_piece(token).map_err(problem)?);
            rest = tail;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.as_bytes().to_vec()));
        }
        if pieces.len() > PIECES_MAX {
            return Err(problem(format!("has more than {PIECES_MAX} pieces: shorten it")));
        }
        if !pieces.contains(&Piece::Body) {
            return Err(problem("leaves out `{body}`, so anyone could change the event: add it".to_owned()));
        }
        Ok(Self { pieces })
    }

    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.pieces.contains(piece)
    }

    /// The headers it signs.
    pub(super) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Header(name) => Some(name),
            _ => None,
        })
    }

    /// Hands the signed bytes to `sink`, piece after piece.
    pub(super) fn feed(&self, parts: Parts<'_>, mut sink: impl FnMut(&[u8])) -> Result<(), Reason> {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sink(text),
                Piece::Body => sink(parts.body),
                Piece::Timestamp => sink(parts.timestamp),
                Piece::Id => sink(parts.id),
                Piece::Header(name) => sink(trimmed(one(parts.headers, name)?.ok_or(Reason::MissingHeader)?)),
                Piece::Method => sink(parts.method.as_bytes()),
                Piece::Url => {
                    sink(parts.origin.as_bytes());
                    sink(parts.target.as_bytes());
                }
                Piece::Target => sink(parts.target.as_bytes()),
            }
        }
        Ok(())
    }
}

fn token_piece(token: &str) -> Result<Piece, String> {
    match token {
        "body" => Ok(Piece::Body),
        "timestamp" => Ok(Piece::Timestamp),
        "id" => Ok(Piece::Id),
        "method" => Ok(Piece::Method),
        "url" => Ok(Piece::Url),
        "target" => Ok(Piece::Target),
        _ => match token.strip_prefix("header:").map(str::parse) {
            Some(Ok(name)) => Ok(Piece::Header(name)),
            Some(Err(_)) => Err(format!("names a header that cannot exist in `{{{token}}}`")),
            None => Err(format!(
                "has an unknown piece `{{{token}}}`: use body, timestamp, id, header:name, method, url or target"
            )),
        },
    }
}

impl<'a> Parts<'a> {
    pub(super) fn of(request: &Request<'a>, origin: &'a str) -> Self {
        Self {
            body: request.body,
            timestamp: b"",
            id: b"",
            headers: request.headers,
            method: request.method.as_str(),
            origin,
            target: request.target,
        }
    }
}

/// The header's only value: two values may be read differently by a proxy and by us.
pub(in super::super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Reason> {
    let mut values = headers.get_all(name);
    let first = values.next();
    if values.next().is_some() {
        return Err(Reason::DuplicateHeader);
    }
    Ok(first)
}

/// A header's value without the blanks around it, which belong to the transport.
pub(in super::super) fn trimmed(value: &HeaderValue) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let bytes = value.as_bytes();
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_its_pieces() {
        let template = Template::parse("v0:{timestamp}:{body}").expect("a template");
        assert!(template.has(&Piece::Timestamp));
        assert_eq!(template.pieces.len(), 4);
    }

    #[test]
    fn a_template_without_the_body_or_with_unknown_pieces_is_refused() {
        for text in ["{timestamp}", "{body", "{json:/a}{body}", "{header:a b}{body}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
