//! What a sender signs: fixed text and parts of the request, as bytes.

use std::collections::BTreeMap;

use actix_web::http::header::HeaderName;
use sha2::{Digest as _, Sha256};

use super::super::{Problem, Reason, Request};
use super::canonical;
use super::header::pair;
use super::place::{Needs, Place, View, one, trimmed};

/// The most pieces a template may have.
const PIECES_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Body,
    BodySha256,
    BodyCrc32,
    Timestamp,
    Id,
    /// A pair of the signature's text.
    Pair(String),
    /// A text of the request; empty where it is not there and need not be.
    Field {
        place: Place,
        optional: bool,
    },
    /// `name\nvalue\n` for each, those that are not there and need not be left out.
    Lines(Vec<Line>),
    FormSorted,
    FormPhp,
    Method,
    Url,
    UrlHubspot,
    Path,
    Target,
    Secret,
    Contentful,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    name: String,
    place: Place,
    optional: bool,
}

/// The signed bytes as a list of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

/// What the pieces stand for in one request.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) view: View<'a>,
    pub(super) timestamp: &'a [u8],
    pub(super) id: &'a [u8],
    /// The signature's text and what parts its pairs.
    pub(super) pairs: (&'a str, char),
    pub(super) origin: &'a str,
    pub(super) secret: &'a [u8],
    /// The form field that holds the signature, and so is not signed.
    pub(super) signature_field: Option<&'a str>,
}

/// What a template is made with.
pub(super) struct Making<'m> {
    pub(super) needs: &'m mut Needs,
    pub(super) config: &'m BTreeMap<String, String>,
    /// The table's key, for problems.
    pub(super) key: &'m str,
}

impl Making<'_> {
    /// The text of `{config:name}`.
    pub(super) fn config(&self, name: &str) -> Result<&str, Problem> {
        let text = self.config.get(name).map(String::as_str).unwrap_or_default();
        if text.is_empty() {
            let message = format!("refers to `config.{name}`, which is missing: add it to the source's `config`");
            return Err(Problem::new(self.key, message));
        }
        Ok(text)
    }

    /// A text in which each `{config:name}` is replaced.
    pub(super) fn configured(&self, text: &str) -> Result<String, Problem> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{config:") {
            out.push_str(before);
            let Some((name, tail)) = after.split_once('}') else {
                return Err(Problem::new(self.key, format!("has a `{{` without `}}` in {text:?}: close it")));
            };
            out.push_str(self.config(name)?);
            rest = tail;
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl Template {
    pub(super) fn parse(text: &str, making: &mut Making<'_>) -> Result<Self, Problem> {
        let key = making.key.to_owned();
        let problem = |message: String| Problem::new(&key, message);
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
            pieces.push(match token.strip_prefix("config:") {
                Some(name) => Piece::Text(making.config(name)?.as_bytes().to_vec()),
                None => token_piece(token, making.needs).map_err(problem)?,
            });
            rest = tail;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.as_bytes().to_vec()));
        }
        if pieces.len() > PIECES_MAX {
            return Err(problem(format!("has more than {PIECES_MAX} pieces: shorten it")));
        }
        Ok(Self { pieces })
    }

    pub(super) fn contentful() -> Self {
        Self { pieces: vec![Piece::Contentful] }
    }

    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.pieces.contains(piece)
    }

    /// Whether the whole body is part of it, in one form or another.
    pub(super) fn covers_body(&self) -> bool {
        let covers =
            [Piece::Body, Piece::BodySha256, Piece::BodyCrc32, Piece::FormSorted, Piece::FormPhp, Piece::Contentful];
        covers.iter().any(|piece| self.has(piece))
    }

    /// Whether it signs this place.
    pub(super) fn signs(&self, wanted: &Place) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Field { place, .. } if place == wanted))
    }

    /// The headers it signs.
    pub(super) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field { place: Place::Header(name), .. } => Some(name),
            _ => None,
        })
    }

    /// Whether it reads the current item.
    pub(super) fn reads_item(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Field { place: Place::Item(_), .. }))
    }

    /// Hands the signed bytes to `sink`, piece after piece.
    pub(super) fn feed(&self, parts: &Parts<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
        for piece in &self.pieces {
            piece.feed(parts, sink)?;
        }
        Ok(())
    }
}

