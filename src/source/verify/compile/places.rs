//! Where signature, time and id stand, and how the signature's text is laid out.

use actix_web::http::header::HeaderName;

use super::super::super::Problem;
use super::super::super::spec::{Entries, Format, SignedSpec, Texts};
use super::super::place::{Place, header_place};
use super::super::signature::{Set, Signed, TimeFrom};
use super::super::template::Piece;
use super::Compiler;

pub(super) fn header_name(text: &str, key: &str) -> Result<HeaderName, Problem> {
    text.parse().map_err(|_| Problem::new(key, format!("names {text:?}, which cannot be a header: correct it")))
}

impl Compiler<'_> {
    /// The sets of places; a list of one serves every set.
    pub(super) fn sets(&mut self) -> Option<Vec<Set>> {
        let (key, texts, by_header) = match (&self.verify.header, &self.verify.from) {
            (Some(header), None) => ("verify.header", header, true),
            (None, Some(from)) => ("verify.from", from, false),
            (None, None) => {
                self.problem("verify.header", "is missing: name the header that holds the signature");
                return None;
            }
            (Some(_), Some(_)) => {
                self.problem("verify.from", "stands beside `verify.header`: leave one of them out");
                return None;
            }
        };
        let texts: Vec<String> = texts.all().to_vec();
        if texts.is_empty() || texts.len() > 8 {
            self.problem(key, "is empty, or has more than 8 entries: name the header that holds the signature");
            return None;
        }
        let mut all = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let signature = if by_header {
                let bad = || Problem::new(key, format!("names {text:?}, which cannot be a header: correct it"));
                self.kept(header_place(text).ok_or_else(bad))
            } else {
                self.place(key, text)
            };
            let time = match self.at(&self.verify.timestamp, "verify.timestamp", (index, texts.len())) {
                Some(text) => self.time_from(&text),
                None => self.implied_time(),
            };
            let id = self.at(&self.verify.id, "verify.id", (index, texts.len()));
            let id = id.and_then(|text| {
                let text = if text.contains(':') { text } else { format!("header:{text}") };
                self.place("verify.id", &text)
            });
            all.extend(signature.map(|signature| Set { signature, time, id }));
        }
        (all.len() == texts.len()).then_some(all)
    }

    /// The entry for one set.
    fn at(&mut self, texts: &Option<Texts>, key: &str, (index, sets): (usize, usize)) -> Option<String> {
        match texts.as_ref()?.all() {
            [only] => Some(only.clone()),
            several if several.len() == sets => Some(several[index].clone()),
            several => {
                let several = several.len();
                if index == 0 {
                    self.problem(
                        key,
                        format!("has {several} entries for {sets} signatures: state one, or one for each"),
                    );
                }
                None
            }
        }
    }

    fn time_from(&mut self, text: &str) -> Option<TimeFrom> {
        let key = "verify.timestamp";
        match text.split_once(':') {
            Some(("pair", name)) if matches!(self.verify.format, Some(Format::Pairs(_))) => {
                Some(TimeFrom::Pair(name.to_owned()))
            }
            Some(("pair", _)) => {
                self.problem(key, "names a pair, but `verify.format` is not `pairs`: use `header:name`");
                None
            }
            None if text == "first" && matches!(self.verify.format, Some(Format::List(_))) => Some(TimeFrom::First),
            Some(("header" | "body" | "item" | "form" | "query", _)) => self.place(key, text).map(TimeFrom::Place),
            _ => {
                self.problem(
                    key,
                    format!("is {text:?}: use `header:name`, `pair:name`, `body:/pointer`, or `first` of a list"),
                );
                None
            }
        }
    }

    /// With a window and no `timestamp`, the only header that is signed is the time.
    fn implied_time(&mut self) -> Option<TimeFrom> {
        self.verify.window?;
        let Some(SignedSpec::Any(Texts::One(text))) = &self.verify.signed else { return None };
        let mut headers =
            text.match_indices("{header:").filter_map(|(at, open)| text[at + open.len()..].split_once('}'));
        let (only, more) = (headers.next()?.0, headers.next());
        let only = only.to_owned();
        more.is_none().then(|| self.place("verify.signed", &format!("header:{only}")).map(TimeFrom::Place)).flatten()
    }

    pub(super) fn also(&mut self) -> Vec<Place> {
        let texts: Vec<String> = self.verify.also_header.iter().flat_map(Texts::all).cloned().collect();
        if texts.len() > 8 {
            self.problem("verify.also_header", "has more than 8 entries: leave some out");
        }
        texts.iter().filter_map(|text| self.kept(header_name(text, "verify.also_header")).map(Place::Header)).collect()
    }

    pub(super) fn format(&mut self) -> Option<Format> {
        let format = self.verify.format.clone().unwrap_or(Format::Bare);
        let problem = match &format {
            Format::Pairs(pairs) if pairs.names.is_empty() => {
                "names no pair that holds a signature: add one to `names`"
            }
            Format::Pairs(pairs) if pairs.groups == Some(pairs.separator) => {
                "parts pairs and groups alike: correct `groups`"
            }
            Format::Versions(versions) if versions.is_empty() => "accepts no version: add one",
            Format::Prefix(prefix) if prefix.is_empty() => "has an empty prefix: use `bare`",
            Format::Entries(entries) => return self.entries(entries).map(Format::Entries),
            _ => return Some(format),
        };
        self.problem("verify.format", problem);
        None
    }

    fn entries(&mut self, entries: &Entries) -> Option<Entries> {
        let key = "verify.format.entries";
        if entries.layout.iter().filter(|part| *part == "{signature}").count() != 1 {
            self.problem(key, "must have `{signature}` once in `layout`");
        }
        if entries.separator == entries.parts || entries.layout.len() > 8 {
            self.problem(key, "needs two different separators, and at most 8 parts in `layout`");
        }
        let mut layout = Vec::with_capacity(entries.layout.len());
        for part in &entries.layout {
            let text = self.making(key).configured(part);
            let text = self.kept(text)?;
            if text == "*" && part != "*" {
                self.problem(key, format!("would take any text for {part:?}: state the text itself in `config`"));
            }
            layout.push(text);
        }
        Some(Entries { layout, ..entries.clone() })
    }

    /// Whether the time of a set is part of what is signed.
    pub(super) fn signs_time(signed: &Signed, set: &Set) -> bool {
        signed.all().all(|template| {
            let by_place = match &set.time {
                Some(TimeFrom::Place(place @ Place::Body(_))) => template.has(&Piece::Body) || template.signs(place),
                Some(TimeFrom::Place(place @ Place::Form(_))) => {
                    let whole = [Piece::Body, Piece::FormSorted, Piece::FormPhp];
                    template.signs(place) || whole.iter().any(|piece| template.has(piece))
                }
                Some(TimeFrom::Place(place @ Place::Query(_))) => {
                    let whole = [Piece::Url, Piece::UrlHubspot, Piece::Target];
                    template.signs(place) || whole.iter().any(|piece| template.has(piece))
                }
                Some(TimeFrom::Place(place)) => template.signs(place),
                Some(TimeFrom::Pair(name)) => template.has(&Piece::Pair(name.clone())),
                _ => false,
            };
            by_place || template.has(&Piece::Timestamp) || template.has(&Piece::Contentful)
        })
    }
}