impl Piece {
    fn feed(&self, parts: &Parts<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
        let request = parts.request;
        match self {
            Self::Text(text) => sink(text),
            Self::Body => sink(request.body),
            Self::BodySha256 => sink(hex::encode(Sha256::digest(request.body)).as_bytes()),
            Self::BodyCrc32 => sink(canonical::crc32(request.body).to_string().as_bytes()),
            Self::Timestamp => sink(parts.timestamp),
            Self::Id => sink(parts.id),
            Self::Pair(name) => {
                let (text, separator) = parts.pairs;
                sink(pair(text, separator, name).ok_or(Reason::MalformedSignature)?.as_bytes());
            }
            Self::Field { place: Place::Header(name), optional } => match one(request.headers, name)? {
                Some(value) => sink(trimmed(value)),
                None if *optional => {}
                None => return Err(Reason::MissingHeader),
            },
            Self::Field { place, optional } => match place.text(parts.view)? {
                Some(text) => sink(&text),
                None if *optional => {}
                None => return Err(Reason::MalformedBody),
            },
            Self::Lines(lines) => feed_lines(lines, parts.view, sink)?,
            Self::FormSorted => canonical::form_sorted(request, sink)?,
            Self::FormPhp => canonical::form_php(request.body, parts.signature_field, sink)?,
            Self::Method => sink(request.method.as_str().as_bytes()),
            Self::Url => {
                sink(parts.origin.as_bytes());
                sink(request.target.as_bytes());
            }
            Self::UrlHubspot => {
                sink(parts.origin.as_bytes());
                canonical::hubspot(request.target, sink);
            }
            Self::Path => sink(request.target.split('?').next().unwrap_or_default().as_bytes()),
            Self::Target => sink(request.target.as_bytes()),
            Self::Secret => sink(parts.secret),
            Self::Contentful => canonical::contentful(request, sink)?,
        }
        Ok(())
    }
}

fn feed_lines(lines: &[Line], view: View<'_>, sink: &mut dyn FnMut(&[u8])) -> Result<(), Reason> {
    for line in lines {
        let text = match line.place.text(view)? {
            Some(text) => text,
            None if line.optional => continue,
            None => return Err(Reason::MalformedBody),
        };
        for bytes in [line.name.as_bytes(), b"\n", &*text, b"\n"] {
            sink(bytes);
        }
    }
    Ok(())
}

fn token_piece(token: &str, needs: &mut Needs) -> Result<Piece, String> {
    Ok(match token {
        "body" => Piece::Body,
        "body.sha256hex" => Piece::BodySha256,
        "body.crc32" => Piece::BodyCrc32,
        "timestamp" => Piece::Timestamp,
        "id" => Piece::Id,
        "form.sorted" => Piece::FormSorted,
        "form.php" => Piece::FormPhp,
        "method" => Piece::Method,
        "url" => Piece::Url,
        "url.hubspot" => Piece::UrlHubspot,
        "path" => Piece::Path,
        "target" => Piece::Target,
        "secret" => Piece::Secret,
        _ => return field_piece(token, needs),
    })
}

fn field_piece(token: &str, needs: &mut Needs) -> Result<Piece, String> {
    match token.split_once(':') {
        Some(("sig", name)) if !name.is_empty() => return Ok(Piece::Pair(name.to_owned())),
        Some(("lines", names)) => {
            return names.split(',').map(|name| line(name, needs)).collect::<Result<_, _>>().map(Piece::Lines);
        }
        Some(("header" | "body" | "item" | "form" | "query", _)) => {}
        _ => {
            return Err(format!(
                "has an unknown piece `{{{token}}}`: use body, timestamp, id, header:name, body:/pointer, item:/pointer, form:name, \
                 query:name, sig:name, config:name, method, url, path, target, secret, body.sha256hex, body.crc32, form.sorted, \
                 form.php, url.hubspot or lines:A,B"
            ));
        }
    }
    let (name, optional) = token.strip_suffix('?').map_or((token, false), |name| (name, true));
    match needs.place(name)? {
        Place::Numbered(_) => Err(format!("names numbered headers in `{{{token}}}`, which only a signature may have")),
        place => Ok(Piece::Field { place, optional }),
    }
}

fn line(name: &str, needs: &mut Needs) -> Result<Line, String> {
    let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    if name.is_empty() || name.contains(['/', '~', '\n']) {
        return Err(format!("has the line {name:?}, which names no member of the body: correct it"));
    }
    Ok(Line { name: name.to_owned(), place: needs.place(&format!("body:/{name}"))?, optional })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Template, Problem> {
        let config = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
        Template::parse(text, &mut Making { needs: &mut Needs::default(), config: &config, key: "verify.signed" })
    }

    #[test]
    fn a_template_names_its_pieces() {
        let template = parse("v0:{timestamp}:{body}{config:a}").expect("a template");
        assert!(template.has(&Piece::Timestamp) && template.covers_body());
        assert_eq!(template.pieces.len(), 5);
        assert_eq!(template.pieces[4], Piece::Text(b"x".to_vec()));
    }

    #[test]
    fn unknown_pieces_and_texts_that_are_not_stated_are_refused() {
        for text in
            ["{body", "{json:/a}", "{header:a b}{body}", "{body:a}", "{config:b}", "{lines:A,/B}", "{header:a-*}"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
